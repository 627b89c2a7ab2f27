"""`fuse-attention`: fuses softmax(Q·Kᵀ …)·V into one kernel that never stores all scores.

The pattern is an `nn.batch_matmul` of an `nn.softmax` over the keys, of elementwise operators (a scale, a mask, a bias), of
another `nn.batch_matmul`. Reshapes between them, by which heads become a dimension of their own, are left out: operands added to
the scores are brought to their form instead. Reshapes, transposes and slices that bring Q, K and V into form are fused, too, and
those that follow the result, so that the kernel reads and writes what layers around it have in memory. How the rows of scores are
kept in cache is a matter of schedule (Dao et al., "FlashAttention", 2022, without its running maximum: a block's whole rows fit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, Float64Type, ModuleOp, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.emit import Emitter, dtype_of, shape_of
from ....dialects.relay.ir import ConstantOp, TupleGetItemOp
from ....dialects.relay.operator import AttrValue, OperatorOp, OpPattern, is_operator
from ....dialects.relay.operators.shape.transform import sections
from ....dialects.tir.types import type_to_dtype
from ....support.trace import Tracer, tracer
from ..common.function_attributes import open_ops
from ..common.rewriting import erase_unused, replace
from ..functional.infer_type import ensure_types
from .attention_masks import find_triangle, masked
from .fuse_ops import outline
from .recorded_operators import Recorder

MOST_OPERATORS = 12
"""How many elementwise operators there may be between the scores and their softmax."""
TILES = range(4, 9)
"""How many rows of queries may be computed together: all of them in tiles of one of these."""
ROWS = 4
"""To a multiple of what rows are filled up with zeros where no such tile divides them."""
FEW, LONG = 16, 128
"""Fewer queries than `FEW` do not read so many keys and values often enough for copies of them to pay, which the kernel makes. Narrow
floats are worth it sooner: the copies are float32, and made once."""
MIN_SCORES = 1 << 8
"""Queries times keys below which the kernel is not worth its code."""
FORMS = ("reshape", "transpose", "squeeze", "expand_dims", "strided_slice", "repeat", "broadcast_to")
"""What brings a tensor into form without computing: heads that several heads of queries share are read, not copied for each."""


@dataclass(frozen=True)
class FuseAttention(ModulePass):
    """Make a Primitive function of each attention: two batched products and the softmax between them."""

    name = "fuse-attention"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuses attentions whose shapes are all known; scores that anything else uses are left as they are."""
        trace = tracer(self.name)
        ensure_types(op)
        for each in list(open_ops(op)):
            if each.parent is not None and isinstance(each, OperatorOp) and is_operator(each, "nn.batch_matmul"):
                attention = _match(each)
                if attention is not None:
                    _fuse(attention, trace)


@dataclass(frozen=True)
class _Attention:
    """The operators of an attention, none of whose values but the last is used elsewhere."""

    scores: OperatorOp
    """Q·Kᵀ: (batch, queries, keys)."""
    changes: Sequence[tuple[OperatorOp, int]]
    """What is done to the scores, in order, and which argument they are."""
    softmax: OperatorOp
    output: OperatorOp
    """Softmax times V."""


def _match(output: OperatorOp) -> _Attention | None:
    if output.attrs().transpose_a or not isinstance(dtype_of(output.result), AnyFloat):
        return None
    softmax = _behind_forms(output.args[0])
    if softmax is None or not is_operator(softmax, "nn.softmax") or not _along_last(softmax):
        return None
    keys = (shape_of(output.args[0]) or (0,))[-1]
    if keys != (shape_of(softmax.result) or (1,))[-1]:
        return None
    found = _scores(softmax.args[0])
    if found is None:
        return None
    scores, changes = found
    values = [scores.result, scores.args[0], scores.args[1], output.args[1], output.result]
    if any(shape_of(value) is None for value in values) or len({dtype_of(value) for value in values}) > 1:
        return None
    if shape_of(scores.result) != shape_of(output.args[0]) or not _is_large(scores.result):
        return None
    return _Attention(scores, changes, softmax, output)


def _is_large(scores: SSAValue) -> bool:
    """Returns whether there are enough rows for a tile of registers, and enough scores to be worth it."""
    _, queries, keys = shape_of(scores) or (0, 0, 0)
    if queries < FEW and keys >= LONG and isinstance(dtype_of(scores), Float32Type | Float64Type):
        return False
    return queries >= TILES.start and queries * keys >= MIN_SCORES


def _along_last(softmax: OperatorOp) -> bool:
    return softmax.attrs().axis in (-1, len(shape_of(softmax.result) or ()) - 1)


def _inner(value: SSAValue) -> OperatorOp | None:
    """The operator that makes a value which nothing else uses."""
    owner = value.owner
    return owner if isinstance(owner, OperatorOp) and value.has_one_use() else None


def _behind_forms(value: SSAValue) -> OperatorOp | None:
    """The operator in front of reshapes that keep the rows of a matrix, as values that nothing else uses."""
    op = _inner(value)
    while op is not None and is_operator(op, "reshape") and _keeps_rows(op):
        op = _inner(op.args[0])
    return op


def _keeps_rows(reshape: OperatorOp) -> bool:
    before, after = shape_of(reshape.args[0]), shape_of(reshape.result)
    return before is not None and after is not None and before[-2:] == after[-2:]


def _scores(value: SSAValue) -> tuple[OperatorOp, list[tuple[OperatorOp, int]]] | None:
    """Returns the product that a softmax's operand derives from, and the operators between, in order."""
    changes: list[tuple[OperatorOp, int]] = []
    op = _behind_forms(value)
    while op is not None and len(changes) <= MOST_OPERATORS:
        if is_operator(op, "nn.batch_matmul"):
            return op, changes[::-1]
        if op.OPERATOR.pattern > OpPattern.BROADCAST or op.OPERATOR.stateful:
            return None
        shape = shape_of(op.result)
        places = [k for k, a in enumerate(op.args) if shape_of(a) == shape and _is_scores(a)]
        if shape is None or len(places) != 1:
            return None
        changes.append((op, places[0]))
        op = _behind_forms(op.args[places[0]])
    return None


def _is_scores(value: SSAValue) -> bool:
    """Returns whether a value may lead to the product; one computed from anything else is a mask."""
    op = _behind_forms(value)
    for _ in range(MOST_OPERATORS):
        if op is None:
            return False
        if is_operator(op, "nn.batch_matmul"):
            return True
        shape = shape_of(op.result)
        op = next((_behind_forms(a) for a in op.args if shape_of(a) == shape and _behind_forms(a) is not None), None)
    return False


def _fuse(attention: _Attention, trace: Tracer | None) -> None:
    """Outlines an attention and what brings its tensors into form."""
    output = attention.output
    if trace is not None:
        trace(output, "an attention: one kernel", ("its scores are here", attention.scores))
    sources = [attention.scores, *(op for op, _ in attention.changes), attention.softmax, output]
    make = Recorder(output, sources, _half(attention))
    wide: dict[str, AttrValue] = {"out_dtype": "float32"} if make.half is not None else {}
    forms: dict[SSAValue, SSAValue] = {}
    query, key, value = (_own_forms(make, v, forms) for v in (*attention.scores.args, output.args[1]))
    rows = _size(query, -1 if attention.scores.attrs().transpose_a else -2)
    more = -rows % ROWS if all(rows % r for r in TILES) else 0
    if more:
        query = _pad_rows(make, query, more, -1 if attention.scores.attrs().transpose_a else -2)
    scores = make.like(attention.scores, [query, key], **wide)
    triangle = find_triangle(attention.changes, rows)
    for op, place in attention.changes[: -1 if triangle is not None and triangle.is_all else None]:
        others = [None if k == place else _in_form(make, arg, op, more) for k, arg in enumerate(op.args)]
        scores = _changed(make, op, [scores if arg is None else arg for arg in others])
    if triangle is not None:
        scores = masked(make, scores, triangle)
    # Rows are divided by their sums after the second product, which has fewer elements than the scores.
    exps = make.call("exp", make.call("subtract", scores, make.call("max", scores, axis=(-1,), keepdims=True)))
    result = make.like(output, [exps, value], **wide)
    result = make.call("divide", result, make.call("sum", exps, axis=(-1,), keepdims=True))
    if more:
        end = (_size(result, 0), rows, _size(result, 2))
        result = make.call("strided_slice", result, begin=(0,) * 3, end=end, strides=(1,) * 3)
    brought = [arg.owner for arg in output.args]
    replace(output, result if make.half is None else make.outside("cast", result, dtype=type_to_dtype(make.half)))
    # What reshapes the weights of the softmax goes before it: nothing else uses them.
    for owner in brought:
        if isinstance(owner, OperatorOp | TupleGetItemOp):
            erase_unused(owner)
    for op in (attention.softmax, *(op for op, _ in reversed(attention.changes)), attention.scores):
        erase_unused(op)
    unused = [op for op in make.made if op.results[0].first_use is None]
    for op in unused:
        erase_unused(op)
    outline([*(op for op in make.made if op not in unused), *_forms_behind(result, rows, padded=more > 0)])


def _half(attention: _Attention) -> Attribute | None:
    """Returns the dtype of a half-precision attention whose operators can all run in float32.

    Rounding each step costs more than the products do.
    """
    half = dtype_of(attention.output.result)
    if not isinstance(half, Float16Type | BFloat16Type):
        return None
    for op, _ in attention.changes:
        if op.OPERATOR.name in CASTS or any(dtype_of(value) not in (half, i1) for value in (op.result, *op.args)):
            return None
    return half


CASTS = ("cast", "cast_like")
"""Operators that say of what dtype their result is."""


def _size(value: SSAValue, axis: int) -> int:
    return (shape_of(value) or ())[axis]


def _pad_rows(make: Recorder, value: SSAValue, more: int, axis: int) -> SSAValue:
    """A tensor with `more` rows of zeros at its end."""
    shape = shape_of(value) or ()
    width = [(0, more if k == axis % len(shape) else 0) for k in range(len(shape))]
    zero = make.scalar(0, value)
    return make.call("nn.pad", value, zero, pad_width=tuple(width))


def _changed(make: Recorder, op: OperatorOp, args: Sequence[SSAValue]) -> SSAValue:
    """An elementwise operator on other arguments; division by a number is multiplication by its inverse."""
    divisor = args[-1].owner
    if is_operator(op, "divide") and isinstance(divisor, ConstantOp) and divisor.value.array.ndim == 0:
        value = float(divisor.value.array)
        if value and isfinite(1 / value):
            return make.call("multiply", args[0], make.scalar(1 / value, args[0]))
    return make.like(op, args)


def _own_forms(make: Recorder, value: SSAValue, copies: dict[SSAValue, SSAValue]) -> SSAValue:
    """The value, from copies of the operators that bring it into form."""
    chain: list[OperatorOp | TupleGetItemOp] = []
    while True:
        op = value.owner
        if isinstance(op, OperatorOp) and op.OPERATOR.name in FORMS and len(op.args) == 1:
            value = op.args[0]
        elif isinstance(op, TupleGetItemOp) and (split := _split_of(op)) is not None:
            value = split.args[0]
        else:
            break
        chain.append(op)
    value = make.brought(value)
    for op in reversed(chain):
        if op.result not in copies:
            copies[op.result] = make.like(op, [value]) if isinstance(op, OperatorOp) else _part(make, op, value)
        value = copies[op.result]
    return value


def _split_of(op: TupleGetItemOp) -> OperatorOp | None:
    """Returns the `split` of a tensor of known shape that an op takes a part of."""
    split = op.tuple_value.owner
    if not isinstance(split, OperatorOp) or not is_operator(split, "split") or shape_of(split.args[0]) is None:
        return None
    return split


def _part(make: Emitter, op: TupleGetItemOp, value: SSAValue) -> SSAValue:
    """A field of what `split` makes of a value, as a slice."""
    split, shape = _split_of(op), shape_of(value) or ()
    assert split is not None
    attrs = split.attrs()
    axis: int = attrs.axis % len(shape)
    low, high = sections(attrs, shape[axis])[op.index.value.data]
    return make.call("strided_slice", value, begin=(low,), end=(high,), strides=(1,), axes=(axis,))


def _in_form(make: Recorder, arg: SSAValue, op: OperatorOp, more: int) -> SSAValue:
    """Reshapes an operand of an elementwise operator to match scores of three dimensions and `more` rows."""
    whole, given = shape_of(op.result), shape_of(arg)
    assert whole is not None and given is not None
    if not given and isinstance(arg.owner, ConstantOp):
        return make.scalar(arg.owner.value.array.item(), arg)
    arg = make.brought(arg)
    if not given:
        return arg
    padded = (1,) * (len(whole) - len(given)) + given
    if len(whole) != 3:
        if prod(padded[:-2]) == 1:
            arg = make.call("reshape", arg, newshape=padded[-2:])
        else:
            arg = make.call("broadcast_to", arg, shape=(*whole[:-2], *padded[-2:]), dtype="")
            arg = make.call("reshape", arg, newshape=(prod(whole[:-2]), *padded[-2:]))
    return _pad_rows(make, arg, more, -2) if more and padded[-2] > 1 else arg


def _forms_behind(value: SSAValue, rows: int, *, padded: bool) -> list[Operation]:
    """Follows reshapes and transposes of a value, each the only user of the one before.

    It stops where no dimension holds whole rows and one whole columns. Rows that are filled up are the whole dimension: what follows
    them there would be another matrix.
    """
    ops: list[Operation] = []
    columns = _size(value, -1)
    while (user := value.get_user_of_unique_use()) is not None:
        if not isinstance(user, OperatorOp) or user.OPERATOR.name not in ("reshape", "transpose"):
            break
        shape = shape_of(user.result)
        if len(user.args) != 1 or user.parent is not value.owner.parent or shape is None:
            break
        if rows not in shape and (padded or all(size % rows for size in shape)):
            break
        if all(size % columns for size in shape):
            break
        ops.append(user)
        value = user.result
    return ops
