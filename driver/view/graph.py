"""Makes a graph of a Relay program: boxes are kernels, and an edge knows why its ends are two boxes.

What stands outside of kernels is a box, too: a call of a function, a parameter, the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import relay
from ...dialects.relay.operator import OperatorOp
from ...dialects.relay.text import global_text, local_text, type_text
from ...passes.pass_info import explanation
from ...passes.relay.fusion.fuse_ops import FuseOps, is_kernel, name_of
from ...support.diagnostics import Diagnostic

PASSED_THROUGH = (relay.LetOp, relay.TupleOp, relay.TupleGetItemOp)
"""Ops that have no box: edges go through them."""
NO_BOX = (*PASSED_THROUGH, relay.ConstantOp, relay.FnOp, relay.GlobalRefOp, relay.ConstructorRefOp, relay.ReturnOp)


@dataclass
class Box:
    """A kernel with its operators, an op outside of kernels, a parameter, or the result."""

    kind: str
    """"kernel", "op", "param" or "result"."""
    title: str
    ops: list[Operation]
    type: str = ""
    kernel: str = ""
    """The name of the function that the kernel became."""


@dataclass
class Edge:
    """A value that one box makes and another takes, and the reasons why they are two."""

    source: int
    target: int
    type: str
    through: list[Operation]
    """Tuples and names between the boxes."""
    reasons: list[Diagnostic] = field(default_factory=list[Diagnostic])


@dataclass
class Graph:
    """The boxes of one function, each before those that use it, and what is between them."""

    name: str
    boxes: list[Box] = field(default_factory=list[Box])
    edges: list[Edge] = field(default_factory=list[Edge])


def graphs_of(module: ModuleOp) -> list[Graph]:
    """Returns a graph for each Relay function, after `fuse-ops`."""
    return [_graph(op) for op in module.ops if isinstance(op, relay.FuncOp)]


def _graph(function: relay.FuncOp) -> Graph:
    graph = Graph(global_text(function.sym_name.data))
    made: dict[SSAValue, int] = {}
    for value, name in zip(function.params, function.param_names.data, strict=True):
        made[value] = len(graph.boxes)
        graph.boxes.append(Box("param", local_text(name.data), [], type_text(value.type)))
    for op in function.body.block.ops:
        if isinstance(op, NO_BOX):
            continue
        for result in op.results:
            made[result] = len(graph.boxes)
        graph.boxes.append(_box(op))
        _connect(graph, made, list(_taken(op)), len(graph.boxes) - 1)
    end = function.body.block.last_op
    graph.boxes.append(Box("result", "result", [], type_text(function.ret_type)))
    _connect(graph, made, [] if end is None else list(end.operands), len(graph.boxes) - 1)
    return graph


def _box(op: Operation) -> Box:
    type = type_text(op.results[0].type) if op.results else ""
    if isinstance(op, relay.CallOp) and isinstance(kernel := op.callee.owner, relay.FnOp) and is_kernel(kernel):
        ops = [inner for inner in kernel.body.block.ops if not isinstance(inner, relay.ConstantOp | relay.ReturnOp)]
        names = [name_of(inner) for inner in ops if isinstance(inner, OperatorOp)]
        return Box("kernel", " · ".join(names) or "kernel", [op, *ops], type)
    if isinstance(op, relay.CallTirOp):
        name = op.callee.root_reference.data
        return Box("kernel", f"call_tir @{name}", [op], type, name)
    return Box("op", name_of(op), [op], type)


def _taken(op: Operation) -> Iterator[SSAValue]:
    """Yields the values of its block that an op takes, also inside of its regions."""
    home = op.parent
    pending = [op]
    while pending:
        each = pending.pop()
        for value in each.operands:
            owner = value.owner
            if (owner if isinstance(owner, Block) else owner.parent) is home:
                yield value
        pending += [inner for region in each.regions for block in region.blocks for inner in block.ops]


def _connect(graph: Graph, made: dict[SSAValue, int], values: Sequence[SSAValue], target: int) -> None:
    known: dict[int, Edge] = {}
    for value in values:
        for source, taken, through in _origins(made, value):
            edge = known.get(source)
            if edge is None:
                edge = known[source] = Edge(source, target, type_text(taken.type), [])
            edge.through += [op for op in through if op not in edge.through]
    graph.edges += known.values()


def _origins(made: dict[SSAValue, int], value: SSAValue) -> Iterator[tuple[int, SSAValue, list[Operation]]]:
    """Yields the boxes that a value comes from, through names and tuples."""
    pending: list[tuple[SSAValue, list[Operation]]] = [(value, [])]
    seen: set[SSAValue] = set()
    while pending:
        current, through = pending.pop()
        if current in made:
            yield made[current], current, through
            continue
        op = current.owner
        if current in seen or not isinstance(op, PASSED_THROUGH):
            continue
        seen.add(current)
        if isinstance(op, relay.TupleGetItemOp) and isinstance(tuple_op := op.tuple_value.owner, relay.TupleOp):
            pending.append((tuple_op.operands[op.index.value.data], [*through, op, tuple_op]))
        else:
            pending += [(operand, [*through, op]) for operand in op.operands]


def explain(graphs: Sequence[Graph], remarks: Sequence[Diagnostic]) -> None:
    """Gives each edge the remarks of `fuse-ops` on an op of one box and one of the other."""
    topic = f"{explanation(FuseOps.name)}: "
    by_place: dict[LocationAttr, list[Diagnostic]] = {}
    for remark in remarks:
        if remark.message.startswith(topic):
            by_place.setdefault(remark.location, []).append(remark)
    for graph in graphs:
        for edge in graph.edges:
            users = {op.location for op in (*graph.boxes[edge.target].ops, *edge.through)}
            places = dict.fromkeys(op.location for op in (*graph.boxes[edge.source].ops, *edge.through))
            found = [
                remark
                for place in places
                for remark in by_place.get(place, ())
                if remark.notes and remark.notes[0].location in users
            ]
            said = {remark.message: remark for remark in found}
            edge.reasons = [replace(remark, message=text.removeprefix(topic)) for text, remark in said.items()]


def name_kernels(graphs: Sequence[Graph], module: ModuleOp) -> None:
    """Gives boxes the names of their kernels, which are functions of the module after `lower-relay-to-te`.

    A call of a kernel has the place of the call that it replaces, and its name begins with the operators.
    """
    functions = {global_text(op.sym_name.data): op for op in module.ops if isinstance(op, relay.FuncOp)}
    for graph in graphs:
        function = functions.get(graph.name)
        if function is None:
            continue
        waiting: dict[LocationAttr, list[Box]] = {}
        for box in graph.boxes:
            if box.ops and not box.kernel:
                waiting.setdefault(box.ops[0].location, []).append(box)
        for op in function.body.block.ops:
            boxes = waiting.get(op.location) if isinstance(op, relay.CallTirOp) else None
            if isinstance(op, relay.CallTirOp) and boxes:
                name = op.callee.root_reference.data
                box = next((each for each in boxes if _fits(each, name)), None)
                if box is not None:
                    boxes.remove(box)
                    box.kernel = name


def _fits(box: Box, name: str) -> bool:
    """Tells whether a kernel of this name may be the box's: it is called by the first operators."""
    return name.startswith(f"fused_{box.title.split(' · ')[0].replace('.', '_')}")
