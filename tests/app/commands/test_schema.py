"""`skewscope schema`."""

import json

from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.app.render.json import schema


def test_prints_the_schema():
    assert json.loads(CliRunner().invoke(main, ["schema"]).stdout) == schema()
