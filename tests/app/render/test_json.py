"""The JSON report keeps its contract."""

import json as stdlib_json
import math

import jsonschema
import numpy as np
import pytest

from skewscope.app.render import json
from skewscope.core.report import Evidence, Incident, Report

CHECK = jsonschema.Draft202012Validator(json.schema())


def test_the_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(json.schema())


@pytest.mark.parametrize("name", ["straggler", "healthy"])
def test_reports_fit_the_schema(name, request):
    CHECK.validate(json.to_dict(request.getfixturevalue(name)))
    CHECK.validate(json.to_dict(Report([], (0, 0))))


def test_the_keys_of_the_contract(straggler):
    data = json.to_dict(straggler)
    assert data["schema"] == "skewscope.report/1"
    assert {"inputs", "span_ns", "incidents", "no_data"} <= set(data)
    incident = data["incidents"][0]
    assert incident["condition"] == "c20"
    assert incident["culprits"][0] == {
        "kind": "rank",
        "id": "10.77.0.12",
        "name": "rank 2",
        "probability": 0.95,
    }
    assert incident["causes"][0] == {"class": "host_cpu", "probability": 0.46}
    assert incident["impact"]["ttft_s"] == [0.26, 0.41]
    assert incident["evidence"][0]["packets"][0] == {"file": "captures/n2.pcap.gz", "frame": 10_235}
    assert data["no_data"][0] == {"condition": "c10", "missing": ["pcie.h2d_bytes"]}


def test_nan_never_appears(straggler):
    straggler.incidents[0].evidence.append(Evidence("x", math.nan, "s", math.inf))
    straggler.incidents[0].impact.step_s = (math.nan, 1.0)
    text = json.dumps(straggler)
    assert "NaN" not in text
    assert "Infinity" not in text
    CHECK.validate(stdlib_json.loads(text))


def test_numpy_values_become_plain():
    incident = Incident("i", "c20", "t", np.float64(0.5), np.int64(5), np.int64(6), None)  # type: ignore[arg-type]
    incident.evidence.append(Evidence("x", np.float32(1.5), "s", None, [("f", np.uint64(7))]))  # type: ignore
    data = stdlib_json.loads(json.dumps(Report([], (0, 1), [incident])))
    assert data["incidents"][0]["onset_ns"] == 5
    assert data["incidents"][0]["evidence"][0]["packets"][0]["frame"] == 7
    assert json.plain({"a": np.array([1.0, np.nan])}) == {"a": [1.0, None]}
    assert json.plain({1, 2}) == [1, 2]
    assert json.plain(Report) == str(Report)


def test_a_broken_report_does_not_fit(straggler):
    data = json.to_dict(straggler)
    data["incidents"][0]["culprits"][0]["kind"] = "person"
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate(data)


def test_packets_are_the_ends_of_the_spans_where_no_single_one_carries_the_number(straggler):
    exact, _, _, median, nothing = json.to_dict(straggler)["incidents"][0]["evidence"]
    assert [p["frame"] for p in exact["packets"]] == [10_235, 10_611]
    assert [p["frame"] for p in median["packets"]] == [9_001, 10_600]
    assert median["spans"][0]["packets"] == 840
    assert nothing["packets"] == []
