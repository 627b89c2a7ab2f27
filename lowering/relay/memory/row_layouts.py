"""Finds the tensors of a Relay function that are stored in rows of another tensor.

These are pieces of concatenations along inner axes, and slices of inner axes:

    %0 = call_tir(@conv, %x)                        %0 is 4 rows of 64 * 49 elements, each in its part of %2
    %1 = call_tir(@pool, %x)
    %2 = concatenate((%0, %1), axis=1)              of (4, 128, 7, 7)
    %3 = strided_slice(%2, begin=[64], end=[128], axes=[1])

A kernel that writes or reads such a tensor is made for its strides (`tir.param_strides`). `share_storage.py` ensures that nothing but
kernels does, that a piece is in one concatenation only, and that a tensor in another tensor's rows has as many rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from xdsl.ir import Operation, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.text import global_text
from ....passes.tir.buffers.param_strides import Strides
from ....support.diagnostics import error_at
from ....support.walk import walk_ops
from ..functions.flat_values import TensorLeaf, leaves_of
from .frame import Sources
from .storage_views import Rows, is_reshape, piece_rows, static_shape, view_rows


class Layouts:
    """The layouts of a function's tensors, as the operators that are no kernels (`ops`) tell them."""

    def __init__(self, ops: Iterable[Operation], sources: Sources):
        self._sources = sources
        self._wholes: dict[tuple[SSAValue, int], OperatorOp] = {}
        self._known: dict[tuple[SSAValue, int], Rows | None] = {}
        for op in ops:
            if not isinstance(op, OperatorOp):
                continue
            if (piece_rows(op) or 1) > 1:
                for field in range(len(leaves_of(op.args[0].type))):
                    self._wholes[sources.of(op.args[0], field)] = op
            elif (rows := view_rows(op)) is not None:
                self._known |= {(op.result, k): rows for k in range(len(leaves_of(op.result.type)))}

    def __bool__(self) -> bool:
        """Returns whether any tensor is stored in rows."""
        return bool(self._wholes or self._known)

    def of(self, value: SSAValue, leaf: int) -> Rows | None:
        """Returns the rows of leaf `leaf` of a value; None where it is compact."""
        source = self._sources.of(value, leaf)
        pieces: list[tuple[tuple[SSAValue, int], OperatorOp]] = []
        while source not in self._known and (whole := self._wholes.get(source)) is not None:
            pieces.append((source, whole))
            source = whole.result, 0
        rows = self._known.get(source)
        for piece, whole in reversed(pieces):
            count = piece_rows(whole) or 1
            elements = prod(static_shape(whole.result.type) or ())
            rows = self._known[piece] = Rows(count, elements // count if rows is None else rows.pitch)
        return rows

    def strides(self, value: SSAValue) -> Strides:
        """Returns the strides of each leaf of a value; () for compact ones."""
        found: list[tuple[int, ...]] = []
        for number, leaf in enumerate(leaves_of(value.type, value)):
            rows = self.of(value, number)
            # A concatenation of one piece is that piece.
            if rows is not None and isinstance(leaf, TensorLeaf) and rows.pitch * rows.count > prod(leaf.shape):
                found.append(rows.strides(leaf.shape) or ())
            else:
                found.append(())
        return tuple(found)


def check_layouts(function: relay.FuncOp, strides_of_kernel: Mapping[str, Strides]) -> None:
    """Checks that only kernels made for its strides access a tensor in rows.

    `strides_of_kernel` has the kernels some of whose parameters have strides. Raises MirError for any other op that reads or writes such
    a tensor, and for a kernel with strides that gets a compact tensor.
    """
    layouts = Layouts(walk_ops(function), Sources())
    if not layouts and not strides_of_kernel:
        return
    for op in walk_ops(function):
        if isinstance(op, relay.CallTirOp):
            name = op.callee.root_reference.data
            found = (
                *(steps for value in op.arguments for steps in layouts.strides(value)),
                *layouts.strides(op.result),
            )
            wanted = strides_of_kernel.get(name, ())
            for number, steps in enumerate(found):
                made_for = wanted[number] if number < len(wanted) else ()
                if steps != made_for:
                    raise error_at(
                        op,
                        f"tensor {number} of call_tir({global_text(name)}, …) lies {_shown(steps)}, but the kernel is made for one that"
                        f" lies {_shown(made_for)}",
                        "lower-relay-to-te makes kernels for how their tensors lie",
                    )
        elif not _hands_on(op) and any(any(layouts.strides(value)) for value in op.operands):
            raise error_at(
                op,
                f"{op.name} takes a tensor that lies in rows of another one, which only kernels can",
                "lower-relay-to-te makes a kernel of the concatenation, slice or split that it comes from, where that is so",
            )


def _hands_on(op: Operation) -> bool:
    """Returns whether an op accesses no elements: it names its tensors, or holds them in its own."""
    if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp):
        return True
    return isinstance(op, OperatorOp) and (is_reshape(op) or (piece_rows(op) or 1) > 1)


def _shown(steps: tuple[int, ...]) -> str:
    return f"with strides {steps}" if steps else "compact"
