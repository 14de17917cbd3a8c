"""Run the commands of docs/acceptance/*.toml and print a table.

Usage: python -m tools.check_acceptance [TOPIC ...] [--list]
Each row is one thing that was asked for. Its state is `open`, `pass` or `not shown` (measured, and the
target was not met). A row without a passing command is open. Exit code 1: a row that claims `pass` failed.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATES = ("open", "pass", "not shown")
KEYS = {"id": str, "asked": str, "command": str, "value": str, "state": str}
OPTIONAL = {"timeout_s": int, "needs": list}
TIMEOUT_S = 300


def problems_of(name: str, data: dict[str, Any]) -> list[str]:
    """Return what is malformed in one acceptance file."""
    found = [] if isinstance(data.get("topic"), str) else [f"{name}: topic is missing"]
    rows = data.get("item", [])
    if not rows:
        found.append(f"{name}: no [[item]]")
    seen: set[str] = set()
    for position, row in enumerate(rows, 1):
        at = f"{name}: item {row.get('id', position)}"
        found += [
            f"{at}: {key} must be a {kind.__name__}"
            for key, kind in KEYS.items()
            if not isinstance(row.get(key), kind)
        ]
        found += [f"{at}: unknown key {key}" for key in row if key not in KEYS | OPTIONAL]
        found += [
            f"{at}: {key} must be a {kind.__name__}"
            for key, kind in OPTIONAL.items()
            if not isinstance(row.get(key, kind()), kind)
        ]
        if row.get("state") not in STATES:
            found.append(f"{at}: state must be one of {', '.join(STATES)}")
        if row.get("state") != "open" and not row.get("command"):
            found.append(f"{at}: only an open item may lack its command")
        if row.get("state") == "not shown" and not row.get("value"):
            found.append(f"{at}: 'not shown' needs the value that was measured")
        if row.get("id") in seen:
            found.append(f"{at}: the id is used twice")
        seen.add(row.get("id", ""))
    return found


def load(root: Path) -> dict[str, dict[str, Any]]:
    """Return every acceptance file by its name without suffix."""
    files = sorted((root / "docs" / "acceptance").glob("*.toml"))
    return {f.stem: tomllib.loads(f.read_text(encoding="utf-8")) for f in files}


def run(row: dict[str, Any]) -> str:
    """Run one row's command; return `pass`, `skip` with the missing variable, or what went wrong."""
    if not row["command"]:
        return "no command"
    absent = [name for name in row.get("needs", []) if name not in os.environ]
    if absent:
        return f"skip: {', '.join(absent)} not set"
    environment = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ.get('PATH', '')}"}
    limit = row.get("timeout_s", TIMEOUT_S)
    try:
        done = subprocess.run(
            ["bash", "-c", row["command"]],
            cwd=ROOT,
            env=environment,
            timeout=limit,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"longer than {limit} s"
    return "pass" if done.returncode == 0 else f"exit {done.returncode}"


def main(arguments: list[str]) -> int:
    """Run or list the rows of the named topics, or of all."""
    topics = [a for a in arguments if not a.startswith("-")]
    broken = claimed = passed = 0
    for name, data in load(ROOT).items():
        if topics and name not in topics:
            continue
        malformed = problems_of(f"docs/acceptance/{name}.toml", data)
        print(*malformed, sep="\n", end="\n" if malformed else "")
        if malformed:
            return 1
        for row in data["item"]:
            result = "-" if "--list" in arguments else run(row)
            claimed += row["state"] == "pass"
            passed += result == "pass"
            broken += row["state"] == "pass" and result not in ("-", "pass") and not result.startswith("skip")
            print(f"{name:10} {row['id']:28} {row['state']:10} {result:22} {row['value']}", flush=True)
    print(f"acceptance: {claimed} claimed, {passed} passed now, {broken} claims broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
