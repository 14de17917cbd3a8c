import json
import time

from tests.app.commands.act.helper import Place


def test_a_newer_report_judges(place: Place) -> None:
    place.settings(more="[verify]\nsettle_s = 0\nwithin_s = 60\n")
    place.apply()
    time.sleep(0.2)
    now_ns = time.time_ns()
    data = json.loads((place.folder / "report.json").read_text())
    newer = {**data, "span_ns": [now_ns - 10**7, now_ns], "incidents": []}
    (place.folder / "newer.json").write_text(json.dumps(newer))
    got = place.run("tick", "--report", str(place.folder / "newer.json"))
    assert "helped: predicted" in got.output
    assert place.weight() == 10


def test_nothing_due_says_nothing(place: Place) -> None:
    place.apply()
    assert place.run("tick").output == ""


def test_what_a_person_changed_is_noticed(place: Place) -> None:
    place.apply()
    text = (place.folder / "eds.json").read_text()
    (place.folder / "eds.json").write_text(
        text.replace('"load_balancing_weight": 10\n', '"load_balancing_weight": 55\n')
    )
    assert "overridden" in place.run("tick").output
    assert place.weight() == 55
