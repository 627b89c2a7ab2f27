"""The attribute `tir.param_strides`: the strides of the tensors that a TE function reads and returns.

For each parameter, in order, it has the strides in elements, or `[]` for a compact tensor. `lower-te-to-tir` makes them the strides of
buffers; what the function computes is the same with and without it. Whoever marks a function ensures that its calls pass such memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, i64
from xdsl.ir import Attribute

from ....dialects import te
from ....support.diagnostics import error_at
from ....support.text import counted

PARAM_STRIDES = "tir.param_strides"

Strides = tuple[tuple[int, ...], ...]
"""By parameter; () for a compact one."""


def set_param_strides(function: te.FuncOp, strides: Sequence[Sequence[int]]) -> None:
    """Sets the strides of the function's tensors; removes the attribute where all are compact."""
    attrs = {key: attr for key, attr in function.attrs.data.items() if key != PARAM_STRIDES}
    if any(strides):
        attrs[PARAM_STRIDES] = strides_attr(strides)
    function.properties["attrs"] = DictionaryAttr(attrs)


def param_strides(function: te.FuncOp) -> Strides:
    """Returns the strides of each parameter; raises MirError where the attribute does not fit them."""
    attr, name = function.attrs.data.get(PARAM_STRIDES), function.sym_name.data
    if not is_strides(attr):
        raise error_at(
            function,
            f"{PARAM_STRIDES} of '{name}' is not a list of lists of integers",
            "for each parameter it has a list of strides in elements, or [] for a compact tensor: [[32, 1], []]",
        )
    given = strides_from(attr)
    if len(given) > len(function.params):
        raise error_at(
            function,
            f"{PARAM_STRIDES} has {counted(len(given), 'list')} of strides, but '{name}' has"
            f" {counted(len(function.params), 'parameter')}",
        )
    found = (*given, *[()] * (len(function.params) - len(given)))
    for number, (steps, value) in enumerate(zip(found, function.params, strict=True)):
        rank = value.type.rank if isinstance(value.type, te.TensorType) else 0
        if steps and (len(steps) != rank or min(steps) < 1):
            raise error_at(
                function,
                f"{PARAM_STRIDES}: parameter {number} of '{name}' has {counted(rank, 'dimension')}, but"
                f" {list(steps)} is not {counted(rank, 'stride')} of 1 or more",
            )
    return found


def strides_attr(strides: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """Strides by parameter as an attribute."""
    return ArrayAttr([ArrayAttr([IntegerAttr(step, i64) for step in steps]) for steps in strides])


def is_strides(attr: Attribute | None) -> bool:
    """Returns whether the attribute is absent, or has a list of integers for each of some parameters."""
    return attr is None or (
        isinstance(attr, ArrayAttr)
        and all(isinstance(s, ArrayAttr) and all(isinstance(n, IntegerAttr) for n in s.data) for s in attr.data)
    )


def strides_from(attr: Attribute | None) -> Strides:
    """Reads what `strides_attr` wrote."""
    listed = attr.data if isinstance(attr, ArrayAttr) else ()
    return tuple(
        tuple(step.value.data for step in steps.data if isinstance(step, IntegerAttr))
        if isinstance(steps, ArrayAttr)
        else ()
        for steps in listed
    )
