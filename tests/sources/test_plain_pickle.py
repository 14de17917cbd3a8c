import contextlib
import pickle
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.plain_pickle import NotPlainError, load

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


class Trap:
    """Calls something when it is unpickled."""

    def __reduce__(self):
        return (print, ("called",))


@settings(deadline=None)
@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_plain_data_comes_back(value, protocol):
    assert load(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pickle.dumps(Trap(), 2), "GLOBAL"),
        (pickle.dumps(Trap(), 4), "STACK_GLOBAL"),
        (pickle.dumps({1, 2}, 4), "EMPTY_SET"),
        (b"cos\nsystem\n(S'true'\ntR.", "GLOBAL"),
        (b"(ios\nsystem\n.", "INST"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"Pid\n.", "PERSID"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.", "opcode|damaged"),
        (b"\x80\x02Nr" + struct.pack("<I", 1 << 31) + b".", "memo"),
        (b"\x80\x02}q", "damaged"),
        (b"\x80\x02K\x01K\x02s.", "damaged"),
        (b"", "damaged"),
    ],
)
def test_everything_else_is_refused(data, why, capsys):
    with pytest.raises(NotPlainError, match=why):
        load(data)
    assert capsys.readouterr().out == ""


def test_the_number_of_values_is_limited(monkeypatch):
    monkeypatch.setattr("skewscope.sources.plain_pickle.MOST_OPCODES", 100)
    assert load(pickle.dumps([1] * 40, 2)) == [1] * 40
    with pytest.raises(NotPlainError, match="more than 100 values"):
        load(pickle.dumps([1] * 200, 2))


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_damaged_bytes_raise_one_error(data):
    for begin in (b"", b"\x80\x02", pickle.dumps({"a": [1, 2]}, 2)[:-3]):
        with contextlib.suppress(NotPlainError):
            load(begin + data)
