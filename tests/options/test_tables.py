"""Rows of option tables: types, keywords and what every interface needs of them."""

import inspect
import json
import subprocess
import sys
import typing
from typing import Any

import pytest

import swsearch
from swsearch.cli.parameters import command_rows
from swsearch.cli.search import SEARCH_TABLES
from swsearch.client.search_request import SERVER_ROWS
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Choice
from swsearch.options.row import Heading, Interface, OptionTable, option, rows_of
from swsearch.pipeline.inclusion import Inclusion
from swsearch.pipeline.options import KEYWORD_ROWS, SearchKeywords, make_search_options
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable
from swsearch.server.models import TextSearch

SEARCH_ROWS = command_rows(*SEARCH_TABLES)
ROWS = {**rows_of(QueryTable), **rows_of(SearchTable), **SEARCH_ROWS}


def test_type_checkers_know_the_keywords_that_python_takes() -> None:
    assert set(SearchKeywords.__annotations__) == {*KEYWORD_ROWS, "scoring", "inclusion"}
    shown = inspect.signature(swsearch.search).parameters
    for name, row in KEYWORD_ROWS.items():
        assert shown[name].default == row.default
        assert f"{name} : " in (swsearch.search.__doc__ or "")


def test_the_type_of_a_choice_is_the_one_of_its_keyword() -> None:
    hints = typing.get_type_hints(SearchKeywords, localns={"Path": str, "Matrix": str})
    for name, row in KEYWORD_ROWS.items():
        if isinstance(row.kind, Choice):
            words = {word for part in (hints[name], *typing.get_args(hints[name])) for word in typing.get_args(part)}
            assert set(row.kind.words) <= words, name


@pytest.mark.parametrize("name", list(ROWS))
def test_a_row_says_what_its_readers_need(name: str) -> None:
    row = ROWS[name]
    assert row.help.endswith(".")
    assert row.default is not None or row.unset, "help says what a default of None means"
    assert row.heading in Heading
    assert not row.requires or row.requires in ROWS
    assert {*row.resets.split()} <= set(ROWS)
    if isinstance(row.kind, Choice) and row.form is not None:
        assert set(row.form.choices or ()) - {""} == set(row.kind.words), "the page has words for each choice"
    json.dumps(row.schema())


@pytest.mark.parametrize("name", list(SERVER_ROWS))
def test_a_server_reads_no_file_that_a_request_names(name: str) -> None:
    row = SERVER_ROWS[name]
    if row.kind.is_file:
        with pytest.raises(OptionError):
            row.kind.check_json(name, "/etc/passwd")


def test_an_empty_list_in_a_request_is_refused() -> None:
    for name in ("include_ids", "exclude_ids", "taxids", "exclude_taxids"):
        for text in ("", " , "):
            with pytest.raises(InputError, match=f"^{name}: "):
                TextSearch.from_pairs([("database", "d"), (name, text)]).requests(b">q\nMKV\n")
    (search,) = TextSearch.from_pairs([("database", "d"), ("include_ids", ""), ("include_ids", "a, b")]).requests(
        b">q\nMKV\n"
    )
    assert search.search_options.include_ids == ("a", "b")
    (search,) = TextSearch.from_pairs([("database", "d"), ("max_hits", "5k"), ("translate", "off")]).requests(
        b">q\nMKV\n"
    )
    assert (search.search_options.max_hits, search.search_options.translate) == (5000, False)


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"columns": "x"}, "inclusion.columns"), ({"ends": "x"}, "inclusion.ends"), ({"evalue": 0}, "inclusion_evalue"),
     ({"several": 1}, "inclusion.several"), ({"most": 0}, "max_included"), ({"coverage": 101}, "inclusion_coverage")],
)  # fmt: skip
def test_inclusion_rules_are_checked(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=f"^{said}: got "):
        Inclusion(**rules)


def test_options_override_the_inclusion_rules_beside_them() -> None:
    options = make_search_options(iterations=2, inclusion=Inclusion(evalue=0.5, columns=3), inclusion_evalue=0.002)
    assert (options.inclusion.evalue, options.inclusion.columns) == (0.002, 3)


def test_no_name_of_another_program_means_two_options() -> None:
    for attribute in ("blast", "others"):
        names = [each for row in SEARCH_ROWS.values() for each in getattr(row, attribute).split()]
        assert len(names) == len(set(names))


def test_tables_import_no_numpy() -> None:
    code = "import sys, swsearch.pipeline.table.search, swsearch.cli.parameters; print('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_interfaces_that_are_left_out_are_left_out() -> None:
    assert "task" not in KEYWORD_ROWS and "task" not in SERVER_ROWS
    assert "distribution" not in SEARCH_ROWS
    assert all(Interface.COMMAND in row.interfaces for row in SEARCH_ROWS.values())


def test_a_table_checks_its_values() -> None:
    class Made(OptionTable):
        HEADING = Heading.HITS

        number: int = option(3, "A number.")
        flag: bool = option(False, "A flag.")

    assert Made.from_values({"number": 5, "other": 1}).number == 5
    with pytest.raises(OptionError, match="number: got 'x', expected a whole number"):
        Made(number="x")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="flag: got 1, expected True or False"):
        Made(flag=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="maximum"):
        option(3, "A number.", maximum=3)  # type: ignore[call-arg]
