from tools import lock

RESOLVED = """--index-url https://example.org/simple
--find-links ../wheels

numpy==2.4.6
    # via skewscope
local @ file:///somewhere/wheel.whl
colorama==0.4.6 ; sys_platform == "win32"
"""


def test_only_exact_versions_stay():
    lines = lock.portable(RESOLVED).splitlines()
    assert lines[1:] == ["numpy==2.4.6", 'colorama==0.4.6 ; sys_platform == "win32"']


def test_the_lock_file_of_the_tree_is_portable():
    text = (lock.ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert lock.portable(text) == text
