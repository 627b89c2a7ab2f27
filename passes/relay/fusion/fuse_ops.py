"""`fuse-ops`: groups operators into `Primitive` functions, each of which becomes one kernel.

The algorithm is that of TVM's FuseOps (Chen et al., "TVM", OSDI 2018, section 3, and the Relay pass's documentation):
walk the operators in order and fuse each into its immediate post-dominator when the kinds of both, and of everything
between them, allow it. As every path out of a fused operator goes through the function's result, nothing is computed
twice and nothing inside is needed outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.relay import ir
from ....dialects.relay.infer.size_symbols import SizeSymbols
from ....dialects.relay.ir import (
    CallGlobalOp,
    CallOp,
    CallTirOp,
    ConstantOp,
    FnOp,
    FuncOp,
    LetOp,
    ReturnOp,
    TupleGetItemOp,
    TupleOp,
)
from ....dialects.relay.operator import OperatorOp, OpPattern, is_operator
from ....dialects.relay.text import global_text
from ....dialects.relay.types import FuncType
from ....support.edit import erase_op, insert_op_before
from ....support.locations import fuse_locations
from ....support.trace import Tracer, tracer
from ...option_range import require_range
from ...pass_info import explanation
from ..common.rewriting import replace
from ..functional.infer_type import ensure_types
from .post_dominators import PostDominatorTree

# Scalars of these types are written into the fused function; others would only lengthen its text.
_INLINE_CONSTANTS = ("bool", "int32", "int64", "float32", "float64")

_KERNEL_OPS = (OperatorOp, ConstantOp, LetOp, TupleOp, TupleGetItemOp, ReturnOp)
"""What a kernel may hold."""


@dataclass(frozen=True)
class FuseOps(ModulePass):
    """Group operators into Primitive functions, one kernel each."""

    name = "fuse-ops"
    tells: ClassVar[bool] = True

    fuse_opt_level: int = 2
    """0: every operator alone; 1 to 4, TVM's levels of optimization: fuse, through tuples too."""
    max_depth: int = 256
    """The most operators that one function may hold."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_range(op, "fuse-opt-level", self.fuse_opt_level, 0, 4)
        require_range(op, "max-depth", self.max_depth, 1)
        trace, refusals = tracer(self.name), tracer(explanation(self.name))
        ensure_types(op)
        for function in op.ops:
            if isinstance(function, FuncOp):
                sizes = SizeSymbols(function)
                for block in _blocks(function.body):
                    _fuse_block(block, sizes, self.fuse_opt_level, self.max_depth, trace, refusals)


def is_kernel(function: FnOp) -> bool:
    """Returns whether a local function is a kernel: `Primitive=1`, only operators, only called.

    A Primitive function of any other form (it branches, uses values around it, is passed on) is treated as a function
    without the attribute: its ops are grouped.
    """
    flag = function.attrs.data.get("Primitive")
    if not isinstance(flag, IntegerAttr) or flag.value.data == 0 or function.self_name is not None:
        return False
    body = function.body.block
    for op in body.ops:
        if not isinstance(op, _KERNEL_OPS) or any(_block_of(operand) is not body for operand in op.operands):
            return False
    pending = list(function.result.uses)
    while pending:
        use = pending.pop()
        if isinstance(use.operation, LetOp):
            pending += use.operation.result.uses
        elif not (isinstance(use.operation, CallOp) and use.index == 0):
            return False
    return True


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _blocks(region: Region) -> Iterator[Block]:
    """The region's block and those nested in it, inner ones first, kernels left out."""
    pending: list[tuple[Block, bool]] = [(region.block, False)]
    while pending:
        block, opened = pending.pop()
        if opened:
            yield block
            continue
        pending.append((block, True))
        for op in block.ops:
            if op.regions and not (isinstance(op, FnOp) and is_kernel(op)):
                pending += [(inner.block, False) for inner in op.regions]


class _Group:
    """A set of operators to become one function; union-find with the sink's group as the root."""

    __slots__ = ("anchored", "parent", "pattern", "size")

    def __init__(self, pattern: OpPattern):
        self.parent: _Group | None = None
        self.pattern = pattern
        self.size = 1
        # The group of a contraction keeps that kind when merged into what follows it.
        self.anchored = pattern == OpPattern.OUT_ELEMWISE_FUSABLE

    def root(self) -> _Group:
        root = self
        while root.parent is not None:
            root = root.parent
        node = self
        while node.parent is not None and node.parent is not root:
            node.parent, node = root, node.parent
        return root

    def merge_into(self, other: _Group) -> None:
        child, root = self.root(), other.root()
        if child is root:
            return
        child.parent = root
        root.size += child.size
        if child.anchored:
            root.anchored = True
            root.pattern = max(root.pattern, child.pattern)


class _Graph:
    """The data flow of one block: a node an op, edges to the ops that use its result."""

    def __init__(self, block: Block, sizes: SizeSymbols):
        self.ops = list(block.ops)
        self.index = {op: number for number, op in enumerate(self.ops)}
        self.successors: list[list[tuple[int, int]]] = [[] for _ in self.ops]
        # Values that a nested region uses leave the graph. Their uses are visited, not the regions, which may hold further regions.
        self.leaves = [
            any(use.operation.parent is not block for result in op.results for use in result.uses) for op in self.ops
        ]
        self.patterns = [node_pattern(op, sizes) for op in self.ops]
        for number, op in enumerate(self.ops):
            for operand in op.operands:
                self._add_edge(operand, number, op)

    def _add_edge(self, operand: SSAValue, number: int, user: Operation) -> None:
        source = self.index.get(operand.op) if isinstance(operand, OpResult) else None
        if source is None:
            return
        pattern = _edge_pattern(operand, user, self.patterns[number])
        if pattern is None:
            self.leaves[source] = True
        else:
            self.successors[source].append((number, pattern))


def node_pattern(op: Operation, sizes: SizeSymbols) -> OpPattern:
    """Returns the fusion kind of an op of a function's body.

    Opaque if it is neither an operator nor a tuple.
    """
    match op:
        case OperatorOp():
            types = [op.result.type, *(a.type for a in op.args)]
            dynamic = any(DYNAMIC_INDEX in t.get_shape() for t in types if isinstance(t, TensorType))
            if op.OPERATOR.stateful or (dynamic and not _fuses_open(op, sizes)):
                return OpPattern.OPAQUE
            return op.OPERATOR.pattern
        case ConstantOp():
            array = op.value.array
            inline = array.ndim == 0 and array.dtype.name in _INLINE_CONSTANTS
            return OpPattern.ELEMWISE if inline else OpPattern.OPAQUE
        case TupleOp():
            return OpPattern.TUPLE
        case TupleGetItemOp():
            return OpPattern.INJECTIVE if _tensors_only(op.tuple_value.type) else OpPattern.OPAQUE
        case _:
            return OpPattern.OPAQUE


def _fuses_open(op: OperatorOp, sizes: SizeSymbols) -> bool:
    """Returns whether an operator on dimensions `?` may be in a kernel with others.

    So may operators that any sizes fit, and contractions, after which they come. What others check, or compute of sizes, concerns a kernel's
    arguments.
    """
    operator = op.OPERATOR
    if operator.extents is not None or isinstance(op.result.type, TupleType):
        return False
    if operator.pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
        return True
    return operator.pattern <= OpPattern.COMM_REDUCE and sizes.fit(op)


def _tensors_only(type: Attribute) -> bool:
    return isinstance(type, TupleType) and all(isinstance(t, TensorType) for t in type.types.data)


def _edge_pattern(operand: SSAValue, user: Operation, pattern: OpPattern) -> OpPattern | None:
    """The kind of the use of `operand` by `user`; None when the value leaves the graph there."""
    match user:
        case OperatorOp():
            same = operand.type == user.result.type or _same_shape(operand.type, user.result.type)
            return OpPattern.ELEMWISE if pattern == OpPattern.BROADCAST and same else pattern
        case TupleOp():
            return OpPattern.INJECTIVE if isinstance(operand.type, TensorType) else None
        case TupleGetItemOp():
            return OpPattern.INJECTIVE if _tensors_only(operand.type) else None
        case _:
            return None


def _same_shape(a: Attribute, b: Attribute) -> bool:
    return isinstance(a, TensorType) and isinstance(b, TensorType) and a.get_shape() == b.get_shape()


class _Partition:
    """Grows groups over a graph, phase by phase."""

    def __init__(self, graph: _Graph, max_depth: int):
        self.graph = graph
        self.groups = [_Group(pattern) for pattern in graph.patterns]
        self.tree = PostDominatorTree(graph.successors, graph.leaves, OpPattern.OPAQUE)
        self.max_depth = max_depth
        # Why a node was not fused, the last reason counts; None where nobody asks.
        self.refusals: dict[int, Refusal] | None = None

    def run(self, opt_level: int) -> None:
        if opt_level >= 1:
            for phase in range(3):
                for node in range(len(self.groups)):
                    self._visit(node, phase)

    def _visit(self, node: int, phase: int) -> None:
        sink = self.tree.parent[node]
        if sink is None or self.graph.patterns[node] == OpPattern.OPAQUE:
            return
        group, sink_group = self.groups[node], self.groups[sink]
        root, sink_root = group.root(), sink_group.root()
        if root is sink_root:
            return
        edge = self.tree.weight[node]
        kind = group.pattern
        if phase == 2:
            # Injective producers of a tuple join the operator that takes the tuple (concatenate, stack).
            into_tuple = sink_group.pattern == OpPattern.TUPLE and sink_root.pattern <= OpPattern.INJECTIVE
            if kind <= OpPattern.INJECTIVE and into_tuple:
                # The tuple itself is of the sink's group by now, so that its root's kind is what is checked.
                self._fuse_if(node, sink, lambda k, _: k <= OpPattern.INJECTIVE, Rule.AFTER_INJECTIVE)
            return
        if sink_group.pattern == OpPattern.TUPLE:
            self._refuse(node, Rule.TUPLE, sink)
            return
        if kind == OpPattern.OUT_ELEMWISE_FUSABLE:
            rule = Rule.AFTER_OUT_ELEMWISE
            if phase == 0 and edge == OpPattern.ELEMWISE:
                self._fuse_if(node, sink, lambda k, _: k <= OpPattern.BROADCAST, rule)
            elif phase == 0:
                self._refuse_way(node, rule, sink, OpPattern.ELEMWISE)
        elif kind <= OpPattern.BROADCAST:
            if edge <= OpPattern.INJECTIVE or edge == OpPattern.COMM_REDUCE:
                self._fuse_if(node, sink, _after_broadcast, Rule.AFTER_BROADCAST)
            else:
                self._refuse_way(node, Rule.AFTER_BROADCAST, sink, OpPattern.COMM_REDUCE)
        elif kind in (OpPattern.INJECTIVE, OpPattern.TUPLE):
            if phase == 1:
                self._fuse_if(node, sink, lambda k, _: k <= OpPattern.INJECTIVE, Rule.AFTER_INJECTIVE)
        else:
            self._refuse(node, Rule.AFTER_REDUCTION, sink)

    def _refuse(self, node: int, rule: Rule, at: int) -> None:
        if self.refusals is not None:
            self.refusals[node] = Refusal(rule, self.graph.ops[at])

    def _refuse_way(self, node: int, rule: Rule, sink: int, most: OpPattern) -> None:
        """Refuses a node because of a use on its ways to `sink` of a kind above `most`."""
        if self.refusals is None:
            return
        seen: set[int] = set()
        pending = [node]
        while pending and len(seen) < self.max_depth:
            for successor, kind in self.graph.successors[pending.pop()]:
                if kind > most:
                    self._refuse(node, rule, successor)
                    return
                if successor != sink and successor not in seen:
                    seen.add(successor)
                    pending.append(successor)
        self._refuse(node, rule, sink)

    def explain(self, trace: Tracer, opt_level: int) -> None:
        """Tells of each two neighbours that stayed apart which rule kept them so."""
        graph = self.graph
        for node, op in enumerate(graph.ops):
            if isinstance(op, ConstantOp | LetOp | ReturnOp) or not isinstance(
                op, OperatorOp | TupleOp | TupleGetItemOp
            ):
                continue
            for user in dict.fromkeys(successor for successor, _ in graph.successors[node]):
                other = graph.ops[user]
                if not isinstance(other, OperatorOp | TupleOp | TupleGetItemOp):
                    continue
                if self.groups[node].root() is not self.groups[user].root():
                    refusal = self._reason(node, user, opt_level)
                    kind = graph.patterns[graph.index[refusal.at]] if refusal.at is not None else OpPattern.OPAQUE
                    tell(trace, op, other, refusal, kind)

    def _reason(self, node: int, user: int, opt_level: int) -> Refusal:
        """Why a node is not in the group of one that uses it."""
        graph = self.graph
        if opt_level < 1:
            return Refusal(Rule.LEVEL)
        for end in (node, user):
            if graph.patterns[end] == OpPattern.OPAQUE:
                return Refusal(Rule.OPAQUE, graph.ops[end])
        if self.tree.parent[node] is None:
            return Refusal(Rule.ESCAPES if graph.leaves[node] else Rule.NO_MEETING)
        found = (self.refusals or {}).get(node)
        return Refusal(Rule.NO_MEETING) if found is None else found

    def _fuse_if(self, node: int, sink: int, allowed: Callable[[OpPattern, bool], bool], rule: Rule) -> None:
        """Merges the paths from `node` to `sink` if `allowed(kind, is sink)` holds on all their nodes."""
        between: set[int] = set()
        pending = [successor for successor, _ in self.graph.successors[node]]
        while pending:
            current = pending.pop()
            if current in between:
                continue
            between.add(current)
            if not allowed(self.groups[current].root().pattern, current == sink):
                self._refuse(node, rule, current)
                return
            if len(between) >= self.max_depth:
                # Too many already; to look at the rest would make the pass quadratic.
                self._refuse(node, Rule.DEPTH, sink)
                return
            if current != sink:
                pending += [successor for successor, _ in self.graph.successors[current]]
        target = self.groups[sink]
        joined = {self.groups[current].root() for current in (node, *between)}
        if sum(group.size for group in joined) > self.max_depth:
            self._refuse(node, Rule.DEPTH, sink)
            return
        for current in (node, *between):
            self.groups[current].merge_into(target)


def _after_broadcast(kind: OpPattern, is_sink: bool) -> bool:
    """Returns whether an operator of this kind may follow an elementwise or broadcasting one in a kernel."""
    if is_sink:
        return kind <= OpPattern.COMM_REDUCE or kind == OpPattern.OUT_ELEMWISE_FUSABLE
    return kind <= OpPattern.INJECTIVE


def _fuse_block(
    block: Block, sizes: SizeSymbols, opt_level: int, max_depth: int, trace: Tracer | None, refusals: Tracer | None
) -> None:
    graph = _Graph(block, sizes)
    partition = _Partition(graph, max_depth)
    if refusals is not None:
        partition.refusals = {}
    partition.run(opt_level)
    if refusals is not None:
        partition.explain(refusals, opt_level)
    members: dict[_Group, list[Operation]] = {}
    for number, op in enumerate(graph.ops):
        if isinstance(op, OperatorOp) and is_operator(op, "annotation.stop_fusion"):
            # It has kept apart what stands on its sides, which is all that it is for.
            replace(op, op.args[0])
        else:
            members.setdefault(partition.groups[number].root(), []).append(op)
    for ops in members.values():
        if isinstance(ops[-1], OperatorOp) or (len(ops) > 1 and any(isinstance(op, OperatorOp) for op in ops)):
            if trace is not None:
                _tell_kernel(trace, ops)
            outline(ops)


def _tell_kernel(trace: Tracer, ops: list[Operation]) -> None:
    first, *others = [op for op in ops if not isinstance(op, ConstantOp)]
    if not others:
        trace(first, f"{name_of(first)} is a kernel of its own")
    else:
        names = ", ".join(map(name_of, (first, *others)))
        trace(first, f"one kernel: {names}", *((f"with {name_of(op)} here", op) for op in others))


def call_tir_instead(call: CallOp | CallGlobalOp, name: str) -> None:
    """Replaces a call by a `call_tir` of the kernel called `name`, with the call's arguments."""
    lowered = CallTirOp(name, call.arguments, call.result.type)
    lowered.location = call.location
    insert_op_before(lowered, call)
    call.result.replace_all_uses_with(lowered.result)
    erase_op(call)


def outline(ops: list[Operation]) -> CallOp:
    """Moves `ops` into a Primitive function that is called in their place.

    They are in order; only the value of the last one is used outside.
    """
    root = ops[-1]
    inside = set(ops)
    inputs = list(dict.fromkeys(v for op in ops for v in op.operands if v.owner not in inside))
    body = Block(arg_types=[value.type for value in inputs])
    function = FnOp(
        [f"p{number}" for number in range(len(inputs))],
        Region(body),
        FuncType.get([value.type for value in inputs], root.results[0].type),
        ret_type=root.results[0].type,
        attrs={"Primitive": IntegerAttr(1, 64)},
    )
    call = CallOp(function, inputs, root.results[0].type)
    function.location = root.location
    # The root's place comes first: errors are shown there.
    call.location = fuse_locations(op.location for op in reversed(ops))
    Rewriter.insert_op([function, call], InsertPoint.before(root))
    root.results[0].replace_all_uses_with(call.result)
    params = dict(zip(inputs, body.args, strict=True))
    for op in ops:
        op.detach()
        op.operands = [params.get(value, value) for value in op.operands]
        body.add_op(op)
    end = ReturnOp(root.results[0])
    end.location = root.location
    body.add_op(end)
    return call


class Rule(Enum):
    """Reasons why an operator is kept apart from the users of its value."""

    LEVEL = "fuse-opt-level=0 gives every operator a kernel of its own"
    OPAQUE = "what is opaque is not fused"
    ESCAPES = "its value is also needed outside of kernels, where it is returned, captured, or passed to a function"
    NO_MEETING = "its uses lead to several results, so that it would be computed twice"
    TUPLE = "a tuple is made inside of a kernel only where an operator of the same kernel takes it"
    AFTER_OUT_ELEMWISE = "out-elemwise-fusable operators take in only elemwise and broadcast ones on their own shape"
    AFTER_BROADCAST = "elemwise and broadcast operators go into injective ones, with another kind at the end at most"
    AFTER_INJECTIVE = "injective operators go into injective ones only"
    AFTER_REDUCTION = "nothing follows a comm-reduce operator in its kernel"
    DEPTH = "the kernel would hold more operators than max-depth"


@dataclass(frozen=True)
class Refusal:
    """The rule that kept an operator from being fused, and the op on the path that broke it, if any."""

    rule: Rule
    at: Operation | None = None


def name_of(op: Operation) -> str:
    """An op as a person calls it."""
    match op:
        case OperatorOp():
            return op.OPERATOR.name
        case ir.TupleOp():
            return "the tuple"
        case ir.TupleGetItemOp():
            return f"field {op.index.value.data} of the tuple"
        case ir.CallGlobalOp():
            return f"the call of {global_text(op.callee.root_reference.data)}"
        case _:
            return op.name.replace("relay.", "the ").replace("_", " ")


def tell(trace: Tracer, producer: Operation, user: Operation, refusal: Refusal, kind: OpPattern) -> None:
    """Tells that `producer` was not fused with `user`, which uses its value."""
    rule, at = refusal.rule, refusal.at
    reason = rule.value
    if rule is Rule.OPAQUE and at is not None:
        reason = f"{name_of(at)} is opaque{_why_opaque(at)}"
    notes: list[tuple[str, Operation]] = [(f"{name_of(user)} uses it here", user)]
    if rule is Rule.TUPLE and at is not None and at is not user:
        reason = f"its uses meet in {name_of(at)}, and {reason}"
        notes.append((f"{name_of(at)} is here", at))
    elif at is not None and at is not user and at is not producer:
        why = _why_opaque(at) if kind is OpPattern.OPAQUE else ""
        notes.append((f"on the way to where its uses meet, {name_of(at)} is {_kind(kind)}{why}", at))
    elif at is user and rule not in (Rule.OPAQUE, Rule.TUPLE):
        reason += f"; {name_of(user)} is {_kind(kind)}"
    trace(producer, f"{name_of(producer)} is not fused with {name_of(user)}: {reason}", *notes)


def _kind(kind: OpPattern) -> str:
    return kind.name.lower().replace("_", "-")


def _why_opaque(op: Operation) -> str:
    if not isinstance(op, OperatorOp):
        return ""
    if op.OPERATOR.stateful:
        return ": it has an effect"
    types = [op.result.type, *(operand.type for operand in op.operands)]
    if op.OPERATOR.pattern is not OpPattern.OPAQUE and any(
        isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape() for type in types
    ):
        return ": its sizes are known only when the program runs"
    return ""
