import socket
import time

import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard
from skewscope.sources.adapters.listen import ExportListener, ListenError
from skewscope.wire.packets import PacketParser
from tests.sources.formats.reading import rows_of
from tests.wire.test_netflow import FIELDS, RECORD, template, v9
from tests.wire.test_sflow import datagram, interface


def test_exporters_send_to_the_loopback_address():
    directory = Directory()
    listener = ExportListener(directory, PacketParser(directory), port=0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for data in (
            v9((0, template(256, FIELDS))),
            v9((256, RECORD)),
            datagram(interface({"ifInOctets": 9})),
            b"noise",
        ):
            s.sendto(data, ("127.0.0.1", listener.port))
    give_up = time.monotonic() + 5
    batches = list(listener.batches(lambda: listener.datagrams >= 4 or time.monotonic() > give_up))
    rows = [r for tables in batches for r in rows_of(directory, tables)]
    listener.close()
    assert all(isinstance(b, Heard) for b in batches)
    assert {r["entity"] for r in rows if r["table"] == "flow_records"} == {"127.0.0.1"}
    assert {(r["name"], r["value"]) for r in rows if r["table"] == "counters"} >= {("switch.rx_bytes", 9.0)}
    assert "flow export: 1 datagrams of another kind" in listener.notes()
    assert directory.sources == [listener.name]


def test_an_address_that_is_taken_is_one_line():
    directory = Directory()
    parser = PacketParser(directory)
    first = ExportListener(directory, parser, port=0)
    with pytest.raises(ListenError, match="cannot listen"):
        ExportListener(directory, parser, port=first.port)
    first.close()
