"""`loop-invariant-code-motion`: hoists products of tensor slices out of a loop written as recursion.

A function that calls itself with a counter one higher, and with a tensor that stays the same, is a loop over slices of that tensor. What
an iteration computes from its slice and from invariant values depends on no other iteration (an LSTM's products of the inputs with
their weights): one product of all slices reads the weights once, where those of the iterations read them each time.

    def @f(%i, %xs, %h) { if (less(%i, 32)) { … nn.dense(take(%xs, %i, axis=0), W) … @f(add(%i, 1), %xs, …) } else { %h } }

becomes a function that takes the products as a further parameter, `@f_loop`, and `@f`, which computes them and calls it. This is done
if every call of `@f` from elsewhere starts at 0, and the iterations, as the comparison bounds them, are at least half of the slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter, shape_of
from ....dialects.relay.operator import OperatorOp, OpPattern, is_operator
from ....support.edit import erase_op, insert_op_before
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ..common.rewriting import fresh_names, functions_of, returned
from ..functional.infer_type import ensure_types


@dataclass(frozen=True)
class LoopInvariantCodeMotion(ModulePass):
    """Compute products with slices of a tensor for all iterations of a recursive loop before the loop."""

    name = "loop-invariant-code-motion"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites the functions that are such loops; others stay as they are."""
        functions = functions_of(op)
        calls = _Calls.of(functions)
        if not calls.own:
            return
        trace = tracer(self.name)
        ensure_types(op)
        names = fresh_names(op)
        for name in calls.own:
            loop = _match(functions[name], calls)
            slices = {} if loop is None else _moved(loop)
            if loop is not None and slices:
                _split(loop, slices, names.fresh(f"{name}_loop"), trace)


@dataclass(frozen=True)
class _Calls:
    """Who calls which function of a module."""

    own: dict[str, list[ir.CallGlobalOp]]
    """Of functions that call themselves: these calls."""
    other: dict[str, list[ir.CallGlobalOp]]
    handed_on: set[str]
    """Functions that are values: anybody may call them."""

    @staticmethod
    def of(functions: Mapping[str, ir.FuncOp]) -> _Calls:
        calls = _Calls({}, {}, set())
        for name, function in functions.items():
            for op in walk_ops(function):
                if isinstance(op, ir.CallGlobalOp):
                    callee = op.callee.root_reference.data
                    (calls.own if callee == name else calls.other).setdefault(callee, []).append(op)
                elif isinstance(op, ir.GlobalRefOp):
                    calls.handed_on.add(op.symbol.root_reference.data)
        return calls


@dataclass(frozen=True)
class _Loop:
    """A function that calls itself once per iteration."""

    function: ir.FuncOp
    calls: Sequence[ir.CallGlobalOp]
    """Its calls of itself."""
    counter: SSAValue
    """The parameter that starts at 0 and is one higher in each call."""
    turns: int
    """How many there are at most."""
    constant: frozenset[SSAValue]
    """The parameters that each call hands on as they are."""


@dataclass(frozen=True)
class _Slice:
    """A matrix that an iteration computes from a slice: the op that makes it, and the slice it depends on."""

    op: OperatorOp
    take: OperatorOp
    has_product: bool
    """Whether an `nn.dense` is among what leads to it."""


def _match(function: ir.FuncOp, all_calls: _Calls) -> _Loop | None:
    """The loop that a function is; None for another."""
    name = function.sym_name.data
    calls, starts = all_calls.own[name], all_calls.other.get(name, [])
    if function.type_params.data or name in all_calls.handed_on or not starts:
        return None
    for index, counter in enumerate(function.params):
        turns = _turns(function, counter)
        if not turns or any(_number(call.arguments[index]) != 0 for call in starts):
            continue
        if all(_is_next(call.arguments[index], counter) for call in calls):
            constant = [
                param
                for number, param in enumerate(function.params)
                if all(_named(call.arguments[number]) is param for call in calls)
            ]
            return _Loop(function, calls, counter, turns, frozenset(constant))
    return None


def _named(value: SSAValue) -> SSAValue:
    """Looks through `let`s to the value that they name."""
    while isinstance(value, OpResult) and isinstance(value.op, ir.LetOp):
        value = value.op.value
    return value


def _operator(value: SSAValue, name: str) -> OperatorOp | None:
    owner = _named(value).owner
    return owner if isinstance(owner, OperatorOp) and is_operator(owner, name) else None


def _number(value: SSAValue) -> int | None:
    """The integer that a constant of rank 0 is."""
    owner = _named(value).owner
    if not isinstance(owner, ir.ConstantOp) or owner.value.data.shape or "int" not in owner.value.data.dtype:
        return None
    return int(owner.value.data.item())


def _turns(function: ir.FuncOp, counter: SSAValue) -> int | None:
    """The constant that the function compares its counter with, to do something or to end."""
    end = _named(returned(function.body.block)).owner
    less = _operator(end.condition, "less") if isinstance(end, ir.IfOp) else None
    return _number(less.args[1]) if less is not None and _named(less.args[0]) is counter else None


def _is_next(value: SSAValue, counter: SSAValue) -> bool:
    add = _operator(value, "add")
    return add is not None and any(
        _named(a) is counter and _number(b) == 1 for a, b in (add.args, tuple(reversed(add.args)))
    )


def _moved(loop: _Loop) -> dict[SSAValue, _Slice]:
    """The values that can be computed before the loop, in order, those that are worth it among them."""
    slices: dict[SSAValue, _Slice] = {}
    for block in _branches(loop.function.body.block):
        for op in block.ops:
            if isinstance(op, ir.LetOp) and op.value in slices:
                slices[op.result] = slices[op.value]
            elif isinstance(op, OperatorOp) and (found := _slice(op, loop, slices)) is not None:
                slices[op.result] = found
    return slices if any(item.has_product for item in slices.values()) else {}


def _branches(body: Block) -> Iterator[Block]:
    """Iterates over a block and the branches in it; local functions have iterations of their own."""
    pending = [body]
    while pending:
        block = pending.pop()
        yield block
        for op in block.ops:
            if isinstance(op, ir.IfOp | ir.MatchOp):
                pending += [region.block for region in op.regions]


def _slice(op: OperatorOp, loop: _Loop, slices: dict[SSAValue, _Slice]) -> _Slice | None:
    """The op as one that computes of a slice what can be computed of all."""
    shape = shape_of(op.result)
    if shape is None or op.OPERATOR.stateful:
        return None
    if is_operator(op, "take"):
        attrs, whole = op.attrs(), shape_of(op.args[0])
        fits = bool(
            _named(op.args[0]) in loop.constant
            and _named(op.args[1]) is loop.counter
            and whole is not None
            and attrs.axis is not None
            and attrs.batch_dims == 0
            and len(shape) == 2
            and 2 * loop.turns >= whole[int(attrs.axis)] > 1
        )
        return _Slice(op, op, False) if fits else None
    of_slices = [slices[arg] for arg in op.args if arg in slices]
    if not of_slices or any(item.take is not of_slices[0].take for item in of_slices):
        return None
    others = [arg for arg in op.args if arg not in slices]
    if any(not (_is_constant(arg) or _named(arg) in loop.constant) for arg in others):
        return None
    take = of_slices[0].take
    if is_operator(op, "nn.dense"):
        return _Slice(op, take, True) if op.args[0] in slices and op.args[1] not in slices else None
    has_product = any(item.has_product for item in of_slices)
    if is_operator(op, "nn.bias_add"):
        along_columns = op.attrs().axis in (-1, len(shape) - 1)
        return _Slice(op, take, has_product) if along_columns and op.args[0] in slices else None
    if op.OPERATOR.pattern > OpPattern.BROADCAST or not all(
        shape_of(arg) == shape if arg in slices else _same_in_rows(shape_of(arg)) for arg in op.args
    ):
        return None
    return _Slice(op, take, has_product)


def _same_in_rows(shape: tuple[int, ...] | None) -> bool:
    """Returns whether a tensor of this shape broadcasts equally to all rows of a matrix."""
    return shape is not None and (len(shape) < 2 or (len(shape) == 2 and shape[0] == 1))


def _is_constant(value: SSAValue) -> bool:
    return isinstance(_named(value).owner, ir.ConstantOp)


def _split(loop: _Loop, slices: dict[SSAValue, _Slice], name: str, trace: Tracer | None) -> None:
    """Splits a function into the loop, `name`, which takes the hoisted products, and their computation."""
    function = loop.function
    # The slices' values that an iteration needs for anything else.
    needed = list(
        dict.fromkeys(
            item.op.result
            for value, item in slices.items()
            if item.has_product and any(_stays(use.operation, slices) for use in value.uses)
        )
    )
    front = ir.FuncOp(
        function.sym_name.data,
        [param.data for param in function.param_names.data],
        [param.type for param in function.params],
        ret_type=function.ret_type,
        attrs=function.attrs.data,
    )
    front.location = function.location
    if (visibility := function.properties.get("sym_visibility")) is not None:
        front.properties["sym_visibility"] = visibility
    end = ir.ReturnOp(front.params[0])
    front.body.block.add_op(end)
    stacked: dict[SSAValue, SSAValue] = dict(zip(function.params, front.params, strict=True))
    for value, item in slices.items():
        stacked[value] = stacked[item.op.result] if item.op.result in stacked else _of_all(end, item, stacked)
    slices_of = [
        Emitter(end, [slices[value].op]).call("reshape", stacked[value], newshape=[-1, *(shape_of(value) or ())])
        for value in needed
    ]
    call = ir.CallGlobalOp(name, [*front.params, *slices_of], function.ret_type)
    call.location = function.location
    insert_op_before(call, end)
    end.operands = [call.result]
    parent = function.parent_block()
    assert parent is not None
    parent.insert_op_before(front, function)
    function.sym_name = StringAttr(name)
    for value, whole in zip(needed, slices_of, strict=True):
        _read(loop, slices[value], value, whole.type)
    for inner in loop.calls:
        inner.callee = SymbolRefAttr(name)
        inner.operands = [*inner.operands, *function.params[len(front.params) :]]
    for item in reversed(slices.values()):
        if item.op.parent is not None and not any(True for _ in item.op.result.uses):
            erase_op(item.op)
    if trace is not None:
        for value in needed:
            trace(value, f"computed for all iterations before @{name}")


def _read(loop: _Loop, item: _Slice, value: SSAValue, type: Attribute) -> None:
    """Adds a parameter that holds a value of all slices, and reads it where the value was computed."""
    function = loop.function
    taken = {param.data for param in function.param_names.data}
    label = next(name for k in range(len(taken) + 1) if (name := f"slices{k}") not in taken)
    param = function.body.block.insert_arg(type, len(function.params))
    param.name_hint = label
    function.param_names = ArrayAttr([*function.param_names.data, StringAttr(label)])
    given = item.take.given()
    mode = {"mode": given["mode"]} if "mode" in given else {}
    taken_slice = Emitter(item.op, [item.op]).call("take", param, loop.counter, axis=0, **mode)
    value.replace_all_uses_with(taken_slice)


def _stays(user: Operation, slices: dict[SSAValue, _Slice]) -> bool:
    """Returns whether an op that uses a slice's value is computed in every iteration."""
    return not any(result in slices for result in user.results)


def _of_all(before: Operation, item: _Slice, stacked: dict[SSAValue, SSAValue]) -> SSAValue:
    """The op for all slices at once, one below the other in one matrix, made in front of another op."""
    op = item.op
    make = Emitter(before, [op])
    if op is item.take:
        whole = stacked[_named(op.args[0])]
        shape = shape_of(whole) or (0,)
        axis = int(op.attrs().axis) % len(shape)
        if axis != 0:
            whole = make.call("transpose", whole, axes=[axis, *(k for k in range(len(shape)) if k != axis)])
        return make.call("reshape", whole, newshape=[-1, (shape_of(op.result) or (0,))[-1]])
    args: list[SSAValue] = []
    for arg in op.args:
        if arg not in stacked:
            source = _named(arg)
            stacked[arg] = stacked[source] if source in stacked else _copy(make, source)
        args.append(stacked[arg])
    return make.like(op, args)


def _copy(make: Emitter, constant: SSAValue) -> SSAValue:
    assert isinstance(constant.owner, ir.ConstantOp)
    copy = constant.owner.clone()
    insert_op_before(copy, make.before)
    return copy.result
