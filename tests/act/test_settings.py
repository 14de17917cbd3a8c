import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act.settings import SettingsError, Table, parse
from tests.act.worlds import act_toml


def test_the_shipped_defaults_only_advise_and_first_learn_for_a_day() -> None:
    shipped = parse("")
    assert (shipped.mode, shipped.learn_s) == ("advise", 86400)
    assert shipped.limits.pool_share_ratio == 0.2
    assert not shipped.limits.irreversible
    assert shipped.rules["c20"].do == ("lower_weight", "drain_endpoint")


def test_a_rule_takes_what_it_does_not_say_from_the_default() -> None:
    assert parse("").rules["c25"].weight_ratio == 0.1
    rules = parse(
        '[rule.default]\nttl_s = 90\n[rule.c20]\nmode = "shadow"\n[rule.c99]\ncauses = ["nic"]\n'
    ).rules
    assert (rules["c20"].ttl_s, rules["c20"].mode) == (90, "shadow")
    assert rules["c20"].causes == ("host_cpu", "gpu", "runtime", "pcie")
    assert (rules["c99"].causes, rules["c99"].do) == (("nic",), ("lower_weight", "drain_endpoint"))
    assert rules["c42"].ttl_s == 1800


def test_pools_and_names() -> None:
    text = act_toml(endpoints=2) + 'names = {edge = "srv1"}\nnode = "n7"\n'
    pool = parse(text).pools[0]
    assert [e.name_for("edge") for e in pool.endpoints] == ["r0", "srv1"]
    assert (pool.endpoints[1].name_for("other"), pool.endpoints[1].node) == ("r1", "n7")


WRONG = {
    "mode = 'automatic'": "mode: 'automatic' is not one of shadow, advise, auto",
    "mode = 3": "mode: must be text, not 3",
    "moode = 'auto'": "moode: unknown key",
    "learn_s = -1": "learn_s: -1 is not within 0 and inf",
    "learn_s = nan": "learn_s: must be a number, not nan",
    "[limits]\npool_share_ratio = 0.5": "limits.pool_share_ratio: 0.5 is not within 0 and 0.2",
    "[limits]\nirreversible = 1": "limits.irreversible: must be true or false, not 1",
    "[limits]\nfoo = 1": "limits.foo: unknown key",
    "[verify]\nwithin_s = 1": "verify.within_s: must not be shorter than settle_s",
    "[rule.c20]\ncauses = ['gremlin']": "rule.c20.causes: 'gremlin' is not one of client,",
    "[rule.c20]\ndo = ['reboot']": "rule.c20.do: 'reboot' is not one of notify,",
    "[rule.c20]\ndo = ['drain_endpoint', 'lower_weight']": "rule.c20.do: verbs must climb the ladder",
    "[rule.c20]\nttl_s = 0": "rule.c20.ttl_s: 0 is not within 1 and 86400",
    "[[pool]]\nname = 'a'\nactuators = ['x']": "pool[0].actuators: 'x' is not one of (no [[actuator]])",
    "[[pool]]\nname = 'a'\nactuators = []": "pool[0].endpoints: a pool needs at least one",
    "[[pool]]\nactuators = []": "pool[0].name: missing",
    "pool = 3": "pool: must be [[pool]]",
    "limits = 3": "limits: must be a table",
    "[[actuator]]\nname = 'a'": "actuator[0].kind: missing",
    "mode = ": "not valid TOML",
}


@pytest.mark.parametrize("text", WRONG)
def test_an_error_is_one_line_that_names_the_key(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert str(caught.value).startswith(WRONG[text])
    assert "\n" not in str(caught.value)


def test_nothing_is_given_twice() -> None:
    for text, what in (
        (act_toml() + act_toml().partition("[[pool]]")[2].join(["[[pool]]", ""]), "pool 'p0'"),
        (act_toml().replace("10.0.1.1:8000", "10.0.0.1:8000"), "endpoint '10.0.0.1:8000'"),
        (act_toml() + "[[actuator]]\nname = 'edge'\nkind = 'webhook'\n", "'edge'"),
    ):
        with pytest.raises(SettingsError, match=f"{what} is given twice"):
            parse(text)


values = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    st.sampled_from(("mode", "learn_s", "limits", "evidence", "verify", "rule", "pool", "actuator")), values
)
def test_whatever_stands_there_the_error_is_a_settings_error(key: str, value: Any) -> None:
    try:
        text = f"{key} = {_toml(value)}"
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    said = ""
    try:
        parse(text)
    except SettingsError as error:
        said = str(error)
    assert "\n" not in said


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" for c in value) + '"'
    return repr(value)


def test_a_key_is_read_or_refused() -> None:
    table = Table("x", {"a": 1, "b": [1], "c": {}})
    assert table.number("a") == 1
    with pytest.raises(SettingsError, match=r"x\.b: must be a list of texts"):
        table.texts("b")
    with pytest.raises(SettingsError, match=r"x\.c: unknown key"):
        table.done()
