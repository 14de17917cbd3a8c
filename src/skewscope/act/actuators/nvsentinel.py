"""NVSentinel: a health event to its platform connector, which repairs by its own rules.

One unary gRPC call, `datamodels.PlatformConnector/HealthEventOccurredV1`, over the connector's Unix socket.
Field numbers: NVSentinel, data-models/protobufs/health_event.proto. The call is written out here
(`_grpc.py`), so that nothing is installed for it. It cannot be read back; taking it back is a healthy event
of the same check and node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators import _grpc
from skewscope.act.settings import Table
from skewscope.core.action import Settled

METHOD = "/datamodels.PlatformConnector/HealthEventOccurredV1"
STRATEGIES = {"EXECUTE_REMEDIATION": 1, "STORE_ONLY": 2}
ACTIONS = {"NONE": 0, "CONTACT_SUPPORT": 5, "RUN_FIELDDIAG": 6, "RESTART_BM": 24}
CHECK = "SkewscopeFailSlow"


class NVSentinel:
    """One platform connector. The node of the endpoint is what is reported."""

    VERBS: Mapping[str, bool] = {"hand_over_node": True}

    def __init__(self, table: Table) -> None:
        self.socket = table.text("socket", "/var/run/nvsentinel/platform-connector.sock")
        self.timeout_s = table.number("timeout_s", 0.1, 60, 5.0)
        self.strategy = table.text("strategy", "STORE_ONLY", tuple(STRATEGIES))
        self.action = table.text("recommend", "NONE", tuple(ACTIONS))
        self.component = table.text("component", "Node")

    def read(self, verb: str, target: Target) -> Settled:
        """Return nothing: there is no way to ask."""
        return {}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return unhealthy."""
        return {"healthy": False}

    def _event(self, target: Target, state: Settled) -> dict[str, Any]:
        if not target.node:
            raise ActuatorError(f"endpoint {target.id} has no node in act.toml")
        healthy = bool(state.get("healthy", True))
        return {
            "agent": "skewscope",
            "componentClass": self.component,
            "checkName": CHECK,
            "isFatal": False,
            "isHealthy": healthy,
            "message": f"{target.action}: {target.reason}",
            "recommendedAction": "NONE" if healthy else self.action,
            "nodeName": target.node,
            "processingStrategy": self.strategy,
            "generatedTimestampNs": target.now_ns,
        }

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the call, with the event as JSON."""
        return [Request(METHOD, self.socket, json.dumps(self._event(target, state), indent=1))]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send the event."""
        _grpc.call(self.socket, METHOD, encode(self._event(target, state)), self.timeout_s)

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return nobody: NVSentinel is not asked for rotation."""
        return set()


def encode(event: Mapping[str, Any]) -> bytes:
    """Return a HealthEvents message (version 1) with one HealthEvent."""
    ns = int(event["generatedTimestampNs"])
    stamp = _number(1, ns // 10**9) + _number(2, ns % 10**9)
    one = b"".join(
        (
            _number(1, 1),
            _text(2, event["agent"]),
            _text(3, event["componentClass"]),
            _text(4, event["checkName"]),
            _number(5, int(event["isFatal"])),
            _number(6, int(event["isHealthy"])),
            _text(7, event["message"]),
            _number(8, ACTIONS[event["recommendedAction"]]),
            _bytes(12, stamp),
            _text(13, event["nodeName"]),
            _number(16, STRATEGIES[event["processingStrategy"]]),
        )
    )
    return _number(1, 1) + _bytes(2, one)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    """Return a varint field; 0 is the default and is not sent."""
    return _varint(field << 3) + _varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value if value else b""


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


ACTUATOR = NVSentinel
