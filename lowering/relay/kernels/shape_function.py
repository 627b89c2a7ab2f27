"""Builds shape functions: what a kernel's call needs to know of sizes before the kernel runs.

A kernel with dimensions known only at run time (`?`) is a TE function with a variable for each of them. Those of its inputs
come from the inputs; those of its results, and the two sides of every check that the type relations left open, are numbers that are
computed before the call. Where they are integer arithmetic on the inputs' sizes, the caller computes them; where they depend on elements
of the inputs, the shape function `NAME_shape` (TVM's FShapeFunc) does, which takes the kernel's inputs and writes one int64 for each.

The kernel's attribute `mirstack.shape` describes it as data: `numbers` holds them as sizes of `dialects/tir/size_relations.py`,
or `function` names the shape function; `operator` is the name of the kernel in messages, and `checks` lists what is compared; `variant`
names a kernel for large sizes, and `view` says that the result is the first argument in another shape. The numbers come in this
order: each size of the results that no input has, as it first occurs in their shapes; then the two sides of each check.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation

from ....dialects import tir
from ....dialects.relay.operators.common.result_sizes import ResultShapes, Rule, fits, size_tensor
from ....dialects.te import builder as te
from ....dialects.te.builder import Const, Expr, Tensor, Var
from ....dialects.te.expr_mutator import substitute
from ....dialects.te.extern import ExternOp
from ....dialects.te.ops import FuncOp
from ....dialects.te.tensor import ComputeOp
from ....dialects.tir.node import Apply
from ....dialects.tir.size_relations import OPERATIONS, RULES
from ....support.diagnostics import error_at
from ...tir.signature import SHAPE


@dataclass(frozen=True)
class Check:
    """Two sizes that must fit. `message` has `{size}` in the place of each."""

    rule: Rule
    message: str


@dataclass(frozen=True)
class Variant:
    """A kernel that takes the place of another where its size `symbol` is `least` or more."""

    name: str
    symbol: str
    least: int


@dataclass(frozen=True)
class ShapeFunction:
    """The attribute `mirstack.shape`; `name` is None where the caller computes the numbers."""

    name: str | None
    operator: str
    checks: tuple[Check, ...] = ()
    numbers: tuple[Attribute, ...] = ()
    variant: Variant | None = None
    is_view: bool = False
    """Whether the result has the elements of the first argument, in their order: it needs no memory, and the kernel does not run."""

    def to_attr(self) -> DictionaryAttr:
        """As a builtin attribute."""
        checks = [ArrayAttr([StringAttr(c.rule), StringAttr(c.message)]) for c in self.checks]
        entries: dict[str, Attribute] = {"operator": StringAttr(self.operator), "checks": ArrayAttr(checks)}
        if self.numbers:
            entries["numbers"] = ArrayAttr(self.numbers)
        if self.name is not None:
            entries["function"] = StringAttr(self.name)
        if self.variant is not None:
            entries["variant"] = StringAttr(self.variant.name)
            entries["symbol"] = StringAttr(self.variant.symbol)
            entries["least"] = IntegerAttr(self.variant.least, i64)
        if self.is_view:
            entries["view"] = UnitAttr()
        return DictionaryAttr(entries)

    @staticmethod
    def of(op: Operation) -> ShapeFunction | None:
        """Returns the description that a lowered kernel carries, or None where it needs no shape function.

        Raises MirError for another attribute.
        """
        attr = op.attributes.get(SHAPE)
        if attr is None:
            return None
        data: Mapping[str, Attribute] = attr.data if isinstance(attr, DictionaryAttr) else {}
        name, operator, listed = (data.get(key) for key in ("function", "operator", "checks"))
        checks: list[Check] = []
        for item in listed.data if isinstance(listed, ArrayAttr) else ():
            parts = [p.data for p in item.data if isinstance(p, StringAttr)] if isinstance(item, ArrayAttr) else []
            if len(parts) == 2 and parts[0] in get_args(Rule):
                checks.append(Check(cast("Rule", parts[0]), parts[1]))
        if not isinstance(operator, StringAttr):
            raise error_at(op, f"{SHAPE} needs 'operator', a string")
        variant, symbol, least = (data.get(key) for key in ("variant", "symbol", "least"))
        chosen: Variant | None = None
        if isinstance(variant, StringAttr) and isinstance(symbol, StringAttr) and isinstance(least, IntegerAttr):
            chosen = Variant(variant.data, symbol.data, least.value.data)
        numbers = data.get("numbers")
        return ShapeFunction(
            name.data if isinstance(name, StringAttr) else None,
            operator.data,
            tuple(checks),
            tuple(numbers.data) if isinstance(numbers, ArrayAttr) else (),
            chosen,
            "view" in data,
        )


def names_function(kernel: FuncOp | tir.PrimFuncOp) -> bool:
    """Returns whether a kernel comes with a shape function or a variant, which take the same arguments."""
    shape = kernel.attrs.data.get(SHAPE)
    return isinstance(shape, DictionaryAttr) and not shape.data.keys().isdisjoint(("function", "variant"))


class Sizes:
    """The symbolic sizes of one kernel while its TE function is made."""

    def __init__(self, taken: Container[str] = ()) -> None:
        self._taken = taken
        self.checks: list[tuple[Check, Expr, Expr]] = []
        self._inputs: set[Expr] = set()
        self._values: dict[Expr, Expr] = {}
        """The values of the sizes that represent the results' dimensions."""

    @property
    def are_open(self) -> bool:
        """Returns whether there are any; otherwise all that a kernel reads is known to exist."""
        return bool(self._inputs or self._values)

    def input_size(self) -> Var:
        """Returns the size of a further `?` of an input."""
        size = te.size_var(self._name("n", len(self._inputs)))
        self._inputs.add(size)
        return size

    def is_input(self, size: object) -> bool:
        """Returns whether a size is that of an input's `?`."""
        return isinstance(size, Var) and size in self._inputs

    def define(self, operator: str, tensors: Sequence[Tensor], results: ResultShapes) -> None:
        """The free sizes in the tensors' shapes are what `results` says, and what that requires is checked."""
        for tensor, shape in zip(tensors, results.shapes, strict=True):
            for dim, value in zip(tensor.dims, shape, strict=True):
                if isinstance(dim, Var) and dim not in self._inputs:
                    self._values.setdefault(dim, te.convert(value))
        for needed in results.requirements:
            self.check(needed.rule, needed.left, needed.right, f"{operator}: {needed.message}")

    def check(self, rule: Rule, left: int | Expr, right: int | Expr, message: str) -> None:
        """The kernel may run only where two sizes fit; what holds for sure is not checked."""
        a, b = (self._values.get(e, e) for e in map(te.convert, (left, right)))
        if a is b or (isinstance(a, Const) and isinstance(b, Const) and fits(rule, int(a), int(b))):
            return
        # Sizes are compared by identity; two that are equal fit by every rule.
        if not any(c.rule in (rule, "equal") and (a, b) == (one, other) for c, one, other in self.checks):
            self.checks.append((Check(rule, message), a, b))

    def check_broadcast(self, operator: str, result: Tensor) -> None:
        """Checks each of three or more sizes that broadcast to a dimension of a result against it."""
        for axis, dim in enumerate(result.dims):
            sizes = _broadcast(dim)
            for size in sizes if len(sizes) > 2 else ():
                message = f"{operator}: {{size}} does not broadcast to {{size}}, dimension {axis} of the result"
                self.check("expand", size, dim, message)

    def name_results(self, results: Sequence[Tensor]) -> None:
        """Replaces computed dimensions of results by variables, which a caller passes."""
        for tensor in results:
            dims: list[Expr] = []
            for dim in tensor.dims:
                if not isinstance(dim, Const) and dim not in self._inputs and dim not in self._values:
                    named = te.size_var("m", dim.dtype)
                    self._values[named] = dim
                    dim = named
                dims.append(dim)
            _set_dims(tensor, tuple(dims))
        for number, size in enumerate(self._values):
            assert isinstance(size, Var)
            size.name = self._name("m", number)

    def _name(self, letter: str, number: int) -> str:
        """Returns a name that no parameter has."""
        name = f"{letter}{number}"
        while name in self._taken:
            name += "_"
        return name

    def known(self, more: Sequence[tuple[Rule, Expr, Expr]] = ()) -> ArrayAttr[Attribute]:
        """Returns the relations of the kernel's sizes when it runs, as `mirstack.sizes`, with `more`."""
        relations = [*((c.rule, left, right) for c, left, right in self.checks), *more]
        return _sizes_attr(relations, self._values, {*self._inputs, *self._values})

    def numbers(self, results: Sequence[Tensor]) -> list[Expr]:
        """Returns the results' sizes that no input has, and both sides of the checks, from inputs alone."""
        wanted = [d for d in dict.fromkeys(d for t in results for d in t.dims) if d in self._values]
        values = [self._values[d] for d in wanted] + [side for _, *sides in self.checks for side in sides]
        # What a size of the results is computed from takes its place, so that inputs are all that is read.
        known: dict[int, Expr] = {}
        for size, value in self._values.items():
            known[id(size)] = substitute(value, known).astype(size.dtype)
        return [substitute(value, known) for value in values]

    def as_data(self, numbers: Sequence[Expr]) -> tuple[Attribute, ...] | None:
        """Returns numbers as a caller computes them; None where one is not arithmetic on the inputs' sizes."""
        found = [_size_attr(each, self._inputs) if _is_simple(each) else None for each in numbers]
        whole = tuple(each for each in found if each is not None)
        return whole if len(whole) == len(found) else None


def shape_function(name: str, inputs: Sequence[Tensor], numbers: Sequence[Expr]) -> FuncOp:
    """Returns the TE function that computes numbers from a kernel's inputs."""
    return te.func(name, [*inputs, *(size_tensor(each, f"size{k}") for k, each in enumerate(numbers))])


MOST_TERMS = 64
"""Terms of a number that a caller computes: it computes shared ones again."""
COMPUTED = {
    *(tir.AddOp, tir.SubOp, tir.MulOp, tir.FloorDivOp, tir.FloorModOp, tir.MinOp, tir.MaxOp),
    *(tir.EqOp, tir.NeOp, tir.LtOp, tir.LeOp, tir.GtOp, tir.GeOp, tir.SelectOp, tir.CastOp),
}
"""Operators of numbers that a caller computes (`run_time_extents.Sizing.number`)."""


def _is_simple(number: Expr) -> bool:
    """Returns whether a caller computes a number: few terms, and divisors that are positive constants."""
    pending, count = [number], 0
    while pending:
        term = pending.pop()
        count += 1
        if count > MOST_TERMS:
            return False
        if isinstance(term, Apply):
            if term.op not in COMPUTED:
                return False
            if term.op in (tir.FloorDivOp, tir.FloorModOp):
                divisor = term.args[1]
                if not (isinstance(divisor, Const) and isinstance(divisor.value, int) and divisor.value > 0):
                    return False
            pending += term.args
    return True


def _broadcast(dim: Expr) -> list[Expr]:
    """Returns the sizes that a dimension is the broadcast of: Select(a == 1, b, a) is that of a and b."""
    if isinstance(dim, Apply) and dim.op is tir.SelectOp:
        condition, other, size = dim.args
        if isinstance(condition, Apply) and condition.op is tir.EqOp and condition.args[0] is size:
            return [*_broadcast(size), *_broadcast(other)]
    return [dim]


def _set_dims(tensor: Tensor, dims: tuple[Expr, ...]) -> None:
    """The tensor, and those that are made with it, has these extents from now on."""
    op = tensor.op
    for output in op.outputs:
        if output is tensor or isinstance(op, ComputeOp):
            output.dims = dims
    if isinstance(op, ComputeOp):
        for axis, dim in zip(op.axis, dims, strict=True):
            axis.extent = dim
    elif isinstance(op, ExternOp):
        op.out_buffers[tensor.value_index].dims = dims


# What the checks before a call establish of the sizes, for the kernel: `mirstack.sizes`.


def _sizes_attr(
    relations: Iterable[tuple[str, Expr, Expr]], values: Mapping[Expr, Expr], known: Container[Expr]
) -> ArrayAttr[Attribute]:
    """Returns relations (rule, left, right) of sizes in `known`, and sizes' definitions, as the attribute."""
    found: list[Attribute] = []
    for rule, left, right in _derived(relations, values):
        if rule in RULES:
            a, b = _size_attr(left, known), _size_attr(right, known)
            if a is not None and b is not None:
                found.append(ArrayAttr([StringAttr(rule), a, b]))
    return ArrayAttr(found)


def _derived(
    relations: Iterable[tuple[str, Expr, Expr]], values: Mapping[Expr, Expr]
) -> Iterator[tuple[str, Expr, Expr]]:
    """Yields the relations, with "stretch" of two sizes replaced by "expand" to their broadcast size."""
    broadcast: dict[frozenset[Expr], Expr] = {}
    for size, value in values.items():
        yield "equal", size, value
        # Of two sizes that broadcast it is the one that is not 1: Select(a == 1, b, a).
        if isinstance(value, Apply) and value.op is tir.SelectOp:
            broadcast[frozenset(value.args[1:])] = size
    for rule, left, right in relations:
        if rule != "stretch":
            yield rule, left, right
            continue
        target = broadcast.get(frozenset((left, right)))
        for one, other in ((left, right), (right, left)):
            if target is not None:
                yield "expand", one, target
            elif isinstance(other, Const) and other.value != 1:
                yield "expand", one, other


def _size_attr(size: Expr, known: Container[Expr]) -> Attribute | None:
    match size:
        case Const():
            return IntegerAttr(int(size), i64) if isinstance(size.value, int) else None
        case Var():
            return StringAttr(size.name) if size in known else None
        case Apply() if size.op is tir.CastOp and size.dtype in ("int32", "int64"):
            # Sizes fit an int32.
            return _size_attr(size.args[0], known)
        case Apply() if size.op.name in OPERATIONS:
            parts = [_size_attr(part, known) for part in size.args]
            whole = [part for part in parts if part is not None]
            return ArrayAttr([StringAttr(size.op.name), *whole]) if len(whole) == len(parts) else None
        case _:
            return None
