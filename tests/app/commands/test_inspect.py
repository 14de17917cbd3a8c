"""`skewscope inspect`."""

import json

from click.testing import CliRunner

from skewscope.app.cli import main
from tests.app import example_report


def test_text_json_and_redaction(fake_pipeline, capture):
    fake_pipeline(lambda paths, progress=None, stop=None, first=None: example_report.straggler())
    text = CliRunner().invoke(main, ["inspect", str(capture)])
    assert text.exit_code == 0
    assert "Collective groups" in text.stdout
    data = CliRunner().invoke(main, ["inspect", str(capture), "--json", "--redact"])
    assert json.loads(data.stdout)["hosts"]
    assert "10.77." not in data.stdout
