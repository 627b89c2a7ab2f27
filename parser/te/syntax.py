"""TE as a language in Python's syntax: the words that it does not have, and the tree of an item."""

from __future__ import annotations

from collections.abc import Sequence

from ..items import Item
from ..python.builder import parse_tree
from ..python.lexer import Language
from ..python.literals import Refuse
from ..python.tree import Function, Token

_FOREIGN = (
    *("import", "from", "class", "while", "try", "except", "finally", "raise", "yield", "del", "global", "nonlocal"),
    *("assert", "async", "await", "break", "continue"),
)
TE = Language(
    "a TE function",
    {
        **dict.fromkeys(
            _FOREIGN, "it holds definitions by te.var, te.placeholder, te.compute…, and returns [inputs…, outputs…]"
        ),
        "is": "write == to compare",
    },
    'te.const(2, "float16")',
    computes=True,
)


def read_function(item: Item) -> Function:
    """The tree of an item. Raises MirError for a syntax error."""
    tree = parse_tree(item, TE)
    assert isinstance(tree, Function)
    return tree


def parameter_names(parameters: Sequence[Token], refuse: Refuse) -> tuple[list[str], str | None]:
    """Returns the names of parameters, and the name after a star."""
    names: list[str] = []
    rest: str | None = None
    for name in parameters:
        if rest is not None:
            refuse(name, f"parameter '{name}' follows *{rest}, which takes all that follows")
        if name in names:
            refuse(name, f"parameter '{name}' is declared twice")
        if "." in name:
            refuse(name, f"'{name}' cannot be a parameter", "a parameter is a plain name")
        if name.type == "STAR":
            rest = str(name)
        else:
            names.append(str(name))
    return names, rest
