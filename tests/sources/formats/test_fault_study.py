from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.fault_study import FORMAT, TRIAL_NS
from tests.sources.formats.reading import AT_NS, is_told, read, read_sample, samples

TEXT = """side,counter,before,after,delta
# RETRY_EXC_QP_ERR,trial=1,status=12,vendor_err=0x81,latency_us=3000000
client,local_ack_timeout_err,5,11,6
server,out_of_sequence,0,0,0
"""


def test_two_readings_of_each_counter_and_the_fault():
    assert is_told(FORMAT, TEXT)
    found = read(FORMAT, TEXT)
    rows = [r for r in found.rows if r.get("name") == "rdma.local_ack_timeout_err"]
    assert [(r["entity"], r["ts_ns"] - AT_NS - TRIAL_NS, r["value"]) for r in rows] == [
        ("client", 0, 5.0),
        ("client", 3 * 10**9, 11.0),
    ]
    (fault,) = found.of("rdma.fault")
    assert (fault["code"], fault["fields"]["vendor_err"]) == (12, 0x81)


def test_lines_that_do_not_fit_are_counted():
    found = read(FORMAT, TEXT + "client,x\n")
    assert found.notes[0] == "1 lines do not fit the columns"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    read(FORMAT, TEXT + text)
    read(FORMAT, "trial,counter_name,offset_us,old_val,new_val,delta\n" + text)


def rises(found):
    """How much each counter of each side rose over the whole file, trial by trial."""
    out = defaultdict(float)
    rows = [r for r in found.rows if "name" in r]
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        out[before["entity"], before["name"]] += after["value"] - before["value"]
    return out


@samples
def test_only_the_requester_shows_the_fault():
    found = read_sample(FORMAT, "counters/rdma_fault_retry_exc_qp_err_hwcounters.csv")
    moved = {key for key, value in rises(found).items() if value}
    assert len(found.of("rdma.fault")) == 7
    assert ("client", "rdma.local_ack_timeout_err") in moved
    assert ("client", "rdma.roce_adp_retrans") in moved
    assert not [name for side, name in moved if side == "server" and "err" in name]


@samples
def test_a_receiver_that_is_not_ready_shows_on_both():
    moved = {
        k
        for k, v in rises(read_sample(FORMAT, "counters/rdma_fault_rnr_retry_exc_hwcounters.csv")).items()
        if v
    }
    assert {("client", "rdma.rnr_nak_retry_err"), ("server", "rdma.out_of_buffer")} <= moved


@samples
def test_ethtool_sees_volume_only():
    found = read_sample(FORMAT, "counters/rdma_fault_retry_exc_qp_err_ethtool.csv")
    moved = {name for (_, name), value in rises(found).items() if value}
    assert moved
    assert all("vport" in name for name in moved)


@samples
def test_adaptive_retransmission_is_the_first_sign():
    found = read_sample(FORMAT, "counters/rdma_fault_retry_exceeded_timeline.csv")
    rows = [r for r in found.rows if "name" in r]
    assert {(r["code"], r["fields"]["vendor_err"]) for r in found.of("rdma.fault")} == {(12, "0x81")}
    for trial in range(5):
        start = AT_NS + trial * TRIAL_NS
        mine = [r for r in rows if start <= r["ts_ns"] < start + TRIAL_NS][1::2]
        first, last = mine[0], mine[-1]
        assert first["name"] == "rdma.roce_adp_retrans"
        assert (first["ts_ns"] - start) / 1e6 < 20
        assert (last["ts_ns"] - start) / 1e9 > 3
