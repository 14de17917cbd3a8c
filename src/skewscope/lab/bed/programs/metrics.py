"""The front end's metrics page, in vLLM's names, out of what really happened to its requests."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping

LABELS = 'model_name="bed",engine="0"'
FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 20.0)
NEXT_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0)
REQUEST_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)


class Histogram:
    """Counts of values up to each bound, as Prometheus has them."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> list[str]:
        """Return the lines of the page."""
        out, total = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            out.append(f'{name}_bucket{{le="{bound}",{LABELS}}} {total}')
        return [*out, f"{name}_sum{{{LABELS}}} {self.sum:.9g}", f"{name}_count{{{LABELS}}} {total}"]


class Served:
    """What a front end has served so far."""

    def __init__(self) -> None:
        self.counts = {"prompt_tokens": 0, "generation_tokens": 0}
        self.ended = {"length": 0, "abort": 0}
        self.first_s, self.next_s, self.all_s = map(Histogram, (FIRST_TOKEN_S, NEXT_TOKEN_S, REQUEST_S))

    def asked(self, prompt_tokens: int) -> Timing:
        """Count a request that arrived; return its clock."""
        self.counts["prompt_tokens"] += prompt_tokens
        return Timing(self)

    def page(self, state: Mapping[str, float]) -> str:
        """Return the page; `state` holds the engine's `running`, `waiting`, `usage` and `preemptions`."""
        values = {
            "num_requests_running": ("gauge", state["running"]),
            "num_requests_waiting": ("gauge", state["waiting"]),
            "kv_cache_usage_perc": ("gauge", state["usage"]),
            "num_preemptions_total": ("counter", state["preemptions"]),
            **{f"{k}_total": ("counter", v) for k, v in self.counts.items()},
        }
        out = []
        for name, (kind, value) in values.items():
            out += [f"# TYPE vllm:{name} {kind}", f"vllm:{name}{{{LABELS}}} {value}"]
        out.append("# TYPE vllm:request_success_total counter")
        for reason, count in self.ended.items():
            out.append(f'vllm:request_success_total{{finished_reason="{reason}",{LABELS}}} {count}')
        out += self.first_s.lines("vllm:time_to_first_token_seconds")
        out += self.next_s.lines("vllm:inter_token_latency_seconds")
        out += self.all_s.lines("vllm:e2e_request_latency_seconds")
        out += [
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {time.process_time():.6f}",
        ]
        return "\n".join(out) + "\n"


class Timing:
    """The clock of one request, from its arrival."""

    def __init__(self, served: Served) -> None:
        self._served, self._begun, self._last = served, time.monotonic(), 0.0

    def token(self) -> None:
        """Note a token that came from the engine."""
        now = time.monotonic()
        self._served.counts["generation_tokens"] += 1
        if self._last:
            self._served.next_s.add(now - self._last)
        else:
            self._served.first_s.add(now - self._begun)
        self._last = now

    def end(self, reason: str) -> None:
        """Note the end: `length`, or `abort` where the client has gone."""
        self._served.ended[reason] += 1
        if reason == "length":
            self._served.all_s.add(time.monotonic() - self._begun)
