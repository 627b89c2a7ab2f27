"""Computes a text that is equal for functions that differ only in names or in shared values.

    C[vi] = A[vi] * 2 + A[vi] * 2            v: T.float32 = A[vi] * 2
                                             C[vi] = v + v

have one key: statements are lines in order, expressions are numbered by structure at the first statement that uses them, a load
also by the writes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...support.deep_stack import in_deep_stack
from ..array import ArrayValueAttr
from .buffer import BufferOp, DeclBufferOp
from .evaluation import EXPRESSIONS, LEAVES, READ, WRITE, Evaluation, blocks_inside
from .expr import CommReducerOp, ConstOp, IfThenElseOp, LetOp, VarOp
from .operators import as_const
from .stmt import EnvThreadOp, LaunchThreadOp, PrimFuncOp

_NAMES = frozenset(
    {
        "operandSegmentSizes",
        "sym_name",
        "sym_visibility",
        "param_names",
        "var_name",
        "block_name",
        "iter_names",
        "arg_names",
        "implicit",
        "offset_factor",
    }
)
"""Properties that only name things, that say how a text declares them, or that TVM does not compare."""

_DEFAULTS = {"data_alignment": 64, "buffer_type": "default"}
"""The defaults of buffers that the text leaves out, as in TVM."""


FLOATS = 1e-9
"""How far apart floating-point numbers may be that are equal, as in TVM: 1e-5 is what float32 makes of it."""


def structural_key(function: PrimFuncOp) -> str:
    """Returns a text that is equal for functions that are equal, floating-point constants exactly."""
    text, floats = structural_form(function)
    return f"{text}\n{floats}"


def structural_form(function: PrimFuncOp) -> tuple[str, Sequence[float]]:
    """Returns a text, and numbers, that are equal for functions that `structural_equal` takes as equal.

    A let is replaced by its value if nothing is written between it and its uses: values with several uses are printed as lets.
    The numbers are the floating-point constants in the order in which the text meets them; those within `FLOATS` of an earlier
    one are left out.
    """

    def lines() -> tuple[str, Sequence[float]]:
        writer = _Writer(function.body.block)
        writer.function(function)
        return "\n".join(writer.lines), writer.floats

    return in_deep_stack(lines)


class _Writer:
    """Writes one function. Values have numbers; a computed value has the number of its key."""

    def __init__(self, root: Block):
        self.lines: list[str] = []
        self.floats: list[float] = []
        self._float_cells: dict[int | str, int] = {}
        self._numbers: dict[SSAValue, int] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._count = 0
        self._evaluation = Evaluation(blocks_inside(root))
        self._writes = 0
        self._writes_before: dict[Operation, int] = {}

    def function(self, function: PrimFuncOp) -> None:
        types = ", ".join(str(arg.type) for arg in function.body.block.args)
        self.lines.append(f"def ({types}) -> {function.ret_type} {_text(_without_symbol(function.attrs))}")
        self._block(function.body.block)

    def _fresh(self, value: SSAValue) -> int:
        self._count += 1
        self._numbers[value] = self._count
        return self._count

    def _block(self, block: Block) -> None:
        for arg in block.args:
            if arg not in self._numbers:
                self._fresh(arg)
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        """Writes a statement; records the writes before an expression, which is numbered at its use."""
        self._writes_before[op] = self._writes
        if _waits(op):
            return
        effect = self._evaluation.effect(op)
        if isinstance(op, EXPRESSIONS + LEAVES) and effect != WRITE:
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.ops:
                        self._op(inner)
            return
        self._statement(op)
        self._writes += effect == WRITE

    def _statement(self, op: Operation) -> None:
        if isinstance(op, BufferOp):
            offset = None if _is_zero(op.elem_offset) else op.elem_offset
            used = [_numbers(part, self._number) for part in (op.source, op.shape, op.strides, offset, op.data)]
        elif isinstance(op, LaunchThreadOp):
            # `T.launch_thread(i, 4)` of an environment's thread is `i = T.launch_thread("threadIdx.x", 4)`.
            used = [self._number(op.extent)]
            if op.env is not None:
                self._numbers[op.result] = self._numbers.get(op.env) or self._fresh(op.env)
        else:
            used = [self._number(operand) for operand in op.operands]
        results = [self._numbers.get(result) or self._fresh(result) for result in op.results]
        types = [str(result.type) for result in op.results]
        self.lines.append(f"{op.name} {used} {_properties(op)} -> {results} {types}")
        for region in op.regions:
            for block in region.blocks:
                self.lines.append("{")
                self._block(block)
                self.lines.append("}")

    def _number(self, value: SSAValue) -> int:
        """Returns the number of a value that is used."""
        number = self._numbers.get(value)
        if number is None:
            owner = value.owner
            if isinstance(owner, LetOp) and owner.var is None:
                number = self._number(owner.value)
            elif isinstance(owner, DeclBufferOp | EnvThreadOp | VarOp):
                self._declare(owner)
                return self._numbers[value]
            else:
                number = self._by_key(self._key(value))
            self._numbers[value] = number
        return number

    def _declare(self, op: Operation) -> None:
        """Writes a declaration at the first use: where it is written in the text does not count."""
        if isinstance(op, EnvThreadOp):
            self._fresh(op.result)
        else:
            self._statement(op)

    def _by_key(self, key: tuple[object, ...]) -> int:
        number = self._known.get(key)
        if number is None:
            self._count += 1
            self._known[key] = number = self._count
            self.lines.append(f"{number} = {key}")
        return number

    def _float(self, number: float) -> int:
        """Returns the place of a number, or of one that equals it, among those met."""
        # Numbers near each other are in one cell of a grid, or in adjacent ones.
        cell = int(number // FLOATS) if abs(number) < 1e300 else str(number)
        near = (cell,) if isinstance(cell, str) else (cell, cell - 1, cell + 1)
        for each in near:
            place = self._float_cells.get(each)
            if place is not None and (isinstance(cell, str) or abs(self.floats[place] - number) < FLOATS):
                return place
        self._float_cells.setdefault(cell, len(self.floats))
        self.floats.append(number)
        return len(self.floats) - 1

    def _key(self, value: SSAValue) -> tuple[object, ...]:
        """Returns an expression's structure, by the numbers of its operands."""
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            return ("argument", value.index, str(value.type))
        if isinstance(owner, ConstOp):
            number = owner.value.value.data if isinstance(owner.value, FloatAttr) else None
            return ("const", str(owner.value) if number is None else self._float(number), str(value.type))
        operands = [self._number(operand) for operand in owner.operands]
        if isinstance(owner, CommReducerOp | IfThenElseOp):
            for region in owner.regions:
                last = region.block.last_op
                assert last is not None
                operands += [self._number(operand) for operand in last.operands]
        before = self._writes_before.get(owner, 0) if self._evaluation.effect(owner) == READ else None
        return (owner.name, tuple(operands), _properties(owner), str(value.type), before)


def _is_zero(offset: SSAValue | None) -> bool:
    return offset is not None and (const := as_const(offset)) is not None and const.value == 0


def _numbers(part: SSAValue | Sequence[SSAValue] | None, number: Callable[[SSAValue], int]) -> object:
    return None if part is None else number(part) if isinstance(part, SSAValue) else list(map(number, part))


def _waits(op: Operation) -> bool:
    """Returns True if an op is written at its first use."""
    if isinstance(op, DeclBufferOp):
        return bool(op.implicit.value.data)
    return isinstance(op, VarOp | EnvThreadOp) or (isinstance(op, LetOp) and op.var is None)


def _properties(op: Operation) -> str:
    """Returns the relevant properties and attributes, with defaults, in the order of their names."""
    given = {name: attr for name, attr in {**op.properties, **op.attributes}.items() if name not in _NAMES}
    if isinstance(op, BufferOp | LaunchThreadOp):
        # The operands that are present are written with them.
        given.pop("operandSegmentSizes", None)
    if isinstance(op, BufferOp):
        for name, default in _DEFAULTS.items():
            stated = given.pop(name, None)
            value = (
                stated.value.data
                if isinstance(stated, IntegerAttr)
                else stated.data
                if isinstance(stated, StringAttr)
                else None
            )
            if value not in (None, 0, default):
                given[name] = StringAttr(str(value))
    return "{" + ", ".join(f"{name}: {_text(given[name])}" for name in sorted(given)) + "}"


def _text(attribute: Attribute) -> str:
    """Returns an attribute as text, dictionaries in the order of their keys, arrays by their digest."""
    match attribute:
        case DictionaryAttr():
            return "{" + ", ".join(f"{key}: {_text(attribute.data[key])}" for key in sorted(attribute.data)) + "}"
        case ArrayAttr():
            return "[" + ", ".join(map(_text, attribute)) + "]"
        case ArrayValueAttr():
            return attribute.data.digest.hex()
        case _:
            return str(attribute)


def _without_symbol(attrs: DictionaryAttr) -> DictionaryAttr:
    return DictionaryAttr({key: value for key, value in attrs.data.items() if key != "global_symbol"})
