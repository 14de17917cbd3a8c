"""The same Llama model in PyTorch: another platform for each precision, kernel, batch size and thread count.

Needs the extra `fingerprint`. CPU only here; the same code runs on a GPU with `device="cuda"`, which no
recorded result has used so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.llama import MATRICES, Model, rotation

DTYPES = ("fp32", "bf16", "fp16", "fp64")
ATTENTION = ("sdpa", "eager")


class TorchModel:
    """A model whose weights are torch tensors of one dtype on one device."""

    def __init__(
        self, model: Model, *, dtype: str = "fp32", attention: str = "sdpa", device: str = "cpu"
    ) -> None:
        import torch

        kinds = {
            "fp32": torch.float32,
            "bf16": torch.bfloat16,
            "fp16": torch.float16,
            "fp64": torch.float64,
        }
        self.torch, self.model, self.attention = torch, model, attention
        self.place = {"dtype": kinds[dtype], "device": device}
        self.embedding = self._tensor(model.embedding)
        self.head, self.norm = self._tensor(model.head), self._tensor(model.norm)
        self.layers = [{name: self._tensor(w) for name, w in layer.items()} for layer in model.layers]

    def _tensor(self, values: NDArray[np.floating]) -> Any:
        return self.torch.from_numpy(np.array(values)).to(**self.place)

    def logits(self, tokens: NDArray[np.integer], last: int = 1) -> NDArray[np.float32]:
        """Return float32 logits (batch, last, ids) after each of the last positions of tokens."""
        torch = self.torch
        with torch.inference_mode():
            length = tokens.shape[1]
            turn = [self._tensor(x.astype(np.float32)) for x in rotation(self.model, length)]
            ids = torch.from_numpy(tokens.astype(np.int64)).to(self.place["device"])
            x = self.embedding[ids]
            for layer in self.layers:
                x = x + self._attention(layer, self._normed(x, layer["attention_norm"]), turn)
                y = self._normed(x, layer["ffn_norm"])
                gate = torch.nn.functional.silu(y @ layer["gate"].T)
                x = x + (gate * (y @ layer["up"].T)) @ layer["down"].T
            out = self._normed(x[:, length - last :], self.norm) @ self.head.T
            found: NDArray[np.float32] = out.float().cpu().numpy()
            return found

    def _normed(self, x: Any, weight: Any) -> Any:
        wide = x if x.dtype == self.torch.float64 else x.float()
        size = self.torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.model.epsilon)
        return (wide * size).to(x.dtype) * weight

    def _attention(self, layer: dict[str, Any], x: Any, turn: list[Any]) -> Any:
        torch = self.torch
        batch, length, _ = x.shape
        model = self.model

        def split(name: str, heads: int) -> Any:
            return (x @ layer[name].T).view(batch, length, heads, -1).transpose(1, 2)

        def rotate(y: Any) -> Any:
            even, odd = y[..., 0::2], y[..., 1::2]
            cosine, sine = turn
            return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)

        q, k = rotate(split("q", model.heads)), rotate(split("k", model.kv_heads))
        repeat = model.heads // model.kv_heads
        k = k.repeat_interleave(repeat, 1)
        v = split("v", model.kv_heads).repeat_interleave(repeat, 1)
        if self.attention == "sdpa":
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((length, length), float("-inf"), **self.place).triu(1)
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask
            mixed = torch.softmax(scores, -1) @ v
        return mixed.transpose(1, 2).reshape(batch, length, -1) @ layer["o"].T

    def flip_weight_bit(self, layer: int, name: str, index: int, bit: int) -> None:
        """Flip one stored bit of one weight, as a faulty memory cell does; a second call restores it."""
        if name not in MATRICES:
            raise ValueError(f"{name} is not one of {', '.join(MATRICES)}")
        flat = self.layers[layer][name].view(-1)
        width = flat.element_size() * 8
        if not 0 <= bit < width:
            raise ValueError(f"bit {bit} of a {width}-bit weight")
        kind = {16: self.torch.int16, 32: self.torch.int32, 64: self.torch.int64}[width]
        mask = 1 << bit if bit < width - 1 else -(1 << bit)
        flat.view(kind)[index] ^= mask


def build(device: str = "cpu") -> dict[str, Any]:
    """Return what of the installation decides the arithmetic: versions and instruction sets."""
    import torch

    found: dict[str, Any] = {
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "mkldnn": torch.backends.mkldnn.is_available(),
    }
    if device.startswith("cuda"):
        found["gpu"] = torch.cuda.get_device_name(device)
        found["cuda"] = torch.version.cuda
    return found
