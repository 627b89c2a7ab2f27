"""Trials of TIR's rules on numbers of every dtype, computed by the interpreter.

Both sides of small programs are compared. A program is the pattern with a dtype for each of its values (integers with and without a sign, floats, bool), and a variable or a
constant for each capture. Where the rule applies to it, the engine makes the replacement. What a condition asks of a variable,
`%x >= 0`, is taken to be known, and the sides are compared where it is true. Nothing is asked where the left side divides integers by 0, or
the least integer by -1.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from .....dialects import rule as ir
from .....dialects import tir
from .....dialects.numeric import floor_mod
from .....dialects.relay.operator import from_attribute
from .....dialects.rule.functions import NoMatch
from .....dialects.rule.knowledge import knowing
from .....dialects.rule.levels import named_level
from .....dialects.tir.arithmetic import BinaryOp, CompareOp, LogicalOp
from .....dialects.tir.interpreter.intrinsics import float_call, integer_call
from .....dialects.tir.interpreter.scalar import binary_function, caster, choose
from .....dialects.tir.interpreter.values import dtype_of
from .....dialects.tir.types import dtype_to_type, type_to_dtype
from .....support.diagnostics import Diagnostic, MirError
from ...engine.program import Program, compile_rule
from .inputs import special_values
from .integers import Choice, Kinds, Unsaid, choices_of, name_of
from .terms import op_names, patterns

Array = NDArray[Any]

DTYPES = ("float32", "int32", "uint8", "float64", "int8", "uint32", "float16", "int64", "uint16", "bfloat16", "bool")

PROGRAMS, TRIES = 220, 400
"""How many programs a rule is tried on, and with how many values of each variable."""

TOLERANCE = 1e-3
"""Of rules marked `fast`, relative to the greatest magnitude of captures and results."""

MARK = "one that holds for real numbers, and not for all that floats can be, says so: fast rewrite @…"


def check_scalars(rule: ir.RewriteOp) -> tuple[Diagnostic | None, set[str]]:
    """Tries a rule of TIR; returns the problem, if any, and the dtypes to which the rule applied."""
    program = compile_rule(rule)
    seen: set[str] = set()
    try:
        choices = choices_of(rule)
    except Unsaid:
        return None, seen
    with np.errstate(all="ignore"):
        casts = any(name == "tir.cast" for op in patterns(rule) for name in op_names(op))
        for number in range(max(PROGRAMS * (4 if casts else 1), 30 * len(choices))):
            trial = _Trial(rule, choices[number % len(choices)], number)
            try:
                problem = trial.run(program)
            except (NoMatch, KeyError, TypeError, ValueError, OverflowError, AssertionError, MirError):
                continue  # No such program, or nothing that the rule applies to.
            if problem is not None:
                return problem, seen
            seen |= trial.dtypes()
    return None, seen


class _Trial:
    """One program, and the values of its variables."""

    def __init__(self, rule: ir.RewriteOp, choice: Choice, number: int):
        self.rule, self.choice, self.level = rule, choice, named_level("tir")
        self.random = np.random.default_rng(number)
        self.kinds = Kinds(rule, choice)
        self.number, self.types = number, dict[Any, Attribute]()
        self.values: dict[SSAValue, SSAValue] = {}
        """The values of the program, by those of the rule."""
        self.arrays: dict[SSAValue, Array] = {}
        self.facts: list[tuple[str, Sequence[Any]]] = []
        self.defined = np.full(TRIES, True)
        self.block = Block()

    def holds(self, question: str, arguments: Sequence[Any]) -> bool:
        """Takes what is asked for known; implements `Knowledge`."""
        self.facts.append((question, arguments))
        return True

    def dtypes(self) -> set[str]:
        """The dtypes of the numbers in the program."""
        return {type_to_dtype(value.type) for value in self.arrays}

    def run(self, program: Program) -> Diagnostic | None:
        """Runs one program. Raises NoMatch if the rule does not apply, and the engine's errors."""
        last = self.rule.body.block.last_op
        assert isinstance(last, ir.ReplaceOp)
        if len(last.roots) != 1:
            raise NoMatch
        root = self.value(last.roots[0])
        if not isinstance(root, OpResult):
            raise NoMatch
        self.block.add_op(tir.EvaluateOp(root))
        root.op.verify()
        old = self.array(root)
        with knowing(self):
            match = program.match(root.op)
            if match is None:
                raise NoMatch
            try:
                for make in program.makers:
                    make(match.slots, root)
            except MirError as error:
                return error.diagnostics[0]
        made: SSAValue = match.slots[program.results[0]]
        name = self.rule.sym_name.data
        if made.type != root.type:
            return Diagnostic(f"rule @{name} would change the type of a value", self.rule.location)
        defined = self.defined.copy()
        new = self.array(made)
        for question, arguments in self.facts:
            defined &= self.answer(question, [self.array(a) if isinstance(a, SSAValue) else a for a in arguments])
        if not defined.any():
            raise NoMatch
        wrong = defined & ~self.agree(old, new)
        if not wrong.any():
            return None
        place = int(np.argmax(wrong))
        floats = any(array.dtype.kind not in "iub" for array in self.arrays.values())
        of = "floats" if floats else " and ".join(sorted(self.dtypes()))
        shown = f"{self.captures(place)}: {_shown(old[place])} became {_shown(new[place])}"
        problem = Diagnostic(f"rule @{name} changes the meaning of {of}: {shown}", self.rule.location)
        return problem.with_note(MARK) if floats and not self.rule.is_fast else problem

    def answer(self, question: str, arguments: list[Any]) -> Array:
        a, b = arguments
        if question == "divides":
            return np.asarray((np.asarray(a) != 0) & (floor_mod(b, np.where(a == 0, 1, a)) == 0))
        return np.asarray(getattr(operator, question)(a, b))

    def agree(self, a: Array, b: Array) -> Array:
        """Compares two results by element: by bits, a NaN with any NaN; by tolerance for rules marked `fast`."""
        if a.dtype.kind in "iub":
            finite = np.full(TRIES, True)
            for array in self.arrays.values():
                finite &= np.isfinite(array) if array.dtype.kind not in "iub" else True
            return np.asarray((a == b) | (self.rule.is_fast & ~finite))
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        if not self.rule.is_fast:
            return np.asarray(same)
        met = [np.abs(x.astype(np.float64)) for x in (*self.arrays.values(), a) if x.dtype.kind not in "iub"]
        most = np.max([np.where(np.isfinite(x), x, np.inf) for x in met], axis=0)
        ordinary = (most < 1e4) & np.all([(x == 0) | (x > 1e-4) for x in met], axis=0)
        coarse = TOLERANCE if a.dtype.itemsize > 2 else 2e-1
        return np.asarray(same | ~ordinary | (np.abs(a.astype(np.float64) - b) <= coarse * np.maximum(most, 1)))

    def captures(self, place: int) -> str:
        named = {
            op.capture.data: self.arrays[value]
            for pattern, value in self.values.items()
            if isinstance(op := pattern.owner, ir.AnyOp) and op.capture is not None and value in self.arrays
        }
        return ", ".join(f"%{name} = {_shown(array[place])}" for name, array in named.items()) or "always"

    # The program.

    def type_of(self, pattern: SSAValue) -> Attribute:
        """The dtype of a value of the rule, the same for all that are computed with one another."""
        if self.kinds.is_bool(pattern):
            return dtype_to_type("bool")
        kind = self.kinds.of(pattern)
        if kind not in self.types:
            # By rotation for the first, so that few programs cover all dtypes; often the same again.
            again = list(self.types.values())
            number = self.random.integers(len(DTYPES)) if again else self.number // 2 % len(DTYPES)
            same = again and self.random.random() < 0.3
            self.types[kind] = again[0] if same else dtype_to_type(DTYPES[number])
        return self.types[kind]

    def value(self, pattern: SSAValue) -> SSAValue:
        """Returns the program's value for a value of the rule."""
        if pattern not in self.values:
            self.values[pattern] = self.make(pattern)
        return self.values[pattern]

    def make(self, pattern: SSAValue) -> SSAValue:
        op = pattern.owner
        match op:
            case ir.AnyOp() if pattern.type == ir.VALUE:
                type = self.type_of(pattern)
                numbers = _numbers(type)
                if self.random.random() < 0.4:
                    few = numbers[np.abs(numbers.astype(np.float64)) < 10]
                    drawn = self.random.choice(few if self.random.random() < 0.8 else numbers)
                    return self.add(self.level.make_constant(drawn.item(), None, type))
                argument = self.block.insert_arg(type, len(self.block.args))
                self.arrays[argument] = np.asarray(self.random.choice(numbers, TRIES))
                return argument
            case ir.LiteralOp():
                number, type = from_attribute(op.value), self.type_of(pattern)
                sign = -1 if number == 0 and self.number % 4 == 1 and not isinstance(type, IntegerType) else 1
                return self.add(self.level.make_constant(sign * float(number) if sign < 0 else number, None, type))  # pyright: ignore[reportArgumentType]
            case ir.MatchOp():
                args = [self.value(arg) for arg in op.args]
                attributes: dict[str, Any] = {}
                for key, attr in zip(op.attr_names.data, op.attrs, strict=True):
                    if isinstance(attr.owner, ir.DataOp):
                        attributes[key.data] = from_attribute(attr.owner.value)
                    else:
                        attributes[key.data] = str(self.random.choice(self.names()))
                name = name_of(op, self.choice)
                if name == "tir.cast" and "dtype" not in attributes:
                    attributes["dtype"] = type_to_dtype(self.type_of(pattern))
                return self.add(self.level.build(name, args, attributes, args[0]))
            case _:
                raise NoMatch

    def names(self) -> list[str]:
        """Returns the strings of a rule, likely values of a captured attribute.

        Raises NoMatch if there are none.
        """
        found = [from_attribute(op.value) for op in self.rule.body.block.ops if isinstance(op, ir.DataOp)]
        names = [each for each in found if isinstance(each, str)]
        if not names:
            raise NoMatch
        return names

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    # What it computes.

    def array(self, value: SSAValue) -> Array:
        """The values of an op of TIR for all values of the variables."""
        if value not in self.arrays:
            op = value.owner
            assert isinstance(op, Operation)
            result = self.compute(op, [self.array(operand) for operand in op.operands])
            self.arrays[value] = np.broadcast_to(np.asarray(result, dtype_of(value.type, op)), (TRIES,))
        return self.arrays[value]

    def compute(self, op: Operation, args: list[Array]) -> Any:
        match op:
            case tir.ConstOp():
                return self.level.constant(op.result)
            case BinaryOp():
                if isinstance(op, tir.DivOp | tir.ModOp | tir.FloorDivOp | tir.FloorModOp):
                    self._divided(*args)
                if args[0].dtype.kind == "b" and not isinstance(op, LogicalOp | CompareOp):
                    return binary_function(op)(*(each.astype(np.int8) for each in args)) != 0
                return binary_function(op)(*args)
            case tir.NotOp():
                return ~args[0]
            case tir.CastOp():
                return caster(op.value.type, op.result.type, op)(args[0])
            case tir.SelectOp():
                return choose(args[0], args[1], args[2], dtype_of(op.result.type, op))
            case tir.CallOp() if op.result is not None:
                name, operand = op.intrinsic.data, op.arguments[0].type
                if name == "likely" or (args[0].dtype.kind in "iub" and name in _ROUNDINGS):
                    return args[0]
                call = integer_call(name, op.result.type, operand, op) or float_call(name, operand, op)
                if call is None:
                    raise NoMatch
                return call(*args)
            case _:
                raise NoMatch

    def _divided(self, a: Array, b: Array) -> None:
        if a.dtype.kind in "iu":
            self.defined &= b != 0
        if a.dtype.kind == "i":
            self.defined &= ~((a == np.iinfo(a.dtype).min) & (b == -1))


_ROUNDINGS = ("floor", "ceil", "trunc", "round", "nearbyint")


def _numbers(type: Attribute) -> Array:
    """Special values of a dtype, and small ones."""
    special = special_values(type_to_dtype(type))
    if special.dtype.kind == "b":
        return special
    few = np.arange(0 if special.dtype.kind == "u" else -12, 24)
    return np.concatenate([special, (few if special.dtype.kind in "iu" else few / 2).astype(special.dtype)])


def _shown(value: Any) -> str:
    return repr(float(value)) if np.asarray(value).dtype.kind not in "iub" else str(value)
