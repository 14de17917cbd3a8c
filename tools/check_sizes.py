"""Fail where a file or a function is longer than the limits, or `core` grows past its cap.

A file that is one data table is exempt by a comment near its top that gives the reason:

    # size: data table, because ...
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools", "bench")
FILE_LINES, FUNCTION_LINES = 400, 60
DETECTOR_LINES, DETECTOR_FUNCTION_LINES = 150, 40
CORE_LINES = 1500
EXEMPT = re.compile(r"^# size: data table, because \S.*", re.MULTILINE)
EXEMPT_WITHIN_LINES = 40


def functions(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Yield (name, first line, number of lines) of every function; decorators are not counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def problems_of(path: str, text: str) -> list[str]:
    """Return what is too long in one file; `path` is relative to the root."""
    detector = path.startswith("src/skewscope/conditions/") and path.endswith("/detector.py")
    most = DETECTOR_LINES if detector else FILE_LINES
    most_function = DETECTOR_FUNCTION_LINES if detector else FUNCTION_LINES
    lines = text.splitlines()
    found = []
    exempt = EXEMPT.search("\n".join(lines[:EXEMPT_WITHIN_LINES])) is not None
    if len(lines) > most and not exempt:
        found.append(f"{path}: {len(lines)} lines, limit {most}")
    for name, line, count in functions(ast.parse(text, filename=path)):
        if count > most_function:
            found.append(f"{path}:{line}: function {name} has {count} lines, limit {most_function}")
    return found


def main(root: Path = ROOT) -> int:
    """Check every Python file below the root's code folders."""
    found: list[str] = []
    core = files = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            path, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
            files += 1
            found += problems_of(path, text)
            if path.startswith("src/skewscope/core/"):
                core += len(text.splitlines())
    if core > CORE_LINES:
        found.append(f"src/skewscope/core: {core} lines in all, limit {CORE_LINES}")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"sizes: {files} files, core {core} of {CORE_LINES} lines, {len(found)} too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
