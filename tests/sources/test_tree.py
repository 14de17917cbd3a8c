import os

import pytest

from skewscope.core.directory import Directory
from skewscope.sources.documents import Document
from skewscope.sources.tree import TreeStream, dump, is_tree
from tests.sources.formats.reading import rows_of

FILES = {
    "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "10\n",
    "class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err": "3\n",
    "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "class/net/eth0/statistics/rx_bytes": "7\n",
    "bus/pci/devices/0000:9b:00.0/aer_dev_correctable": "RxErr 2\nBadTLP 0\nTOTAL_ERR_COR 2\n",
    "bus/pci/devices/0000:9b:00.0/current_link_width": "8\n",
    "bus/pci/devices/0000:9b:00.0/config": "never read",
}


@pytest.fixture
def sys_folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "n7" / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "n7" / "sys"


def test_a_tree_is_read_as_the_text_of_it(sys_folder):
    for folder in (sys_folder, sys_folder.parent):
        assert is_tree(folder)
        document = Document(folder, Directory())
        rows = [r for tables in document.batches() for r in rows_of(document.origin.directory, tables)]
        document.close()
        assert document.kind == "sysfs"
        assert document.stats.rows["counters"] == len(rows) == 8
        assert {(r["entity"], r["name"]): r["value"] for r in rows}["n7/mlx5_0/1", "port.rcv_bytes"] == 40.0
    assert not is_tree(sys_folder / "class")


def test_only_files_of_known_use_are_opened(sys_folder):
    assert b"never" not in b"".join(dump(sys_folder))


def test_what_may_not_be_read_is_left_out(sys_folder):
    (sys_folder / "class/net/eth0/speed").symlink_to("nowhere")
    os.mkfifo(sys_folder / "class/net/eth0/mtu")  # opening it must not wait for a writer
    (sys_folder / "class/net/eth0/carrier").mkdir()
    text = b"".join(dump(sys_folder))
    assert b"rx_bytes:7\n" in text
    assert b"speed" not in text
    assert b"mtu" not in text


def test_a_stream_gives_the_same_in_pieces_of_any_size(sys_folder):
    whole = b"".join(dump(sys_folder))
    for size in (1, 13, 1 << 16):
        stream, got, piece = TreeStream(sys_folder), b"", bytearray(size)
        while count := stream.readinto(memoryview(piece)):
            got += piece[:count]
        assert got == whole
        assert stream.position == len(whole)
