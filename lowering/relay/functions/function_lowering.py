"""One Relay function to one LLVM function: control flow, calls, boxes; kernels are called by pointer.

The LLVM function takes the context (see `heap`), for a closure its own box, then a pointer for each leaf of each
parameter, then for each leaf of the result the place to write it to: memory of the tensor's size, or eight bytes for the
pointer to a box or to a descriptor. It returns a status, 0 for success.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TupleType, i8, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.array import ArrayValueAttr
from ....dialects.relay import ir as relay
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern
from ....dialects.relay.types import AdtType, FuncType
from ....support.diagnostics import error_at
from ..memory import heap
from ..memory.dynamic_tensors import DynamicTensors, last_uses
from ..memory.frame import Frame, Place, branches, free_values, returned
from ..memory.storage_views import piece_offsets, view_offsets
from .adt import DataTypes
from .calling_convention import NO_MEMORY, no_memory_for
from .emitter import PTR, RelayEmitter, function
from .flat_values import BoxLeaf, TensorLeaf, leaves_of, on_heap
from .kernel_call import Kernel, call_kernel, is_view
from .match_cast import MatchCastOp
from .prepare_constants import PREPARE_BODY, PreparedOp
from .profile_hooks import ProfileHooks
from .run_time_extents import Sizing
from .tail_calls import framed

Predicate = llvm.ICmpPredicateFlag
Leaves = list[SSAValue]


@dataclass
class LoweredModule:
    """The state that the functions of one module share while they are lowered."""

    module: ModuleOp
    data_types: DataTypes
    kernels: dict[str, Kernel]
    recursive: set[str]
    """Global functions that may come to call themselves; they watch the stack."""
    refs: bool
    status_of: Callable[[str, Operation], int]
    """Maps a message and its place to a status."""
    constants: dict[ArrayValueAttr, int] = field(default_factory=dict[ArrayValueAttr, int])
    functions: list[llvm.FuncOp] = field(default_factory=list[llvm.FuncOp])
    thunks: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    frames: dict[str, Frame] = field(default_factory=dict[str, Frame])
    hooks: ProfileHooks | None = None
    """How kernels are recorded, of a program that is profiled."""

    def constant_index(self, value: ArrayValueAttr) -> int:
        """Returns the constant's place in the table that the context points to."""
        return self.constants.setdefault(value, len(self.constants))


class RelayFunctionLowering:
    """Lowers one function or closure; `run` adds the result to the unit."""

    def __init__(
        self, unit: LoweredModule, name: str, source: relay.FuncOp | relay.FnOp, captured: Sequence[SSAValue] = ()
    ):
        self.unit, self.name, self.source, self.captured = unit, name, source, captured
        # Nobody profiles what runs when the program is loaded.
        self.hooks = None if name == PREPARE_BODY else unit.hooks
        body = source.body.block
        self.result_type = returned(body).type
        self.frame, self.jumps = framed(name, source, refs=unit.refs)
        unit.frames[name] = self.frame
        self.values: dict[SSAValue, Leaves] = {}
        self.closures = 0
        self.tables: dict[int, SSAValue] = {}
        self.takes = False
        inputs = [leaf for param in source.params for leaf in leaves_of(param.type, param)]
        self.result_leaves = leaves_of(self.result_type, returned(body))
        box = 1 if isinstance(source, relay.FnOp) else 0
        self.function = function(name, [PTR] * (1 + box + len(inputs) + len(self.result_leaves)))
        self.emit = RelayEmitter(self.function.body)
        self.emit.location = source.location
        self.dynamic = DynamicTensors(self.emit, last_uses(body, self._is_view))
        arguments = list(self.emit.block.args)
        self.context = arguments[0]
        self.box = arguments[1] if box else None
        self.outputs = arguments[1 + box + len(inputs) :]
        self._bind_params(source, arguments[1 + box : 1 + box + len(inputs)])
        self.fail = self.emit.new_block(i32)
        self.no_memory = self.emit.new_block()

    def run(self) -> None:
        """Emits the whole function."""
        emit, body = self.emit, self.source.body.block
        depth = self._open_call() if self._watches_stack() else None
        saved = heap.mark(emit, self.context)
        self.memory = self.context if self.frame.is_empty else self._take(self.frame.plan.size)
        if self.jumps.calls:
            self._open_loop()
        self._unpack_captured()
        self._block(body)
        self._write_result(body)
        if self.takes and not self.unit.refs and not on_heap(self.result_type):
            heap.release(emit, self.context, saved)
        if depth is not None:
            emit.store(depth, self.context, heap.DEPTH)
        emit.give(emit.int(0, i32))
        emit.block = self.fail
        emit.give(self.fail.args[0])
        emit.block = self.no_memory
        emit.give(emit.int(self.unit.status_of(self._no_memory_message(), self.source), i32))
        self.unit.functions.append(self.function)

    def _is_view(self, op: relay.CallTirOp) -> bool:
        return is_view(self.unit.kernels[op.callee.root_reference.data], op)

    def _no_memory_message(self) -> str:
        if isinstance(self.source, relay.FuncOp):
            return no_memory_for(self.source.sym_name.data)
        return f"{NO_MEMORY} of a local function"

    # Values

    def _bind_params(self, source: relay.FuncOp | relay.FnOp, pointers: Sequence[SSAValue]) -> None:
        at = 0
        for param in source.params:
            count = len(leaves_of(param.type, param))
            self.values[param] = list(pointers[at : at + count])
            at += count
        if isinstance(source, relay.FnOp) and source.self_name is not None:
            assert self.box is not None
            self.values[source.body.block.args[0]] = [self.box]

    def _unpack_captured(self) -> None:
        """A closure's box holds its code, then the leaves of the values that it captured."""
        at = 8
        for value in self.captured:
            leaves: Leaves = []
            for _ in leaves_of(value.type, value):
                assert self.box is not None
                leaves.append(self.emit.load(self.box, PTR, at))
                at += 8
            self.values[value] = leaves

    def _table(self, offset: int) -> SSAValue:
        """Returns the table that the context holds at an offset, loaded once a function."""
        table = self.tables.get(offset)
        if table is None:
            address = llvm.GEPOp(self.context, [offset], i8, inbounds=True)
            table = self.tables[offset] = self.emit.at_start(address, llvm.LoadOp(address.result, PTR))
        return table

    def _leaves(self, values: Sequence[SSAValue]) -> Leaves:
        return [leaf for value in values for leaf in self.values[value]]

    def place(self, op: Operation, leaf: int) -> SSAValue:
        """Returns the memory that the frame plan assigns to a tensor of the op's result."""
        output = self.frame.outputs.get((op, leaf))
        if output is not None:
            return self.emit.offset(self.outputs[output], self.frame.shifts.get((op, leaf), 0))
        return self.emit.offset(self.memory, self.frame.offsets[op, leaf])

    # Control

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self.emit.location = op.location
            self._op(op)
            self.dynamic.give_up(op)

    def _op(self, op: Operation) -> None:
        match op:
            case relay.ReturnOp():
                pass
            case relay.ConstantOp():
                index = self.unit.constant_index(op.value)
                self.values[op.result] = [self.emit.load(self._table(heap.CONSTANTS), PTR, 8 * index)]
            case PreparedOp():
                table, first = self._table(heap.PREPARED), op.index.value.data
                count = len(leaves_of(op.result.type, op.result))
                self.values[op.result] = [self.emit.load(table, PTR, 8 * (first + k)) for k in range(count)]
            case relay.LetOp():
                self.values[op.result] = self.values[op.value]
            case relay.TupleOp():
                self.values[op.result] = self._leaves(op.fields)
            case relay.TupleGetItemOp():
                self._tuple_get_item(op)
            case relay.CallTirOp():
                call_kernel(self, op)
            case OperatorOp() if (offsets := piece_offsets(op)) is not None:
                self._concatenate(op, offsets)
            case OperatorOp() if (offsets := view_offsets(op)) is not None:
                whole = self.values[op.args[0]][0]
                self.values[op.result] = [self.emit.offset(whole, offset) for offset in offsets]
            case relay.CallGlobalOp() if op in self.jumps.calls:
                self._jump(op, self.jumps.calls[op])
            case relay.CallGlobalOp():
                self._call(op, op.callee.root_reference.data, op.arguments)
            case relay.CallOp():
                self._call_closure(op)
            case MatchCastOp():
                self._match_cast(op)
            case relay.IfOp():
                self._if(op)
            case relay.MatchOp():
                self._match(op)
            case relay.FnOp():
                self._closure(op)
            case relay.GlobalRefOp():
                self.values[op.result] = [
                    self.new_box(
                        [self._address(global_thunk(self.unit, op.symbol.root_reference.data, op.result.type))]
                    )
                ]
            case relay.ConstructorRefOp():
                self.values[op.result] = [self.new_box([self._address(constructor_thunk(self.unit, op))])]
            case relay.ConstructOp():
                tag = self.emit.int(self.unit.data_types.tag(op.type_name.data, op.constructor.data))
                self.values[op.result] = [self.new_box([tag, *self._leaves(op.arguments)])]
            case relay.RefOp():
                self.values[op.result] = [self.new_box(self.values[op.value])]
            case relay.RefReadOp():
                box = self.values[op.ref][0]
                count = len(leaves_of(op.result.type, op.result))
                self.values[op.result] = [self.emit.load(box, PTR, 8 * k) for k in range(count)]
            case relay.RefWriteOp():
                for k, leaf in enumerate(self.values[op.value]):
                    self.emit.store(leaf, self.values[op.ref][0], 8 * k)
                self.values[op.result] = []
            case _:
                raise error_at(op, f"{op.name} cannot be lowered to native code", *_before_lowering(op))

    def _tuple_get_item(self, op: relay.TupleGetItemOp) -> None:
        type = op.tuple_value.type
        assert isinstance(type, TupleType)
        fields = type.types.data
        index = op.index.value.data
        at = sum(len(leaves_of(field, op.result)) for field in fields[:index])
        count = len(leaves_of(fields[index], op.result))
        self.values[op.result] = self.values[op.tuple_value][at : at + count]

    def _concatenate(self, op: OperatorOp, offsets: Sequence[int]) -> None:
        """Copies the pieces that are not in the concatenation's memory yet."""
        target = self.place(op, 0)
        pieces = self.values[op.args[0]]
        for number, (offset, kind) in enumerate(zip(offsets, leaves_of(op.args[0].type), strict=True)):
            if isinstance(kind, TensorLeaf) and kind.bytes and (op, number) not in self.frame.joined:
                self.emit.copy(self.emit.offset(target, offset), pieces[number], kind.bytes)
        self.values[op.result] = [target]

    def _match_cast(self, op: MatchCastOp) -> None:
        sizing = Sizing(self)
        leaves: Leaves = []
        forms = zip(leaves_of(op.value.type), leaves_of(op.result.type), self.values[op.value], strict=True)
        for own, wanted, leaf in forms:
            if isinstance(own, BoxLeaf) or isinstance(wanted, BoxLeaf):
                leaves.append(leaf)
            else:
                leaves.append(sizing.cast(leaf, own, wanted, op.what.data, op))
        self.values[op.result] = leaves

    def _branch_values(self, op: Operation, block: Block) -> Leaves:
        """Lowers a branch; its result's leaves, copied to where the plan wants them."""
        self._block(block)
        value = returned(block)
        leaves = list(self.values[value])
        for k, kind in enumerate(leaves_of(value.type, value)):
            place = (op, k)
            if isinstance(kind, TensorLeaf) and (place in self.frame.outputs or place in self.frame.copied):
                target = self.place(op, k)
                if target is not leaves[k]:
                    self.emit.copy(target, leaves[k], kind.bytes)
                leaves[k] = target
        return leaves

    def _if(self, op: relay.IfOp) -> None:
        emit = self.emit
        flag = emit.load(self.values[op.condition][0], i8)
        then, otherwise = emit.new_block(), emit.new_block()
        join = emit.new_block(*[PTR] * len(leaves_of(op.result.type, op.result)))
        emit.branch_if(emit.compare(flag, emit.int(0, i8), Predicate("ne")), then, otherwise)
        for start, block in zip((then, otherwise), branches(op), strict=True):
            emit.block = start
            emit.branch(join, *self._branch_values(op, block))
        emit.block = join
        self.values[op.result] = list(join.args)

    def _match(self, op: relay.MatchOp) -> None:
        emit = self.emit
        join = emit.new_block(*[PTR] * len(leaves_of(op.result.type, op.result)))
        for pattern, region in zip(op.patterns.data, op.clauses, strict=True):
            clause, following = emit.new_block(), emit.new_block()
            bound: list[Leaves] = []
            self._test(pattern, op.value.type, self.values[op.value], bound, following)
            emit.branch(clause)
            emit.block = clause
            self.values |= dict(zip(region.block.args, bound, strict=True))
            emit.branch(join, *self._branch_values(op, region.block))
            emit.block = following
        emit.branch(self.fail, emit.int(self.unit.status_of("no clause of this match fits the value", op), i32))
        emit.block = join
        self.values[op.result] = list(join.args)

    def _test(self, pattern: Attribute, type: Attribute, leaves: Leaves, bound: list[Leaves], otherwise: Block) -> None:
        """Goes on where the value fits the pattern, to `otherwise` where not; collects what the pattern binds."""
        emit = self.emit
        match pattern:
            case VarPattern():
                bound.append(leaves)
            case TuplePattern():
                self._test_fields(pattern.fields.data, type.types.data, leaves, bound, otherwise)  # type: ignore[attr-defined]
            case ConstructorPattern():
                assert isinstance(type, AdtType)
                tag = self.unit.data_types.tag(pattern.type_name.data, pattern.constructor.data)
                fields = self.unit.data_types.fields(type, pattern.constructor.data)
                inside = emit.new_block()
                same = emit.compare(emit.load(leaves[0], i64), emit.int(tag), Predicate("eq"))
                emit.branch_if(same, inside, otherwise)
                emit.block = inside
                count = sum(len(leaves_of(field)) for field in fields)
                parts = [emit.load(leaves[0], PTR, 8 + 8 * k) for k in range(count)]
                self._test_fields(pattern.fields.data, fields, parts, bound, otherwise)
            case _:
                pass

    def _test_fields(
        self,
        patterns: Sequence[Attribute],
        types: Sequence[Attribute],
        leaves: Leaves,
        bound: list[Leaves],
        otherwise: Block,
    ) -> None:
        at = 0
        for pattern, type in zip(patterns, types, strict=True):
            count = len(leaves_of(type))
            self._test(pattern, type, leaves[at : at + count], bound, otherwise)
            at += count

    # Calls

    def _targets(self, op: Operation) -> tuple[Leaves, Leaves]:
        """Returns the memory for a call's result, and the slots from which its pointers are read back."""
        targets: Leaves = []
        slots: Leaves = []
        for k, leaf in enumerate(leaves_of(op.results[0].type, op.results[0])):
            if isinstance(leaf, TensorLeaf):
                targets.append(self.place(op, k))
            else:
                slots.append(self.emit.slot())
                targets.append(slots[-1])
        return targets, slots

    def _bind_result(self, op: Operation, targets: Leaves, slots: Leaves) -> None:
        pointers = set(slots)
        self.values[op.results[0]] = [self.emit.load(t) if t in pointers else t for t in targets]

    def check(self, status: SSAValue) -> None:
        """Leaves the function with the status unless it is 0."""
        emit = self.emit
        good = emit.new_block()
        failed = emit.compare(status, emit.int(0, i32), Predicate("ne"))
        emit.add(llvm.CondBrOp(failed, self.fail, [status], good, []))
        emit.block = good

    def _open_loop(self) -> None:
        """Begins what tail calls jump to, with the parameters' pointers."""
        emit = self.emit
        self.turn = heap.mark(emit, self.context)
        pointers = [leaf for param in self.source.params for leaf in self.values[param]]
        self.loop = emit.new_block(*[PTR] * len(pointers))
        emit.branch(self.loop, *pointers)
        emit.block = self.loop
        self._bind_params(self.source, self.loop.args)

    def _jump(self, op: relay.CallGlobalOp, changed: Sequence[int]) -> None:
        """Emits a tail call: a jump to the function's start with new parameters.

        What the iteration took from the heap is freed. A jump takes no stack, so that it is not counted as a call: a loop may have any
        number of iterations.
        """
        emit = self.emit
        places = dict(zip(self.jumps.changed, self.frame.carried, strict=True))
        kinds = [leaf for param in self.source.params for leaf in leaves_of(param.type)]
        values: Leaves = list(self.loop.args)
        for number, leaf in enumerate(self._leaves(op.arguments)):
            kind = kinds[number]
            if number in changed and isinstance(kind, TensorLeaf):
                values[number] = emit.offset(self.memory, places[number])
                emit.copy(values[number], leaf, kind.bytes)
        heap.release(emit, self.context, self.turn)
        emit.branch(self.loop, *values)
        # What would follow is never reached: the result is stored when the last iteration ends.
        emit.block = emit.new_block()
        self.values[op.result] = list(self.outputs)

    def _call(self, op: Operation, callee: str, arguments: Sequence[SSAValue]) -> None:
        targets, slots = self._targets(op)
        call = self.emit.call(callee, [self.context, *self._leaves(arguments), *targets], i32)
        self.check(call.results[0])
        self._bind_result(op, targets, slots)

    def _call_closure(self, op: relay.CallOp) -> None:
        targets, slots = self._targets(op)
        box = self.values[op.callee][0]
        arguments = [self.context, box, *self._leaves(op.arguments), *targets]
        type = llvm.LLVMFunctionType([PTR] * len(arguments), i32)
        code = self.emit.load(box)
        call = llvm.CallOp.create(
            operands=[code, *arguments],
            properties={
                **llvm.CallOp("f", *arguments, return_type=i32).properties,
                "var_callee_type": type,
            },
            result_types=[i32],
        )
        del call.properties["callee"]
        call.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(arguments) + 1, 0])
        self.check(self.emit.add(call).results[0])
        self._bind_result(op, targets, slots)

    # Boxes

    def new_box(self, words: Sequence[SSAValue]) -> SSAValue:
        """New memory of the call's heap that holds these words."""
        box = self._take(8 * max(1, len(words)))
        for k, word in enumerate(words):
            self.emit.store(word, box, 8 * k)
        return box

    def take_bytes(self, size: SSAValue, place: Place | None = None) -> SSAValue:
        """Takes memory of the call's heap; `size` is a multiple of the alignment.

        A tensor that a kernel of the function's body writes, at `place`, may get that of one which is no longer used.
        """
        self.takes = True
        if place is not None and place[0].parent is self.source.body.block:
            return self.dynamic.take(place, size, self.context, self.no_memory)
        return heap.take_bytes(self.emit, self.context, size, self.no_memory)

    def _take(self, size: int) -> SSAValue:
        self.takes = True
        return heap.take(self.emit, self.context, size, self.no_memory)

    def _address(self, name: str) -> SSAValue:
        return self.emit.value(llvm.AddressOfOp(name, PTR))

    def _closure(self, op: relay.FnOp) -> None:
        self.closures += 1
        name = f"{self.name}.fn{self.closures}"
        captured = free_values(op)
        RelayFunctionLowering(self.unit, name, op, captured).run()
        self.values[op.result] = [self.new_box([self._address(name), *self._leaves(captured)])]

    # Entry and end

    def _watches_stack(self) -> bool:
        if self.name in self.unit.recursive:
            return True
        return isinstance(self.source, relay.FnOp)

    def _open_call(self) -> SSAValue:
        """Counts the call, and fails where the stack or the count is at its limit.

        Recursion must not end the process. Returns the count before the call, to be written back at the end.
        """
        emit = self.emit
        here = emit.add(llvm.CallIntrinsicOp("llvm.frameaddress.p0", [emit.int(0, i32)], [PTR])).results[0]
        address = emit.value(llvm.PtrToIntOp(here))
        limit = emit.load(self.context, i64, heap.STACK_LIMIT)
        depth = emit.load(self.context, i64, heap.DEPTH)
        shallow, good, bad = emit.new_block(), emit.new_block(), emit.new_block()
        emit.branch_if(emit.compare(address, limit, Predicate("uge")), shallow, bad)
        emit.block = shallow
        emit.branch_if(emit.compare(depth, emit.int(heap.MOST_CALLS), Predicate("ult")), good, bad)
        emit.block = bad
        message = "the recursion is deeper than the stack allows"
        emit.branch(self.fail, emit.int(self.unit.status_of(message, self.source), i32))
        emit.block = good
        emit.store(emit.value(llvm.AddOp(depth, emit.int(1))), self.context, heap.DEPTH)
        return depth

    def _write_result(self, body: Block) -> None:
        value = returned(body)
        for k, (kind, leaf) in enumerate(zip(self.result_leaves, self.values[value], strict=True)):
            target = self.outputs[k]
            if not isinstance(kind, TensorLeaf):
                self.emit.store(leaf, target)
            elif leaf is not target:
                self.emit.copy(target, leaf, kind.bytes)


def _before_lowering(op: Operation) -> tuple[str, ...]:
    """Returns the advice about an op that has no lowering, such as an operator outside of a kernel."""
    from ....dialects.relay.operator import get_operator

    if get_operator(op.name.removeprefix("relay.")) is None:
        return ("run it with `--target interp`",)
    return (
        "operators are lowered by lower-relay-to-te, which comes before lower-relay-to-llvm: -p …,lower-relay-to-te,…",
    )


# The code of closures that call a global function or construct a value of a data type: functions of their own, made once each.


def global_thunk(unit: LoweredModule, callee: str, type: Attribute) -> str:
    """Returns the name of the code of a closure that calls a global function, without its own box."""
    name = unit.thunks.get((callee,))
    if name is None:
        name = unit.thunks[callee,] = f"{callee}.thunk"
        assert isinstance(type, FuncType)
        count = sum(len(leaves_of(t)) for t in (*type.inputs.data, type.output))
        thunk = function(name, [PTR] * (2 + count))
        emit = RelayEmitter(thunk.body)
        context, _, *rest = emit.block.args
        emit.give(emit.call(callee, [context, *rest], i32).results[0])
        unit.functions.append(thunk)
    return name


def constructor_thunk(unit: LoweredModule, op: relay.ConstructorRefOp) -> str:
    """Returns the name of the code of a closure that constructs a value of a data type."""
    type = op.result.type
    assert isinstance(type, FuncType)
    key = (op.type_name.data, op.constructor.data, str(type))
    name = unit.thunks.get(key)
    if name is None:
        name = unit.thunks[key] = f"{op.constructor.data}.thunk{len(unit.thunks)}"
        count = sum(len(leaves_of(t)) for t in type.inputs.data)
        thunk = function(name, [PTR] * (3 + count))
        emit = RelayEmitter(thunk.body)
        context, _, *fields, target = emit.block.args
        out = emit.new_block()
        box = heap.take(emit, context, 8 * (1 + count), out)
        emit.store(emit.int(unit.data_types.tag(op.type_name.data, op.constructor.data)), box)
        for k, field_leaf in enumerate(fields):
            emit.store(field_leaf, box, 8 + 8 * k)
        emit.store(box, target)
        emit.give(emit.int(0, i32))
        emit.block = out
        emit.give(emit.int(unit.status_of("out of memory", op), i32))
        unit.functions.append(thunk)
    return name
