"""`partial-evaluate`: computes known values and follows calls of known functions.

As TVM's PartialEvaluate, an online partial evaluator (Jones, Gomard and Sestoft, "Partial Evaluation and Automatic Program
Generation", 1993): constants, tuples, functions, data and references made in sight are known; branches and matches on known
values are taken, calls of known functions become their bodies as long as a recursion gets nearer to its end. Every value that
remains is bound by a `let`, in order, whether or not it is needed: `dead-code-elimination` erases those that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects.array import ArrayValueAttr
from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.infer.open_checks import is_open
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.types import FuncType, substitute
from ....dialects.tir.types import dtype_to_type
from ....support.deep_stack import in_deep_stack
from ....support.edit import erase_op
from ....support.walk import walk_ops
from ..common.call_graph import components
from ..common.evaluation import evaluate_operator
from ..common.function_attributes import is_primitive
from ..common.generics import substitute_types, type_arguments
from ..common.rewriting import free_values, functions_of, place_leaves, returned
from .infer_type import ensure_types
from .partial_values import (
    Environment,
    Fuel,
    Partial,
    StaticConstructor,
    StaticFunction,
    StaticRef,
    StaticTensor,
    StaticTuple,
    adt,
    fuel_of,
    least,
    makes_progress,
    match_partial,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROWTH, LEAST_BUDGET = 4, 10_000
"""When a module's size times this, and this many ops more, have come out, calls stay calls."""

MOST_ELEMENTS = 1 << 22
"""Larger constants are not computed."""

Types = Mapping[str, Attribute]


@dataclass(frozen=True)
class PartialEvaluate(ModulePass):
    """Compute what is known of each function's values, and follow calls of known functions."""

    name = "partial-evaluate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        in_deep_stack(lambda: _evaluate_module(op))


def _evaluate_module(module: ModuleOp) -> None:
    functions = functions_of(module)
    bodies: dict[str, Region] = {}
    budget = _Budget(LEAST_BUDGET + GROWTH * sum(1 for _ in walk_ops(module)))
    # Those that nothing calls come first, then their callees: what is run has the first claim on the budget.
    for name in reversed([name for component in components(functions) for name in component.names]):
        function = functions[name]
        if not is_primitive(function):
            bodies[name] = _Evaluator(functions, budget).function(function)
    # All are evaluated on what they call as it was.
    for name, body in bodies.items():
        function = functions[name]
        old = function.detach_region(function.body)
        function.add_region(body)
        old.drop_all_references()
        for op in reversed(list(walk_ops(function))):
            if isinstance(op, ir.LEAVES) and op.results[0].first_use is None:
                erase_op(op)
        for op in list(walk_ops(function)):
            place_leaves(op)
    # What is computed has its own size where the program before had one that is known only when it runs.
    if any(is_open(result.type) for op in walk_ops(module) for result in op.results):
        infer_types(module, fresh=True)


@dataclass
class _Budget:
    """Counts the ops that may still be emitted before calls are followed no further."""

    ops: int


class _Evaluator:
    """Evaluates one global function; what remains goes to `block`."""

    def __init__(self, functions: Mapping[str, ir.FuncOp], budget: _Budget):
        self.functions = functions
        self._budget = budget
        self.block = Block()
        self.store: dict[StaticRef, Partial] = {}
        self._fuel: dict[Operation, Fuel] = {}
        self._numbers = count()
        self._rules: dict[type[Operation], Callable[[Any, Environment, Types], Partial]] = {
            ir.ConstantOp: self._constant,
            ir.LetOp: lambda op, environment, types: environment[op.value],
            ir.TupleOp: self._tuple,
            ir.TupleGetItemOp: self._tuple_get_item,
            ir.FnOp: self._fn,
            ir.CallOp: self._call,
            ir.CallGlobalOp: self._call_global,
            ir.GlobalRefOp: self._global_ref,
            ir.ConstructorRefOp: self._constructor_ref,
            ir.ConstructOp: self._construct,
            ir.IfOp: self._if,
            ir.MatchOp: self._match,
            ir.RefOp: self._ref,
            ir.RefReadOp: self._ref_read,
            ir.RefWriteOp: self._ref_write,
        }

    def function(self, function: ir.FuncOp) -> Region:
        """The function's new body."""
        self.block = body = _block_like(function.body.block, {})
        environment = Environment()
        for old, new in zip(function.body.block.args, body.args, strict=True):
            environment[old] = Partial(new)
        with self._inside(function):
            self._finish(function.body.block, self._run(function.body.block, environment, {}))
        return Region(body)

    @contextmanager
    def _inside(self, function: ir.FuncOp | ir.FnOp) -> Generator[None]:
        """Evaluates a function for unknown arguments: meanwhile its calls of itself stay calls."""
        before = self._fuel.get(function)
        self._fuel[function] = (None,) * len(function.params)
        yield
        self._restore(function, before)

    def _restore(self, function: ir.FuncOp | ir.FnOp, before: Fuel | None) -> None:
        if before is None:
            del self._fuel[function]
        else:
            self._fuel[function] = before

    # What comes out -------------------------------------------------------------------------------------------------

    def _push(self, op: Operation, like: Operation, static: Any = None, name: str | None = None) -> Partial:
        """Emits an op, bound by a `let`, as the residual form of `like`."""
        let = ir.LetOp(f"x_{next(self._numbers)}" if name is None else name, op.results[0])
        op.location = let.location = like.location
        self.block.add_ops([op, let])
        self._budget.ops -= 1
        return Partial(let.result, static)

    def _put(self, op: Operation, like: Operation) -> SSAValue:
        """Puts an op out that needs no name."""
        op.location = like.location
        self.block.add_op(op)
        return op.results[0]

    def _finish(self, old: Block, value: Partial) -> None:
        """Ends a block with its value."""
        end = ir.ReturnOp(value.dynamic)
        assert old.last_op is not None
        end.location = old.last_op.location
        self.block.add_op(end)

    def _copy(self, op: Operation, environment: Environment, types: Types) -> Operation:
        """An op without regions, on the operands that come out."""
        copy = op.clone({operand: environment[operand].dynamic for operand in op.operands})
        substitute_types([copy], types)
        return copy

    def _inner(self, block: Block, bind: Callable[[Block], Environment], types: Types) -> Region:
        """Evaluates a nested block on its own; afterwards the contents of references are unknown."""
        outer, store = self.block, dict(self.store)
        self.block = inner = _block_like(block, types)
        self._finish(block, self._run(block, bind(inner), types))
        self.block, self.store = outer, store
        return Region(inner)

    # Walking --------------------------------------------------------------------------------------------------------

    def _run(self, block: Block, environment: Environment, types: Types) -> Partial:
        for op in block.ops:
            if isinstance(op, ir.ReturnOp):
                break
            if isinstance(op, OperatorOp):
                environment[op.result] = self._operator(op, environment, types)
            elif (rule := self._rules.get(type(op))) is not None:
                environment[op.results[0]] = rule(op, environment, types)
            else:
                environment[op.results[0]] = self._push(self._copy(op, environment, types), op)
        return environment[returned(block)]

    # Rules ----------------------------------------------------------------------------------------------------------

    def _constant(self, op: ir.ConstantOp, environment: Environment, types: Types) -> Partial:
        return self._push(op.clone(), op, StaticTensor(op.value))

    def _operator(self, op: OperatorOp, environment: Environment, types: Types) -> Partial:
        value = self._computed(op, environment)
        if value is None:
            return self._push(self._copy(op, environment, types), op)
        if isinstance(value, tuple):
            fields = [self._tensor(field, op) for field in value]
            return self._push(ir.TupleOp([f.dynamic for f in fields]), op, StaticTuple(fields))
        return self._tensor(value, op)

    def _tensor(self, value: NDArray[Any], like: Operation) -> Partial:
        held = ArrayValueAttr.of(value)
        type = TensorType(dtype_to_type(held.data.dtype), held.data.shape)
        return self._push(ir.ConstantOp(held, type), like, StaticTensor(held))

    def _computed(self, op: OperatorOp, environment: Environment) -> NDArray[Any] | tuple[NDArray[Any], ...] | None:
        """Evaluates an operator whose arguments are all known; None if that fails, or the result is large."""
        if op.OPERATOR.stateful:
            return None
        arguments: list[Any] = []
        for operand in op.operands:
            static = environment[operand].static
            parts = [f.static for f in static.fields] if isinstance(static, StaticTuple) else [static]
            arrays = [part.value.array for part in parts if isinstance(part, StaticTensor)]
            if len(arrays) != len(parts):
                return None
            arguments.append(tuple(arrays) if isinstance(static, StaticTuple) else arrays[0])
        value = evaluate_operator(op, arguments)
        if value is None or isinstance(value, tuple) != isinstance(op.result.type, TupleType):
            return None
        found = cast("NDArray[Any] | tuple[NDArray[Any], ...]", value)
        fields = found if isinstance(found, tuple) else (found,)
        return found if all(field.size <= MOST_ELEMENTS for field in fields) else None

    def _tuple(self, op: ir.TupleOp, environment: Environment, types: Types) -> Partial:
        fields = [environment[field] for field in op.fields]
        return self._push(self._copy(op, environment, types), op, StaticTuple(fields))

    def _tuple_get_item(self, op: ir.TupleGetItemOp, environment: Environment, types: Types) -> Partial:
        static = environment[op.tuple_value].static
        if isinstance(static, StaticTuple):
            return static.fields[op.index.value.data]
        return self._push(self._copy(op, environment, types), op)

    def _fn(self, op: ir.FnOp, environment: Environment, types: Types) -> Partial:
        name = _given_name(op)
        if is_primitive(op):
            copy = op.clone({value: environment[value].dynamic for value in free_values(op)})
            return self._push(copy, op, name=name)
        own = {p.data for p in op.type_params.data}
        inner_types = {n: t for n, t in types.items() if n not in own}
        static = StaticFunction(op, environment, inner_types)

        def bind(block: Block) -> Environment:
            inside = Environment(environment)
            for old, new in zip(op.body.block.args, block.args, strict=True):
                inside[old] = Partial(new)
            if op.self_name is not None:
                inside[op.body.block.args[0]] = Partial(block.args[0], static)
            return inside

        # It may run at any time: what references hold then is not known.
        store, self.store = self.store, {}
        with self._inside(op):
            body = self._inner(op.body.block, bind, inner_types)
        self.store = store
        copy = ir.FnOp(
            [n.data for n in op.param_names.data],
            body,
            substitute(op.result.type, types),
            ret_type=substitute(op.ret_type, inner_types),
            type_params=[p.data for p in op.type_params.data],
            attrs=op.attrs.data,
            self_name=None if op.self_name is None else op.self_name.data,
        )
        return self._push(copy, op, static, name)

    def _global_ref(self, op: ir.GlobalRefOp, environment: Environment, types: Types) -> Partial:
        function = self.functions.get(op.symbol.root_reference.data)
        value = self._put(self._copy(op, environment, types), op)
        known = function is not None and not is_primitive(function)
        return Partial(value, StaticFunction(function, Environment(), {}) if function is not None and known else None)

    def _constructor_ref(self, op: ir.ConstructorRefOp, environment: Environment, types: Types) -> Partial:
        value = self._put(self._copy(op, environment, types), op)
        return Partial(value, StaticConstructor(op.type_name.data, op.constructor.data))

    def _construct(self, op: ir.ConstructOp, environment: Environment, types: Types) -> Partial:
        fields = [environment[argument] for argument in op.arguments]
        return self._push(self._copy(op, environment, types), op, adt(op.constructor.data, fields))

    def _call(self, op: ir.CallOp, environment: Environment, types: Types) -> Partial:
        callee = environment[op.callee]
        arguments = [environment[argument] for argument in op.arguments]
        match callee.static:
            case StaticFunction():
                result = self._follow(callee, callee.static, arguments, op, types)
                if result is not None:
                    return result
            case StaticConstructor():
                made = ir.ConstructOp(
                    callee.static.type_name,
                    callee.static.constructor,
                    [argument.dynamic for argument in arguments],
                    substitute(op.result.type, types),
                )
                return self._push(made, op, adt(callee.static.constructor, arguments))
            case _:
                pass
        self.store.clear()
        return self._push(self._copy(op, environment, types), op)

    def _call_global(self, op: ir.CallGlobalOp, environment: Environment, types: Types) -> Partial:
        function = self.functions.get(op.callee.root_reference.data)
        if function is not None and not is_primitive(function):
            static = StaticFunction(function, Environment(), {})
            result = self._follow(None, static, [environment[argument] for argument in op.arguments], op, types)
            if result is not None:
                return result
        self.store.clear()
        return self._push(self._copy(op, environment, types), op)

    def _follow(
        self,
        callee: Partial | None,
        static: StaticFunction,
        arguments: Sequence[Partial],
        call: Operation,
        types: Types,
    ) -> Partial | None:
        """The value of a call of a known function; None where the call has to stay."""
        function = static.function
        before, now = self._fuel.get(function), fuel_of(arguments)
        if not makes_progress(before, now) or self._budget.ops < 0:
            return None
        if "Compiler" in function.attrs.data:
            return None
        environment = Environment(static.environment)
        if isinstance(function, ir.FnOp) and function.self_name is not None:
            assert callee is not None
            environment[function.body.block.args[0]] = callee
        for param, argument in zip(function.params, arguments, strict=True):
            environment[param] = argument
        names = [p.data for p in function.type_params.data]
        own = FuncType.get([p.type for p in function.params], function.ret_type, names)
        inputs = [argument.dynamic.type for argument in arguments]
        inner = {**static.types, **type_arguments(own, inputs, substitute(call.results[0].type, types), call)}
        self._fuel[function] = least(before, now)
        result = self._run(function.body.block, environment, inner)
        self._restore(function, before)
        return result

    def _if(self, op: ir.IfOp, environment: Environment, types: Types) -> Partial:
        condition = environment[op.condition]
        if isinstance(condition.static, StaticTensor):
            taken = op.then_region if condition.static.value.data.item() else op.else_region
            return self._run(taken.block, environment, types)
        regions = [self._inner(r.block, lambda _: Environment(environment), types) for r in op.regions]
        self.store.clear()
        made = ir.IfOp(condition.dynamic, regions[0], regions[1], substitute(op.result.type, types))
        return self._push(made, op)

    def _match(self, op: ir.MatchOp, environment: Environment, types: Types) -> Partial:
        value = environment[op.value]
        for pattern, clause in zip(op.patterns.data, op.clauses, strict=True):
            bound = match_partial(pattern, value)
            if isinstance(bound, list):
                inside = Environment(environment)
                for argument, partial in zip(clause.block.args, bound, strict=True):
                    inside[argument] = partial
                return self._run(clause.block, inside, types)
            if bound is None:
                break
        regions = [self._inner(clause.block, _binder(clause.block, environment), types) for clause in op.clauses]
        self.store.clear()
        complete = bool(op.complete.value.data)
        result = substitute(op.result.type, types)
        made = ir.MatchOp(value.dynamic, op.patterns.data, regions, result, complete=complete)
        return self._push(made, op)

    def _ref(self, op: ir.RefOp, environment: Environment, types: Types) -> Partial:
        cell = StaticRef()
        self.store[cell] = environment[op.value]
        return self._push(self._copy(op, environment, types), op, cell)

    def _ref_read(self, op: ir.RefReadOp, environment: Environment, types: Types) -> Partial:
        static = environment[op.ref].static
        if isinstance(static, StaticRef) and static in self.store:
            return self.store[static]
        return self._push(self._copy(op, environment, types), op)

    def _ref_write(self, op: ir.RefWriteOp, environment: Environment, types: Types) -> Partial:
        static = environment[op.ref].static
        if isinstance(static, StaticRef):
            self.store[static] = environment[op.value]
        else:
            self.store.clear()
        return self._push(self._copy(op, environment, types), op, StaticTuple([]))


def _given_name(op: ir.FnOp) -> str | None:
    """Returns the name that a `let` binds a local function to, unless this pass made the name."""
    let = op.next_op
    if not isinstance(let, ir.LetOp) or let.value is not op.result:
        return None
    name = let.var_name.data
    return None if name.startswith("x_") and name[2:].isdecimal() else name


def _block_like(block: Block, types: Types) -> Block:
    new = Block(arg_types=[substitute(argument.type, types) for argument in block.args])
    for argument, old in zip(new.args, block.args, strict=True):
        argument.location = old.location
    return new


def _binder(block: Block, environment: Environment) -> Callable[[Block], Environment]:
    """Binds the block's arguments to those of the block that comes out."""

    def bind(inner: Block) -> Environment:
        inside = Environment(environment)
        for old, new in zip(block.args, inner.args, strict=True):
            inside[old] = Partial(new)
        return inside

    return bind
