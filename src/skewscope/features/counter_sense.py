"""What counters of two ends, of a link and of a tap mean together, where one of them alone misleads.

Arrays of shape (n,), float64; NaN in an answer = cannot be told from these.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array

LEAST_BYTES = 1e6
"""What a port must move before a tap that saw nothing is called blind: less may be all management."""

BLIND_SHARE = 0.01
"""A tap that sees less than this share of a port's bytes does not see its traffic. Hardware-offloaded RoCE
leaves the first packets of a connection at most (docs/sources.md)."""


def path_errors(requester: Array, responder: Array) -> Array:
    """Return how many errors a path had, from what its two ends counted; NaN = the end not read.

    Only the requester's counters tell: in ten of ten injected RDMA faults the responder's stayed 0
    (rdma-fault-characterization, ConnectX-5/6). A clean responder is no news.
    """
    told = np.where(responder > 0, np.fmax(requester, responder), requester)
    return np.asarray(told, dtype=np.float64)


def link_share(speed: Array, full_speed: Array, width: Array, full_width: Array, busy: Array) -> Array:
    """Return the share of its bandwidth that a PCIe link trained to; `busy` bool: it moves data.

    An idle link may rest at the speed of generation 1 (ASPM and the driver's power states), so a slow idle
    link says nothing. Fewer lanes are no power state below generation 6: they count in any case.
    """
    lanes = np.where(full_width > 0, width / np.where(full_width > 0, full_width, 1.0), np.nan)
    pace = np.where(full_speed > 0, speed / np.where(full_speed > 0, full_speed, 1.0), np.nan)
    pace = np.where((pace < 1.0) & ~busy, np.nan, pace)
    both = lanes * pace
    return np.asarray(np.where(np.isnan(pace) & (lanes < 1.0), lanes, both), dtype=np.float64)


def seen_share(tap_bytes: Array, port_bytes: Array) -> Array:
    """Return the share of a port's bytes that a tap saw; NaN where the port moved next to nothing.

    Below BLIND_SHARE the tap is blind, and what it does not see is not healthy: a software rule on a DPU
    installs without complaint and matches no offloaded packet.
    """
    moved = port_bytes >= LEAST_BYTES
    share = np.full(np.shape(port_bytes), np.nan)
    np.divide(tap_bytes, port_bytes, out=share, where=moved)
    return share


def is_blind(tap_bytes: Array, port_bytes: Array) -> Array:
    """Say where a tap sees nothing although its port moves bytes: bool (n,)."""
    return np.asarray(seen_share(tap_bytes, port_bytes) < BLIND_SHARE)
