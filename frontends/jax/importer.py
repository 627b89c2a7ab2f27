"""Imports StableHLO as Relay, op by op.

    %2 = "stablehlo.tanh"(%1)          →          %1 = tanh(%0)       at the location  net: node 'layer/tanh (net.py:5)'

Private functions are inlined where they are called. An op is converted by the rules of `operators/*.mir`, otherwise by the function
registered for it. Elementwise operators take tensors before they are broadcast (`Frame.narrow`), as Relay's operators broadcast by
themselves.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, TensorType, TupleType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.rule.levels.imported import node_op
from ...support.diagnostics import Diagnostic, MirError, node_loc
from ...support.garbage import no_collection
from ..common.graph_builder import GraphBuilder
from ..common.open_sizes import Extent
from ..common.operator_rules import convert_by_rules
from ..common.refusal import Refused
from .exported import ExportedFunction, dimension
from .node import HloNode, attribute_of, op_name
from .registry import TABLE
from .stablehlo import DTYPES, PLACE, WordAttr, dtype_name, read_module

SHOWN_OPS = 50
"""Of more ops that cannot be imported, an error tells the number."""

ELEMENTWISE = frozenset({"atan2", "clamp", "compare", "convert", "reduce_precision", "select", "shift_right_logical"})
"""Elementwise operators that functions convert; all that rules convert are elementwise, too."""


UNSUPPORTED = object()
"""Represents the results of an op that is refused."""


class UsesUnsupported(Exception):
    """Tells that an op needs the result of a refused one; it is not refused by itself."""


@runtime_checkable
class LoopCarried(Protocol):
    """A value that a loop carries, which becomes a tensor only where it is used as one."""

    def tensor(self, frame: Frame) -> SSAValue:
        """Returns the value as a tensor."""
        ...


class Loop(Protocol):
    """A loop whose number is followed through sums."""

    def follow(self, node: HloNode, result: SSAValue) -> None:
        """Notes a sum or difference of the loop's number and a constant."""
        ...


@no_collection()
def import_function(function: ExportedFunction) -> ModuleOp:
    """Returns an exported function as a module; its `main` takes the leaves of the function's arguments.

    Raises MirError with all ops that cannot be imported.
    """
    importer = HloImporter(function)
    return importer.run()


class HloImporter:
    """Converts the functions of a module."""

    def __init__(self, function: ExportedFunction):
        self.function = function
        self.read = read_module(function.program.mlir_module_serialized)
        self.functions: dict[str, Operation] = {}
        for op in self.read.module.ops:
            name = attribute_of(op, "sym_name")
            if isinstance(name, StringAttr):
                self.functions[name.data] = op
        self.refused: dict[Operation, Diagnostic] = {}
        self.narrow: dict[SSAValue, SSAValue] = {}
        """Of a tensor that was broadcast: what it was before, of axes that are aligned from the last."""
        self.iotas: dict[SSAValue, int] = {}
        """Of a tensor whose elements are their places along an axis: the axis."""

    def run(self) -> ModuleOp:
        """Imports the exported function."""
        builder = GraphBuilder()
        builder.location = node_loc(self.function.name, "")
        frame = Frame(self, builder)
        results = self.call(frame, "main", self._arguments(builder))
        if self.refused:
            shown = list(self.refused.values())[:SHOWN_OPS]
            more = len(self.refused) - len(shown)
            if more:
                shown.append(Diagnostic(f"{more} more ops cannot be imported", node_loc(self.function.name, "")))
            raise MirError(shown)
        builder.location = node_loc(self.function.name, "")
        tensors = [frame.tensor(each) for each in results]
        if not tensors:
            raise MirError(Diagnostic(f"{self.function.name} returns no array", builder.location))
        result = tensors[0] if len(tensors) == 1 else builder.tuple(tensors)
        main = builder.finish_function("main", result)
        main.location = builder.location
        return ModuleOp([main, *builder.functions])

    def _arguments(self, builder: GraphBuilder) -> list[SSAValue]:
        """Creates constants and parameters; returns the ones that the module takes."""
        program = self.function.program
        kept = set(program.module_kept_var_idx)
        module_types = iter(self.functions["main"].regions[0].block.arg_types)
        count = len(self.function.constants)
        found: list[SSAValue] = []
        for place, aval in enumerate(program.in_avals):
            type = next(module_types) if place in kept else None
            if place < count:
                if type is not None:
                    found.append(builder.array_constant(self.function.constants[place]))
                continue
            name = self.function.names[place - count]
            shape: Sequence[int | str | None] = [dimension(size) for size in aval.shape]
            dtype = aval.dtype.name
            if isinstance(type, TensorType):
                # A random key is a tensor of integers there.
                dtype = dtype_name(type.element_type) or str(type.element_type)
                shape = [*shape, *type.get_shape()[len(shape) :]]
            if dtype not in DTYPES.values():
                raise MirError(
                    Diagnostic(f"input '{name}' has elements of {aval.dtype}, which tensors here cannot have")
                )
            value = builder.parameter(name, dtype, shape)
            if type is not None:
                found.append(value)
        return found

    def call(self, outer: Frame, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Converts the body of a function in place; returns its results."""
        function = self.functions.get(name)
        if function is None:
            raise Refused(f"there is no function {name} in the module")
        inner = Frame(self, outer.builder)
        inner.loops = outer.loops
        return inner.run(function.regions[0].block, arguments)

    def forget(self, builders: Sequence[GraphBuilder]) -> None:
        """Forgets what values of finished branches were before they were broadcast."""
        blocks = {each.block for each in builders}
        for notes in (self.narrow, self.iotas):
            for value in [each for each in notes if each.owner in blocks or _block_of(each) in blocks]:
                del notes[value]


def _block_of(value: SSAValue) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent


class Frame:
    """Converts blocks into one builder; a frame of a region sees the values around it."""

    def __init__(self, importer: HloImporter, builder: GraphBuilder, outer: Frame | None = None):
        self.importer, self.builder = importer, builder
        self.values: ChainMap[SSAValue, Any] = ChainMap() if outer is None else outer.values.new_child()
        """What values of the module have become, here or around."""
        self.loops: tuple[Loop, ...] = () if outer is None else outer.loops
        """The counted loops around, whose numbers are followed."""

    def lookup(self, value: SSAValue) -> Any:
        """Returns what a value of the module has become, here or around."""
        return self.values.get(value, UNSUPPORTED)

    def tensor(self, value: Any) -> SSAValue:
        """Returns a value as a tensor. Raises UsesUnsupported for the result of a refused op."""
        if isinstance(value, SSAValue):
            return value
        if isinstance(value, LoopCarried):
            return value.tensor(self)
        raise UsesUnsupported

    def run(self, block: Block, arguments: Sequence[Any]) -> list[Any]:
        """Converts a block's ops; returns what its terminator returns."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            if op_name(op) in ("func.return", "stablehlo.return"):
                return [self.lookup(each) for each in op.operands]
            self._convert(op)
        return []

    # Ops -----------------------------------------------------------------------------------------------------------

    def _convert(self, op: Operation) -> None:
        operands = [self.lookup(each) for each in op.operands]
        found: Sequence[Any] = [UNSUPPORTED] * len(op.results)
        if UNSUPPORTED not in operands:
            self.locate(op)
            node = HloNode(self, op, operands)
            try:
                found = self._typed(node, self._converted(node))
            except UsesUnsupported:
                pass
            except Refused as refused:
                self._refuse(node, refused.reason, refused.notes)
            except MirError as error:
                self._refuse(node, error.diagnostics[0].message)
        self.values.update(zip(op.results, found, strict=True))

    def locate(self, op: Operation) -> None:
        """Sets the builder's location to an op's place in the source."""
        place = op.attributes.get(PLACE)
        words = place.data if isinstance(place, StringAttr) and place.data else op_name(op).rpartition(".")[2]
        self.builder.location = node_loc(self.importer.function.name, words)

    def _refuse(self, node: HloNode, reason: str, notes: Sequence[str] = ()) -> None:
        diagnostic = Diagnostic(f"{shown_name(node)}: {reason}", self.builder.location)
        for note in notes:
            diagnostic = diagnostic.with_note(note)
        self.importer.refused.setdefault(node.op, diagnostic)

    def _converted(self, node: HloNode) -> Any:
        if node.name == "composite" or node.name == "custom_call":
            inner = named_operator(node)
            if is_converted(inner):
                node.name = inner
        if f"stablehlo.{node.name}" in TABLE.ruled[0] or node.name in TABLE.ruled[0] or node.name in ELEMENTWISE:
            return self._elementwise(node)
        converter = TABLE.converters.get(node.name)
        if converter is None:
            raise Refused("there is no such operator here")
        return converter(node)

    def _elementwise(self, node: HloNode) -> SSAValue:
        """Converts an operator on operands before they are broadcast, and broadcasts its result."""
        given, operands = node.given, node.operands
        wide = max(operands, key=self.builder.rank)
        node.given = [self.importer.narrow.get(each, each) for each in operands]
        found = self._by_rules(node)
        if found is None:
            converter = TABLE.converters.get(node.name)
            if converter is None:
                raise Refused("no rule takes this form")
            found = converter(node)
        found = self.broadcast_like(found, wide)
        if node.name in ("add", "subtract"):
            node.given = given
            for loop in self.loops:
                loop.follow(node, found)
        return found

    def _by_rules(self, node: HloNode) -> SSAValue | None:
        full = next((each for each in (node.name, f"stablehlo.{node.name}") if each in TABLE.ruled[0]), None)
        if full is None:
            return None
        attributes: dict[str, Any] = {"dtype": node.dtype()}
        for name, value in {**node.op.attributes, **node.op.properties}.items():
            if isinstance(value, WordAttr):
                attributes[name] = value.word.data
            elif isinstance(value, IntegerAttr):
                attributes[name] = value.value.data
        return convert_by_rules(node_op("jax", full, node.operands, attributes), TABLE.rule_files, self.builder)

    def _typed(self, node: HloNode, value: Any) -> list[Any]:
        """Checks ranks and sizes of results, and converts them to the module's dtypes."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        return [self._typed_result(node, place, each) for place, each in enumerate(values[: len(node.op.results)])]

    def _typed_result(self, node: HloNode, index: int, value: Any) -> Any:
        if not isinstance(value, SSAValue) or isinstance(value.type, TupleType):
            return value
        dtype, shape = node.dtype(index), node.shape(index)
        own = self.builder.extents(value)
        if len(own) != len(shape) or any(
            a != b for a, b in zip(own, shape, strict=True) if isinstance(a, int) and b >= 0
        ):
            raise Refused(f"its result has the shape {own}, and StableHLO's {tuple(shape)}")
        if dtype != self.builder.dtype(value):
            return node.cast(value, dtype)
        if self.builder.static_shape(value) is None:
            wanted = [a if b < 0 else b for a, b in zip(own, shape, strict=True)]
            if list(own) != wanted:
                return self.builder.set_extents(value, wanted)
        return value

    # Broadcasts ----------------------------------------------------------------------------------------------------

    def narrow(self, value: SSAValue) -> SSAValue:
        """Returns a tensor before it was broadcast."""
        return self.importer.narrow.get(value, value)

    def broadcast(self, value: SSAValue, extents: Sequence[Extent], shape: SSAValue | None = None) -> SSAValue:
        """Broadcasts a tensor to dimensions; `shape` is the tensor of them where some are open."""
        if self.builder.extents(value) == tuple(extents):
            return value
        wanted = [each for each in extents if isinstance(each, int)]
        missing = len(extents) - self.builder.rank(value)
        if self.builder.extents(value) == tuple(extents[missing:]) and all(each == 1 for each in extents[:missing]):
            found = self.builder.reshape(value, extents)
        elif len(wanted) == len(extents):
            found = self.builder.broadcast_to(value, wanted)
        else:
            assert shape is not None
            found = self.builder.broadcast_to(value, shape)
        if found is not value:
            self.importer.narrow[found] = value
        return found

    def broadcast_like(self, value: SSAValue, like: SSAValue) -> SSAValue:
        """Broadcasts a tensor to the dimensions of another."""
        extents = self.builder.extents(like)
        if self.builder.extents(value) == extents:
            return value
        is_open = any(not isinstance(each, int) for each in extents)
        return self.broadcast(value, extents, self.builder.shape_tensor(like) if is_open else None)


def is_converted(name: str) -> bool:
    """Returns whether an operator is converted, by rules or by a function."""
    return name in TABLE.ruled[0] or name in TABLE.converters


def named_operator(node: HloNode) -> str:
    """Returns the operator that a composite or a custom call names, `chlo.erf`; "" where it names none."""
    name = node.word("name") if node.name == "composite" else node.word("call_target_name")
    return f"chlo.{name.removeprefix('mhlo.')}" if name.startswith("mhlo.") else name


def shown_name(node: HloNode) -> str:
    """Returns an op's name in messages, with what it calls."""
    name = op_name(node.op)
    inner = node.word("call_target_name") or node.word("name")
    return f"{name} @{inner}" if inner else name


def callee(node: HloNode, attribute: str) -> str:
    """Returns the name of a function that an op calls."""
    found = node.attribute(attribute)
    return found.root_reference.data if isinstance(found, SymbolRefAttr) else ""
