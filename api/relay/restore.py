"""From ops to a graph of Python nodes, without recursion. Types and places come along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.relay import ir, patterns
from ...dialects.relay.operator import OperatorOp, from_attribute
from ...dialects.relay.text import is_known
from ...support.diagnostics import error_at, location_of
from ...support.walk import walk_ops
from ..ir.node import Node, Span
from ..ir.op import CALL_TIR, Op
from . import adt, ty
from .expr import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    Tuple,
    TupleGetItem,
    Var,
)


@dataclass
class Symbols:
    """The names of a module: one node for each."""

    functions: dict[str, GlobalVar] = field(default_factory=dict[str, GlobalVar])
    types: dict[str, adt.TypeData] = field(default_factory=dict[str, adt.TypeData])
    params: dict[str, Sequence[Var]] = field(default_factory=dict[str, "Sequence[Var]"])
    """The parameters that a function had before a pass: they stay the same variables where name and type are the same."""

    def function(self, name: str) -> GlobalVar:
        """The variable of a function's name."""
        found = self.functions.get(name)
        if found is None:
            found = self.functions[name] = GlobalVar(name)
        return found

    def constructor(self, type_name: str, name: str, where: Operation) -> adt.Constructor:
        """A constructor of a data type. Raises MirError for one that the module does not declare."""
        data = self.types.get(type_name)
        for constructor in () if data is None else data.constructors:
            if constructor.name_hint == name:
                return constructor
        raise error_at(where, f"the module declares no constructor {name} of {type_name}")


def restore_type(op: ir.TypeDataOp) -> adt.TypeData:
    """The data type that an op declares."""
    header = ty.GlobalTypeVar(op.sym_name.data)
    variables = {p.data: ty.TypeVar(p.data) for p in op.type_params.data}
    own = list(variables.values())
    constructors = [
        adt.Constructor(name, [ty.from_attribute(f, variables) for f in fields], header)
        for name, fields in op.constructors().items()
    ]
    return adt.TypeData(header, own, constructors)


def restore_function(op: ir.FuncOp, symbols: Symbols) -> Function:
    """The function that an op is."""
    restorer = _Restorer(symbols, op)
    function = restorer.function(op)
    if any(param.type_annotation is not None and ty.is_symbolic(param.type_annotation) for param in function.params):
        from .symbolic import set_function_type, set_symbolic_types

        set_symbolic_types(op, function.params, op.params, restorer.nodes)
        set_function_type(function)
    return function


@dataclass
class _Frame:
    """A block on its way: what its lets bind so far, outermost first, and, at its end, its value."""

    block: Block
    ops: Iterator[Operation]
    lets: list[tuple[Var, Node, Span | None]]
    op: Operation | None = None  # The op whose regions are being read, and the values of those that were read.
    bodies: list[RelayExpr] = field(default_factory=list[RelayExpr])


class _Restorer:
    def __init__(self, symbols: Symbols, root: Operation):
        self.symbols = symbols
        self.nodes: dict[SSAValue, RelayExpr] = {}
        self.type_variables: dict[str, ty.TypeVar] = {}
        # Where cells are written, order counts: what reads, writes or may do so by a call is bound by a let.
        self.has_effects = any(isinstance(op, ir.RefWriteOp) for op in walk_ops(root))
        self.params: dict[Operation, list[Var]] = {}
        self.root = root
        self._knows_callees = False

    def function(self, op: ir.FuncOp) -> Function:
        params = self._enter_function(op)
        body = self._block(op.body.block)
        return self._function(op, params, body)

    def _enter_function(self, op: ir.FuncOp | ir.FnOp) -> list[Var]:
        for name in op.type_params.data:
            self.type_variables[name.data] = ty.TypeVar(name.data)
        known = self.symbols.params.get(op.sym_name.data, ()) if isinstance(op, ir.FuncOp) else ()
        # Several may have one name: they keep their order.
        before: dict[str, list[Var]] = {}
        for variable in reversed(known):
            before.setdefault(variable.name_hint, []).append(variable)
        return [
            self._parameter(value, name.data, found.pop() if (found := before.get(name.data)) else None)
            for value, name in zip(op.params, op.param_names.data, strict=True)
        ]

    def _parameter(self, value: SSAValue, name: str, before: Var | None) -> Var:
        """A parameter: the variable that it was before, if that said this type."""
        if before is not None and before.type_annotation is not None and self._says(before.type_annotation, value.type):
            self.nodes[value] = before
            before.known_type = value.type
            return before
        return self._variable(value, name, True)

    def _says(self, written: ty.Type, type: Attribute) -> bool:
        """Returns whether an annotation is this type; dimensions that are expressions are `?` there."""
        return ty.to_attribute(written) == type if ty.is_symbolic(written) else written == self._type(type)

    def _function(self, op: ir.FuncOp | ir.FnOp, params: list[Var], body: RelayExpr) -> Function:
        type_params = [self.type_variables[p.data] for p in op.type_params.data]
        node = Function(
            params, body, self._type(op.ret_type), type_params, _attributes(op.attrs.data), Span(op.location)
        )
        kind = op.function_type() if isinstance(op, ir.FuncOp) else op.result.type
        node.known_type = kind if is_known(kind) else None
        return node

    def _type(self, type: Attribute) -> ty.Type | None:
        return ty.from_attribute(type, self.type_variables) if is_known(type) else None

    def _variable(self, value: SSAValue, name: str, annotated: bool) -> Var:
        variable = Var(name, self._type(value.type) if annotated else None, Span(location_of(value)))
        variable.known_type = value.type if is_known(value.type) else None
        self.nodes[value] = variable
        return variable

    def _block(self, block: Block) -> RelayExpr:
        """The value of a block as a node; nested blocks are on a stack."""
        frames = [_Frame(block, iter(block.ops), [])]
        while True:
            frame = frames[-1]
            op = next(frame.ops)
            if isinstance(op, ir.ReturnOp):
                value = self.nodes[op.value]
                for variable, bound, span in reversed(frame.lets):
                    value = Let(variable, bound, value, span)  # type: ignore[arg-type]
                    value.known_type = value.body.known_type
                frames.pop()
                if not frames:
                    return value
                self._leave(frames, value)
            elif op.regions:
                self._descend(frames, op)
            else:
                self._simple(op, frame)

    def _descend(self, frames: list[_Frame], op: Operation) -> None:
        """Goes on in the next region of an op."""
        frame = frames[-1]
        frame.op = op
        block = op.regions[len(frame.bodies)].block
        if isinstance(op, ir.FnOp):
            if op.self_name is not None:
                self._variable(block.args[0], op.self_name.data, True)
            self.params[op] = self._enter_function(op)
        elif isinstance(op, ir.MatchOp):
            names = patterns.bound_names(op.patterns.data[len(frame.bodies)])
            for value, name in zip(block.args, names, strict=True):
                self._variable(value, name, False)
        frames.append(_Frame(block, iter(block.ops), []))

    def _leave(self, frames: list[_Frame], value: RelayExpr) -> None:
        """Takes the value of a region that was read; after the last one, makes the node of the frame's op."""
        frame = frames[-1]
        finished, op = frame.bodies, frame.op
        finished.append(value)
        assert op is not None
        if len(finished) < len(op.regions):
            self._descend(frames, op)
            return
        frame.bodies = []
        match op:
            case ir.FnOp():
                node: RelayExpr = self._function(op, self.params.pop(op), finished[0])
            case ir.IfOp():
                node = If(self.nodes[op.condition], finished[0], finished[1], Span(op.location))
            case _:
                assert isinstance(op, ir.MatchOp)
                clauses = [
                    adt.Clause(self._pattern(pattern, iter(region.block.args), op), body)
                    for pattern, region, body in zip(op.patterns.data, op.clauses, finished, strict=True)
                ]
                complete = bool(op.complete.value.data)
                node = adt.Match(self.nodes[op.value], clauses, complete, Span(op.location))
        self._set(op, node)
        if isinstance(op, ir.FnOp) and op.self_name is not None and not _is_bound_next(op):
            variable = self.nodes[op.body.block.args[0]]
            assert isinstance(variable, Var)
            frame.lets.append((variable, node, node.span))
            self.nodes[op.result] = variable

    def _set(self, op: Operation, node: RelayExpr) -> None:
        type = op.results[0].type
        node.known_type = type if is_known(type) else None
        self.nodes[op.results[0]] = node

    def _simple(self, op: Operation, frame: _Frame) -> None:
        if isinstance(op, ir.LetOp):
            value = self.nodes[op.value]
            variable = self._let_variable(op)
            frame.lets.append((variable, value, Span(op.location)))
            return
        node = self._expression(op)
        self._set(op, node)
        effectful = isinstance(op, ir.RefReadOp | ir.RefWriteOp) or (
            isinstance(op, ir.CallOp | ir.CallGlobalOp) or (isinstance(op, OperatorOp) and op.OPERATOR.stateful)
        )
        if effectful and self.has_effects and not _is_bound_next(op):
            variable = Var("v", None, node.span)
            variable.known_type = node.known_type
            frame.lets.append((variable, node, node.span))
            self.nodes[op.results[0]] = variable

    def _let_variable(self, op: ir.LetOp) -> Var:
        owner = op.value.owner
        if isinstance(owner, ir.FnOp) and owner.self_name is not None and _is_bound_next(owner):
            variable = self.nodes[owner.body.block.args[0]]
            assert isinstance(variable, Var)
            if owner.next_op is op:
                self.nodes[op.result] = variable
                return variable
        return self._variable(op.result, op.var_name.data, False)

    def _expression(self, op: Operation) -> RelayExpr:
        span, nodes = Span(op.location), self.nodes
        match op:
            case OperatorOp():
                attrs = op.given() if op.attributes else None
                return Call(Op.get(op.OPERATOR.name), [nodes[a] for a in op.args], attrs, span=span)
            case ir.ConstantOp():
                return Constant(op.value, span)
            case ir.CallOp() | ir.CallGlobalOp():
                callee = nodes[op.callee] if isinstance(op, ir.CallOp) else self._callee(op)
                types = [ty.from_attribute(t, self.type_variables) for t in op.type_args.data]
                return Call(callee, [nodes[a] for a in op.arguments], _attributes(op.attrs.data), types, span)
            case ir.CallTirOp():
                callee = self.symbols.function(op.callee.root_reference.data)
                return Call(Op.get(CALL_TIR), [callee, *(nodes[a] for a in op.arguments)], span=span)
            case ir.ConstructOp():
                constructor = self.symbols.constructor(op.type_name.data, op.constructor.data, op)
                return Call(constructor, [nodes[a] for a in op.arguments], span=span)
            case ir.ConstructorRefOp():
                return self.symbols.constructor(op.type_name.data, op.constructor.data, op)
            case ir.GlobalRefOp():
                return self.symbols.function(op.symbol.root_reference.data)
            case ir.TupleOp():
                return Tuple([nodes[f] for f in op.fields], span)
            case ir.TupleGetItemOp():
                return TupleGetItem(nodes[op.tuple_value], op.index.value.data, span)
            case ir.RefOp():
                return RefCreate(nodes[op.value], span)
            case ir.RefReadOp():
                return RefRead(nodes[op.ref], span)
            case ir.RefWriteOp():
                return RefWrite(nodes[op.ref], nodes[op.value], span)
            case _:
                raise error_at(op, f"'{op.name}' has no form in Python")

    def _callee(self, op: ir.CallGlobalOp) -> GlobalVar:
        """The function that a call names. Generic ones know their types, for `Call.type_args`."""
        if not self._knows_callees:
            self._knows_callees = True
            siblings = self.root.parent_block()
            for other in () if siblings is None else siblings.ops:
                if isinstance(other, ir.FuncOp) and other.type_params.data and is_known(type := other.function_type()):
                    self.symbols.function(other.sym_name.data).known_type = type
        return self.symbols.function(op.callee.root_reference.data)

    def _pattern(self, pattern: Attribute, values: Iterator[SSAValue], where: Operation) -> adt.Pattern:
        match pattern:
            case patterns.VarPattern():
                variable = self.nodes[next(values)]
                assert isinstance(variable, Var)
                if not isinstance(pattern.annotation, NoneType):
                    variable.type_annotation = self._type(pattern.annotation)
                return adt.PatternVar(variable)
            case patterns.ConstructorPattern():
                fields = [self._pattern(f, values, where) for f in pattern.fields.data]
                constructor = self.symbols.constructor(pattern.type_name.data, pattern.constructor.data, where)
                return adt.PatternConstructor(constructor, fields)
            case patterns.TuplePattern():
                return adt.PatternTuple([self._pattern(f, values, where) for f in pattern.fields.data])
            case _:
                return adt.PatternWildcard()


def _is_bound_next(op: Operation) -> bool:
    """Returns whether the next op is a let of the op's value."""
    following = op.next_op
    return isinstance(following, ir.LetOp) and following.value is op.results[0]


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, object] | None:
    return {name: from_attribute(value) for name, value in attributes.items()} or None
