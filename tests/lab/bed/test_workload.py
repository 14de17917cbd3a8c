"""Workload settings: what is taken and what is refused."""

import pytest

from skewscope.lab.bed.workload import WorkloadError, parse


def test_layers_are_one_number_or_one_for_each_stage():
    assert parse({"layers": 3}).layers == (3,)
    assert parse({"layers": [3, 1]}).stages == 2


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"colour": 1}, "unknown keys: colour"),
        ({"layers": []}, "layers"),
        ({"layers": 100}, "layers"),
        ({"hidden": 1}, "hidden"),
        ({"noise": "loud"}, "noise"),
        ({"work_list": 4}, "work_list"),
    ],
)
def test_what_is_no_workload_is_refused_by_name(table, word):
    with pytest.raises(WorkloadError, match=word):
        parse(table)
