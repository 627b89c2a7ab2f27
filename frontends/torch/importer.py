"""Imports FX graphs of ATen operators as Relay, node by node.

    node %relu_3 = aten.relu.default(%add)       →        %3 = nn.relu(%2)       at the location  ResNet: node 'layer1.0.relu_3'

Programs are decomposed to core ATen operators first, except for composite ones that are converted whole (`linear`, `layer_norm`,
`scaled_dot_product_attention`). A node is converted by the rules of `operators/*.mir`, otherwise by the function registered for its
operator. Symbolic sizes are what torch has inferred: `s77` is an open dimension, and an expression of it a size in each world
(`common/open_sizes.py`).
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue

from ...dialects.rule.levels.imported import node_op
from ...support.diagnostics import Diagnostic, MirError, node_loc
from ...support.garbage import no_collection
from ..common.graph_builder import GraphBuilder
from ..common.open_sizes import WORLDS, Extent, extent
from ..common.operator_rules import convert_by_rules
from ..common.refusal import Refused
from .complex_tensor import BILINEAR, BY_PARTS, COMPLEX, PART_DTYPES, ComplexTensor
from .decompositions import for_export
from .node import FxNode
from .overloads import takes
from .registry import TABLE
from .size_arithmetic import arithmetic, is_arithmetic
from .tensors import dtype_name, require_torch, to_numpy

SHOWN_NODES = 50
"""Of more nodes that cannot be imported, an error tells the number."""

UNSUPPORTED = object()
"""Represents the results of a node that is refused."""

COMPUTED = object()
"""Represents a truth or a fraction that is computed from sizes."""

WITHOUT_EFFECT = frozenset(("half_to_float", "memory_format", "padding_idx", "scale_grad_by_freq", "sparse"))
"""Arguments that rules may leave out: layouts in memory, dtypes that results have anyway, and what gradients need."""

CHECKS = ("_assert", "sym_constrain")
"""How the operators begin that only check sizes."""


@no_collection()
def import_program(program: Any, name: str) -> ModuleOp:
    """Returns a `torch.export.ExportedProgram` as a module; its `main` takes the program's inputs.


    Parameters, buffers and constants are constants that share torch's memory. Raises MirError with all nodes that cannot be imported.
    """
    torch = require_torch()
    kinds = torch.export.graph_signature
    program = program.run_decompositions(for_export())
    tensors = {**dict(program.named_parameters()), **dict(program.named_buffers()), **program.constants}
    written = [
        each.target
        for each in program.graph_signature.output_specs
        if each.kind in (kinds.OutputKind.BUFFER_MUTATION, kinds.OutputKind.USER_INPUT_MUTATION)
    ]
    if written:
        raise MirError(
            Diagnostic(f"{name} writes to {', '.join(map(str, written))}").with_note(
                "a compiled program has results only: call eval() before, or return what is written"
            )
        )
    importer = FxImporter(name)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind == kinds.InputKind.USER_INPUT:
            importer.parameter(node)
        elif spec.kind in (kinds.InputKind.PARAMETER, kinds.InputKind.BUFFER, kinds.InputKind.CONSTANT_TENSOR):
            importer.values[node] = importer.constant(tensors[spec.target])
        else:
            raise MirError(Diagnostic(f"{name} takes {spec.arg}, which is not a tensor"))
    importer.convert(program.graph, program.graph_module)
    for place, value in enumerate(importer.results):
        if isinstance(value, int | float):
            dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
            importer.results[place] = importer.builder.constant(value, dtype)
    return importer.finish()


@dataclass(frozen=True)
class ImportedGraph:
    """An FX graph as a module, with the places of its parameters among the placeholders."""

    module: ModuleOp | None
    """None where no result is computed."""
    parameters: Sequence[int]
    results: Sequence[Any]
    """Of each output its place among the results of `main`, a `Fixed` value, or None."""


@dataclass(frozen=True)
class Fixed:
    """An output that is known while the graph is imported, or None."""

    value: Any


@no_collection()
def import_graph(module: Any, name: str, bound: Mapping[int, Any]) -> ImportedGraph:
    """Imports a `GraphModule` of ATen operators whose nodes carry the types that torch has inferred.

    `bound` holds tensors that become constants, by the places of their placeholders. Raises MirError with all nodes that cannot be
    imported.
    """
    importer = FxImporter(name)
    parameters = importer.inputs(module, bound)
    importer.convert(module.graph, module)
    results: list[Any] = []
    for value in importer.results:
        is_tensor = isinstance(value, SSAValue)
        results.append(sum(isinstance(each, int) for each in results) if is_tensor else Fixed(value))
    computed = any(isinstance(each, int) for each in results)
    return ImportedGraph(importer.finish() if computed else None, parameters, results)


@no_collection()
def refused_nodes(module: Any, name: str, bound: Mapping[int, Any]) -> Mapping[Any, str]:
    """Returns the nodes of a graph that cannot be imported, with the reasons.

    Their results are taken for inputs, so that nodes that use them are tried, too.
    """
    importer = FxImporter(name, cuts=True)
    importer.inputs(module, bound)
    importer.convert(module.graph, module)
    return {node: diagnostic.message for node, diagnostic in importer.refused.items()}


def is_size(node: Any) -> bool:
    """Returns whether a node is a call that computes a number from sizes."""
    torch = require_torch()
    return node.op == "call_function" and isinstance(
        node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float
    )


def foreign(value: Any, complex_too: bool = False) -> str | None:
    """Returns why a value that torch has inferred cannot be a tensor here; None where it can.

    With `complex_too` it may be a complex tensor, which is a pair of tensors.
    """
    torch = require_torch()
    if not isinstance(value, torch.Tensor):
        return None
    if value.device.type != "cpu":
        return f"is on the device {value.device}, and programs here run on the CPU"
    if value.layout != torch.strided:
        return f"has the layout {value.layout}, which tensors here cannot have"
    if dtype_name(value.dtype) is None and not (complex_too and str(value.dtype) in PART_DTYPES):
        return f"has elements of {value.dtype}, which tensors here cannot have"
    return None


def _is_complex(value: Any) -> bool:
    """Returns whether a value, or one of a list, is a complex tensor, here or of torch's."""
    if isinstance(value, list | tuple):
        return any(map(_is_complex, value))
    return isinstance(value, ComplexTensor) or str(getattr(value, "dtype", "")) in PART_DTYPES


class FxImporter:
    """Converts the nodes of an FX graph whose nodes carry the types that torch has inferred."""

    def __init__(self, name: str, cuts: bool = False):
        self.name = name
        self.cuts = cuts
        """A node that cannot be converted is listed, and its results become parameters."""
        self.builder = GraphBuilder()
        self.values: dict[Any, Any] = {}
        """Values of FX nodes: tensors, lists of them, numbers; symbolic numbers are tensors of rank 0."""
        self.refused: dict[Any, Diagnostic] = {}
        """The nodes that cannot be converted: placeholders and calls."""
        self.results: list[Any] = []
        self._symbols: dict[Any, Extent] = {}

    # Inputs --------------------------------------------------------------------------------------------------------

    def constant(self, tensor: Any) -> SSAValue | ComplexTensor:
        """Creates a constant that shares a tensor's memory; of a complex one both parts are copied."""
        self.builder.location = node_loc(self.name, "")
        if tensor.is_complex():
            tensor = tensor.detach().resolve_conj()
            return ComplexTensor(*(self.builder.array_constant(to_numpy(part)) for part in (tensor.real, tensor.imag)))
        return self.builder.array_constant(to_numpy(tensor))

    def inputs(self, module: Any, bound: Mapping[int, Any]) -> list[int]:
        """Creates parameters and constants of placeholders; returns the places of the parameters."""
        parameters: list[int] = []
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        for place, node in enumerate(placeholders):
            if place in bound:
                self.values[node] = self.constant(bound[place])
            elif node.users and self.parameter(node):
                parameters.append(place)
        return parameters

    def parameter(self, node: Any) -> bool:
        """Creates the parameter of a placeholder; returns False for a number that torch has fixed."""
        self.builder.location = node_loc(self.name, node.name)
        reason = foreign(node.meta["val"])
        if reason is not None:
            self.refused[node] = Diagnostic(f"input '{node.name}' {reason}", self.location(node))
            self.values[node] = UNSUPPORTED
            return False
        found = self.values[node] = self._parameter(node.name, node.meta["val"])
        return isinstance(found, SSAValue)

    def _parameter(self, name: str, value: Any) -> Any:
        """Creates a parameter of a value that torch has inferred; returns the number of one that is fixed."""
        torch = require_torch()
        if isinstance(value, torch.Tensor):
            return self.builder.parameter(name, str(dtype_name(value.dtype)), self.extents_of(value))
        if isinstance(value, torch.SymInt):
            known = self.extent(value)
            return known if isinstance(known, int) else self.builder.size_parameter(name, known)
        return COMPUTED if isinstance(value, torch.SymFloat | torch.SymBool) else value

    def extents_of(self, value: Any) -> tuple[Extent, ...]:
        """Returns the dimensions of a tensor without data."""
        return tuple(self.extent(size) for size in value.shape)

    def extent(self, size: Any) -> Extent:
        """Returns a size of torch's: a number, or in each world what its expression is there."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        symbols = sorted(expression.free_symbols, key=str)
        worlds = [
            int(expression.subs({symbol: self._symbol(symbol, world) for symbol in symbols})) for world in range(WORLDS)
        ]
        return extent(tuple(worlds))

    def _symbol(self, symbol: Any, world: int) -> int:
        found = self._symbols.get(symbol)
        if found is None:
            found = self._symbols[symbol] = self.builder.sizes.named(str(symbol))
        return found if isinstance(found, int) else found.worlds[world]

    # Nodes ---------------------------------------------------------------------------------------------------------

    def location(self, node: Any) -> Any:
        """Returns the location of a node: the path of its module, then its name."""
        paths = list(node.meta.get("nn_module_stack", {}).values())
        path = paths[-1][0] if paths else ""
        return node_loc(self.name, f"{path}.{node.name}" if path else node.name)

    def convert(self, graph: Any, module: Any) -> None:
        """Converts all nodes. Raises MirError with those that cannot be converted."""
        for node in graph.nodes:
            if node.op == "get_attr":
                found = python_operator.attrgetter(node.target)(module)
                self.values[node] = self.constant(found) if hasattr(found, "dtype") else found
            elif node.op == "call_function":
                self._convert_node(node)
            elif node.op == "output":
                self._output(node)
        if self.cuts:
            self._spread()
        elif self.refused:
            shown = list(self.refused.values())[:SHOWN_NODES]
            if len(self.refused) > len(shown):
                shown.append(
                    Diagnostic(
                        f"{len(self.refused) - len(shown)} more nodes cannot be imported", node_loc(self.name, "")
                    )
                )
            raise MirError(shown)

    def _output(self, node: Any) -> None:
        given = node.args[0]
        for each in given if isinstance(given, list | tuple) else [given]:
            value = self.values[each] if hasattr(each, "meta") else each
            if isinstance(value, ComplexTensor):
                reason = f"result '{each.name}' {foreign(each.meta['val'])}"
                self.refused[each] = Diagnostic(reason, self.location(each))
            self.results.append(value)

    def _spread(self) -> None:
        """Refuses operators that pass complex tensors to refused ones, or take them from these.

        Such a tensor is either a pair of tensors here or torch's.
        """
        left = list(self.refused)
        while left:
            node = left.pop()
            neighbours = [each for each in node.all_input_nodes if _is_complex(self.values.get(each))]
            if _is_complex(self.values.get(node)):
                neighbours += node.users
            for each in neighbours:
                if each.op == "call_function" and each not in self.refused and not is_size(each):
                    reason = f"{each.target}: operators that torch runs take or return its complex tensors"
                    self.refused[each] = Diagnostic(reason, self.location(each))
                    left.append(each)

    def _convert_node(self, node: Any) -> None:
        if getattr(node.target, "_opname", "").startswith(CHECKS):
            self.values[node] = None
            return
        self.builder.location = self.location(node)
        arguments = [each for each in node.all_input_nodes if self.values.get(each) is UNSUPPORTED]
        if arguments and not self.cuts:
            self.values[node] = UNSUPPORTED
            return
        if is_size(node):
            self.values[node] = self._size(node)
            return
        arguments += [each for each in node.all_input_nodes if self.values.get(each) is COMPUTED]
        if arguments:
            self._refuse(node, f"'{arguments[0].name}' cannot be computed here")
            return
        try:
            self.values[node] = self._converted(node)
        except Refused as refused:
            self._refuse(node, str(refused))
        except MirError as error:
            self._refuse(node, error.diagnostics[0].message)

    def _refuse(self, node: Any, reason: str) -> None:
        self.refused[node] = Diagnostic(f"{node.target}: {reason}", self.location(node))
        self.values[node] = self._cut(node.name, node.meta.get("val")) if self.cuts else UNSUPPORTED

    def _cut(self, name: str, value: Any) -> Any:
        """Returns parameters for the results of a node."""
        if isinstance(value, list | tuple):
            return [self._cut(f"{name}_{k}", each) for k, each in enumerate(value)]
        return UNSUPPORTED if foreign(value) else self._parameter(name, value)

    def _converted(self, node: Any) -> Any:
        target = node.target
        if target is python_operator.getitem:
            return self._value(node.args[0])[node.args[1]]
        arguments = [self.values.get(each) for each in node.all_input_nodes]
        is_complex = _is_complex([node.meta.get("val"), *arguments])
        reason = foreign(node.meta.get("val"), complex_too=True)
        if reason is not None:
            raise Refused(f"its result {reason}")
        if is_arithmetic(target):
            return arithmetic(self.builder, target, [self._value(each) for each in node.args])
        schema = getattr(target, "_schema", None)
        if schema is None:
            raise Refused("there is no such operator here")
        namespace, _, name = schema.name.partition("::")
        if namespace not in ("aten", "prims"):
            name = schema.name
        known = COMPLEX.is_converted(name) or name in BY_PARTS | BILINEAR if is_complex else TABLE.is_converted(name)
        if not known:
            raise Refused(f"there is no such operator here{' for complex tensors' if is_complex else ''}")
        it = FxNode(self, node, name, schema.overload_name)
        given = self._bound(schema, node)
        return self._typed(it, self._complex(it, given) if is_complex else self.convert_real(it, given))

    def convert_real(self, node: FxNode, arguments: Mapping[str, Any]) -> Any:
        """Converts an operator on real tensors, by rules or by its function."""
        target = node.fx.target
        value = self._by_rules(node, target._schema, arguments)
        if value is not None:
            return value
        converter = TABLE.converters.get(node.name)
        if converter is None:
            raise Refused("no rule takes this form")
        return self._called(converter, node, arguments)

    def _called(self, converter: Any, node: FxNode, arguments: Mapping[str, Any]) -> Any:
        if not takes(converter, node.fx.target):
            raise Refused("there is no such overload here")
        return converter(node, *arguments.values())

    def _complex(self, node: FxNode, arguments: Mapping[str, Any]) -> Any:
        """Converts an operator on complex tensors: by its function, or as operators on the parts."""
        converter = COMPLEX.converters.get(node.name)
        if converter is not None:
            return self._called(converter, node, arguments)
        if node.name in BILINEAR:
            return self._product(node, arguments)
        if any(isinstance(each, SSAValue) and "float" in self.builder.dtype(each) for each in arguments.values()):
            raise Refused("of a real and a complex tensor it cannot be computed here")
        real, imaginary = (
            self.convert_real(node, {name: self._part(value, name_of_part) for name, value in arguments.items()})
            for name_of_part in ("real", "imaginary")
        )
        if isinstance(real, list):
            return list(map(ComplexTensor, real, imaginary))
        return ComplexTensor(real, imaginary)

    def _part(self, value: Any, part: str) -> Any:
        """Returns the real or imaginary part of an argument; of what is not complex itself."""
        if isinstance(value, list) and _is_complex(value):
            zeros = part == "imaginary"
            return [
                self.builder.call("zeros_like", each)
                if zeros and isinstance(each, SSAValue)
                else self._part(each, part)
                for each in value
            ]
        return getattr(value, part) if isinstance(value, ComplexTensor) else value

    def _pair(self, node: FxNode, value: Any) -> Any:
        """Returns a complex number as a pair of constants, any other argument as it is."""
        if not isinstance(value, complex):
            return value
        return ComplexTensor(*(self.builder.constant(part, node.dtype()) for part in (value.real, value.imag)))

    def _product(self, node: FxNode, arguments: Mapping[str, Any]) -> ComplexTensor:
        """Converts a product: (a + bi)(c + di) = ac - bd + (ad + bc)i."""
        first, second = list(arguments)[:2]
        x, y = (self._pair(node, arguments[name]) for name in (first, second))

        def times(a: Any, b: Any) -> SSAValue:
            return self.convert_real(node, {**arguments, first: a, second: b})

        if not isinstance(x, ComplexTensor):
            return ComplexTensor(times(x, y.real), times(x, y.imaginary))
        if not isinstance(y, ComplexTensor):
            return ComplexTensor(times(x.real, y), times(x.imaginary, y))
        return ComplexTensor(
            self.builder.call("subtract", times(x.real, y.real), times(x.imaginary, y.imaginary)),
            self.builder.call("add", times(x.real, y.imaginary), times(x.imaginary, y.real)),
        )

    def _size(self, node: Any) -> Any:
        """Returns a number that is computed from sizes; COMPUTED where only torch can compute it."""
        torch = require_torch()
        value = node.meta["val"]
        if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return value
        arguments = [self._value(each) for each in node.args]
        if any(each is COMPUTED or each is UNSUPPORTED for each in arguments):
            return COMPUTED
        if is_arithmetic(node.target):
            return arithmetic(self.builder, node.target, arguments)
        if isinstance(value, torch.SymInt):
            known = self.extent(value)
            if isinstance(known, int):
                return known
        try:
            return self._converted(node)
        except Refused:
            return COMPUTED

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, list | tuple):
            return [self._value(each) for each in argument]
        return self.values[argument] if hasattr(argument, "meta") else argument

    def _bound(self, schema: Any, node: Any) -> dict[str, Any]:
        """Returns the arguments by name, in the order of the schema, defaults filled in."""
        found: dict[str, Any] = {}
        for place, argument in enumerate(schema.arguments):
            if place < len(node.args):
                found[argument.name] = self._value(node.args[place])
            elif argument.name in node.kwargs:
                found[argument.name] = self._value(node.kwargs[argument.name])
            else:
                found[argument.name] = argument.default_value
        return found

    def _by_rules(self, node: FxNode, schema: Any, arguments: Mapping[str, Any]) -> SSAValue | None:
        """Converts a node by rules: tensors and numbers without default are operands, the rest attributes."""
        one_dtype, as_given = TABLE.ruled
        if node.name not in one_dtype | as_given:
            return None
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        given: set[str] = set()
        for argument in schema.arguments:
            value = arguments[argument.name]
            kind = str(argument.type)
            if kind == "Tensor" or (kind == "number" and not argument.has_default_value()):
                operands.append(value)
            elif isinstance(value, SSAValue):
                return None
            else:
                attributes[argument.name] = tuple(value) if isinstance(value, list) else value
                if not argument.has_default_value() or value != argument.default_value:
                    given.add(argument.name)
        if node.name in one_dtype:
            common = self._common_dtype(node)
            operands = [node.tensor(each, common) for each in operands]
        elif not all(isinstance(each, SSAValue) for each in operands):
            return None
        attributes["dtype"] = node.dtype()
        return convert_by_rules(
            node_op("torch", f"aten.{node.name}", operands, attributes),
            TABLE.rule_files,
            self.builder,
            given - WITHOUT_EFFECT,
        )

    def _common_dtype(self, node: FxNode) -> str:
        """Returns the dtype of elementwise operands: the result's, or of a comparison their common one."""
        torch = require_torch()
        result = node.result().dtype
        values = [getattr(each, "meta", {}).get("val", each) for each in node.fx.args]
        values = [each for each in values if isinstance(each, torch.Tensor | int | float | bool)]
        if result == torch.bool and values:
            result = values[0].dtype if len(values) == 1 else torch.result_type(values[0], values[1])
        return node.named(result)

    def _typed(self, node: FxNode, value: Any) -> Any:
        """Gives results the dimensions that torch has inferred, and checks that dtypes are those."""
        if isinstance(value, SSAValue | ComplexTensor):
            return self._with_extents(value, node.result())
        if isinstance(value, list | tuple):
            metas = node.fx.meta["val"]
            return [self._with_extents(each, meta) for each, meta in zip(value, metas, strict=False)]
        return value

    def _with_extents(self, value: Any, meta: Any) -> Any:
        if isinstance(value, ComplexTensor):
            return ComplexTensor(*(self._with_extents(each, meta) for each in (value.real, value.imaginary)))
        if not isinstance(value, SSAValue) or not hasattr(meta, "shape"):
            return value
        wanted = self.extents_of(meta)
        if not isinstance(value.type, TensorType) or len(wanted) != self.builder.rank(value):
            raise Refused(f"its result is {value.type}, of another rank than torch's {tuple(meta.shape)}")
        static = self.builder.static_shape(value)
        if static is not None and all(isinstance(size, int) for size in wanted) and static != wanted:
            raise Refused(f"its result has shape {static}, and torch's {wanted}")
        dtype = PART_DTYPES.get(str(meta.dtype)) or dtype_name(meta.dtype)
        if dtype != self.builder.dtype(value):
            value = self.builder.call("cast", value, dtype=str(dtype))
        return value if static is not None else self.builder.set_extents(value, wanted)

    def finish(self) -> ModuleOp:
        """Ends the function and returns it in a module."""
        self.builder.location = node_loc(self.name, "")
        results = [each for each in self.results if isinstance(each, SSAValue)]
        result = results[0] if len(results) == 1 else self.builder.tuple(results)
        function = self.builder.finish_function("main", result)
        function.location = node_loc(self.name, "")
        return ModuleOp([function])
