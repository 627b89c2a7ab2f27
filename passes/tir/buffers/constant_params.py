"""The attribute `tir.constant_params`: the parameters that are the same tensors at every call.

It lists positions among the parameters. Whoever marks a function promises that each of its calls passes constants there, so that
what depends on them alone may be computed once (`lift-transform-params`).
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, i64
from xdsl.ir import SSAValue

from ....dialects import te, tir

CONSTANT_PARAMS = "tir.constant_params"


def constant_params(function: tir.PrimFuncOp) -> list[SSAValue]:
    """Returns the buffers of a function's constant parameters, in order; others are skipped."""
    attr = function.attrs.data.get(CONSTANT_PARAMS)
    listed = attr.data if isinstance(attr, ArrayAttr) else ()
    places = [item.value.data for item in listed if isinstance(item, IntegerAttr)]
    params = function.params
    found = [params[place] for place in places if 0 <= place < len(params)]
    return [param for param in found if isinstance(param.type, tir.BufferType)]


def set_constant_params(function: tir.PrimFuncOp | te.FuncOp, places: Iterable[int]) -> None:
    """Marks the parameters at these positions as constants, and no others."""
    attrs = {key: attr for key, attr in function.attrs.data.items() if key != CONSTANT_PARAMS}
    listed = [IntegerAttr(place, i64) for place in sorted(places)]
    if listed:
        attrs[CONSTANT_PARAMS] = ArrayAttr(listed)
    function.properties["attrs"] = DictionaryAttr(attrs)
