import json

from tests.app.commands.act.helper import Place


def test_a_plan_says_what_why_and_what_would_be_sent_and_sends_nothing(place: Place) -> None:
    got = place.run("plan", str(place.folder / "report.json"))
    assert got.exit_code == 0
    assert "lower_weight on 10.0.0.1:8000 by edge for 600 s (step 1, soft weight)" in got.output
    assert 'found {"weight": 100}, would be {"weight": 10}; sent:' in got.output
    assert '+              "load_balancing_weight": 10' in got.output
    assert "c20 on 10.1.0.1: send\n" in got.output
    assert place.weight() == 100
    assert not (place.folder / "act.jsonl").exists()


def test_json_from_standard_input(place: Place) -> None:
    place.apply()  # starts the record
    place.report(culprits=[{"kind": "rank", "id": "10.1.0.2", "probability": 0.5}])
    got = place.run("plan", "-", "--json", text=(place.folder / "report.json").read_text())
    (row,) = json.loads(got.output)["decisions"]
    assert row["verdict"] == "refuse"
    assert "probability of the culprit is 0.50, at least 0.8 needed" in row["against"]


def test_a_recorded_report_can_be_planned_but_not_applied(place: Place) -> None:
    place.report(old_s=9000)
    assert "the report ended" not in place.run("plan", str(place.folder / "report.json")).output
    assert "against: the report ended 900" in place.apply().output
    assert place.weight() == 100


def test_nothing_to_do(place: Place) -> None:
    place.report(culprits=[])
    assert "nothing to do" in place.run("plan", str(place.folder / "report.json")).output


def test_wrong_input_is_one_line_and_status_2(place: Place) -> None:
    (place.folder / "report.json").write_text("{}")
    got = place.run("plan", str(place.folder / "report.json"))
    assert (got.exit_code, len(got.output.splitlines())) == (2, 1)
    place.settings(mode="fast")
    got = place.run("plan", str(place.folder / "report.json"))
    assert got.exit_code == 2
    assert "mode: 'fast' is not one of shadow, advise, auto" in got.output
