from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.fabric_manager import FORMAT
from tests.sources.formats.reading import is_told, read, read_sample, samples

ERROR = (
    "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch "
    "pci bus id 00000000:86:00.0 physical id 3 port 61\n"
)


def test_errors_are_events_and_normal_work_is_counted():
    text = (
        "[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed.\nMessage payload details:x\n"
        + ERROR
    )
    assert is_told(FORMAT, text)
    found = read(FORMAT, text)
    (row,) = found.rows
    assert (row["entity"], row["code"]) == ("n1/pci 0000:86:00.0", 20034)
    assert row["fields"]["severity"] == "fatal"
    assert row["fields"]["port"] == "61"
    assert found.notes == ["1 messages of normal work"]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_behind_a_level_is_taken(text):
    read(FORMAT, "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch fatal error " + text)


@samples
def test_the_recorded_log():
    (row,) = read_sample(FORMAT, "kmsg/fabricmanager_nvswitch_12028.log").rows
    assert (row["code"], row["fields"]["severity"]) == (12028, "non-fatal")
