"""The router's choice of a backend under each policy."""

from collections import Counter

from skewscope.lab.bed.programs.router import Router


def router(count=2, **options):
    return Router({"backends": [[f"10.0.0.{k}", 8000] for k in range(count)], "options": options})


def test_weights_are_kept_and_spread_evenly():
    one = router(weights=[3.0, 1.0])
    chosen = [one.choose(1) for _ in range(40)]
    assert Counter(chosen) == {0: 30, 1: 10}
    assert all(1 in chosen[k : k + 4] for k in range(0, 40, 4))


def test_least_in_flight():
    one = router(3, policy="least")
    one.flight = [2, 0, 1]
    assert one.choose(1) == 1


def test_a_scraped_load_is_believed_until_the_next_scrape():
    one = router(policy="scraped")
    one.scraped = [5.0, 2.0]
    one.flight = [0, 100]
    assert {one.choose(p) for p in range(10)} == {1}


def test_sticky_keeps_a_client_at_its_backend_and_follows_the_weights():
    one = router(policy="sticky", weights=[1.0, 3.0])
    by_port = {p: one.choose(p) for p in range(30_000, 34_000)}
    assert all(one.choose(p) == k for p, k in by_port.items())
    assert 0.7 < sum(by_port.values()) / len(by_port) < 0.8
