"""Fail where `tests/` does not mirror `src/skewscope/`.

`tests/wire/test_pcap.py` or `tests/wire/test_pcap_splits.py` tests `src/skewscope/wire/pcap.py` (or the
folder of that name); `tests/wire/test_wire.py` tests the package. `tests/whole/` holds tests of the
product as a whole, `tests/tools/` and `tests/fuzz/` those of `tools/` and `fuzz/`. A condition keeps
its test in its own folder.
`--missing` lists source files without a test file of their own; that list does not fail the build.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FREE = ("whole",)
APART = ("tools", "fuzz")
"""Folders beside `src` whose tests stand under their own name."""


def candidates(name: str) -> list[str]:
    """Return the module names that `test_a_b_c.py` may stand for: a_b_c, a_b, a."""
    words = name.removeprefix("test_").removesuffix(".py").split("_")
    return ["_".join(words[:n]) for n in range(len(words), 0, -1)]


def source_of(test: Path, root: Path) -> Path | None:
    """Return the source file or folder that a test file mirrors, or None."""
    below = test.relative_to(root / "tests")
    apart = below.parts[0] in APART
    base = root / below.parts[0] if apart else root / "src" / "skewscope"
    parts = below.parent.parts[1:] if apart else below.parent.parts
    folder = base.joinpath(*parts)
    for name in candidates(test.name):
        for path in (folder / f"{name}.py", folder / f"_{name}.py", folder / name):
            if path.exists():
                return path
        if name == folder.name and folder.is_dir():
            return folder
    return None


def strays(root: Path) -> list[str]:
    """Return one line per test file that mirrors nothing, or that stands in the wrong place."""
    found = []
    for test in sorted((root / "tests").rglob("test_*.py")):
        if test.relative_to(root / "tests").parts[0] not in FREE and source_of(test, root) is None:
            found.append(f"{test.relative_to(root).as_posix()}: no source file of that name")
    for test in sorted((root / "src").rglob("test_*.py")):
        folder = test.parent.name
        if not re.fullmatch(r"c\d\d_\w+", folder) or not test.name.startswith(f"test_{folder[:3]}"):
            found.append(
                f"{test.relative_to(root).as_posix()}: only conditions keep tests in src, as test_cNN.py"
            )
    return found


def untested(root: Path) -> list[str]:
    """Return the source files that no test file mirrors; empty and condition files are left out."""
    tested = {source_of(test, root) for test in (root / "tests").rglob("test_*.py")}
    found = []
    for file in sorted((root / "src" / "skewscope").rglob("*.py")):
        in_condition = re.match(r"c\d\d_", file.parent.name)
        if file.name != "__init__.py" and not in_condition and not {file, file.parent} & tested:
            found.append(file.relative_to(root).as_posix())
    return found


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Check the mirror; with --missing, list source files without a test as well."""
    found = strays(root)
    print(*found, sep="\n", end="\n" if found else "")
    without = untested(root)
    if "--missing" in arguments:
        print(*without, sep="\n")
    print(f"mirror: {len(found)} stray test files, {len(without)} source files without their own test file")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
