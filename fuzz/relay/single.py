"""Draws unrelated operator uses in one program, on special values, sizes of 0, primes and `?`.

```text
def @main(%x0: Tensor[(0, 7), float32], %x1: Tensor[(?), int8]) {
  (nn.softmax(%x0, axis=1), abs(%x1))
}
```
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.relay import ir
from ...dialects.relay.infer import infer_types
from ...dialects.relay.operator import Operator, OpPattern, all_operators, operator_class
from ...dialects.relay.operators.common.relations import tensor_type
from ...support.diagnostics import MirError
from ..operators.relation import type_of
from ..operators.sampling import flat
from ..operators.uses import Use, new_use
from .graphs import deck

USES = 3
"""How many uses a program has. Each kernel costs the same to compile wherever it stands: more programs differ in more."""
MOST = 1 << 14
"""More elements than this are not run: the interpreter would take long."""
BY_ELEMENT = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
INDICES = ("take", "gather", "scatter", "one_hot", "sparse", "embedding", "adv_index", "sequence", "reverse_sequence")
"""Parts of the names of operators whose integers are positions: other ones mean nothing to them."""


def batch_of_uses(rng: random.Random, number: int) -> tuple[ModuleOp, dict[str, np.ndarray], frozenset[str]]:
    """Returns a module, its inputs and operators; consecutive numbers deal all operators."""
    names = [deck()[(number * USES + n) % len(deck())] for n in range(USES)]
    while True:
        chosen = [(all_operators()[name], varied(all_operators()[name], new_use(name, rng), rng)) for name in names if not name.startswith("memory.")]  # fmt: skip
        try:
            return (*program_of(chosen, rng), frozenset(operator.name for operator, _ in chosen))
        except MirError:
            # An operator whose argument may not have a dimension that is `?`.
            continue


def program_of(chosen: list[tuple[Operator, Use]], rng: random.Random) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """Returns a module whose `main` returns all uses' results. Raises MirError where types do not fit."""
    block, inputs, results = Block(), dict[str, np.ndarray](), list[Operation]()

    def value(argument: Any, opened: bool) -> SSAValue | Operation:
        if isinstance(argument, tuple):
            block.add_op(fields := ir.TupleOp([value(a, opened) for a in argument]))
            return fields
        type = type_of(argument)
        if opened and argument.dtype.kind not in "iu":
            type = tensor_type(
                [DYNAMIC_INDEX if rng.random() < 0.7 else n for n in argument.shape], argument.dtype.name
            )
        inputs[f"x{len(inputs)}"] = argument
        return block.insert_arg(type, len(block.args))

    for operator, (attrs, arguments) in chosen:
        opened = rng.random() < 0.15
        op = operator_class(operator)([value(a, opened) for a in arguments], attrs)
        block.add_op(op)
        results.append(op)
    block.add_ops([fields := ir.TupleOp(results), ir.ReturnOp(fields)])
    module = ModuleOp([ir.FuncOp("main", list(inputs), [], body=Region(block))])
    infer_types(module)
    return module, inputs


def varied(operator: Operator, use: Use, rng: random.Random) -> Use:
    """Returns the use with other sizes or special values, where the operator takes them."""
    for change in (resized, special):
        if rng.random() < 0.4:
            changed = change(operator, use, rng)
            if changed is not None and runs(operator, changed):
                use = changed
    return use


def runs(operator: Operator, use: Use) -> bool:
    """Tells whether the operator has a type and a meaning for a use."""
    if sum(a.size for a in flat(use[1])) > MOST:
        return False
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program_of([(operator, use)], _Never())
            result = operator.numpy(operator.attrs(use[0]), *use[1])
    except Exception:
        return False
    return sum(a.size for a in flat(result)) <= MOST


class _Never(random.Random):
    """Draws numbers that let nothing happen."""

    def random(self) -> float:
        return 1.0


def resized(operator: Operator, use: Use, rng: random.Random) -> Use | None:
    """Replaces one size wherever it occurs in the arguments' shapes by 0, 1, a prime or a larger one."""
    if operator.name == "sparse_fill_empty_rows":
        return None  # Its places are in row-major order.
    attrs, arguments = use
    sizes = sorted({n for a in flat(arguments) for n in a.shape})
    if not sizes:
        return None
    old, new = rng.choice(sizes), rng.choice((0, 0, 1, 2, 5, 7, 13, 17, 31, 64, 67))

    def change(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(change, value))
        if operator.name.startswith("dyn.") and value.dtype.kind in "iu":
            return value  # More numbers that are sizes make the result too large to try.
        shape = tuple(new if n == old else n for n in value.shape)
        if int(np.prod(shape)) > MOST or value.size == 0:
            return value
        return np.ascontiguousarray(np.resize(value, shape)).reshape(shape)

    return attrs, tuple(map(change, arguments))


def special(operator: Operator, use: Use, rng: random.Random) -> Use | None:
    """Replaces some elements by values at the ends of the dtype's range."""
    attrs, arguments = use
    if operator.name.startswith("qnn."):
        return None  # A scale that is NaN or infinite represents nothing.
    whole = operator.pattern in BY_ELEMENT and not any(part in operator.name for part in INDICES)

    def change(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(change, value))
        if value.dtype.kind == "b" or value.size == 0 or (value.dtype.kind in "iu" and not whole):
            return value
        return with_specials(value, rng)

    return attrs, tuple(map(change, arguments))


def with_specials(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Copies an array, with a few special elements."""
    made = np.array(array)
    if not made.size:
        return made
    numbers = special_values(array.dtype)
    for _ in range(rng.randint(1, 1 + min(6, made.size // 2))):
        made.reshape(-1)[rng.randrange(made.size)] = numbers[rng.randrange(len(numbers))]
    return made


def special_values(dtype: np.dtype) -> np.ndarray:
    """Returns a dtype's special values: ends of integers; NaN, infinities, zeros, subnormals, largest."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype)
    limits = ml_dtypes.finfo(dtype)
    tiny, largest = float(limits.smallest_subnormal), float(limits.max)
    numbers = [
        np.nan,
        np.inf,
        -np.inf,
        -0.0,
        0.0,
        tiny,
        -tiny,
        float(limits.tiny),
        largest,
        -largest,
        0.5,
        -0.5,
        2.5,
        1e-3,
    ]
    return np.array(numbers, np.float64).astype(dtype)
