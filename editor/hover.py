"""Describes what is under the cursor, as Markdown: types, operators, primitives, constructs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING

from .analysis import Analysis, Place
from .calls import call_around, primitive
from .names import BRACED, Occurrence, names_in, plain, tokens_of
from .values import signature_at, type_words, value_of

if TYPE_CHECKING:
    from ..dialects.relay.operator import Operator
    from ..dialects.schedule import Signature


@dataclass(frozen=True)
class Hover:
    """A description of the text from `start` to `end`."""

    text: str
    start: int
    end: int


_INFIX = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip


def hover(analysis: Analysis, offset: int) -> Hover | None:
    """Returns the description of what is at an offset of the text; None where there is nothing to say."""
    place = analysis.place_at(offset)
    if place is None:
        return None
    base = analysis.start(place.item)
    found = _hover(analysis, place, offset - base)
    return None if found is None else Hover(found.text, found.start + base, found.end + base)


def _hover(analysis: Analysis, place: Place, offset: int) -> Hover | None:
    occurrence = names_in(place.item).at(offset)
    if occurrence is not None:
        text = name_text(analysis, place, occurrence)
        if text is not None:
            return Hover(text, occurrence.start, occurrence.end)
    tokens = tokens_of(place.item)
    index = bisect_right(tokens.starts, offset) - 1
    if index < 0 or offset > tokens.starts[index] + len(tokens.texts[index]):
        return None
    start, word, kind = tokens.starts[index], tokens.texts[index], tokens.kinds[index]
    end = start + len(word)
    text: str | None = None
    if place.item.format in BRACED:
        if kind in ("KEY", "NAME") and (around := call_around(tokens, start)) is not None:
            text = _attribute_text(around.name, word.rstrip("= \t"), place)
        if text is None and kind in ("NAME", "INFIX"):
            operator = find_operator(_INFIX.get(word, word), place)
            text = None if operator is None else operator_text(operator, place, start)
    elif place.item.format == "tvmscript" or word.startswith(("T.", "te.")):
        text = construct_text(word)
    if text is None and kind in ("NAME", "MEMBER") and "." in word and place.item.format in ("schedule", "te"):
        signature = primitive(word, place.item.format == "te")
        dot = start + word.rindex(".")
        if signature is not None and offset > dot:
            return Hover(primitive_text(signature), dot + 1, end)
    return None if text is None else Hover(text, start, end)


def name_text(analysis: Analysis, place: Place, occurrence: Occurrence) -> str | None:
    """Describes a name: its type, and how it is declared."""
    symbol = occurrence.symbol
    if symbol is None:
        return _function_text(analysis, plain(occurrence.name))
    value = value_of(place, symbol)
    declared = " ".join(place.item.text[slice(*symbol.statement)].split())
    if len(declared) > _SHOWN:
        declared = declared[:_SHOWN] + " …"
    if value is None:
        return _code(declared) if declared != symbol.name else None
    is_declared = place.item.format != "relay" and symbol.kind in ("buffer", "loop")
    title = declared if is_declared else f"{symbol.name}: {type_words(value.type)}"
    more = "" if declared in (title, symbol.name) or symbol.kind == "parameter" else "\n\n" + _code(declared)
    return _code(title) + more


_SHOWN = 200
"""The characters of a declaration that are shown."""


def _function_text(analysis: Analysis, name: str) -> str | None:
    """Describes a function of the file by its head, with the types that were inferred."""
    from ..dialects.relay.ir import FuncOp
    from ..parser.items import symbol_of

    for place in analysis.places:
        for op in place.ops:
            if symbol_of(op) != name:
                continue
            if isinstance(op, FuncOp):
                names = [each.data for each in op.param_names.data]
                parameters = ", ".join(f"%{n}: {type_words(p.type)}" for n, p in zip(names, op.params, strict=True))
                return _code(f"def @{name}({parameters}) -> {type_words(op.ret_type)}")
            lines = place.item.text.split("\n")
            head = next((line for line in lines if f"def {name}" in line), None)
            if head is not None:
                return _code(head.strip())
    return None


def find_operator(name: str, place: Place | None = None) -> Operator | None:
    """Returns an operator of Relay, or one that the items around a place define."""
    from ..dialects.relay.operator import get_operator, operator_at

    around = place.ops if place is not None else ()
    return operator_at(name, around[0]) if around else get_operator(name)


def operator_text(operator: Operator, place: Place | None = None, offset: int = 0) -> str:
    """Describes an operator, with the types of its use at an offset of an item."""
    parts = [_code(operator.signature), operator.doc]
    types = None if place is None else signature_at(place, offset, (operator.name,))
    if types is not None:
        parts.append(_code(types))
    if operator.source:
        parts.append(f"[definition]({operator.source})")
    return "\n\n".join(parts)


def _attribute_text(operator_name: str, name: str, place: Place) -> str | None:
    operator = find_operator(operator_name, place)
    spec = None if operator is None else operator.specs.get(name)
    if spec is None:
        return None
    meaning = spec.doc or f"An attribute of {operator_name}."
    return f"{_code(spec.text)}\n\n{meaning} It is {spec.values}."


def primitive_text(signature: Signature) -> str:
    """Describes a schedule primitive: its signature, and the program before and after."""
    if signature.owner:
        from ..lowering.te.schedule import primitives

        doc = cleandoc(getattr(primitives, signature.name).__doc__ or "")
    else:
        from ..passes.schedule.engine.primitive import find

        known = find(signature.name)
        doc = "" if known is None else known.doc
    summary, _, rest = doc.partition("\n\n")
    parts = [_code(f"{signature} -> {signature.result}", "python"), summary]
    if rest.strip():
        # The picture of before and after needs its columns.
        parts.append(_code(rest.strip("\n"), "text"))
    return "\n\n".join(parts)


def construct_text(word: str) -> str | None:
    """Describes `T.name` by the form of its use."""
    # The reader registers the constructs.
    import_module("..parser.tvmscript.functions", __package__)
    from ..parser.tvmscript.registry import construct

    for table in (
        construct.region,
        construct.loop,
        construct.definition,
        construct.statement,
        construct.axis,
        construct.scope,
        construct.value,
    ):
        reader = table.get(word)
        doc = None if reader is None else reader.__doc__
        if doc is not None:
            return cleandoc(doc)
    return None


def _code(text: str, language: str = "mir") -> str:
    return f"```{language}\n{text}\n```"
