from typing import Any

import pytest

from tools import check_acceptance

ROW = {"id": "a", "asked": "b", "command": "true", "value": "", "state": "open"}


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, 0),
        ({"state": "pass"}, 0),
        ({"state": "done"}, 1),
        ({"state": "not shown"}, 1),
        ({"state": "not shown", "value": "12 s"}, 0),
        ({"command": "", "state": "pass"}, 1),
        ({"command": ""}, 0),
        ({"value": 3}, 1),
        ({"note": "x"}, 1),
        ({"needs": ["SKEWSCOPE_SAMPLES"], "timeout_s": 900}, 0),
    ],
)
def test_a_row_is_checked(change: dict[str, Any], problems: int):
    found = check_acceptance.problems_of("x.toml", {"topic": "x", "item": [{**ROW, **change}]})
    assert len(found) == problems, found


def test_ids_are_unique():
    assert len(check_acceptance.problems_of("x.toml", {"topic": "x", "item": [ROW, ROW]})) == 1


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({}, "pass"),
        ({"command": "exit 3"}, "exit 3"),
        ({"command": ""}, "no command"),
        ({"command": "sleep 5", "timeout_s": 1}, "longer than 1 s"),
        ({"needs": ["NO_SUCH_VARIABLE"]}, "skip: NO_SUCH_VARIABLE not set"),
    ],
)
def test_a_command_is_run(change: dict[str, Any], result: str):
    assert check_acceptance.run({**ROW, **change}) == result
