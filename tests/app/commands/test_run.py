"""Exit status, complaints and interrupts of the commands that read captures."""

import os
import signal

import pytest
from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.app.commands._run import interruptible, progress_bar
from skewscope.core.report import Input
from tests.app import example_report


def _run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_ok_with_and_without_incidents(fake_pipeline, capture):
    fake_pipeline(lambda paths, **_: example_report.straggler())
    assert _run("diagnose", capture).exit_code == 0
    fake_pipeline(lambda paths, **_: example_report.healthy())
    assert _run("diagnose", capture).exit_code == 0


def test_a_missing_path_beside_a_good_one_is_status_1(fake_pipeline, capture):
    fake_pipeline(lambda paths, **_: example_report.straggler())
    result = _run("diagnose", capture, "missing.pcap")
    assert result.exit_code == 1
    assert result.stderr == "skewscope: missing.pcap: no such file or folder\n"
    assert "c20" in result.stdout


def test_an_unreadable_file_beside_a_good_one_is_status_1(fake_pipeline, capture):
    report = example_report.straggler()
    report.inputs.append(Input("bad.pcap", "unreadable", notes=["not a capture"]))
    fake_pipeline(lambda paths, **_: report)
    result = _run("diagnose", capture, capture)
    assert result.exit_code == 1
    assert result.stderr == "skewscope: bad.pcap: not a capture\n"


def test_nothing_readable_is_status_3(fake_pipeline, capture):
    assert _run("diagnose", "missing.pcap").exit_code == 3
    report = example_report.healthy()
    report.inputs = [Input("bad.pcap", "unreadable")]
    fake_pipeline(lambda paths, **_: report)
    result = _run("diagnose", capture)
    assert result.exit_code == 3
    assert result.stderr.startswith("skewscope: bad.pcap: not a capture that")
    assert result.stdout == ""


def test_an_interrupt_gives_the_partial_report(fake_pipeline, capture):
    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        assert not stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        report = example_report.straggler()
        report.interrupted = True
        return report

    fake_pipeline(run)
    result = _run("diagnose", capture)
    assert result.exit_code == 130
    assert "Interrupted" in result.stdout
    assert result.stderr.startswith("skewscope: interrupted")


def test_the_second_interrupt_ends_it():
    with interruptible() as stopped:
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_no_progress_bar_for_small_input_or_a_pipe():
    with progress_bar(1_000, quiet=False) as progress:
        assert progress is None
    with progress_bar(10**9, quiet=True) as progress:
        assert progress is None
