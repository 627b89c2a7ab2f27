"""`defunctionalization`: replaces functions that are values by data.

As TVM's Defunctionalization (Reynolds, "Definitional Interpreters for Higher-Order Programming Languages", 1972): for each type of
function there is a data type with a constructor for each function of that type that is made into a value, whose fields
are the values that it captures, and a function `apply…` that matches on it. A function with functions among its arguments or results
gets a copy on data; the original stays (`remove-unused-functions` drops it). Generic functions are made concrete first. A local
function that is only called where it is defined is not a value, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, LocationAttr, ModuleOp, StringAttr, SymbolRefAttr, TupleType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern
from ....dialects.relay.types import AdtType, FuncType, RefType, tuple_of
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_op_after, insert_op_before, set_type
from ....support.walk import walk_ops
from ..common.function_attributes import is_primitive
from ..common.rewriting import free_values, fresh_names, functions_of, place_leaves, replace, take_leaves_in
from .infer_type import ensure_types
from .monomorphize import Monomorphize


@dataclass(frozen=True)
class Defunctionalization(ModulePass):
    """Make data of functions that are values."""

    name = "defunctionalization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not _uses_functions_as_values(op):
            return
        ensure_types(op)
        Monomorphize().apply(ctx, op)
        main = functions_of(op).get("main")
        if main is not None and _holds_function(main.function_type(), whole=False):
            raise error_at(main, "@main takes or gives a function", "a program's inputs and results must be data")
        _Program(op).run()


def _uses_functions_as_values(module: ModuleOp) -> bool:
    return any(
        _is_value(op) or (isinstance(op, ir.CallOp) and not isinstance(op.callee.owner, ir.FnOp))
        for op in walk_ops(module)
    )


def _is_value(op: Operation) -> bool:
    """Returns whether the op makes a value of a function."""
    if isinstance(op, ir.FnOp):
        return not _is_only_called(op.result)
    return isinstance(op, ir.GlobalRefOp | ir.ConstructorRefOp) and not _is_only_called(op.result)


def _is_only_called(value: SSAValue) -> bool:
    return all(isinstance(use.operation, ir.CallOp) and use.index == 0 for use in value.uses)


def _field_types(op: ir.TypeDataOp) -> list[Attribute]:
    return [type for fields in op.constructors().values() for type in fields]


def _holds_function(type: Attribute, *, whole: bool = True) -> bool:
    """Returns whether the type holds a function type; without `whole`, in its inputs or output."""
    pending = [type] if whole or not isinstance(type, FuncType) else [*type.inputs.data, type.output]
    while pending:
        match pending.pop():
            case FuncType():
                return True
            case TupleType() as tuple_type:
                pending += tuple_type.types.data
            case AdtType() as adt:
                pending += adt.arguments.data
            case RefType() as ref:
                pending.append(ref.value_type)
            case _:
                pass
    return False


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


@dataclass
class _Kind:
    """A type of function: the data type that replaces it, and the fields and body of each constructor."""

    type: FuncType
    data_type: str
    apply: str
    constructors: dict[str, list[Attribute]] = field(default_factory=dict[str, list[Attribute]])
    bodies: dict[str, Region] = field(default_factory=dict[str, Region])
    block: Block = field(default_factory=Block)
    """Of the apply function: its first argument is the data, the others those of the call."""


class _Program:
    def __init__(self, module: ModuleOp):
        self.module = module
        self.functions: Mapping[str, ir.FuncOp] = functions_of(module)
        self.new = fresh_names(module)
        data_types = [op for op in module.ops if isinstance(op, ir.TypeDataOp)]
        self.with_functions = {op.sym_name.data: op for op in data_types if any(map(_holds_function, _field_types(op)))}
        self.kinds: dict[FuncType, _Kind] = {}
        self.by_name: dict[str, _Kind] = {}
        self.copies: dict[str, str] = {}
        self.names: dict[tuple[FuncType, str], str] = {}
        self.pending: list[ir.FuncOp] = []
        self.kept: set[SSAValue] = set()

    def run(self) -> None:
        """Rewrites the module."""
        for function in self.functions.values():
            if not is_primitive(function) and not _holds_function(function.function_type(), whole=False):
                self.pending.append(function)
        while self.pending:
            self._rewrite(self.pending.pop())
        first = next(iter(self.module.ops))
        for kind in self.kinds.values():
            insert_op_before(self._data_type(kind), first)
        for kind in self.kinds.values():
            insert_op_before(self._apply_function(kind), first)

    # Types ----------------------------------------------------------------------------------------------------------

    def _data(self, type: Attribute) -> Attribute:
        """The type with functions as data."""
        match type:
            case FuncType():
                return AdtType.get(self._kind(type).data_type)
            case TupleType():
                return tuple_of([self._data(t) for t in type.types.data])
            case AdtType():
                declared = self.with_functions.get(type.type_name.data)
                if declared is not None:
                    raise error_at(
                        declared,
                        f"the data type {type.type_name.data} has a field that is a function",
                        "defunctionalization takes functions in parameters, results, tuples, references and generic fields",
                    )
                return AdtType.get(type.type_name.data, [self._data(t) for t in type.arguments.data])
            case RefType():
                return RefType(self._data(type.value_type))
            case _:
                return type

    def _kind(self, type: FuncType) -> _Kind:
        kind = self.kinds.get(type)
        if kind is None:
            name, apply = self.new.fresh("DefuncFuncType"), self.new.fresh("applyFuncType")
            kind = self.kinds[type] = self.by_name[name] = _Kind(type, name, apply)
            kind.block = Block(arg_types=[AdtType.get(name), *map(self._data, type.inputs.data)])
        return kind

    def _retype(self, value: SSAValue) -> None:
        if value not in self.kept:
            set_type(value, self._data(value.type))

    def _retype_op(self, op: Operation) -> None:
        """Gives what the op defines its new types."""
        for result in op.results:
            self._retype(result)
        for argument in (a for region in op.regions for block in region.blocks for a in block.args):
            self._retype(argument)
        match op:
            case ir.FuncOp():
                op.properties["ret_type"] = self._data(op.ret_type)
            case ir.FnOp():
                op.properties["ret_type"] = self._data(op.ret_type)
                set_type(op.result, FuncType.get([p.type for p in op.params], op.ret_type))
                if op.self_name is not None:
                    set_type(op.body.block.args[0], op.result.type)
            case ir.MatchOp():
                op.properties["patterns"] = ArrayAttr([self._pattern(pattern) for pattern in op.patterns.data])
            case _:
                pass

    def _pattern(self, pattern: Attribute) -> Attribute:
        match pattern:
            case VarPattern():
                return VarPattern.get(pattern.var_name.data, self._data(pattern.annotation))
            case ConstructorPattern():
                fields = [self._pattern(f) for f in pattern.fields.data]
                return ConstructorPattern.get(pattern.type_name.data, pattern.constructor.data, fields)
            case TuplePattern():
                return TuplePattern.get([self._pattern(f) for f in pattern.fields.data])
            case _:
                return pattern

    # Functions ------------------------------------------------------------------------------------------------------

    def _callee(self, name: str) -> str:
        """Returns the function to call instead: the copy on data if `name` takes or returns functions."""
        function = self.functions.get(name)
        if function is None or not _holds_function(function.function_type(), whole=False):
            return name
        if name not in self.copies:
            copy = function.clone()
            copy.location = function.location
            copy.properties["sym_name"] = StringAttr(self.new.fresh(f"{name}FuncType"))
            self.copies[name] = copy.sym_name.data
            insert_op_after(copy, function)
            self.pending.append(copy)
        return self.copies[name]

    def _rewrite(self, function: ir.FuncOp) -> None:
        ops = [op for op in walk_ops(function) if op is not function]
        for op in ops:
            if isinstance(op, ir.FnOp) and not _is_value(op) and self._is_called_inside(op):
                self.kept |= {op.result, *(op.body.block.args[:1] if op.self_name is not None else ())}
        self._retype_op(function)
        for op in ops:
            self._visit(op)
        for op in walk_ops(function):
            place_leaves(op)

    def _is_called_inside(self, op: ir.FnOp) -> bool:
        """Returns whether a local function uses itself only by calling itself."""
        return op.self_name is None or _is_only_called(op.body.block.args[0])

    def _visit(self, op: Operation) -> None:
        match op:
            case ir.CallOp():
                self._call(op)
            case ir.CallGlobalOp():
                op.properties["callee"] = SymbolRefAttr(self._callee(op.callee.root_reference.data))
            case ir.FnOp() if op.result not in self.kept:
                self._closure(op)
                return
            case ir.GlobalRefOp():
                if op.result.first_use is not None:
                    self._global(op)
                return
            case ir.ConstructorRefOp():
                if op.result.first_use is not None:
                    self._constructor(op)
                return
            case _:
                pass
        if op.parent is not None:
            self._retype_op(op)

    def _call(self, call: ir.CallOp) -> None:
        callee = call.callee
        if callee in self.kept:
            return
        match callee.owner:
            case ir.GlobalRefOp() as ref:
                name = self._callee(ref.symbol.root_reference.data)
                made: Operation = ir.CallGlobalOp(name, list(call.arguments), self._data(call.result.type))
            case ir.ConstructorRefOp() as ref:
                type = self._data(call.result.type)
                made = ir.ConstructOp(ref.type_name.data, ref.constructor.data, list(call.arguments), type)
            case _:
                name = self._kind_of(callee).apply
                made = ir.CallGlobalOp(name, list(call.operands), self._data(call.result.type))
        made.location = call.location
        insert_op_before(made, call)
        replace(call, made.results[0])
        ref_op = callee.owner
        if isinstance(ref_op, ir.LEAVES) and callee.first_use is None:
            erase_op(ref_op)

    def _kind_of(self, value: SSAValue) -> _Kind:
        """The kind of a function that is data already."""
        if isinstance(value.type, AdtType):
            return self.by_name[value.type.type_name.data]
        assert isinstance(value.type, FuncType)
        return self._kind(value.type)

    def _made(
        self, op: ir.FnOp | ir.GlobalRefOp | ir.ConstructorRefOp, kind: _Kind, name: str, *fields: SSAValue
    ) -> None:
        """Puts the constructor of a function in its place."""
        made = ir.ConstructOp(kind.data_type, name, fields, AdtType.get(kind.data_type))
        made.location = op.location
        made.result.name_hint = op.result.name_hint
        insert_op_before(made, op)
        op.result.replace_all_uses_with(made.result)
        op.detach()

    def _body(self, kind: _Kind, captured: list[SSAValue]) -> Block:
        """A new clause of the kind's apply function."""
        return Block(arg_types=[self._data(value.type) for value in captured])

    def _closure(self, op: ir.FnOp) -> None:
        assert isinstance(op.result.type, FuncType)
        kind = self._kind(op.result.type)
        take_leaves_in(op)
        captured = free_values(op)
        name = self.new.fresh("Closure")
        block = self._body(kind, captured)
        kind.constructors[name] = [argument.type for argument in block.args]
        kind.bodies[name] = Region(block)
        inside: dict[SSAValue, SSAValue] = dict(zip(captured, block.args, strict=True))
        if op.self_name is not None:
            own = op.body.block.args[0]
            own.replace_all_uses_with(kind.block.args[0])
            op.body.block.erase_arg(own)
            del op.properties["self_name"]
        self._made(op, kind, name, *captured)
        for inner in list(walk_ops(op)):
            if any(operand in inside for operand in inner.operands):
                inner.operands = [inside.get(operand, operand) for operand in inner.operands]
        self.kept.add(op.result)
        self._retype_op(op)
        call = ir.CallOp(op, list(kind.block.args[1:]), self._data(kind.type.output))
        self._end(block, [op, call], call)

    def _global(self, op: ir.GlobalRefOp) -> None:
        assert isinstance(op.result.type, FuncType)
        kind, callee = self._kind(op.result.type), op.symbol.root_reference.data
        name = self.names.get((kind.type, f"@{callee}"))
        if name is None:
            name = self.names[kind.type, f"@{callee}"] = self.new.fresh(_identifier(f"Function_{callee}"))
            call = ir.CallGlobalOp(self._callee(callee), list(kind.block.args[1:]), self._data(kind.type.output))
            self._end(self._clause(kind, name), [call], call, op)
        self._made(op, kind, name)

    def _constructor(self, op: ir.ConstructorRefOp) -> None:
        assert isinstance(op.result.type, FuncType)
        kind, key = self._kind(op.result.type), op.constructor.data
        name = self.names.get((kind.type, key))
        if name is None:
            name = self.names[kind.type, key] = self.new.fresh(_identifier(f"Constructor_{key}"))
            arguments, type = list(kind.block.args[1:]), self._data(kind.type.output)
            made = ir.ConstructOp(op.type_name.data, key, arguments, type)
            self._end(self._clause(kind, name), [made], made, op)
        self._made(op, kind, name)

    def _clause(self, kind: _Kind, name: str) -> Block:
        block = Block()
        kind.constructors[name] = []
        kind.bodies[name] = Region(block)
        return block

    def _end(self, block: Block, ops: list[Operation], value: Operation, like: Operation | None = None) -> None:
        end = ir.ReturnOp(value)
        for op in (*ops, end):
            op.location = (like or ops[0]).location
            block.add_op(op)

    # What is added --------------------------------------------------------------------------------------------------

    def _data_type(self, kind: _Kind) -> ir.TypeDataOp:
        made = ir.TypeDataOp(kind.data_type, [], kind.constructors)
        made.location = self._first_location(kind)
        return made

    def _apply_function(self, kind: _Kind) -> ir.FuncOp:
        type = self._data(kind.type.output)
        patterns = [
            ConstructorPattern.get(
                kind.data_type, name, [VarPattern.get(f"c{n}", fields[n]) for n in range(len(fields))]
            )
            for name, fields in kind.constructors.items()
        ]
        value: Operation
        if patterns:
            value = ir.MatchOp(kind.block.args[0], patterns, list(kind.bodies.values()), type)
        else:
            # No function of this type exists: the code is never reached.
            value = ir.CallGlobalOp(kind.apply, kind.block.args, type)
        end = ir.ReturnOp(value)
        kind.block.add_ops([value, end])
        names = ["f", *(f"x{n}" for n in range(len(kind.block.args) - 1))]
        function = ir.FuncOp(kind.apply, names, [], ret_type=type, body=Region(kind.block))
        for op in (value, end, function):
            op.location = self._first_location(kind)
        return function

    def _first_location(self, kind: _Kind) -> LocationAttr:
        """Returns the location of the first function that became data of this kind."""
        for body in kind.bodies.values():
            if body.block.first_op is not None:
                return body.block.first_op.location
        return next(iter(self.functions.values())).location
