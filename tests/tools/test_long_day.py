from tools import long_day

HOUR_S = long_day.HOUR_S


def test_every_hour_has_a_busy_time_and_the_fault_comes_last():
    made = long_day.scenario(24)
    slow, *visits = made.faults
    assert slow.kind == "straggler"
    assert slow.start_s == 24 * HOUR_S
    assert {int(v.start_s // HOUR_S) for v in visits} == set(range(24)) | {24}
    assert all(v.kind == "overload" for v in visits)


def test_what_was_told_too_early_is_counted():
    day = long_day.Day(2, 10, [("c20", "a", 7200.1, 7201.0), ("c38", "b", 60.0, 61.0)], "a", [90.0])
    text = "\n".join(long_day.lines(day))
    assert "Incidents before the fault: 1." in text
    assert "c20 a, onset +0.10 s, found +1.00 s after it began" in text
