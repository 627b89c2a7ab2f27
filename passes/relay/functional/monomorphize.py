"""`monomorphize`: a copy of each generic function for every set of types that it is used at.

Native code has one form for each type, so that generic functions, constructors and closures must be made concrete
first. Types at a use are found by unification (Robinson, 1965) of the function's type with those of the arguments and
the result, which inference has already checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ....dialects.relay import ir as relay
from ....dialects.relay.types import AdtType, FuncType, RefType, TypeVarType, UnknownType, substitute
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_op_after
from ....support.walk import walk_ops


@dataclass(frozen=True)
class Monomorphize(ModulePass):
    """Make a copy of each generic Relay function for every set of types that it is used at."""

    name = "monomorphize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.ops if isinstance(f, relay.FuncOp)}
        roots = [f for f in functions.values() if not f.type_params.data]
        if any(_is_generic(inner) for function in functions.values() for inner in (function, *walk_ops(function))):
            specializer = _Specializer(op, functions)
            for function in roots:
                specializer.specialize_body(function.body.block)
            for function in functions.values():
                if function.type_params.data:
                    erase_op(function)


def _is_generic(op: Operation) -> bool:
    if isinstance(op, relay.FuncOp | relay.FnOp) and op.type_params.data:
        return True
    return any(_holds_generic(r.type) for r in op.results)


def _holds_generic(type: Attribute) -> bool:
    """Returns whether the type is that of a generic function, or of a tuple with one."""
    if isinstance(type, TupleType):
        return any(map(_holds_generic, type.types.data))
    return isinstance(type, FuncType) and bool(type.type_params.data)


def _source(value: SSAValue) -> Operation | None:
    """The op that makes a value, through its names."""
    while isinstance(value, OpResult) and isinstance(value.op, relay.LetOp):
        value = value.op.value
    return value.op if isinstance(value, OpResult) else None


class _Unifier:
    """Types of fresh variables, found by equating types."""

    def __init__(self) -> None:
        self.count = 0
        self.bound: dict[str, Attribute] = {}

    def fresh(self, names: Sequence[str]) -> dict[str, Attribute]:
        """A new variable for each name."""
        self.count += 1
        return {name: TypeVarType.get(f"?{self.count}.{name}") for name in names}

    def resolve(self, type: Attribute) -> Attribute:
        """The type with every variable replaced that is bound."""
        while True:
            done = substitute(type, self.bound)
            if done == type:
                return type
            type = done

    def unify(self, a: Attribute, b: Attribute) -> None:
        """Binds variables so that both types agree, as far as their forms do."""
        pending = [(a, b)]
        while pending:
            a, b = pending.pop()
            a, b = self._head(a), self._head(b)
            if a == b:
                continue
            match a, b:
                case TypeVarType(), _ if a.var_name.data.startswith("?"):
                    self.bound[a.var_name.data] = b
                case _, TypeVarType() if b.var_name.data.startswith("?"):
                    self.bound[b.var_name.data] = a
                case TupleType(), TupleType():
                    pending += zip(a.types.data, b.types.data, strict=False)
                case FuncType(), FuncType():
                    pending += zip(self._inputs(a), self._inputs(b), strict=False)
                case AdtType(), AdtType():
                    pending += zip(a.arguments.data, b.arguments.data, strict=False)
                case RefType(), RefType():
                    pending.append((a.value_type, b.value_type))
                case _:
                    pass

    def _head(self, type: Attribute) -> Attribute:
        while isinstance(type, TypeVarType) and type.var_name.data in self.bound:
            type = self.bound[type.var_name.data]
        return type

    def _inputs(self, function: FuncType) -> list[Attribute]:
        """Inputs and output; a generic function's own parameters become fresh variables."""
        fresh = self.fresh([p.data for p in function.type_params.data])
        return [substitute(t, fresh) for t in (*function.inputs.data, function.output)]


class _Specializer:
    def __init__(self, module: ModuleOp, functions: Mapping[str, relay.FuncOp]):
        self.module = module
        self.functions = functions
        self.copies: dict[tuple[str, tuple[Attribute, ...]], str] = {}
        self.pending: list[Block] = []

    def specialize_body(self, block: Block) -> None:
        """Makes every use of something generic in the block, and in what it comes to call, concrete."""
        self.pending.append(block)
        while self.pending:
            current = self.pending.pop()
            for op in list(current.ops):
                self._visit(op)
                if op.parent is not None and not (isinstance(op, relay.FnOp) and op.type_params.data):
                    self.pending += [inner for region in op.regions for inner in region.blocks]
            # A generic closure, a name for one: only the copies are used now.
            for op in reversed(list(current.ops)):
                if _is_generic(op) and not any(r.uses for r in op.results):
                    erase_op(op)

    def _visit(self, op: Operation) -> None:
        match op:
            case relay.CallGlobalOp():
                callee = self.functions.get(op.callee.root_reference.data)
                if callee is not None:
                    types = self._match(op, callee.function_type(), op.arguments, op.result.type)
                    op.properties["callee"] = SymbolRefAttr(self._copy(callee, types, op))
            case relay.CallOp():
                function = op.callee.type
                if isinstance(function, FuncType):
                    self._match(op, function, op.arguments, op.result.type)
                    if function.type_params.data:
                        inputs = [argument.type for argument in op.arguments]
                        op.operands[0] = self._instance(op.callee, FuncType.get(inputs, op.result.type), op)
            case (
                relay.ConstructOp()
                | relay.TupleOp()
                | relay.RefOp()
                | relay.RefWriteOp()
                | relay.LetOp()
                | relay.ReturnOp()
            ):
                self._concrete_operands(op)
            case _:
                pass

    def _concrete_operands(self, op: Operation) -> None:
        """Makes generic functions that are kept, named or returned those of the type that their place has."""
        if not any(_holds_generic(operand.type) for operand in op.operands):
            return
        for number, (operand, wanted) in enumerate(zip(op.operands, self._places(op), strict=False)):
            if wanted is not None and _holds_generic(operand.type) and not _holds_generic(wanted):
                op.operands[number] = self._concrete(operand, wanted, op)

    def _concrete(self, value: SSAValue, type: Attribute, where: Operation) -> SSAValue:
        """Returns a generic function, or a tuple that holds some, as a value of a concrete type."""
        if isinstance(value.type, FuncType) and isinstance(type, FuncType) and value.type.type_params.data:
            return self._instance(value, type, where)
        source = _source(value)
        if not isinstance(source, relay.TupleOp) or not isinstance(type, TupleType) or value.type == type:
            return value
        fields = [self._concrete(f, t, where) for f, t in zip(source.fields, type.types.data, strict=True)]
        new = relay.TupleOp(fields)
        new.location = source.location
        insert_op_after(new, source)
        return new.result

    def _places(self, op: Operation) -> Sequence[Attribute | None]:
        """Returns the types that the places of the op's operands have."""
        match op:
            case relay.TupleOp() if isinstance(op.result.type, TupleType):
                return op.result.type.types.data
            case relay.LetOp():
                return [op.result.type]
            case relay.RefOp() if isinstance(op.result.type, RefType):
                return [op.result.type.value_type]
            case relay.RefWriteOp() if isinstance(op.ref.type, RefType):
                return [None, op.ref.type.value_type]
            case relay.ConstructOp() if isinstance(op.result.type, AdtType):
                declared = next(
                    o for o in self.module.ops if isinstance(o, relay.TypeDataOp) and o.sym_name == op.type_name
                )
                names = [p.data for p in declared.type_params.data]
                known = dict(zip(names, op.result.type.arguments.data, strict=True))
                return [substitute(t, known) for t in declared.constructor_type(op.constructor.data).inputs.data]
            case relay.ReturnOp():
                around = op.parent_op()
                if isinstance(around, relay.FuncOp | relay.FnOp):
                    return [around.ret_type]
                return [around.results[0].type] if around is not None else []
            case _:
                return []

    def _match(
        self, call: Operation, function: FuncType, arguments: Sequence[SSAValue], result: Attribute
    ) -> dict[str, Attribute]:
        """The types of the function's parameters at this call; generic arguments are made concrete on the way."""
        unifier = _Unifier()
        fresh = unifier.fresh([p.data for p in function.type_params.data])
        inputs = [substitute(t, fresh) for t in function.inputs.data]
        unifier.unify(substitute(function.output, fresh), result)
        for wanted, argument in zip(inputs, arguments, strict=True):
            unifier.unify(wanted, argument.type)
        first = len(call.operands) - len(arguments)
        for number, (wanted, argument) in enumerate(zip(inputs, arguments, strict=True)):
            if isinstance(argument.type, FuncType) and argument.type.type_params.data:
                wanted = unifier.resolve(wanted)
                assert isinstance(wanted, FuncType)
                call.operands[first + number] = self._instance(argument, wanted, call)
        return {name: unifier.resolve(variable) for name, variable in fresh.items()}

    def _copy(self, function: relay.FuncOp, types: Mapping[str, Attribute], where: Operation) -> str:
        """The name of the function's copy for these types, made when first asked for."""
        if not types:
            return function.sym_name.data
        for name, type in types.items():
            if isinstance(type, TypeVarType | UnknownType):
                raise error_at(
                    where, f"the type parameter {name} of @{function.sym_name.data} is not known at this call"
                )
        key = (function.sym_name.data, tuple(types.values()))
        known = self.copies.get(key)
        if known is not None:
            return known
        copy = function.clone()
        copy.location = function.location
        name = self.copies[key] = f"{function.sym_name.data}.{len(self.copies)}"
        copy.properties |= {
            "sym_name": StringAttr(name),
            "type_params": ArrayAttr([]),
            "ret_type": substitute(function.ret_type, types),
        }
        substitute_in(copy, types)
        self.module.body.block.insert_op_after(copy, function)
        self.pending.append(copy.body.block)
        return name

    def _instance(self, value: SSAValue, type: FuncType, where: Operation) -> SSAValue:
        """Returns a generic value at one type: a copy of the closure, the constructor or the global function."""
        op = _source(value)
        match op:
            case relay.FnOp():
                new = self._fn_instance(op, type)
            case relay.GlobalRefOp():
                callee = self.functions[op.symbol.root_reference.data]
                unifier = _Unifier()
                fresh = unifier.fresh([p.data for p in callee.type_params.data])
                unifier.unify(
                    substitute(FuncType.get(callee.function_type().inputs.data, callee.ret_type), fresh), type
                )
                types = {name: unifier.resolve(variable) for name, variable in fresh.items()}
                new = relay.GlobalRefOp(self._copy(callee, types, where), type)
            case relay.ConstructorRefOp():
                new = relay.ConstructorRefOp(op.type_name.data, op.constructor.data, type)
            case _:
                raise error_at(
                    where,
                    "native code cannot hand on a generic function whose definition is not in sight",
                    "annotate it with concrete types, or run it with `--target interp`",
                )
        new.location = op.location
        insert_op_after(new, op)
        return new.result

    def _fn_instance(self, function: relay.FnOp, type: FuncType) -> relay.FnOp:
        unifier = _Unifier()
        fresh = unifier.fresh([p.data for p in function.type_params.data])
        own = function.result.type
        assert isinstance(own, FuncType)
        unifier.unify(substitute(FuncType.get(own.inputs.data, own.output), fresh), type)
        types = {name: unifier.resolve(variable) for name, variable in fresh.items()}
        copy = function.clone()
        copy.properties |= {"type_params": ArrayAttr([]), "ret_type": substitute(function.ret_type, types)}
        substitute_in(copy, types)
        Rewriter.replace_value_with_new_type(copy.result, type)
        self.pending.append(copy.body.block)
        return copy


def substitute_in(function: Operation, types: Mapping[str, Attribute]) -> None:
    """Replaces type variables in the types of all values inside a function."""
    pending = [block for region in function.regions for block in region.blocks]
    while pending:
        block = pending.pop()
        for value in block.args:
            Rewriter.replace_value_with_new_type(value, substitute(value.type, types))
        for op in block.ops:
            for result in op.results:
                if not isinstance(result.type, TensorType):
                    Rewriter.replace_value_with_new_type(result, substitute(result.type, types))
            if isinstance(op, relay.FnOp):
                op.properties["ret_type"] = substitute(op.ret_type, types)
            pending += [inner for region in op.regions for inner in region.blocks]
