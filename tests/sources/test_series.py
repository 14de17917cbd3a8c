import pytest

from skewscope.core.directory import Directory
from skewscope.sources.format import Origin
from skewscope.sources.series import SeriesReader, host_part, label_text


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("10.0.0.3:9100", "10.0.0.3"),
        ("10.0.0.3", "10.0.0.3"),
        ("[fd00::1]:80", "fd00::1"),
        ("fd00::1", "fd00::1"),
        ("node-1.example:9", "node-1.example"),
    ],
)
def test_host_part(endpoint, host):
    assert host_part(endpoint) == host


def test_labels_are_sorted_and_quoted():
    assert label_text({"b": 'x"\\\n', "a": ""}) == 'a="",b="x\\"\\\\\\n"'


def entity(raw, labels, **origin):
    directory = Directory()
    target = SeriesReader(Origin(directory, 0, **origin)).target(raw, labels)
    assert target is not None
    return directory.entities[target.entity], directory.labels[target.labels]


def test_entities_of_products():
    assert entity("DCGM_FI_DEV_GPU_TEMP", {"gpu": "1", "Hostname": "h", "GPU_I_ID": "2"})[0] == "h/gpu1/mig2"
    assert (
        entity("hw_packet_seq_err", {"device_name": "mlx5_0", "port_num": "1"}, host="h")[0] == "h/mlx5_0/1"
    )
    assert entity("DCGM_EXP_XID_ERRORS_COUNT", {"gpu": "1", "Hostname": "h", "xid": "79"}) == (
        "h/gpu1",
        'xid="79"',
    )
    assert entity("node_cpu_seconds_total", {"cpu": "0", "mode": "idle"}, host="h:9100") == (
        "h",
        'cpu="0",mode="idle"',
    )
    assert (
        entity("dynamo_frontend_queued_requests", {"job": "d", "instance": "10.0.0.9:80"})[0] == "10.0.0.9:80"
    )


def test_rows_come_in_the_order_of_time():
    reader = SeriesReader(Origin(Directory(), 0, host="h"))
    target = reader.target("node_load1", {})
    assert target is not None
    for ts in (3, 1, 2):
        reader.add(target, ts, float(ts), ts)
    assert reader.rows == 3
    assert reader.take()["metrics"]["value"].tolist() == [1.0, 2.0, 3.0]
    assert reader.take() == {}
