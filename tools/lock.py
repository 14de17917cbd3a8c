"""Write requirements.lock: exact versions for the base install, most extras, and dev.

The file must work on any machine, so nothing of this one may stand in it: no index, no host, no path.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Exact versions for development and tests. Written by `make lock`; do not edit.\n"
EXTRAS = ("dev", "tables", "zstd", "lz4", "metrics")


def portable(text: str) -> str:
    """Return only the `name==version` lines of pip-compile's output, with markers, without options."""
    keep = [line.strip() for line in text.splitlines() if re.match(r"^[A-Za-z0-9][\w.\-]*==", line)]
    return HEADER + "\n".join(keep) + "\n"


def main() -> int:
    """Run pip-compile and write the lock file."""
    command = [sys.executable, "-m", "piptools", "compile", "--quiet", "--upgrade", "--strip-extras"]
    command += ["--allow-unsafe", "--no-header", "--no-annotate", "--no-emit-options"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"]
    command += [f"--extra={extra}" for extra in EXTRAS] + ["--output-file=-", "pyproject.toml"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    (ROOT / "requirements.lock").write_text(portable(done.stdout), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
