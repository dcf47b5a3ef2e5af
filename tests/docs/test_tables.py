"""The tables of the pages are what the code makes; `python -m docs.tables` writes them."""

import re
from typing import Annotated, Literal

import pydantic
import pytest

from docs import tables
from tests.small_pipeline import REPOSITORY

PAGES = [file for file in sorted((REPOSITORY / "docs").rglob("*.md")) if "<!-- table " in file.read_text("utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_tables_that_the_code_makes(page):
    text = page.read_text(encoding="utf-8")
    assert text == tables.filled(text), "run `python -m docs.tables`"


def test_every_table_is_in_a_page():
    shown = {name for page in PAGES for name in re.findall(r"^<!-- table (\w+) -->$", page.read_text("utf-8"), re.M)}
    assert shown == tables.TABLES.keys()


def test_what_stands_in_a_table_is_replaced():
    page = "Before\n\n<!-- table parameters -->\n\n| a |\n\n<!-- end of table -->\n\nAfter"
    assert tables.filled(page) == page.replace("| a |", tables.parameters())


class Options(pydantic.BaseModel):
    count: Annotated[int, pydantic.Field(gt=0, lt=2**31)] = 3
    kind: Literal["a", "b"] | None = None
    weights: dict[str, float] = pydantic.Field(default_factory=dict)
    file: str | int


def test_keys_have_their_types_bounds_and_defaults():
    shown = tables._fields(Options, dict.fromkeys(Options.model_fields, "x | y"))
    assert re.findall(r"^\| `.*$", shown, re.M) == [
        r"| `count` | int, above 0 | `3` | x \| y |",
        r"| `kind` | 'a', 'b' | `none` | x \| y |",
        r"| `weights` | dict[str, float] | `{}` | x \| y |",
        r"| `file` | str or int | required | x \| y |",
    ]
