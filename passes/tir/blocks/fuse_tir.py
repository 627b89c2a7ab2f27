"""The pass `fuse-tir`: a Primitive Relay function that only calls prim_funcs becomes one prim_func.

    %y = call_tir(@relu, %x)              y = T.alloc_buffer((8,))
    %z = call_tir(@exp, %y)          →    … the body of relu, from x to y
                                          … the body of exp, from y to z

As TVM's FuseTIR: the bodies follow each other, and what one computes for the next is a buffer of the new function.
To fuse their loops is then the work of schedules (compute_inline, compute_at) or of `default-schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.builtin import TupleType as TupleTypeAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.relay import ir as relay
from ....dialects.tir.types import I32, BufferType
from ....support.edit import erase_op
from ....support.text import FreshNames, take_name
from ....support.trace import tracer
from ....support.walk import walk_ops
from ...pass_info import explanation
from ...relay.fusion.fuse_ops import call_tir_instead


class _Cannot(Exception):
    """Why a function stays as it is: at an op, in words."""

    def __init__(self, where: Operation, reason: str):
        super().__init__(reason)
        self.where, self.reason = where, reason


@dataclass(frozen=True)
class FuseTIR(ModulePass):
    """Fuses the prim_funcs that Primitive functions call; calls of the functions become `call_tir`s.

    A function whose body is anything but calls of prim_funcs of known shapes stays; `--explain fuse-tir` says why.
    """

    name = "fuse-tir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuses in every Relay function of the module."""
        unit = _Unit(op)
        explain = tracer(explanation(self.name))
        functions = [f for f in walk_ops(op) if isinstance(f, relay.FuncOp | relay.FnOp) and _is_primitive(f)]
        for function in functions:
            try:
                unit.fuse(function)
            except _Cannot as refusal:
                if explain is not None:
                    explain(refusal.where, refusal.reason, ("of this Primitive function", function))
        unit.drop_unused()


def _is_primitive(function: relay.FuncOp | relay.FnOp) -> bool:
    flag = function.attrs.data.get("Primitive")
    return isinstance(flag, IntegerAttr) and flag.value.data != 0


@dataclass
class _Unit:
    """Holds one module: its functions by name, the calls of each, and the prim_funcs that were fused."""

    module: ModuleOp
    prim_funcs: dict[str, tir.PrimFuncOp] = field(init=False)
    calls: dict[str, list[relay.CallGlobalOp]] = field(init=False)
    names: set[str] = field(init=False)
    fused: dict[str, None] = field(default_factory=dict[str, None])

    def __post_init__(self) -> None:
        tops = [op for op in self.module.ops if isinstance(op.properties.get("sym_name"), StringAttr)]
        self.names = {name.data for op in tops if isinstance(name := op.properties["sym_name"], StringAttr)}
        self.prim_funcs = {op.sym_name.data: op for op in tops if isinstance(op, tir.PrimFuncOp)}
        self.calls = {}
        for op in walk_ops(self.module):
            if isinstance(op, relay.CallGlobalOp):
                self.calls.setdefault(op.callee.root_reference.data, []).append(op)

    def fuse(self, function: relay.FuncOp | relay.FnOp) -> None:
        """Replaces one function by a prim_func; raises _Cannot, having changed nothing, where it cannot."""
        fusion = _Fusion(function, self.prim_funcs)
        if isinstance(function, relay.FuncOp):
            name = function.sym_name.data
            calls: list[relay.CallGlobalOp] | list[relay.CallOp] = self.calls.get(name, [])
        else:
            calls = _local_calls(function)
            name = take_name("_".join(["fused", *(f.sym_name.data for f in fusion.callees)]), self.names)
        built = fusion.build(name)
        for call in calls:
            call_tir_instead(call, name)
        self.fused.update(dict.fromkeys(f.sym_name.data for f in fusion.callees))
        if isinstance(function, relay.FuncOp):
            self.module.body.block.insert_op_before(built, function)
        else:
            self.module.body.block.add_op(built)
        erase_op(function)
        self.prim_funcs[name] = built

    def drop_unused(self) -> None:
        """Erases the fused prim_funcs that nothing refers to any more."""
        if not self.fused:
            return
        used: set[str] = set()
        for op in walk_ops(self.module):
            used.update(a.root_reference.data for a in op.properties.values() if isinstance(a, SymbolRefAttr))
        for name in self.fused:
            if name not in used:
                erase_op(self.prim_funcs[name])


def _local_calls(function: relay.FnOp) -> list[relay.CallOp]:
    """Returns the calls of a local function; raises _Cannot where it is used in another way."""
    calls: list[relay.CallOp] = []
    for use in function.result.uses:
        op = use.operation
        if not isinstance(op, relay.CallOp) or use.index != 0:
            raise _Cannot(op, "the function is used otherwise than by calls")
        calls.append(op)
    return calls


class _Fusion:
    """Collects the calls of a Primitive function in order, and which call computes each of its values."""

    def __init__(self, function: relay.FuncOp | relay.FnOp, prim_funcs: dict[str, tir.PrimFuncOp]):
        self.function = function
        self.steps: list[tuple[relay.CallTirOp, tir.PrimFuncOp, list[BufferType]]] = []
        self.callees: list[tir.PrimFuncOp] = []
        self.fields: dict[SSAValue, list[tuple[relay.CallTirOp, int]]] = {}
        self.results: list[tuple[relay.CallTirOp, int]] = []
        for value in function.body.block.args:
            if not isinstance(value.type, TensorType):
                raise _Cannot(function, "a parameter is not a tensor")
        for op in function.body.block.ops:
            match op:
                case relay.CallTirOp():
                    self._call(op, prim_funcs.get(op.callee.root_reference.data))
                case relay.LetOp():
                    self.fields[op.result] = self._fields(op, op.value)
                case relay.TupleOp():
                    self.fields[op.result] = [place for item in op.fields for place in self._fields(op, item)]
                case relay.TupleGetItemOp():
                    self.fields[op.result] = [self._fields(op, op.tuple_value)[op.index.value.data]]
                case relay.ReturnOp():
                    self.results = self._fields(op, op.value)
                case _:
                    raise _Cannot(op, f"'{op.name}' is not a call of a prim_func")
        if not self.steps:
            raise _Cannot(function, "it calls no prim_func")
        if len(set(self.results)) != len(self.results):
            raise _Cannot(function, "one value is returned twice")

    def _call(self, op: relay.CallTirOp, callee: tir.PrimFuncOp | None) -> None:
        if callee is None:
            raise _Cannot(op, f"@{op.callee.root_reference.data} is not a prim_func")
        types = [_buffer_type(op, callee, parameter) for parameter in callee.params]
        count = len(op.result.type.types.data) if isinstance(op.result.type, TupleTypeAttr) else 1
        self.steps.append((op, callee, types))
        self.callees.append(callee)
        self.fields[op.result] = [(op, number) for number in range(count)]

    def _fields(self, where: Operation, value: SSAValue) -> list[tuple[relay.CallTirOp, int]]:
        found = self.fields.get(value)
        if found is None:
            raise _Cannot(where, "a parameter is handed on as a result")
        return found

    def build(self, name: str) -> tir.PrimFuncOp:
        """Builds the prim_func: its parameters are the function's, then the results."""
        source = self.function
        inputs = [n.data for n in source.param_names.data]
        outputs = {place: type for op, _, types in self.steps for place, type in self._outputs(op, types)}
        names = FreshNames(inputs)
        types: list[Attribute] = [self._input(value) for value in source.body.block.args]
        output_names = [names.fresh(self._name(place)) for place in self.results]
        types += [outputs[place] for place in self.results]
        quiet = all("tir.noalias" in callee.attrs.data for callee in self.callees)
        attrs = {"tir.noalias": IntegerAttr(1, 1)} if quiet else {}
        built = tir.PrimFuncOp(name, [*inputs, *output_names], types, attrs=DictionaryAttr(attrs))
        built.location = source.location
        body = built.body.block
        for value, hint in zip(body.args, [*inputs, *output_names], strict=True):
            value.name_hint = hint if SSAValue.is_valid_name(hint) else None
        buffers: dict[tuple[relay.CallTirOp, int], SSAValue] = dict(
            zip(self.results, body.args[len(inputs) :], strict=True)
        )
        for place, type in outputs.items():
            if place not in buffers:
                allocation = tir.AllocBufferOp(names.fresh(f"{self._name(place)}_intermediate"), type)
                allocation.location = place[0].location
                body.add_op(allocation)
                buffers[place] = allocation.result
        arguments: dict[SSAValue, SSAValue] = dict(zip(source.body.block.args, body.args, strict=False))
        blocks = FreshNames()
        for op, callee, _ in self.steps:
            given = [arguments[a] if a in arguments else buffers[self.fields[a][0]] for a in op.arguments]
            count = len(callee.params) - len(given)
            given += [buffers[op, number] for number in range(count)]
            _append(callee, given, built, blocks)
        # In text the function belongs to the class that its first part belonged to.
        built.attributes.update(self.callees[0].attributes)
        return built

    def _input(self, value: SSAValue) -> BufferType:
        """Returns the type of a parameter: that of the first callee, whose indices may be int64."""
        for op, _, types in self.steps:
            for argument, type in zip(op.arguments, types, strict=False):
                if argument is value:
                    return type
        return _buffer_of(value.type)

    def _outputs(
        self, op: relay.CallTirOp, types: list[BufferType]
    ) -> list[tuple[tuple[relay.CallTirOp, int], BufferType]]:
        return [((op, k), type) for k, type in enumerate(types[len(op.arguments) :])]

    def _name(self, place: tuple[relay.CallTirOp, int]) -> str:
        op, number = place
        callee = next(callee for step, callee, _ in self.steps if step is op)
        value = callee.params[len(op.arguments) + number]
        match = _match_of(value)
        return match.var_name.data if match is not None else callee.param_names.data[len(op.arguments) + number].data


def _match_of(parameter: SSAValue) -> tir.MatchBufferOp | None:
    """Returns the buffer that a handle parameter is matched to."""
    users = [use.operation for use in parameter.uses]
    return users[0] if len(users) == 1 and isinstance(users[0], tir.MatchBufferOp) else None


def _buffer_type(call: relay.CallTirOp, callee: tir.PrimFuncOp, parameter: SSAValue) -> BufferType:
    """Returns the type of a parameter's buffer; raises _Cannot for one that is more than compact memory."""
    if isinstance(parameter.type, BufferType):
        return parameter.type
    match = _match_of(parameter)
    if match is None:
        raise _Cannot(call, f"a parameter of @{callee.sym_name.data} is not a buffer")
    type = match.result.type
    if type.static_shape is None or match.stride_dims.data or match.elem_offset is not None or match.data is not None:
        raise _Cannot(
            call, f"buffer '{match.var_name.data}' of @{callee.sym_name.data} has a symbolic shape or strides"
        )
    return type


def _buffer_of(type: Attribute) -> BufferType:
    assert isinstance(type, TensorType)
    dims = ArrayAttr([IntegerAttr(extent, I32) for extent in type.get_shape()])
    return BufferType(dims, type.element_type, StringAttr("global"))


def _append(callee: tir.PrimFuncOp, given: list[SSAValue], target: tir.PrimFuncOp, blocks: FreshNames) -> None:
    """Copies the body of a prim_func to the end of another, its parameters being `given`."""
    values: dict[SSAValue, SSAValue] = {}
    for parameter, buffer in zip(callee.params, given, strict=True):
        match = _match_of(parameter)
        values[parameter if match is None else match.result] = buffer
    matched = {m for p in callee.params if not isinstance(p.type, BufferType) and (m := _match_of(p)) is not None}
    body = target.body.block
    for op in callee.body.block.ops:
        if op in matched:
            continue
        copy = op.clone(values)
        body.add_op(copy)
        for inner in walk_ops(copy):
            if isinstance(inner, tir.BlockOp):
                inner.properties["block_name"] = StringAttr(blocks.fresh(inner.block_name.data))
