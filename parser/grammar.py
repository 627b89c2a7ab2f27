"""Grammars of the text formats, loaded quickly."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark, Transformer


def load_grammar(package: str, file: str, *, transformer: Transformer[Any, Any] | None, postlex: object = None) -> Lark:
    """The LALR parser of the grammar `file` in `package`, its reductions calling `transformer`."""
    from lark import Lark

    grammar = (files(package) / file).read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=True, transformer=transformer, postlex=postlex)  # pyright: ignore
