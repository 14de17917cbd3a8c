import json

from tests.app.commands.act.helper import Place


def test_status(place: Place) -> None:
    assert place.run("status").output == "no actions on record\n"
    place.apply()
    (known,) = place.ids()
    assert (
        f"{known}  lower_weight on 10.0.0.1:8000 by edge  c20 host_cpu  applied, ends in "
        in place.run("status").output
    )
    place.run("undo", known)
    (row,) = json.loads(place.run("status", "--json").output)
    assert (row["in_force"], row["ended_how"], row["step"]) == (False, "reverted", 1)
    assert "reverted: undone by" in place.run("status").output


def test_a_damaged_journal_is_one_line(place: Place) -> None:
    (place.folder / "act.jsonl").write_text("nonsense\n")
    for arguments in (["status"], ["tick"], ["undo", "a1"]):
        got = place.run(*arguments)
        assert got.exit_code == 2
        assert "act.jsonl:1: damaged" in got.output
