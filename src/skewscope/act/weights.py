"""How much a slow endpoint should still get: the split that serves most requests within an objective.

Model: each endpoint shares its time equally among its requests, so that at an arrival rate x a request that
takes S seconds alone takes S / (1 - x S) in the mean (M/G/1 processor sharing; Kleinrock, Queueing Systems 2,
section 4.4). It keeps an objective of T seconds up to the rate c = 1/S - 1/T, and never where S >= T.
With one stage the linear program "most requests, each x <= c, in sum at most the demand" is solved by any
split that keeps every x <= c; shares in proportion to c do so for every demand that any split can serve.
"""

from __future__ import annotations


def good_rate(alone_s: float, objective_s: float) -> float:
    """Return the largest arrival rate (1/s) at which the mean stays within the objective; 0 if none does."""
    return max(1.0 / alone_s - 1.0 / objective_s, 0.0)


def ratio(usual_s: float, now_s: float, objective_s: float) -> float:
    """Return the share of its usual weight that an endpoint should keep, 0 to 1.

    usual_s: what a request takes at a usual endpoint, now_s: at this one, both without queueing. 1 where not
    even a usual endpoint keeps the objective: the split is not what is wrong then.
    """
    usual = good_rate(usual_s, objective_s)
    return min(good_rate(now_s, objective_s) / usual, 1.0) if usual > 0 else 1.0
