"""Processes that share a host: which of them are late together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows

LATE_RATIO = 1.5
"""An endpoint counts as late when its median chunk gap is this many times its usual one."""


class Machines:
    """Per host: processes that were judged in the window, and how many were late."""

    SPEC = FeatureSpec(
        "machine",
        "a host with at least two processes in view",
        {
            "processes": FeatureColumn("1", "processes judged in the window, unknown where fewer than two"),
            "late_processes": FeatureColumn("1", "those that were late"),
        },
    )
    NEEDS: Sequence[str] = ("member", "endpoint")

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        judged: dict[str, list[bool]] = {}
        member, endpoint = others["member"], others["endpoint"]
        for i, key in enumerate(member.keys):
            if np.isfinite(member.columns["excess_ratio"][i]):
                judged.setdefault(key, []).append(bool(member.columns["late_rounds"][i] > 0))
        served: dict[str, list[bool]] = {}
        for i, key in enumerate(endpoint.keys):
            ratio = endpoint.columns["chunk_gap_ratio"][i]
            if np.isfinite(ratio):
                served.setdefault(key.rsplit(":", 1)[0].strip("[]"), []).append(bool(ratio >= LATE_RATIO))
        # The rank of a group that also serves its one endpoint is a single process.
        for host, late in served.items():
            judged[host] = judged[host] + late[1:] if host in judged else late
        keys = [h for h in sorted(judged) if len(judged[h]) >= 2]
        columns = {name: nan_rows(len(keys)) for name in self.SPEC.columns}
        for i, h in enumerate(keys):
            columns["processes"][i], columns["late_processes"][i] = len(judged[h]), sum(judged[h])
        return FeatureRows("machine", keys, columns)


FEATURE = Machines
