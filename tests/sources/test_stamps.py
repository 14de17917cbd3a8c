from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.stamps import BOOT, EXACT, LOCAL, NONE, stamp

NOW = int(datetime(2025, 3, 1, tzinfo=UTC).timestamp()) * 10**9
WHEN = int(datetime(2025, 2, 23, 16, 24, 18, tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("text", "ns", "sort"),
    [
        ("[Sun Feb 23 16:24:18 2025] x", WHEN, LOCAL),
        ("[Feb 23 2025 16:24:18] x", WHEN, LOCAL),
        ("Feb 23 16:24:18 x", WHEN, LOCAL),
        ("Feb 23 16:24:18.25 x", WHEN + 250_000_000, LOCAL),
        ("2025-02-23T16:24:18+00:00 x", WHEN, EXACT),
        ("2025-02-23T18:24:18,5+02:00 x", WHEN + 500_000_000, EXACT),
        ("kern  :warn  : 2025-02-23T16:24:18,000001+00:00 x", WHEN + 1000, EXACT),
        ("2025-02-23 16:24:18 x", WHEN, LOCAL),
        ("[2025-02-23 16:24:18] x", WHEN, LOCAL),
        ("2025-02-23T16:24:18.123456Z x", WHEN + 123_456_000, EXACT),
        ("2025-02-23T09:24:18-0700 x", WHEN, EXACT),
        (f"{WHEN // 10**9}.5 x", WHEN + 500_000_000, EXACT),
        ("[6781741.548768] x", 6_781_741_548_768_000, BOOT),
        ("<6>[   12.000001] x", 12_000_001_000, BOOT),
        ("6,3973,227996636,-;x", 227_996_636_000, BOOT),
        ("x", 0, NONE),
    ],
)
def test_every_form_of_time(text, ns, sort):
    assert stamp(text, NOW) == (ns, sort, "x")


def test_a_month_after_the_present_one_is_of_last_year():
    assert (
        stamp("Dec 31 23:00:00 x", NOW).ns == int(datetime(2024, 12, 31, 23, tzinfo=UTC).timestamp()) * 10**9
    )


@pytest.mark.parametrize(
    "text",
    ["[Sun Feb 30 16:24:18 2025] x", "2025-13-01 00:00:00 x", "[8284-11-14 22:13:20] x", "Abc 12 99:99:99 x"],
)
def test_impossible_dates_are_no_times(text):
    assert stamp(text, NOW).sort == NONE


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    found = stamp(text, NOW)
    assert found.rest in text
