"""Writes `methods.pyi`, the types of a schedule's methods for checkers, from the table of signatures.

`python -m mirstack.passes.schedule.engine.stubs` prints it (the file is that, formatted); a test holds the file to it. With the argument
`te` it prints `lowering/te/schedule/methods.pyi`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from ....dialects.schedule import Parameter, Signature, signatures
from ....dialects.schedule.kinds import Kinds, ParameterKind
from ....dialects.schedule.signature_table import Required, te_signatures

_TYPES = {
    "block": "BlockRV", "loop": "LoopRV", "expr": "ExprRV | int", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "none": "None", "lambda": "Callable[..., Any]", "any": "Any",
}  # fmt: skip
_RESULTS = {"block": "BlockRV", "loop": "LoopRV", "expr": "ExprRV", "none": "None"}
_TE_TYPES = {
    **_TYPES, "axis": "IterVar", "stage": "Stage", "tensor": "Tensor | Operation", "expr": "ExprLike", "literal": "ExprLike | str",
}  # fmt: skip
# Of a list of tensors the only one is returned by itself.
_TE_RESULTS = {"axis": "IterVar", "stage": "Stage", "tensor": "Tensor", "none": "None", "list[tensor]": "Any"}
_HEAD = '''"""The primitives as methods: written by `stubs.py` from the table of signatures, not by hand."""

from collections.abc import Callable, Sequence
from typing import Any

from .random_variables import BlockRV, ExprRV, LoopRV

class Primitives:
'''
_TE_HEAD = '''"""The primitives as methods: written by `passes/schedule/engine/stubs.py` from the table of signatures, not by hand."""

from collections.abc import Sequence
from typing import Any

from ....dialects.te.tensor import Operation, Tensor
from ....dialects.tir.node import ExprLike, IterVar
from .frontend import Stage
'''


def stub_text() -> str:
    """Returns the text of `methods.pyi`."""
    return _HEAD + "".join(f"    {_method(each)}\n" for each in signatures().values())


def te_stub_text() -> str:
    """Returns the text of `lowering/te/schedule/methods.pyi`."""
    text = _TE_HEAD
    for owner in ("stage", "schedule"):
        text += f"\nclass {owner.capitalize()}Primitives:\n"
        text += "".join(f"    {_te_method(s)}\n" for s in te_signatures().values() if s.owner == owner)
    return text


def _method(signature: Signature) -> str:
    parameters = "".join(f", {_parameter(p)}" for p in signature.parameters)
    element = signature.element
    result = _RESULTS[signature.result] if element is None else f"list[{_RESULTS[element]}]"
    return f"def {signature.name}(self{parameters}) -> {result}: ..."


def _te_method(signature: Signature) -> str:
    parameters = "".join(f", {_parameter(p, _TE_TYPES)}" for p in signature.parameters)
    results = [_TE_RESULTS[kind] for kind in signature.result.split(", ")]
    result = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
    return f"def {signature.name}(self{parameters}) -> {result}: ..."


def _parameter(parameter: Parameter, types: Mapping[str, str] = _TYPES) -> str:
    if parameter.variadic:
        # TE's `fuse` takes a list, too.
        several = " | Sequence[IterVar]" if types is _TE_TYPES else ""
        return f"*{parameter.name}: {_type(parameter.kinds, types)}{several}"
    default = "" if isinstance(parameter.default, Required) else f" = {parameter.default!r}"
    optional = " | None" if types is _TE_TYPES and parameter.default is None else ""
    # TE takes one for a list of one.
    one = f"{types[parameter.element]} | " if types is _TE_TYPES and parameter.is_list else ""
    return f"{parameter.name}: {one}{_type(parameter.kinds, types)}{optional}{default}"


def _type(kinds: Kinds, types: Mapping[str, str] = _TYPES) -> str:
    parts: dict[str, None] = {}
    for kind in kinds:
        parts.update(
            dict.fromkeys(_alternative(kind, types).split(" | "))
            if not kind.elements
            else {_alternative(kind, types): None}
        )
    return " | ".join(parts)


def _alternative(kind: ParameterKind, types: Mapping[str, str]) -> str:
    match kind.word:
        case "list":
            return f"Sequence[{_type(kind.elements[0], types)}]"
        case "pair":
            return f"tuple[{', '.join(_type(e, types) for e in kind.elements)}]"
        case word:
            return types[word]


if __name__ == "__main__":
    print(te_stub_text() if sys.argv[1:] == ["te"] else stub_text(), end="")
