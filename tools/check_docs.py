"""Fail where the docs and the product disagree, or where a text breaks the rules of docs/."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from tools import check_acceptance, entries, gen_docs

ROOT = Path(__file__).resolve().parent.parent
DECISION_HEADINGS = ("Context", "Decision", "Rejected alternative", "Consequence", "Revisit when")
DECISION_LINES, AGENTS_LINES, STEPS = 40, 39, 15
NEWS_NAME = re.compile(r"(\d+|\+\w+)\.(feature|bugfix|removal|doc|misc)(\.\d+)?\.md")
MACHINE_PATH = re.compile(r"(?<![\w./~$}-])/(?:work|root|tmp|home)(?:/|\b(?=[\s`'\")]))")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
GENERATED = re.compile(r"docs/(conditions/c\d\d_\w+|reference/\w+)\.md")


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every file that is or would be committed and is UTF-8 text."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    names = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    for name in sorted(filter(None, names)):
        try:
            yield name, (root / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


def check_paths(root: Path) -> list[str]:
    """No path of somebody's machine in any committed text."""
    return [
        f"{name}:{number}: a path of one machine"
        for name, text in texts(root)
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]


def check_links(root: Path) -> list[str]:
    """Every relative link in a committed page leads to a file that exists or is generated."""
    found = []
    for name, text in texts(root):
        for target in LINK.findall(text) if name.endswith(".md") else []:
            path = ((root / name).parent / target).resolve()
            inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
            if "://" not in target and not path.exists() and not GENERATED.fullmatch(inside):
                found.append(f"{name}: link to {target} leads nowhere")
    return found


def check_decisions(root: Path) -> list[str]:
    """Decisions are numbered without gaps, have their headings, and are short."""
    found = []
    files = sorted(f for f in (root / "docs" / "decisions").glob("*.md") if f.name != "README.md")
    for expected, file in enumerate(files, 1):
        at, text = f"docs/decisions/{file.name}", file.read_text(encoding="utf-8")
        if not file.name.startswith(f"{expected:04d}-"):
            found.append(f"{at}: number {expected:04d} was expected")
        if len(text.splitlines()) > DECISION_LINES:
            found.append(f"{at}: {len(text.splitlines())} lines, limit {DECISION_LINES}")
        headings = tuple(re.findall(r"^## (.+)$", text, flags=re.MULTILINE))
        if headings != DECISION_HEADINGS:
            found.append(f"{at}: the headings must be {', '.join(DECISION_HEADINGS)}")
    return found


def check_acceptance_files(root: Path) -> list[str]:
    """Acceptance files are well formed."""
    files = check_acceptance.load(root).items()
    return [
        p for name, data in files for p in check_acceptance.problems_of(f"docs/acceptance/{name}.toml", data)
    ]


def check_guides(root: Path) -> list[str]:
    """AGENTS.md is short, each guide of CONTRIBUTING.md has few steps, news fragments are well named."""
    found = []
    count = len((root / "AGENTS.md").read_text(encoding="utf-8").splitlines())
    if count > AGENTS_LINES:
        found.append(f"AGENTS.md: {count} lines, limit {AGENTS_LINES}")
    contributing = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    guides = dict(
        re.findall(r"^## Add an? (\w+)\n(.*?)(?=^## |\Z)", contributing, flags=re.MULTILINE | re.DOTALL)
    )
    found += [
        f"CONTRIBUTING.md: no guide 'Add a {g}'"
        for g in ("condition", "protocol", "source", "action")
        if g not in guides
    ]
    for name, text in guides.items():
        steps = len(re.findall(r"^\d+\. ", text, flags=re.MULTILINE))
        if not 0 < steps <= STEPS:
            found.append(f"CONTRIBUTING.md: 'Add a {name}' has {steps} steps, limit {STEPS}")
    for file in sorted((root / "news").iterdir()):
        if file.name not in ("README.md", ".gitignore") and not NEWS_NAME.fullmatch(file.name):
            found.append(f"news/{file.name}: must be <id>.<feature|bugfix|removal|doc|misc>.md")
    return found


def check_dependencies(root: Path) -> list[str]:
    """Each declared dependency has its line in docs/dependencies.md; the lock file names no place."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["dependencies"] + [
        d for extra in project["optional-dependencies"].values() for d in extra
    ]
    page = (root / "docs" / "dependencies.md").read_text(encoding="utf-8")
    names = sorted({re.split(r"[^\w.-]", d)[0] for d in declared})
    found = [
        f"docs/dependencies.md: {name} is not explained" for name in names if f"| `{name}` |" not in page
    ]
    lock = (root / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found += [
        f"requirements.lock: {x}" for x in lock if x and not re.match(r"#|[\w.-]+==[\w.!+-]+( ; .*)?$", x)
    ]
    return found


def check_conditions(root: Path) -> list[str]:
    """Each condition has all that its generated page shows."""
    found = []
    for entry in entries.load_entries(root):
        lacks = entries.problems_of(entry)
        found += lacks or (
            [] if entry.data["title"] in gen_docs.condition_page(entry) else [f"{entry.id}: no page"]
        )
    return found


def check_readme(root: Path) -> list[str]:
    """README's table names the conditions that there are."""
    text = (root / "README.md").read_text(encoding="utf-8")
    if gen_docs.BLOCK[0] not in text:
        return ["README.md: the marks around the table of conditions are missing"]
    same = gen_docs.with_conditions(text, entries.load_entries(root)) == text
    return [] if same else ["README.md: the table of conditions is out of date; run `make docs`"]


def check_features(root: Path) -> list[str]:
    """Each feature has a unit and a meaning, and each feature that a condition needs exists."""
    specs = gen_docs.feature_specs()
    found = [
        f"feature {spec.scope}.{name}: unit or meaning is missing"
        for spec in specs
        for name, column in spec.columns.items()
        if not (column.unit and column.doc)
    ]
    known: dict[str, set[str]] = {}
    for spec in specs:
        known.setdefault(spec.scope, set()).update(spec.columns)
    for entry in entries.load_entries(root):
        scope = entry.data["scope"]
        missing = sorted(set(entry.data.get("needs", {})) - known.get(scope, set()))
        found += [f"{entry.id}: needs {scope}.{name}, which no feature family gives" for name in missing]
    return found


def check_cli(root: Path) -> list[str]:
    """Each command has an example and is named in a committed page; each option has a help text."""
    written = [
        (n, t) for n, t in texts(root) if n == "README.md" or (n.startswith("docs/") and n.endswith(".md"))
    ]
    prose = "\n".join(text for _, text in written)
    found = []
    for name, command, _ in gen_docs.commands(gen_docs.load_cli()):
        if not isinstance(command, click.Group) and "xample" not in (command.help or "") + (
            command.epilog or ""
        ):
            found.append(f"{name} --help shows no example")
        if not re.search(rf"{re.escape(name)}\b", prose):
            found.append(f"{name} is named in no page of docs/ nor in README.md")
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden and not option.help:
                found.append(f"{name}: option {option.opts[-1]} has no help text")
    return found


CHECKS: tuple[Callable[[Path], list[str]], ...] = (
    check_paths,
    check_links,
    check_decisions,
    check_acceptance_files,
    check_guides,
    check_dependencies,
    check_conditions,
    check_readme,
    check_features,
    check_cli,
)


def main(root: Path = ROOT) -> int:
    """Run every check and print what is wrong."""
    found = [problem for check in CHECKS for problem in check(root)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"docs: {len(CHECKS)} checks, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
