"""Convert recordings in the older form (`truth.json` each, one `expected.toml`) to cases.

Older form: a folder of captures (`*.pcap.gz`), engine logs (`n*.jsonl.gz`), signature.json, truth.json with
`inject_start_s`, `inject_end_s`, `first_packet_epoch`, `machine_busy`, `victim`, `how`; beside the folders
expected.toml with `conditions`, `culprit`, `cause_right`, `secondary`, and optionally `culprits_ok`.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skewscope.lab.bed.truth import Fault, Truth, write

KINDS = {
    "c01": "endpoint", "c03": "router", "c05": "client", "c06": "endpoint", "c08": "endpoint", "c09": "link",
    "c17": "rank", "c20": "rank", "c22": "router", "c23": "link", "c25": "link", "c26": "rank", "c30": "rank",
    "c34": "endpoint", "c38": "rank", "c42": "link", "c45": "rank", "c47": "link",
}  # fmt: skip
"""What a culprit of a condition usually is; the older form gives its address only."""


class RecordingError(ValueError):
    """A folder is not of the older form; the message names what is missing."""


def convert(source: Path, target: Path) -> list[str]:
    """Convert every recording below `source` that expected.toml names; return the names of the cases.

    Existing case folders in `target` are left as they are. Raises RecordingError.
    """
    try:
        wanted = tomllib.loads((source / "expected.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise RecordingError(f"{source}: no readable expected.toml ({error})") from None
    done = []
    for name, want in wanted.items():
        folder, out = source / name, target / name
        if not (folder / "truth.json").is_file():
            raise RecordingError(f"{folder}: no truth.json")
        if not (out / "truth.toml").exists():
            _one(folder, out, want)
        done.append(name)
    return done


def _one(folder: Path, out: Path, want: Mapping[str, Any]) -> None:
    (out / "taps").mkdir(parents=True, exist_ok=True)
    (out / "logs").mkdir(exist_ok=True)
    taps = []
    for file in sorted(folder.iterdir()):
        if re.search(r"\.(pcap|pcapng)(\.gz|\.xz)?$", file.name):
            shutil.copyfile(file, out / "taps" / file.name)
            taps.append(file.name.split(".")[0])
        elif file.name != "truth.json" and file.is_file():
            shutil.copyfile(file, out / "logs" / file.name)
    truth = translate(folder.name, json.loads((folder / "truth.json").read_text("utf-8")), want, taps)
    (out / "truth.toml").write_text(write(truth), encoding="utf-8")


def translate(name: str, said: Mapping[str, Any], want: Mapping[str, Any], taps: list[str]) -> Truth:
    """Return the truth of one recording. Raises RecordingError where a key is missing."""
    try:
        first_ns = round(float(said["first_packet_epoch"]) * 1e9)
        conditions = list(want["conditions"])
        faults: tuple[Fault, ...] = ()
        if conditions:
            faults = (
                Fault(
                    condition=conditions[0],
                    culprit_kind=KINDS.get(conditions[0], "host"),
                    culprit_id=str(want["culprit"]),
                    cause_right=tuple(want["cause_right"]),
                    onset_s=float(said["inject_start_s"]),
                    end_s=float(said["inject_end_s"]),
                    also_right=tuple(conditions[1:]),
                    secondary=tuple(want.get("secondary", ())),
                    visible_from=tuple(f"tap:{t}" for t in taps),
                ),
            )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"{name}: missing or wrong: {error}") from None
    return Truth(
        name=name,
        source="sample",
        seed=int(said.get("config", {}).get("seed", 0)),
        workload=str(said.get("topology", "")),
        first_sample_ns=first_ns,
        machine_busy_ratio=float(said.get("machine_busy", math.nan)),
        faults=faults,
        round_s=float(said.get("round_s", math.nan)),
        bed={k: said[k] for k in ("victim", "how", "bed_scheduling") if said.get(k)},
    )
