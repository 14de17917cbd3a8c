"""What the bed needs of the machine, and how it says that something is missing."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
    "nft": "nftables",
    "ethtool": "ethtool",
    "tcpdump": "tcpdump",
    "chrt": "util-linux",
}
"""Program -> Debian package."""
PACKAGES = {"sglang-router": "sglang_router", "vllm-router": "vllm_router"}
"""Routers that are Python packages -> the module."""
OPTIONAL = {"nginx": "nginx", "haproxy": "haproxy", "gcc": "gcc"}


VLLM = "SKEWSCOPE_VLLM"
"""Environment variable: the Python of an installation of vLLM for CPUs."""


class BedUnavailableError(RuntimeError):
    """The bed cannot run here; the message says what is missing and how to get it."""


def missing(extra: tuple[str, ...] = (), torch: bool = True) -> list[str]:
    """Return one line per thing that is missing; `extra` names optional programs a scenario needs."""
    found = []
    if sys.platform != "linux":
        return ["Linux (network namespaces)"]
    if os.geteuid() != 0:
        found.append("root (network namespaces, real-time scheduling)")
    if "vllm" in extra and not Path(os.environ.get(VLLM, "-")).exists():
        found.append(f"vLLM for CPUs: {VLLM} must name its Python (docs/bed.md)")
    for package in sorted(set(extra) & set(PACKAGES)):
        if find_spec(PACKAGES[package]) is None:
            found.append(f"the package {package} in this Python (pip install {package})")
    for program in (*PROGRAMS, *(n for n in extra if n not in (*PACKAGES, "vllm"))):
        if shutil.which(program, path=search_path()) is None:
            package = {**PROGRAMS, **OPTIONAL}.get(program, program)
            found.append(f"the program {program} (Debian package {package})")
    if torch and find_spec("torch") is None:
        found.append('PyTorch in this Python (pip install "skewscope[bed]")')
    return found


def require(extra: tuple[str, ...] = (), torch: bool = True) -> None:
    """Raise BedUnavailableError where something is missing."""
    found = missing(extra, torch)
    if found:
        raise BedUnavailableError("the bed needs " + "; ".join(found))


def search_path() -> str:
    """Return PATH with the folders of system programs, which a user's PATH may lack."""
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def vllm_python() -> Path:
    """Return the Python of the installation of vLLM; raises BedUnavailableError where none is named."""
    require(("vllm",), torch=False)
    return Path(os.environ[VLLM])
