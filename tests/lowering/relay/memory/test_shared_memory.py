"""Random programs, their memory as it is planned, and numpy at work in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.dialects.relay import ir as relay
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.lowering.relay.functions.flat_values import TensorLeaf, leaves_of
from mirstack.lowering.relay.memory.frame import Sources, is_written, plan_frame, returned
from mirstack.lowering.relay.memory.row_layouts import Layouts
from mirstack.lowering.relay.memory.share_storage import share_storage
from mirstack.lowering.relay.memory.storage_views import Rows, piece_offsets, view_offsets, view_rows
from mirstack.passes.relay.fusion.fuse_ops import FuseOps
from numpy.lib.stride_tricks import as_strided
from sharing import Arrays, T, check, inputs, prepared
from xdsl.ir import Operation, SSAValue


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Kernels that compute, and operators that move, on tensors of (images, rows, 16)."""
    images = draw(st.integers(1, 2))
    sizes = {"x": (images, 4), "y": (images, 3)}
    lines: list[str] = []
    for number in range(draw(st.integers(2, 9))):
        kind = draw(
            st.sampled_from(["softmax", "softmax", "exp", "concatenate", "join", "join", "slice", "split", "reshape"])
        )
        values = list(sizes)[-5:]
        name, value = f"{number}", draw(st.sampled_from(values))
        size, axis = list(sizes[value]), draw(st.sampled_from([0, 1, 1]))
        count = size[axis]
        match kind:
            case "softmax":
                text = f"nn.softmax(%{value}, axis={draw(st.integers(0, 2))})"
            case "exp":
                text = f"exp(%{value})"
            case "concatenate" | "join":
                fit = [other for other in values if sizes[other][1 - axis] == size[1 - axis]]
                fields = draw(st.lists(st.sampled_from(fit), min_size=1, max_size=4))
                size[axis] = sum(sizes[field][axis] for field in fields)
                if kind == "join":
                    # Pieces that a kernel makes, and that nothing else is to become.
                    lines += [f"%{100 * number + k + 100} = nn.softmax(%{f});" for k, f in enumerate(fields)]
                    fields = [f"{100 * number + k + 100}" for k in range(len(fields))]
                text = f"concatenate(({', '.join('%' + f for f in fields)},), axis={axis})"
            case "reshape":
                text = f"reshape(%{value}, newshape=[{size[0]}, {size[1]}, 16])"
            case _:
                low = draw(st.integers(0, count - 1))
                high = draw(st.integers(low + 1, count))
                if kind == "slice" or not low:
                    text = f"strided_slice(%{value}, begin=[{low}], end=[{high}], axes=[{axis}])"
                    size[axis] = high - low
                else:
                    text = f"split(%{value}, indices_or_sections=[{low}], axis={axis}).1"
                    size[axis] -= low
        sizes[name] = (size[0], size[1])
        lines.append(f"%{name} = {text};")
    # What is a result lies where that is: of most only what is computed from them is one.
    unread = [
        name for name in list(sizes)[2:] if f"%{name}," not in "".join(lines) and f"%{name})" not in "".join(lines)
    ]
    results = draw(st.lists(st.sampled_from(list(sizes)), max_size=2))
    lines += [f"%{5000 + number} = nn.softmax(%{name});" for number, name in enumerate(unread)]
    results += [f"{5000 + number}" for number in range(len(unread))]
    body = "\n  ".join(lines)
    given = f"%x: {T(images, 4, 16)}, %y: {T(images, 3, 16)}"
    return f"def @main({given}) {{\n  {body}\n  ({', '.join('%' + r for r in results)},)\n}}"


class Memory:
    """Runs a function whose kernels are Primitive functions in memory as the plan lays it; checks each tensor when it is read."""

    def __init__(self, text: str):
        module = prepared(text, FuseOps.name)
        (self.function,) = (op for op in module.ops if isinstance(op, relay.FuncOp))
        self.body = self.function.body.block
        share_storage(self.function)
        self.frame = plan_frame(self.body, refs=False)
        self.layouts = Layouts(self.body.ops, Sources())
        self.arena = np.zeros(self.frame.plan.size, "u1")
        result = returned(self.body)
        self.outputs = [np.zeros(leaf.bytes, "u1") for leaf in leaves_of(result.type) if isinstance(leaf, TensorLeaf)]
        self.where: dict[SSAValue, list[np.ndarray[Any, Any]]] = {}
        self.known: dict[SSAValue, Any] = {}

    def place(self, op: Operation, leaf: int, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        output = self.frame.outputs.get((op, leaf))
        if output is None:
            memory = self.arena[self.frame.offsets[op, leaf] :]
        else:
            memory = self.outputs[output][self.frame.shifts.get((op, leaf), 0) :]
        return in_rows(memory, value, self.layouts.of(op.results[0], leaf))

    def run(self, arrays: Arrays) -> None:
        for param, array in zip(self.function.params, arrays, strict=True):
            self.known[param], self.where[param] = array, [array.view("u1").reshape(-1)]
        for op in self.body.ops:
            if isinstance(op, relay.FnOp | relay.ReturnOp):
                continue
            self.check([o for o in op.operands if o in self.known])
            result = op.results[0]
            self.known[result] = evaluate(op, self.known)
            self.where[result] = self.lay(op)
        self.check([returned(self.body)])
        for ours, wanted in zip(self.where[returned(self.body)], leaves(self.known[returned(self.body)]), strict=True):
            assert ours.tobytes() == wanted.tobytes()

    def check(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            for ours, wanted in zip(self.where[value], leaves(self.known[value]), strict=True):
                assert ours.tobytes() == wanted.tobytes()

    def lay(self, op: Operation) -> list[np.ndarray[Any, Any]]:
        values = leaves(self.known[op.results[0]])
        match op:
            case relay.TupleOp():
                return [leaf for field in op.fields for leaf in self.where[field]]
            case relay.TupleGetItemOp():
                return [self.where[op.tuple_value][op.index.value.data]]
            case OperatorOp() if (offsets := view_offsets(op)) is not None:
                (whole,) = self.where[op.args[0]]
                if offsets == [0] and whole.nbytes == values[0].nbytes:
                    return [whole]
                return [in_rows(whole[start:], v, view_rows(op)) for start, v in zip(offsets, values, strict=True)]
            case _:
                pass
        assert is_written(op)
        places = [self.place(op, k, value) for k, value in enumerate(values)]
        offsets = piece_offsets(op) if isinstance(op, OperatorOp) else None
        if offsets is None:
            for target, value in zip(places, values, strict=True):
                target[:] = value.view("u1").reshape(target.shape)
        else:
            for number, (start, piece) in enumerate(zip(offsets, self.where[op.operands[0]], strict=True)):
                if (op, number) not in self.frame.joined:
                    places[0][start : start + len(piece)] = piece
        return places


def in_rows(memory: np.ndarray[Any, Any], value: np.ndarray[Any, Any], rows: Rows | None) -> np.ndarray[Any, Any]:
    """The bytes of a value that lies in rows at the start of some memory."""
    if rows is None:
        return memory[: value.nbytes]
    size, pitch = value.nbytes // rows.count, rows.pitch * value.itemsize
    assert (rows.count - 1) * pitch + size <= len(memory)
    return as_strided(memory, (rows.count, size), (pitch, 1))


def leaves(value: Any) -> Arrays:
    return [np.ascontiguousarray(each) for each in (value if isinstance(value, tuple) else (value,))]


def evaluate(op: Operation, known: dict[SSAValue, Any]) -> Any:
    """What an op gives, by the operators' meanings."""
    match op:
        case relay.TupleOp():
            return tuple(known[field] for field in op.fields)
        case relay.TupleGetItemOp():
            return known[op.tuple_value][op.index.value.data]
        case relay.CallOp():
            kernel = op.callee.owner
            assert isinstance(kernel, relay.FnOp)
            inner: dict[SSAValue, Any] = dict(
                zip(kernel.body.block.args, (known[a] for a in op.arguments), strict=True)
            )
            for each in kernel.body.block.ops:
                if not isinstance(each, relay.ReturnOp):
                    inner[each.results[0]] = evaluate(each, inner)
            return inner[returned(kernel.body.block)]
        case _:
            assert isinstance(op, OperatorOp)
            return op.OPERATOR.numpy(op.attrs(), *(known[a] for a in op.args))


@settings(deadline=None, max_examples=60)
@given(programs())
def test_what_is_read_is_what_was_written(text: str):
    memory = Memory(text)
    memory.run(inputs(text))
    assert memory.frame.plan.size <= 1.1 * memory.frame.plan.lower_bound + 64


@settings(deadline=None, max_examples=5)
@given(programs())
def test_random_programs_in_native_code(text: str):
    check(text)
