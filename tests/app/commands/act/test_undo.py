from tests.app.commands.act.helper import Place


def test_undo(place: Place) -> None:
    place.apply()
    (known,) = place.ids()
    got = place.run("undo", known)
    assert got.exit_code == 0
    assert f"{known} reverted: undone by" in got.output
    assert place.weight() == 100
    assert "is not in force (reverted)" in place.run("undo", known).output


def test_an_unknown_id(place: Place) -> None:
    got = place.run("undo", "a9")
    assert got.exit_code == 2
    assert "a9: no such action" in got.output


def test_what_cannot_be_taken_back_yet_is_status_1(place: Place) -> None:
    place.apply()
    (known,) = place.ids()
    (place.folder / "eds.json").rename(place.folder / "away")
    got = place.run("undo", known)
    assert got.exit_code == 1
    assert "could not be taken back yet" in got.output
    (place.folder / "away").rename(place.folder / "eds.json")
    place.run("tick")
    assert place.weight() == 100
