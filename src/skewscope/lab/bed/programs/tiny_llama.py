"""Write a random Llama of 4.5 million parameters with a byte-level tokenizer. Runs in vLLM's Python.

Usage: python tiny_llama.py FOLDER TEXT; TEXT is any file to train the tokenizer on.
"""

import sys
from pathlib import Path


def main(folder: str, text: str) -> None:
    """Make the model."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train([text], vocab_size=1024, min_frequency=2, special_tokens=["<s>", "</s>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token="<s>", eos_token="</s>")
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (Path(folder) / "made").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
