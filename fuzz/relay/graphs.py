"""Draws typed Relay programs in which every operator of the table occurs, with their inputs.

A program is built op by op and computed as it is built. Each step uses an operator as one of its cases draws it
(`fuzz/operators/cases`), with earlier results in the place of the drawn arguments where their types fit or a cast, a reshape or a
broadcast makes them fit, and where what is computed stays finite. Between the operators are `let`s, tuples, branches,
local and global functions, references and repeated operators, which is what passes look for.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp, TensorType, TupleType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.array import ArrayValueAttr
from ...dialects.relay import ir
from ...dialects.relay.infer import infer_types
from ...dialects.relay.infer.result import infer_result
from ...dialects.relay.interpreter import interpret
from ...dialects.relay.operator import Operator, OperatorOp, OpPattern, all_operators, operator_class
from ...dialects.relay.types import FuncType
from ...support.diagnostics import MirError
from ...support.edit import erase_op
from ...support.verify import find_errors
from ...support.walk import walk_ops
from ..operators.relation import type_of
from ..operators.sampling import flat
from ..operators.uses import UseOf, one_of
from .idioms import IDIOMS, memory

FAVOURITES = (
    "add", "subtract", "multiply", "divide", "cast", "reshape", "transpose", "expand_dims", "squeeze", "concatenate",
    "split", "nn.relu", "exp", "tanh", "sqrt", "negative", "clip", "sum", "mean", "max", "nn.conv2d", "nn.dense",
    "nn.batch_matmul", "nn.bias_add", "nn.softmax", "nn.batch_norm", "nn.layer_norm", "nn.dropout", "nn.pad",
    "layout_transform", "full", "zeros_like", "ones", "where", "strided_slice", "broadcast_to", "log", "maximum",
)  # fmt: skip
"""Operators that passes rewrite; they come up more often than others."""

LARGEST = 100.0
"""Results beyond it are brought back by tanh before they are used, so that long chains do not overflow."""

BY_ELEMENT = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
INTEGERS_MATTER = ("div", "mod", "shift", "power")
"""Parts of the names of operators on integers that not all integers are fit for."""


@dataclass(frozen=True)
class Known:
    """A value of the program and what it is on the program's inputs (in functions: in the first call)."""

    ssa: SSAValue
    value: Any

    @property
    def is_small(self) -> bool:
        """Tells whether no element of an array is beyond `LARGEST`."""
        return is_small(self.value)


@dataclass(frozen=True)
class Graph:
    """A program: `@main` of `module`, its `inputs`, the names of its operators, and how it was drawn."""

    seed: int
    module: ModuleOp
    inputs: list[np.ndarray]
    operators: frozenset[str]


@cache
def deck() -> tuple[str, ...]:
    """Returns every operator, in a mixed order."""
    names = sorted(all_operators())
    random.Random(0).shuffle(names)
    return tuple(names)


def random_graph(seed: int, size: int | None = None, only: tuple[str, ...] = (), use_of: UseOf = one_of) -> Graph:
    """Returns the program of a seed. `size` is about how many steps it takes, by default 4 to 24.

    Programs of consecutive seeds deal `deck()` among them, so that every operator comes up in any `GRAPHS_FOR_ALL` of them.
    `use_of` draws the uses of operators that they are made of. With `only`, programs are of the operators called so, tuples and `let`s alone.
    """
    for attempt in range(20):
        builder = Builder(random.Random(f"{seed}/{attempt}"), seed, only, use_of)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            graph = builder.program(size)
        # A function that is called again may meet arguments that its operators are not fit for.
        try:
            interpret(graph.module, "main", list(graph.inputs))
        except MirError:
            continue
        return graph
    raise AssertionError(f"no program of seed {seed} can be run")


DEALT = 5
GRAPHS_FOR_ALL = -(-300 // DEALT)
"""How many programs deal the whole deck: each has `DEALT` operators of it."""


@dataclass
class Builder:
    """Builds one program."""

    rng: random.Random
    seed: int
    only: tuple[str, ...] = ()
    use_of: UseOf = one_of
    inputs: list[np.ndarray] = field(default_factory=list)
    scope: list[Known] = field(default_factory=list)
    functions: list[ir.FuncOp] = field(default_factory=list)
    done: list[tuple[Operation, tuple[Any, ...]]] = field(default_factory=list)
    main: Block = field(default_factory=Block)
    names: int = 0
    depth: int = 0
    recent: float = 0.5

    def __post_init__(self) -> None:
        self.block = self.main

    def program(self, size: int | None) -> Graph:
        rng = self.rng
        # Deep programs use what was computed last, wide ones anything.
        self.recent = rng.choice((0.05, 0.5, 0.95))
        count = size if size is not None else rng.randint(4, 24)
        cards = self.only or deck()
        dealt = [cards[(self.seed * DEALT + n) % len(cards)] for n in range(min(DEALT, size or DEALT))]
        steps: list[Callable[[], object]] = [lambda name=name: self.operator(name) for name in dealt]
        steps += [self.step for _ in range(max(0, count - len(dealt)))]
        rng.shuffle(steps)
        for step in steps:
            step()
        outputs = self.outputs()
        self.block.add_op(ir.ReturnOp(outputs))
        main = ir.FuncOp("main", [f"x{n}" for n in range(len(self.inputs))], [], body=Region(self.main))
        module = ModuleOp([*self.functions, main])
        infer_types(module)
        errors = find_errors(module)
        assert not errors, (self.seed, errors[0])
        operators = frozenset(op.OPERATOR.name for op in walk_ops(module) if isinstance(op, OperatorOp))
        return Graph(self.seed, module, self.inputs, operators)

    def outputs(self) -> SSAValue:
        """Draws one to four results, the last value among them."""
        pool = [k for k in self.scope if isinstance(k.value, np.ndarray)]
        pool = pool or [self.constant(np.ones((2, 3), np.float32))]
        chosen = [pool[-1], *self.rng.sample(pool, min(len(pool), self.rng.randint(0, 3)))]
        if len(chosen) == 1:
            return chosen[0].ssa
        return self.add(ir.TupleOp([k.ssa for k in chosen]))

    def step(self) -> object:
        rng = self.rng
        if self.only:
            simple = (lambda: self.operator(rng.choice(self.only)), self.twin, self.let, self.tuple)
            return rng.choices(simple, (8, 2, 1, 1))[0]()
        kinds: list[tuple[float, Callable[[], object]]] = [
            (8, lambda: self.operator(rng.choice(FAVOURITES))),
            (4, lambda: self.operator(rng.choice(deck()))),
            (1.5, self.twin),
            (3, self.idiom),
            (1, self.let),
            (0.7, self.tuple),
            (0.4, self.reference),
        ]
        if self.depth < 2:
            kinds += [(0.7, self.branch), (0.7, self.closure), (0.7, self.global_function)]
        weights, actions = zip(*kinds, strict=True)
        return rng.choices(actions, weights)[0]()

    # Operators.

    def operator(self, name: str) -> None:
        """Adds a use of an operator; its arguments are earlier results where these fit."""
        if name.startswith("memory."):
            return memory(self)
        operator = all_operators()[name]
        attrs, arguments = self.use_of(name, self.rng)
        drawn = compute(operator, attrs, arguments)
        if self.rng.random() < 0.85 and not name.startswith(("vision.", "random.")):
            # The other arguments of a quantized operator say which numbers the integers represent: not every number makes sense.
            count = 1 if name.startswith("qnn.") else len(arguments)
            operands = [self.joined(a, lambda x: self.replaced(operator, x)) for a in arguments[:count]]
            operands += [self.joined(a, self.given) for a in arguments[count:]]
            op = self.try_operator(operator, attrs, operands, finite=is_finite(drawn))
            if op is not None:
                return
        operands = [self.joined(a, self.given) for a in arguments]
        if self.try_operator(operator, attrs, operands, finite=False) is None:
            raise AssertionError(f"{name} of {attrs} fails on what its case draws (seed {self.seed})")

    def try_operator(self, operator: Operator, attrs: dict[str, Any], operands: Sequence[Known], finite: bool) -> Known | None:  # fmt: skip
        """Adds the use, unless the operands do not fit or some result is infinite where it must be `finite`."""
        try:
            value = compute(operator, attrs, [o.value for o in operands])
        except Exception:
            return None
        if finite and not is_finite(value):
            return None
        op = operator_class(operator)([o.ssa for o in operands], attrs)
        self.block.add_op(op)
        try:
            infer_result(op)
        except MirError:
            erase_op(op)
            return None
        self.done.append((op, tuple(o.value for o in operands)))
        return self.keep(op.result, value)

    def keep(self, ssa: SSAValue, value: Any) -> Known:
        """Takes a value into the scope, with its fields where it is a tuple."""
        known = Known(ssa, value)
        if not isinstance(value, tuple):
            self.scope.append(known)
            return known
        for index, item in enumerate(value):
            if isinstance(item, np.ndarray) and self.rng.random() < 0.8:
                self.scope.append(Known(self.add(ir.TupleGetItemOp(ssa, index)), item))
        return known

    def joined(self, argument: Any, one: Callable[[np.ndarray], Known]) -> Known:
        if isinstance(argument, tuple):
            fields = [one(a) for a in argument]
            return Known(self.add(ir.TupleOp([f.ssa for f in fields])), tuple(f.value for f in fields))
        return one(argument)

    def given(self, array: np.ndarray) -> Known:
        """Returns the array itself: an input of the program or, in functions, a constant."""
        if self.block is self.main and self.rng.random() < 0.5 and len(self.inputs) < 12:
            same = [n for n, other in enumerate(self.inputs) if type_of(other) == type_of(array)]
            if same and np.array_equal(self.inputs[same[0]], array):
                return Known(self.main.args[same[0]], array)
            self.inputs.append(array)
            known = Known(self.main.insert_arg(type_of(array), len(self.main.args)), array)
            if self.rng.random() < 0.7:
                self.scope.append(known)
            return known
        return self.constant(array)

    def constant(self, array: np.ndarray) -> Known:
        return Known(self.add(ir.ConstantOp(ArrayValueAttr.of(array), type_of(array))), array)

    def replaced(self, operator: Operator, array: np.ndarray) -> Known:
        """Something of the array's type: an earlier result, adapted if need be, or what `given` makes of it."""
        chance = self.rng.random()
        if chance < 0.12 and operator.pattern in BY_ELEMENT and array.dtype != bool:
            # What algebraic rules look for.
            return self.constant(np.full(array.shape, self.rng.choice((0, 1, 2)), array.dtype))
        if chance > 0.85 or array.size == 0 or not self.may_replace(operator, array):
            return self.given(array)
        pool = [k for k in self.scope if isinstance(k.value, np.ndarray) and is_static(k.ssa.type)]
        fits = [k for k in pool if k.ssa.type == type_of(array) and is_small(k.value)]
        if fits and self.rng.random() < 0.7:
            return self.pick(fits)
        numbers = [k for k in pool if k.value.size > 0 and k.value.dtype.kind != "b"]
        if numbers and array.dtype.kind not in "iub" and not self.only:
            return self.adapted(self.pick(numbers), array.shape, array.dtype.name)
        return self.given(array)

    def may_replace(self, operator: Operator, array: np.ndarray) -> bool:
        """Tells whether the operator accepts other numbers than those drawn: integers are often indices."""
        if array.dtype.kind not in "iub":
            return True
        return operator.pattern in BY_ELEMENT and not any(part in operator.name for part in INTEGERS_MATTER)

    def pick(self, pool: Sequence[Known]) -> Known:
        return pool[-1] if self.rng.random() < self.recent else self.rng.choice(pool)

    def adapted(self, known: Known, shape: tuple[int, ...], dtype: str) -> Known:
        """Draws a value brought to another type by operators: into bounds, to the dtype, to the shape."""
        if not is_small(known.value):
            wide = self.use("cast", {"dtype": "float32"}, known) if known.value.dtype.kind in "iub" else known
            known = self.use("tanh", {}, wide)
        if known.value.dtype.name != dtype:
            known = self.use("cast", {"dtype": dtype}, known)
        if known.value.shape == shape:
            return known
        if known.value.size == int(np.prod(shape)):
            return self.use("reshape", {"newshape": shape}, known)
        if not broadcasts(known.value.shape, shape):
            if shape and self.rng.random() < 0.6:
                return self.repeated(known, shape)
            known = self.use("mean" if known.value.dtype.kind not in "iub" else "max", {}, known)
        return self.use("broadcast_to", {"shape": shape}, known) if shape else known

    def repeated(self, known: Known, shape: tuple[int, ...]) -> Known:
        """Draws a value's elements one after the other, again and again until the shape is full."""
        size, wanted = known.value.size, int(np.prod(shape))
        known = self.use("reshape", {"newshape": (size,)}, known)
        if size < wanted:
            known = self.use("tile", {"reps": (-(-wanted // size),)}, known)
        if known.value.size > wanted:
            known = self.use("strided_slice", {"begin": (0,), "end": (wanted,), "strides": (1,)}, known)
        return self.use("reshape", {"newshape": shape}, known) if len(shape) > 1 else known

    def use(self, name: str, attrs: dict[str, Any], *operands: Known) -> Known:
        known = self.bare(name, attrs, *operands)
        op = known.ssa.owner
        assert isinstance(op, Operation)
        self.done.append((op, tuple(o.value for o in operands)))
        self.scope.append(known)
        return known

    def bare(self, name: str, attrs: dict[str, Any], *operands: Known) -> Known:
        """Returns the use of an operator whose result nothing else is to use."""
        operator = all_operators()[name]
        op = operator_class(operator)([o.ssa for o in operands], attrs)
        self.block.add_op(op)
        infer_result(op)
        return Known(op.result, compute(operator, attrs, [o.value for o in operands]))

    def twin(self) -> None:
        """Repeats an earlier use of an operator, on the same arguments or with other weights."""
        visible = [(op, values) for op, values in self.done if op.parent_block() is self.block]
        if not visible:
            return
        op, values = self.rng.choice(visible)
        operator = type(op).OPERATOR  # type: ignore[attr-defined]
        operands = [Known(ssa, value) for ssa, value in zip(op.operands, values, strict=True)]
        if self.rng.random() < 0.6:
            for n, known in enumerate(operands[1:], 1):
                if isinstance(known.value, np.ndarray) and known.value.dtype.kind not in "iub":
                    operands[n] = self.constant((known.value.astype(np.float64) * 0.5).astype(known.value.dtype))
        self.try_operator(operator, op.given(), operands, finite=False)  # type: ignore[attr-defined]

    def idiom(self) -> None:
        """Adds a few operators of one dtype, as rules and combining passes look for them."""
        pool = [k for k in self.static() if k.value.size > 0 and k.value.dtype.kind != "b" and is_small(k.value)]
        if pool:
            self.rng.choice(IDIOMS)(self, self.pick(pool))

    def scalar(self, like: Known, number: float) -> Known:
        return self.constant(np.array(number).astype(like.value.dtype))

    def weights(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Known:
        drawn = np.random.default_rng(self.rng.randrange(2**32)).integers(-4, 5, shape)
        return self.constant(
            (drawn if dtype.kind == "i" else np.abs(drawn) / 4 if dtype.kind == "u" else drawn / 4).astype(dtype)
        )

    # What is around operators.

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def let(self) -> None:
        if self.scope:
            known = self.pick(self.scope)
            self.names += 1
            self.scope.append(Known(self.add(ir.LetOp(f"v{self.names}", known.ssa)), known.value))

    def tuple(self) -> None:
        """Adds a tuple, of which some fields are used again."""
        if self.scope:
            fields = [self.rng.choice(self.scope) for _ in range(self.rng.randint(1, 3))]
            ssa = self.add(ir.TupleOp([f.ssa for f in fields]))
            self.keep(ssa, tuple(f.value for f in fields))

    def reference(self) -> None:
        """Adds a cell that is read before and after it is written."""
        pool = [k for k in self.scope if isinstance(k.value, np.ndarray)]
        if not pool:
            return
        first = self.pick(pool)
        second = self.rng.choice([k for k in pool if k.ssa.type == first.ssa.type])
        self.names += 1
        cell = self.add(ir.LetOp(f"r{self.names}", self.add(ir.RefOp(first.ssa))))
        self.scope.append(Known(self.add(ir.RefReadOp(cell, first.ssa.type)), first.value))
        self.add(ir.LetOp(f"u{self.names}", self.add(ir.RefWriteOp(cell, second.ssa))))
        self.scope.append(Known(self.add(ir.RefReadOp(cell, first.ssa.type)), second.value))

    @contextmanager
    def inside(self, block: Block, scope: list[Known]) -> Generator[None]:
        outer = self.block, self.scope, self.depth
        self.block, self.scope, self.depth = block, scope, self.depth + 1
        yield
        self.block, self.scope, self.depth = outer

    def body(self, result: Known | None) -> Known:
        """Draws steps in the block and its `relay.return`, of the type of `result` or of any."""
        for _ in range(self.rng.randint(1, 3)):
            self.step()
        pool = [k for k in self.scope if isinstance(k.value, np.ndarray) and is_static(k.ssa.type)]
        if result is None:
            value = self.pick(pool)
        else:
            numbers = [k for k in pool if k.value.size > 0 and k.value.dtype.kind != "b"]
            value = self.adapted(self.pick(numbers), result.value.shape, result.value.dtype.name)
        self.block.add_op(ir.ReturnOp(value.ssa))
        return value

    def branch(self) -> None:
        """Adds an if whose branches use values around them."""
        floats = [k for k in self.static() if k.value.dtype.kind not in "iub" and k.value.size > 0]
        if not floats:
            return
        result = self.rng.choice(floats)
        if self.rng.random() < 0.7:
            condition = self.given(np.array(self.rng.random() < 0.5))
        else:
            scalar = self.adapted(self.pick(floats), (), "float32")
            condition = self.use("less", {}, scalar, self.constant(np.array(0.1, np.float32)))
        blocks: list[Block] = []
        values: list[Known] = []
        for _ in range(2):
            blocks.append(Block())
            with self.inside(blocks[-1], list(self.scope)):
                values.append(self.body(result))
        then, other = (Region(block) for block in blocks)
        ssa = self.add(ir.IfOp(condition.ssa, then, other, result.ssa.type))
        self.scope.append(Known(ssa, values[0 if condition.value.item() else 1].value))

    def static(self) -> list[Known]:
        return [k for k in self.scope if isinstance(k.value, np.ndarray) and is_static(k.ssa.type)]

    def closure(self) -> None:
        """Adds a local function, called once or twice."""
        if not (arguments := self.arguments()):
            return
        block = Block(arg_types=[k.ssa.type for k in arguments])
        with self.inside(block, list(self.scope)):
            self.scope += [Known(arg, k.value) for arg, k in zip(block.args, arguments, strict=True)]
            result = self.body(None)
        self.names += 1
        names = [f"a{self.names}_{n}" for n in range(len(arguments))]
        type = FuncType.get([k.ssa.type for k in arguments], result.ssa.type)
        function = ir.FnOp(names, Region(block), type, ret_type=result.ssa.type)
        ssa = self.add(function)
        if self.rng.random() < 0.7:
            ssa = self.add(ir.LetOp(f"f{self.names}", ssa))
        self.calls(arguments, result, lambda values: ir.CallOp(ssa, values, result.ssa.type))

    def global_function(self) -> None:
        """Adds a function of the module, called once or twice."""
        if not (arguments := self.arguments()):
            return
        block = Block(arg_types=[k.ssa.type for k in arguments])
        with self.inside(block, [Known(arg, k.value) for arg, k in zip(block.args, arguments, strict=True)]):
            result = self.body(None)
        name = f"g{len(self.functions)}"
        attrs: dict[str, Attribute] = {"Inline": IntegerAttr(1, i64)} if self.rng.random() < 0.5 else {}
        params = [f"p{n}" for n in range(len(arguments))]
        self.functions.append(ir.FuncOp(name, params, [], ret_type=result.ssa.type, attrs=attrs, body=Region(block)))
        self.calls(arguments, result, lambda values: ir.CallGlobalOp(name, values, result.ssa.type))

    def arguments(self) -> list[Known]:
        pool = [k for k in self.static() if k.value.size > 0 and k.value.dtype.kind != "b"]
        return [self.pick(pool) for _ in range(self.rng.randint(1, 2))] if pool else []

    def calls(self, arguments: list[Known], result: Known, call: Callable[[list[SSAValue]], Operation]) -> None:
        self.scope.append(Known(self.add(call([k.ssa for k in arguments])), result.value))
        if self.rng.random() < 0.5:
            others = [self.rng.choice([o for o in self.static() if o.ssa.type == k.ssa.type] or [k]) for k in arguments]
            self.scope.append(Known(self.add(call([k.ssa for k in others])), result.value))


def compute(operator: Operator, attrs: dict[str, Any], arguments: Sequence[Any]) -> Any:
    """Interprets an operator; returns an array, or a tuple of arrays."""
    value = operator.numpy(operator.attrs(attrs), *arguments)
    return tuple(np.asarray(v) for v in value) if isinstance(value, tuple | list) else np.asarray(value)


def is_static(type: Attribute) -> bool:
    """Tells whether every dimension of a tensor is known."""
    return isinstance(type, TensorType) and DYNAMIC_INDEX not in type.get_shape() and not isinstance(type, TupleType)


def is_finite(value: Any) -> bool:
    return all(bool(np.isfinite(a.astype(np.float64)).all()) for a in flat(value))


def is_small(array: np.ndarray) -> bool:
    return bool((np.abs(array.astype(np.float64)) <= LARGEST).all())


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Tells whether a tensor of one shape can be broadcast to the other."""
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False
