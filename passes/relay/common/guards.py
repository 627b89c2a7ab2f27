"""Guards values by conditions: a program stops with an error where its condition does not hold.

    %y: Tensor[(2, 3), float32]    ->    %s = where(%c, [2, 3], [0, 0]);
                                         %o = dyn.reshape(%y, %s, allowzero=True);    // Tensor[(?, ?), float32]
                                         reshape(%o, newshape=[2, 3])

No new operator is needed, and no kernel: an array of elements is not reshaped to none.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue


class Maker(Protocol):
    """Creates operators and constants: `Emitter`, or the builder of an importer."""

    def call(self, name: str, /, *arguments: SSAValue, **attributes: Any) -> SSAValue: ...
    def constant(self, value: Any, /, dtype: str) -> SSAValue: ...


def opened(make: Maker, value: SSAValue, condition: SSAValue, holds: bool, shape: SSAValue | None = None) -> SSAValue:
    """Returns a value with all dimensions open; the program stops where the condition is not `holds`.

    The compiler does not know the condition. `shape` is the value's shape as int64, where there is one already.
    """
    if shape is None:
        shape = make.call("shape_of", value, dtype="int64")
    shapes = [shape, make.constant(np.zeros(len(_dims(value))), "int64")]
    chosen = make.call("where", condition, *(shapes if holds else reversed(shapes)))
    return make.call("dyn.reshape", value, chosen, allowzero=True)


def guarded(make: Maker, value: SSAValue, condition: SSAValue, holds: bool, shape: SSAValue | None = None) -> SSAValue:
    """Returns a value of the same type; the program stops where the condition is not `holds`.

    A value without elements is returned as it is.
    """
    dims = _dims(value)
    if 0 in dims:
        return value
    if not dims:
        row = guarded(make, make.call("reshape", value, newshape=[1]), condition, holds)
        return make.call("reshape", row, newshape=[])
    sizes = [0 if size == DYNAMIC_INDEX else size for size in dims]
    return make.call("reshape", opened(make, value, condition, holds, shape), newshape=sizes)


def _dims(value: SSAValue) -> tuple[int, ...]:
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())
