"""Types of a schedule's methods, for checkers and editors: `methods.pyi`, written from the table of signatures.

`python -m mirstack.passes.schedule.engine.stubs` prints it (the file is that, formatted); a test holds the file to it.
"""

from __future__ import annotations

from ....dialects.schedule import Parameter, Signature, signatures
from ....dialects.schedule.kinds import Kind, Kinds
from ....dialects.schedule.signatures import Required

_TYPES = {
    "block": "BlockRV", "loop": "LoopRV", "expr": "ExprRV | int", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "none": "None", "lambda": "Callable[..., Any]", "any": "Any",
}  # fmt: skip
_RESULTS = {"block": "BlockRV", "loop": "LoopRV", "expr": "ExprRV", "none": "None"}
_HEAD = '''"""The primitives as methods: written by `stubs.py` from the table of signatures, not by hand."""

from collections.abc import Callable, Sequence
from typing import Any

from .random_variables import BlockRV, ExprRV, LoopRV

class Primitives:
'''


def stub_text() -> str:
    """The text of `methods.pyi`."""
    return _HEAD + "".join(f"    {_method(each)}\n" for each in signatures().values())


def _method(signature: Signature) -> str:
    parameters = "".join(f", {_parameter(p)}" for p in signature.parameters)
    element = signature.element
    result = _RESULTS[signature.result] if element is None else f"list[{_RESULTS[element]}]"
    return f"def {signature.name}(self{parameters}) -> {result}: ..."


def _parameter(parameter: Parameter) -> str:
    if parameter.variadic:
        return f"*{parameter.name}: {_type(parameter.kinds)}"
    default = "" if isinstance(parameter.default, Required) else f" = {parameter.default!r}"
    return f"{parameter.name}: {_type(parameter.kinds)}{default}"


def _type(kinds: Kinds) -> str:
    parts: dict[str, None] = {}
    for kind in kinds:
        parts.update(
            dict.fromkeys(_alternative(kind).split(" | ")) if not kind.elements else {_alternative(kind): None}
        )
    return " | ".join(parts)


def _alternative(kind: Kind) -> str:
    match kind.word:
        case "list":
            return f"Sequence[{_type(kind.elements[0])}]"
        case "pair":
            return f"tuple[{', '.join(map(_type, kind.elements))}]"
        case word:
            return _TYPES[word]


if __name__ == "__main__":
    print(stub_text(), end="")

__all__ = ["stub_text"]
