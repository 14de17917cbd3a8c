"""Pack recorded cases of the test bed into one small archive.

Usage: python -m tools.recordings FOLDER ARCHIVE [--most MEGABYTES]
Every case becomes a member `<case>.tar.xz` of the archive, a plain tar; its captures are in it as plain
pcapng, since two taps saw most packets, and one compressor that sees both stores the second copy for little.
Prints the sizes. Exit code 1: the archive is larger than asked (40 MB if not said); 3: no case in the folder.
"""

import argparse
import gzip
import io
import lzma
import sys
import tarfile
from pathlib import Path

MEGABYTE = 10**6
PRESET = 6
DICTIONARY_BYTES = 1 << 26
"""A whole case fits in it. Most readers take xz files of up to this (64 MiB)."""


def packed(case: Path) -> bytes:
    """Return a case as tar.xz: files in order of names, no owner, no time."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(f for f in case.rglob("*") if f.is_file()):
            content, name = file.read_bytes(), f"{case.name}/{file.relative_to(case).as_posix()}"
            if name.endswith(".pcapng.gz"):
                content, name = gzip.decompress(content), name.removesuffix(".gz")
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": PRESET, "dict_size": DICTIONARY_BYTES}]
    return lzma.compress(data.getvalue(), format=lzma.FORMAT_XZ, filters=filters)


def pack(folder: Path, archive: Path) -> dict[str, int]:
    """Write the archive of all cases in a folder; return their packed sizes in bytes by name."""
    sizes = {}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for truth in sorted(folder.glob("*/truth.toml")):
            data = packed(truth.parent)
            member = tarfile.TarInfo(f"{truth.parent.name}.tar.xz")
            member.size = sizes[truth.parent.name] = len(data)
            tar.addfile(member, io.BytesIO(data))
    return sizes


def main(arguments: list[str] | None = None) -> int:
    """Pack and print."""
    parser = argparse.ArgumentParser(prog="python -m tools.recordings", description="Pack recorded cases.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--most", type=float, default=40.0, help="largest size in MB (default: 40)")
    asked = parser.parse_args(arguments)
    sizes = pack(asked.folder, asked.archive)
    if not sizes:
        asked.archive.unlink()
        print(f"{asked.folder}: no case")
        return 3
    for name, size in sorted(sizes.items(), key=lambda x: -x[1]):
        print(f"{size / MEGABYTE:8.2f} MB  {name}")
    total = asked.archive.stat().st_size / MEGABYTE
    print(f"{total:8.2f} MB  {asked.archive}: {len(sizes)} cases, at most {asked.most:g} MB asked")
    return int(total > asked.most)


if __name__ == "__main__":
    sys.exit(main())
