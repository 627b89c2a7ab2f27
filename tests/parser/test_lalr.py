"""The LALR driver: tables from lark or from the cache, reductions in order, mending after an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mirstack.parser.lalr import Parser, ParsingTable, Tokens, load_table, reducers
from mirstack.support import cache

GRAMMAR = """
%declare NUMBER PLUS TIMES LPAR RPAR SEMI
start: lines
lines: | lines line
line: sum SEMI
sum: product | sum PLUS product -> plus
product: atom | product TIMES atom -> times
atom: NUMBER -> number | LPAR sum RPAR -> group
"""
KINDS = {"+": "PLUS", "*": "TIMES", "(": "LPAR", ")": "RPAR", ";": "SEMI"}


class Calculator:
    """Gives the value of each line."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens

    def on_lines(self, *args: Any) -> list[int]:
        return [*args[0], args[1]] if args else []

    def on_line(self, value: int, _: int) -> int:
        return value

    def on_plus(self, a: int, _: int, b: int) -> int:
        return a + b

    def on_times(self, a: int, _: int, b: int) -> int:
        return a * b

    def on_number(self, token: int) -> int:
        return int(self.tokens.texts[token])

    def on_group(self, _: int, value: int, __: int) -> int:
        return value


def tokens_of(text: str) -> Tokens:
    words = text.split()
    return Tokens([KINDS.get(word, "NUMBER") for word in words], words, list(range(len(words))))


@pytest.fixture
def grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A grammar file, with a cache folder of its own."""
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "calculator.lark"
    path.write_text(GRAMMAR)
    load_table.cache_clear()
    return path


@pytest.fixture
def parser(grammar: Path) -> Callable[[str], Parser]:
    table = load_table(grammar)

    def make(text: str) -> Parser:
        tokens = tokens_of(text)
        return Parser(table, tokens, reducers(table, Calculator(tokens)))

    return make


def test_values(parser: Callable[[str], Parser]) -> None:
    run = parser("1 + 2 * 3 ; ( 1 + 2 ) * 3 ;")
    assert run.run() is None and run.finish()
    assert run.result == [7, 9]


@pytest.mark.parametrize(("text", "place"), [("1 + ; 2 ;", 2), (") ;", 0), ("1 2 ;", 1)])
def test_the_token_that_does_not_fit(parser: Callable[[str], Parser], text: str, place: int) -> None:
    assert parser(text).run() == place


def test_the_text_ends_too_early(parser: Callable[[str], Parser]) -> None:
    run = parser("1 +")
    assert run.run() is None and not run.finish()


def test_a_missing_token_is_put_in(parser: Callable[[str], Parser]) -> None:
    run = parser("1 + 2 3 ;")
    place = run.run()
    assert place == 3
    assert "SEMI" in run.table.expected(run.settling()[-1])
    assert run.feed("SEMI", 0)
    assert run.run(place) is None and run.finish()
    assert run.result == [3, 3]


def test_a_method_is_missing(grammar: Path) -> None:
    with pytest.raises(TypeError, match="object has no method on_"):
        reducers(load_table(grammar), object())


def cached(grammar: Path) -> Path:
    (found,) = (grammar.parent / "cache").glob("*.json")
    return found


def fresh(grammar: Path) -> ParsingTable:
    load_table.cache_clear()
    return load_table(grammar)


def test_tables_come_from_the_cache(grammar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_table(grammar)
    monkeypatch.setattr("mirstack.parser.lalr._analyse", lambda _: pytest.fail("the grammar was analysed again"))
    assert fresh(grammar).actions == first.actions


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"start": 0}'])
def test_a_damaged_table_is_made_again(grammar: Path, damage: str) -> None:
    first = load_table(grammar)
    cached(grammar).write_text(damage)
    assert fresh(grammar).actions == first.actions


def test_a_table_that_leads_nowhere_is_made_again(grammar: Path) -> None:
    first = load_table(grammar)
    data = json.loads(cached(grammar).read_text())
    data["actions"][0]["NUMBER"] = 10_000
    cached(grammar).write_text(json.dumps(data))
    assert fresh(grammar).actions == first.actions


def test_a_cache_that_cannot_be_written_costs_only_time(grammar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(grammar))  # a file, not a folder
    assert fresh(grammar).rules


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", "/a")
    assert cache.cache_folder() == Path("/a")
    monkeypatch.delenv("MIRSTACK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert cache.cache_folder() == Path("/b/mirstack")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == Path.home() / ".cache" / "mirstack"
