import click

from tools import gen_docs


@click.group()
def group() -> None:
    """The root."""


@group.command()
@click.option("--depth", help="How deep.")
def dig(depth: str) -> None:
    """Dig a hole."""


@group.command(hidden=True)
def secret() -> None:
    """Not shown."""


def test_all_commands_but_hidden_ones_are_on_the_page():
    page = gen_docs.cli_page(group)
    assert "## skewscope dig" in page
    assert "How deep." in page
    assert "secret" not in page


def test_an_empty_table_says_so():
    assert gen_docs.table(("a",), []) == "None.\n"


def test_every_page_of_the_product_can_be_made():
    made = gen_docs.pages()
    assert {"reference/cli.md", "reference/features.md", "reference/conditions.md"} <= set(made)
    assert "| `gpu.xid` |" in made["reference/events.md"]
    assert "| kernel messages |" in made["reference/formats.md"]
    assert "## skewscope diagnose" in made["reference/cli.md"]


def test_the_readme_s_table_is_put_between_its_marks():
    made = gen_docs.with_conditions(f"a\n{gen_docs.BLOCK[0]}old\n{gen_docs.BLOCK[1]}b\n", [])
    assert made == f"a\n{gen_docs.BLOCK[0]}0 conditions.\n\nNone.\n{gen_docs.BLOCK[1]}b\n"
    assert gen_docs.with_conditions("no marks", []) == "no marks"
