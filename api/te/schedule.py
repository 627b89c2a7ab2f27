"""`te.create_schedule`, schedules and stages under TVM's names; what they do is in `lowering.te.schedule`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...dialects.te.expr import ExprLike, IterVar, current_location, describe, fail, items_of, location_scope
from ...dialects.te.tensor import Operation, Tensor
from ...lowering.te.schedule import primitives, rewrite_ops
from ...lowering.te.schedule.normalize import normalize
from ...lowering.te.schedule.stage import ScheduleData, StageData, create_group
from ...lowering.te.schedule.stage import create_schedule as make_schedule
from ...support.diagnostics import file_loc

T = TypeVar("T")

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = tuple(f"{_ROOT / part}/" for part in ("api", "dialects", "lowering", "parser", "passes", "support"))


def caller() -> LocationAttr:
    """The line of the Python file that called into mirstack; where one is set already (a text is read), that one."""
    if current_location() != UNKNOWN_LOC:
        return current_location()
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith(_PACKAGES):
        if frame.f_back is None:
            return UNKNOWN_LOC
        frame = frame.f_back
    return file_loc(frame.f_code.co_filename, frame.f_lineno, 1)


@contextmanager
def at_caller() -> Generator[None]:
    """What is made, or refused, inside stands at the line that called."""
    with location_scope(caller()):
        yield


def located(function: Callable[..., T]) -> Callable[..., T]:
    """The function, with what it makes at the line that called it."""
    from functools import wraps

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        with location_scope(caller()):
            return function(*args, **keywords)

    return call


def _axis(value: object, what: str = "an axis") -> IterVar:
    if not isinstance(value, IterVar):
        raise TypeError(
            f"{what} is expected, not {describe(value)}; axes are s[B].op.axis[0], or what split and fuse give"
        )
    return value


class Stage:
    """How one tensor is computed: its loops, in order, and where it is computed."""

    def __init__(self, data: StageData):
        self.data = data

    @property
    def op(self) -> Operation | None:
        """The operation, as primitives have rewritten it."""
        return self.data.op

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        """The loops, outermost first."""
        return list(self.data.leaves)

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """All axes: the operation's, and those made by split and fuse."""
        return list(self.data.all_axes)

    @property
    def scope(self) -> str:
        """The storage scope that was set, or ""."""
        return self.data.scope

    @property
    def is_output(self) -> bool:
        """Whether the tensor is one that the schedule was made for."""
        return self.data.is_output

    def __repr__(self) -> str:
        return f"stage({self.data.name})"

    @located
    def split(self, parent: IterVar, factor: ExprLike | None = None, nparts: ExprLike | None = None, disable_predication: bool = False) -> tuple[IterVar, IterVar]:  # fmt: skip
        """Splits a loop into an outer and an inner one, `factor` long or `nparts` of them."""
        if disable_predication:
            raise fail(
                "split cannot leave out the check of a loop that does not divide", "split by a factor that divides"
            )
        return primitives.split(self.data, _axis(parent), factor, nparts)

    @located
    def fuse(self, *args: Any) -> IterVar:
        """Fuses neighbouring loops, outer first, into one."""
        axes = items_of(args[0]) if len(args) == 1 else None
        return primitives.fuse(self.data, *(_axis(a) for a in (args if axes is None else axes)))

    @located
    def reorder(self, *args: IterVar) -> None:
        """Puts the loops named into this order, in the places that they have now."""
        primitives.reorder(self.data, *(_axis(a) for a in args))

    @located
    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: ExprLike, y_factor: ExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Splits two loops and brings the inner parts inside: x_outer, y_outer, x_inner, y_inner."""
        return primitives.tile(self.data, _axis(x_parent), _axis(y_parent), x_factor, y_factor)

    @located
    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Runs a loop on threads: `s[B].bind(x, te.thread_axis("threadIdx.x"))`."""
        primitives.bind(self.data, _axis(ivar), _axis(thread_ivar, "a thread"))

    @located
    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Launches threads around all that a scan does."""
        given = (threads,) if isinstance(threads, IterVar) else tuple(threads)
        primitives.env_threads(self.data, [_axis(t, "a thread") for t in given])

    @located
    def set_scope(self, scope: str) -> None:
        """Sets the storage scope."""
        primitives.set_scope(self.data, scope)

    @located
    def set_store_predicate(self, predicate: ExprLike) -> None:
        """Stores results only where the condition holds."""
        primitives.set_store_predicate(self.data, predicate)

    @located
    def compute_at(self, parent: Any, scope: IterVar) -> None:
        """Computes this stage inside of a loop of another, `parent`."""
        if not isinstance(parent, Stage):
            raise TypeError(f"a stage is expected, not {describe(parent)}; write s[B].compute_at(s[C], axis)")
        primitives.compute_at(self.data, parent.data, _axis(scope))

    @located
    def compute_inline(self) -> None:
        """Writes this stage's value where it is read."""
        primitives.compute_inline(self.data)

    @located
    def compute_root(self) -> None:
        """Computes this stage by itself."""
        primitives.compute_root(self.data)

    @located
    def vectorize(self, var: IterVar) -> None:
        """Makes vector operations of a loop."""
        primitives.vectorize(self.data, _axis(var))

    @located
    def unroll(self, var: IterVar) -> None:
        """Writes the turns of a loop one after the other."""
        primitives.unroll(self.data, _axis(var))

    @located
    def parallel(self, var: IterVar) -> None:
        """Runs the turns of a loop in parallel."""
        primitives.parallel(self.data, _axis(var))

    @located
    def tensorize(self, var: IterVar, tensor_intrin: object) -> None:
        """Replaces the loop over `var` and what is in it by an intrinsic."""
        primitives.tensorize(self.data, _axis(var), tensor_intrin)

    @located
    def pragma(self, var: IterVar, pragma_type: str, pragma_value: object = None) -> None:
        """Annotates a loop for later passes."""
        primitives.pragma(self.data, _axis(var), pragma_type, pragma_value)

    @located
    def prefetch(self, tensor: Tensor, var: IterVar, offset: ExprLike) -> None:
        """Asks for what will be read of a tensor `offset` turns later."""
        primitives.prefetch(self.data, tensor, _axis(var), offset)

    @located
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Rounds the stride of a dimension up to `factor * k + offset`."""
        primitives.storage_align(self.data, _axis(axis), factor, offset)

    @located
    def double_buffer(self) -> None:
        """Gives the stage its memory twice."""
        primitives.double_buffer(self.data)


class Schedule:
    """The stages of a program: `s[B]` is that of a tensor."""

    def __init__(self, data: ScheduleData):
        self.data = data

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers first."""
        return [Stage(s) for s in self.data.stages]

    @property
    def outputs(self) -> list[Operation]:
        """The operations that the schedule was made for."""
        return list(self.data.outputs)

    def __getitem__(self, tensor: Any) -> Stage:
        """The stage of a tensor or operation. Raises MirError for one that is not part of the schedule."""
        if not isinstance(tensor, (Tensor, Operation)):
            raise TypeError(f"a stage is found by its tensor or operation, not by {describe(tensor)}")
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        found = self.data.stage_of(op)
        if found is None:
            with at_caller():
                raise fail(
                    f"tensor '{op.name}' is not part of this schedule",
                    "a schedule has what its outputs are computed from: te.create_schedule(B.op)",
                )
        return Stage(found)

    @located
    def create_group(
        self, outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], include_inputs: bool = False
    ) -> Stage:
        """A group of the stages between inputs and outputs, which are placed together."""
        return Stage(create_group(self.data, _tensors(outputs), _tensors(inputs), include_inputs))

    @located
    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of a tensor in memory of another scope, which the readers read instead."""
        given = items_of(readers)
        ops = [r.op if isinstance(r, Tensor) else r for r in ((readers,) if given is None else given)]
        return rewrite_ops.cache_read(self.data, tensor, scope, ops)

    @located
    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Computes a tensor in memory of another scope, and copies it from there."""
        made = rewrite_ops.cache_write(self.data, _tensors(tensor), scope)
        return made[0] if isinstance(tensor, Tensor) else made

    @located
    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduces over parts first: the axis becomes a dimension of them."""
        made = rewrite_ops.rfactor(self.data, tensor, _axis(axis), factor_axis)
        return made[0] if len(made) == 1 else made

    @located
    def normalize(self) -> Schedule:
        """This schedule with inlined stages written out, and every loop counted from 0."""
        from ...lowering.te.schedule.lower import copied

        work = copied(self.data)
        normalize(work)
        return Schedule(work)


def _tensors(given: Any) -> list[Tensor]:
    listed = items_of(given)
    tensors: list[Tensor] = []
    for tensor in (given,) if listed is None else listed:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"a tensor is expected, not {describe(tensor)}")
        tensors.append(tensor)
    return tensors


@located
def create_schedule(ops: Any) -> Schedule:
    """A schedule of everything that the operations (or tensors) need, each computed by itself."""
    given = items_of(ops)
    listed = (ops,) if given is None else given
    found: list[Operation] = []
    for each in listed:
        op = each.op if isinstance(each, Tensor) else each
        if not isinstance(op, Operation):
            raise TypeError(f"a schedule is made for operations, as B.op, not for {describe(op)}")
        found.append(op)
    if not found:
        raise fail("a schedule is made for at least one operation", "name the outputs: te.create_schedule(B.op)")
    return Schedule(make_schedule(found))
