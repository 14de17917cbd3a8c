"""Who belongs to a process."""

import os
import subprocess
import sys

from skewscope.lab.bed.groups import family

CODE = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"


def test_a_family_is_a_process_with_all_that_descend_from_it():
    with subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True) as child:
        grandchild = int(child.stdout.readline())
        try:
            assert family(child.pid) == [child.pid, grandchild]
            assert {os.getpid(), child.pid, grandchild} <= set(family(os.getpid()))
        finally:
            os.kill(grandchild, 9)


def test_a_process_that_is_gone_has_nobody_but_itself():
    assert family(1 << 30) == [1 << 30]
