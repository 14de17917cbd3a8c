"""Commands of vLLM's ranks; what is said where it is not installed."""

from pathlib import Path

import pytest

from skewscope.lab.bed import needs, vllm
from skewscope.lab.bed.topology import builtin, parse


def test_rank_0_serves_and_the_others_have_no_head():
    ranks = parse(builtin("tp4"), 1).replicas()[0]
    commands = [
        [str(w) for w in vllm.command(Path("/v/bin/python"), Path("/m"), ranks, k, 9000)] for k in range(4)
    ]
    assert ["--headless" in c for c in commands] == [False, True, True, True]
    for k, words in enumerate(commands):
        assert words[:3] == ["/v/bin/vllm", "serve", "/m"]
        assert words[words.index("--node-rank") + 1] == str(k)
        assert words[words.index("--tensor-parallel-size") + 1] == "4"
        assert words[words.index("--master-addr") + 1] == ranks[0].address


@pytest.mark.parametrize("named", [None, "/nowhere/python"])
def test_a_missing_vllm_is_said(monkeypatch, named):
    monkeypatch.delenv(needs.VLLM, raising=False)
    if named:
        monkeypatch.setenv(needs.VLLM, named)
    assert any(needs.VLLM in line for line in needs.missing(("vllm",), torch=False))
    with pytest.raises(needs.BedUnavailableError):
        needs.vllm_python()
