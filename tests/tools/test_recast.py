from pathlib import Path

import pytest

from skewscope.app.pipeline import tables
from tools import recast

SOURCE = Path(__file__).resolve().parents[2] / "src/skewscope/app/recordings/slow_reader/lg.pcap.gz"


@pytest.fixture(scope="module")
def original():
    return tables([SOURCE])["packets"]


def test_addresses_ports_and_times_move_and_the_rest_stays(tmp_path, original):
    target = tmp_path / "x.pcap"
    recast.rewritten(SOURCE, target, {"10.77.0.3": "192.168.1.9"}, shift_ns=5_000_000_001, stretch=2.0)
    made = tables([target])["packets"]
    assert len(made) == len(original)
    assert (made["ts_ns"][0] - original["ts_ns"][0]) == 5_000_000_001
    assert made["ts_ns"][-1] - made["ts_ns"][0] == 2 * (original["ts_ns"][-1] - original["ts_ns"][0])
    assert set(made["sport"]) == {(int(p) + recast.PORT_SHIFT) % 65_536 for p in original["sport"]}
    assert (made["seq"] == original["seq"]).all()
    assert (made["payload_bytes"] == original["payload_bytes"]).all()


def test_the_front_is_cut_off(tmp_path, original):
    cut = int(original["ts_ns"][100])
    target = tmp_path / "x.pcap"
    recast.rewritten(SOURCE, target, {}, from_ns=cut)
    assert tables([target])["packets"]["ts_ns"][0] == cut
    assert recast.first_ns(SOURCE) == original["ts_ns"][0]
