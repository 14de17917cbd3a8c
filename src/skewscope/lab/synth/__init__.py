"""Synthetic captures: a seeded, exactly repeatable cluster in simulated time, as packets.

Everything made here is synthetic and says so: `Truth["synthetic"]`, and the MAC addresses of every
frame, which begin with 02:53:59:4e (`SYN`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skewscope.core.scenario import Scenario
from skewscope.lab.synth.process import seconds
from skewscope.lab.synth.world import World, culprits

__all__ = ["Truth", "capture", "write"]

Truth = dict[str, Any]
"""The truth of a case as a dict; the caller fills in the condition of each fault."""


def capture(scenario: Scenario) -> tuple[dict[str, bytes], Truth]:
    """Run a scenario; returns (capture file per tap name, truth). Same scenario, same bytes."""
    world = World(scenario)
    files = world.run()
    return files, _truth(scenario, world)


def write(scenario: Scenario, folder: Path) -> Truth:
    """Run a scenario and write `<tap>.pcap` files to an existing or new folder; returns the truth."""
    files, truth = capture(scenario)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / f"{name}.pcap").write_bytes(data)
    return truth


def _truth(scenario: Scenario, world: World) -> Truth:
    addresses = {name: host.id for name, host in world.network.hosts.items()}
    first = min((r[0] for h in world.network.hosts.values() for r in h.records), default=world.start_ns)
    faults = []
    for fault in scenario.faults:
        kind, ids = culprits(scenario, fault, addresses)
        faults.append(
            {
                "kind": fault.kind,
                "culprit": {"kind": kind, "id": ids[0]},
                "culprit_ids_right": ids,
                "onset_s": fault.start_s,
                "end_s": min(fault.end_s, scenario.duration_s),
                "onset_ns": world.start_ns + seconds(fault.start_s),
                "end_ns": world.start_ns + seconds(min(fault.end_s, scenario.duration_s)),
                "strength": {"name": fault.kind, "value": fault.strength},
            }
        )
    return {
        "schema": "skewscope.truth/1",
        "name": f"{scenario.name}.s{scenario.seed}",
        "source": "sim",
        "synthetic": True,
        "seed": scenario.seed,
        "role": scenario.role,
        "first_sample_ns": first,
        "hosts": addresses,
        "fault": faults,
    }
