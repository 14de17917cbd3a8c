import getpass

import pytest

from skewscope.act.journal import JournalError
from skewscope.app.acting import ActError
from skewscope.app.commands.act import _shared


@pytest.mark.parametrize("error", [ActError("one line"), JournalError("one line")])
def test_an_error_is_one_line_and_status_2(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught, _shared.one_line_errors():
        raise error
    assert caught.value.code == 2
    assert capsys.readouterr().err == "skewscope: one line\n"


def test_nobody_is_logged_where_the_system_knows_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    assert _shared.person() == "ann"

    def unknown() -> str:
        raise KeyError

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert _shared.person() == ""
