"""Arguments of calls: how many there are, by name or by position, lists and annotations among them."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr

from ...dialects.tir.buffer import NO_ATTRS
from ...dialects.tir.operators import Value
from ...support.text import counted, did_you_mean
from ..python.tree import Call, Expr, Sequence, Slice
from .expressions import expr
from .literals import read_dictionary
from .reader import Reader


def check_count(reader: Reader, node: Call, count: int) -> None:
    """Refuses another number of arguments."""
    if len(node.arguments) != count or node.keywords:
        given = len(node.arguments) + len(node.keywords)
        reader.fail(node, f"{node.function} takes {counted(count, 'argument')}, not {given}")


def read_arguments(reader: Reader, node: Call, count: int) -> list[Value]:
    """The values of a call's arguments, of which there are `count`. The location is then the call's."""
    check_count(reader, node, count)
    values = [expr(reader, a) for a in node.arguments]
    reader.location = reader.at(node)
    return values


def named_arguments(reader: Reader, node: Call, names: tuple[str, ...], required: int) -> list[Expr | None]:
    """A call's arguments in the order of `names`, positional or by keyword; None for those not given."""
    found: list[Expr | None] = [None] * len(names)
    if len(node.arguments) > len(names):
        reader.fail(
            node.arguments[len(names)],
            f"{node.function} takes at most {counted(len(names), 'argument')}: {', '.join(names)}",
        )
    found[: len(node.arguments)] = node.arguments
    for keyword in node.keywords:
        if keyword.name not in names:
            reader.fail(
                keyword.name,
                f"{node.function} has no argument '{keyword.name}'{did_you_mean(keyword.name, names)}",
                f"it has {', '.join(names)}",
            )
        place = names.index(keyword.name)
        if found[place] is not None:
            reader.fail(keyword.name, f"'{keyword.name}' is given twice")
        found[place] = keyword.value
    for name, value in zip(names[:required], found, strict=False):
        if value is None:
            reader.fail(node, f"{node.function} needs the argument '{name}'")
    return found


def list_items(reader: Reader, node: Expr | None, what: str) -> list[Expr]:
    """Returns the items of a list or tuple; a single value is a list of one."""
    if node is None:
        return []
    if isinstance(node, Sequence):
        return node.items
    if isinstance(node, Slice):
        reader.fail(node, f"{what} is a list")
    return [node]


def read_annotations(reader: Reader, node: Expr | None) -> DictionaryAttr:
    """`annotations={…}`, or none."""
    return NO_ATTRS if node is None or node == "None" else read_dictionary(reader, node)
