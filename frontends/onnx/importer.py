"""Imports an ONNX graph as Relay, node by node.

    node "relu_3": Relu(x) -> y        →        %3 = nn.relu(%2)       at the location  model.onnx: node 'relu_3'

A node is converted by the rules of `operators/*.mir`, otherwise by the function registered for its operator, otherwise by the function
that the model or ONNX' schema defines it as. A node that cannot be imported is noted, and its outputs are taken to be of the types that
ONNX infers, so that one error lists all such nodes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from ...dialects.relay.ir import RESULT_NAMES
from ...dialects.relay.operator import is_operator
from ...dialects.side_file import SideFile
from ...passes.relay.quantize.fake_quantization_to_integer import to_integers_rounded_once
from ...support.diagnostics import Diagnostic, MirError, node_loc
from ...support.garbage import no_collection
from ...support.text import counted
from ..common.graph_builder import GraphBuilder
from .custom import call_custom, call_operator, functions_of, operators_of
from .inputs import Shapes, create_input, size_of
from .model import require_onnx
from .node import Misfit, Node, RanksDiffer, Refused
from .operator_rules import apply_rules, ruled_operators
from .operators.control_flow import guarded, merge
from .ordering import in_order
from .protos import attribute_value, constant_array, element_dtype
from .registry import find_converter
from .values import EmptyOptional, OpenSequence, SequenceValue, Value

SHOWN_NODES = 50
"""Of more nodes that cannot be imported, an error tells the number."""

OWN_OPERATORS = "an operator of your own is a function of a .mir file that is given along: --custom ops.mir"


MOST_BRANCHES = 32
"""The nodes after an `If` are converted in each branch at most so many times."""

Continuation: TypeAlias = "Callable[[GraphBuilder, list[SSAValue]], list[SSAValue]]"
"""Converts what follows a graph, in a builder, from the graph's outputs; returns the final results."""


class _Differing(NamedTuple):
    """An `If` whose branches return other ranks, and the nodes after it."""

    node: Any
    rest: Sequence[Any]
    reason: str


class Unsupported:
    """Stands for an output of a refused node, where ONNX does not infer its type."""


UNSUPPORTED = Unsupported()


@no_collection()
def import_model(
    model: Any,
    name: str = "model.onnx",
    shapes: Shapes | None = None,
    weights: SideFile | None = None,
    custom: ModuleOp | None = None,
) -> ModuleOp:
    """Returns a `ModelProto` as a module whose `main` takes the inputs that are not initializers.

    `name` is the file's name in locations; `shapes` replaces sizes of inputs, None leaves one as the model has it; `weights` is the
    model's file, where initializers are read; `custom` has functions for operators of one's own. Raises MirError with all nodes that cannot be imported, or where `shapes` do not fit
    the inputs.
    """
    importer = ModelImporter(model, name, weights, custom)
    return importer.run(shapes or {})


class ModelImporter:
    """Holds everything that the graphs of a model share: operator sets, functions, refused nodes."""

    def __init__(self, model: Any, name: str, weights: SideFile | None = None, custom: ModuleOp | None = None):
        self.model, self.file, self.weights = model, name, weights
        self.custom_module = custom
        self.custom = {} if custom is None else functions_of(custom)
        self.operators = operators_of(custom)
        self.opsets: dict[str, int] = {_domain(each.domain): each.version for each in model.opset_import}
        self.functions: dict[tuple[str, str, str], Any] = {
            (_domain(each.domain), each.name, getattr(each, "overload", "")): each for each in model.functions
        }
        self.refused: list[Diagnostic] = []
        self.misfits = 0
        """How many nodes were refused because their operator does not take tensors of such types."""
        self.branches = 0
        """How many times the nodes after an `If` were converted in each branch."""
        self._types: dict[str, Any] | None = None

    def run(self, shapes: Shapes) -> ModuleOp:
        """Imports the main graph."""
        graph = self.model.graph
        self._check_opset()
        builder = GraphBuilder()
        importer = GraphImporter(self, builder, self.opsets)
        known = {each.name for each in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
        inputs = [each for each in graph.input if each.name not in known]
        self._check_shapes(shapes, [each.name for each in inputs])
        for each in inputs:
            importer.values[each.name] = create_input(builder, self.file, each, shapes)
        importer.convert(graph)
        if self.refused:
            raise self._refusal()
        results: list[SSAValue] = []
        names: list[str] = []
        for each in graph.output:
            found = importer.lookup(each.name)
            if isinstance(found, SSAValue):
                results.append(found)
                names.append(each.name)
            elif isinstance(found, SequenceValue):
                results += found.items
                names += [f"{each.name}.{place}" for place in range(len(found.items))]
            elif isinstance(found, EmptyOptional):
                continue
            elif isinstance(found, OpenSequence):
                raise MirError(
                    Diagnostic(
                        f"output '{each.name}' is a sequence whose length is known only at run time",
                        self.location(""),
                    ).with_note(
                        "a program returns a known number of tensors; ConcatFromSequence makes one of a sequence"
                    )
                )
            else:
                raise MirError(Diagnostic(f"output '{each.name}' is not computed by any node", self.location("")))
        builder.location = node_loc(self.file, "")
        result = results[0] if len(results) == 1 else builder.tuple(results)
        function = builder.finish_function(
            "main", result, {RESULT_NAMES: ArrayAttr([StringAttr(each) for each in names])}
        )
        function.location = node_loc(self.file, "")
        given = [] if self.custom_module is None else [op.clone() for op in self.custom_module.ops]
        module = ModuleOp([function, *builder.functions, *given])
        if any(is_operator(op, "qnn.quantize") for op in function.body.block.ops):
            to_integers_rounded_once(module)
        return module

    def location(self, node: str) -> Any:
        """Returns the location of a node."""
        return node_loc(self.file, node)

    def refuse(self, node: str, op: str, reason: str, notes: Sequence[str]) -> None:
        """Notes a node that cannot be imported."""
        diagnostic = Diagnostic(f"{op}: {reason}", self.location(node))
        for note in notes:
            diagnostic = diagnostic.with_note(note)
        self.refused.append(diagnostic)

    def _refusal(self) -> MirError:
        shown = self.refused[:SHOWN_NODES]
        if len(self.refused) > len(shown):
            shown.append(
                Diagnostic(f"{len(self.refused) - len(shown)} more nodes cannot be imported", self.location(""))
            )
        return MirError(shown)

    def _check_opset(self) -> None:
        """Raises MirError for an opset of ONNX whose operators are not known here."""
        newest = require_onnx().defs.onnx_opset_version()
        opset = self.opsets.get("", 0)
        if opset > newest:
            raise MirError(
                Diagnostic(
                    f"the model is of opset {opset}, and the newest that the package onnx knows is {newest}",
                    self.location(""),
                ).with_note("a newer package knows more: pip install --upgrade onnx")
            )

    def _check_shapes(self, shapes: Shapes, inputs: Sequence[str]) -> None:
        for name in shapes:
            if name not in inputs:
                from ...support.text import nearest_or_all

                raise MirError(Diagnostic(f"{self.file} has no input '{name}'{nearest_or_all(name, inputs)}"))

    def types(self) -> dict[str, Any]:
        """Returns the types that ONNX infers, by names of values."""
        if self._types is None:
            onnx = require_onnx()
            try:
                inferred = onnx.shape_inference.infer_shapes(self.model)
            except Exception:
                inferred = self.model
            self._types = {each.name: each.type for each in (*inferred.graph.value_info, *inferred.graph.output)}
        return self._types


class GraphImporter:
    """Converts the nodes of a graph; one inside of a node may use names of the graph around it."""

    def __init__(
        self,
        model: ModelImporter,
        builder: GraphBuilder,
        opsets: Mapping[str, int],
        outer: GraphImporter | None = None,
        attributes: Mapping[str, Any] | None = None,
    ):
        self.model, self.builder, self.opsets, self.outer = model, builder, opsets, outer
        self.attributes = attributes if attributes is not None or outer is None else outer.attributes
        """The attributes of the call of the function that is being inlined."""
        self.values: ChainMap[str, Value | Unsupported] = ChainMap() if outer is None else outer.values.new_child()
        """The values of names, here or in graphs around."""

    def lookup(self, name: str) -> Value | Unsupported | None:
        """Returns the value of a name, here or in a graph around."""
        return self.values.get(name)

    def convert(self, graph: Any) -> None:
        """Converts the initializers and nodes of a `GraphProto`, in order."""
        self._initializers(graph)
        names = [each.name for each in graph.output]
        differ = self._convert_nodes(in_order(graph.node))
        if differ is None:
            return
        try:
            found = self._in_each_branch(differ.node, lambda after: after.finish(differ.rest, names))
        except (RanksDiffer, Refused) as error:
            if self.outer is not None and isinstance(error, RanksDiffer):
                raise
            reason = error.reason if isinstance(error, Refused) else differ.reason
            self.model.refuse(_name_of(differ.node), differ.node.op_type, reason, ())
            found = [UNSUPPORTED] * len(names)
        self.values.update(zip(names, found, strict=True))

    def finish(self, nodes: Sequence[Any], names: Sequence[str], then: Continuation | None = None) -> list[SSAValue]:
        """Converts the last nodes of a graph; returns the values of these names, or what `then` makes of them.

        After an `If` whose branches return other ranks, the nodes are converted in each branch.
        """
        differ = self._convert_nodes(nodes)
        if differ is not None:
            return self._in_each_branch(differ.node, lambda after: after.finish(differ.rest, names, then))
        found: list[SSAValue] = []
        for name in names:
            value = self.lookup(name)
            if isinstance(value, Unsupported):
                raise Misfit(f"output '{name}' of the graph cannot be computed")
            if not isinstance(value, SSAValue):
                raise Refused(
                    f"the branches return other ranks, and output '{name}' of the graph is not computed from them"
                )
            found.append(value)
        return found if then is None else then(self.builder, found)

    def _convert_nodes(self, nodes: Sequence[Any]) -> _Differing | None:
        """Converts nodes in order, as far as an `If` whose branches return other ranks; returns that one."""
        for place, proto in enumerate(nodes):
            refused = len(self.model.refused)
            try:
                self.convert_node(proto)
            except RanksDiffer as differ:
                del self.model.refused[refused:]
                return _Differing(proto, nodes[place + 1 :], str(differ))
        return None

    def _in_each_branch(self, proto: Any, rest: Callable[[GraphImporter], list[SSAValue]]) -> list[SSAValue]:
        """Converts an `If` and all that follows it in each branch; returns the results.

        `rest` converts what follows, in an importer that has the outputs of the `If`.
        """
        condition = self.lookup(proto.input[0])
        if proto.op_type != "If" or not isinstance(condition, SSAValue):
            raise Refused("a graph inside it has an If whose branches return other ranks")
        self.model.branches += 1
        if self.model.branches > MOST_BRANCHES:
            raise Refused(
                f"what follows an If whose branches return other ranks is converted more than {MOST_BRANCHES} times"
            )
        self.builder.location = self.model.location(_name_of(proto))
        condition = self.builder.reshape(condition, [])
        graphs = self._attributes(proto)
        branches = (graphs["then_branch"], graphs["else_branch"])
        builders = [GraphBuilder(self.builder) for _ in branches]
        results: list[list[SSAValue] | None] = []
        for graph, builder in zip(branches, builders, strict=True):
            refused, misfits = len(self.model.refused), self.model.misfits
            try:
                found = self._with_rest(proto, graph, builder, rest)
            except Misfit:
                if len(self.model.refused) - refused != self.model.misfits - misfits:
                    raise
                found = None  # Its ranks fit no operator that follows: the program would stop there.
            if len(self.model.refused) - refused == self.model.misfits - misfits > 0:
                found = None
                del self.model.refused[refused:]
            results.append(found)
        then, other = results
        if then is not None and other is not None:
            return merge(self.builder, condition, builders, [then, other])
        if then is None and other is None:
            raise Misfit("the branches return other ranks, and what follows fits neither")
        holds = other is None
        return self._with_rest(
            proto,
            branches[0 if holds else 1],
            self.builder,
            rest,
            lambda value: guarded(self.builder, value, condition, holds),
        )

    def _with_rest(
        self,
        proto: Any,
        graph: Any,
        builder: GraphBuilder,
        rest: Callable[[GraphImporter], list[SSAValue]],
        guard: Callable[[SSAValue], SSAValue] = lambda value: value,
    ) -> list[SSAValue]:
        """Converts a branch of an `If` and then what follows the `If`, all in one builder."""

        def follow(builder: GraphBuilder, found: Sequence[SSAValue]) -> list[SSAValue]:
            after = GraphImporter(self.model, builder, self.opsets, self)
            after.values.update({name: guard(value) for name, value in zip(proto.output, found, strict=True)})
            return rest(after)

        inner = GraphImporter(self.model, builder, self.opsets, self)
        inner._initializers(graph)
        return inner.finish(in_order(graph.node), [each.name for each in graph.output], follow)

    def _initializers(self, graph: Any) -> None:
        for tensor in graph.initializer:
            self.values[tensor.name] = self._initializer(tensor)
        for sparse in graph.sparse_initializer:
            self.values[sparse.values.name] = self.builder.array_constant(constant_array(sparse))

    def subgraph(self, graph: Any, inputs: Sequence[Value] = (), builder: GraphBuilder | None = None) -> list[Value]:
        """Converts a graph inside of a node, in `builder` (a branch) or in place; returns its outputs.

        Raises Refused where an output cannot be computed: Misfit, if only because types do not fit operators.
        """
        model = self.model
        refused, misfits = len(model.refused), model.misfits
        inner = GraphImporter(model, builder or self.builder, self.opsets, self)
        for info, value in zip(graph.input, inputs, strict=True):
            inner.values[info.name] = value
        inner.convert(graph)
        found = [inner.lookup(each.name) for each in graph.output]
        for value, each in zip(found, graph.output, strict=True):
            if value is None or isinstance(value, Unsupported):
                only_misfits = value is not None and len(model.refused) - refused == model.misfits - misfits
                raise (Misfit if only_misfits else Refused)(
                    f"output '{each.name}' of the graph inside it cannot be computed"
                )
        return [value for value in found if value is not None and not isinstance(value, Unsupported)]

    def _initializer(self, tensor: Any) -> Value | Unsupported:
        self.builder.location = self.model.location(tensor.name)
        weights = self.model.weights if self.outer is None else None
        try:
            if weights is not None and tensor.name in weights:
                return self.builder.array_constant(weights.array(tensor.name), (weights.name, tensor.name))
            array = constant_array(tensor)
        except ValueError as error:
            raise MirError(
                Diagnostic(f"the initializer cannot be read: {error}", self.model.location(tensor.name))
            ) from None
        if array.dtype == object:
            self.model.refuse(tensor.name, "initializer", "tensors of strings are not supported", ())
            return UNSUPPORTED
        return self.builder.array_constant(array)

    # Nodes ---------------------------------------------------------------------------------------------------------

    def convert_node(self, proto: Any) -> None:
        """Converts a node and names its outputs."""
        name = _name_of(proto)
        domain = _domain(proto.domain)
        inputs: list[Value | None] = []
        for each in proto.input:
            found = self.lookup(each) if each else None
            if each and found is None:
                self.model.refuse(
                    name, proto.op_type, f"input '{each}' is not computed by any node before this one", ()
                )
            if isinstance(found, Unsupported) or (each and found is None):
                self._give_up(proto)
                return
            inputs.append(found)
        while inputs and inputs[-1] is None:
            inputs.pop()
        outer_location = self.builder.location
        self.builder.location = self.model.location(name)
        try:
            node = Node(
                self,
                name,
                proto.op_type,
                domain,
                self.opsets.get(domain, 1),
                inputs,
                self._attributes(proto),
                list(proto.output),
                proto,
            )
            _check_number_of_inputs(node)
            outputs = self.convert_values(node)
            for output, value in zip(proto.output, outputs, strict=False):
                if output and value is not None:
                    self.values[output] = value
            missing = [each for each in list(proto.output)[len(outputs) :] if each]
            if missing:
                raise Refused(f"output '{missing[0]}' is not computed")
        except Refused as refused:
            self.model.misfits += isinstance(refused, Misfit)
            self.model.refuse(name, proto.op_type, refused.reason, refused.notes)
            self._give_up(proto)
        except MirError as error:
            first = error.diagnostics[0]
            notes = [each.message for each in first.notes]
            self.model.misfits += 1
            self.model.refuse(name, proto.op_type, first.message, notes)
            self._give_up(proto)
        finally:
            self.builder.location = outer_location

    def convert_values(self, node: Node) -> Sequence[Value | None]:
        """Returns the outputs of a node. Raises Refused where it cannot be converted."""
        name = f"{node.domain}.{node.op_type}".replace(".", "_")
        for each in (name, node.op_type):
            if each in self.model.custom:
                return call_custom(node, each, self.model.custom[each])
        own = self.model.operators.get(f"{node.domain}.{node.op_type}")
        if own is not None:
            return call_operator(node, own)
        ruled = apply_rules(node)
        if ruled is not None:
            return [ruled]
        converter = find_converter(node.domain, node.op_type, node.opset)
        if converter is not None:
            found = converter(node)
            return [found] if isinstance(found, SSAValue | SequenceValue | OpenSequence | EmptyOptional) else found
        return self._inlined(node)

    def defaults(self, node: Node) -> Mapping[str, Any]:
        """Returns the defaults of a node's attributes in ONNX' schema."""
        return _defaults(node.op_type, node.opset, node.domain)

    def _attributes(self, proto: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in proto.attribute:
            if each.ref_attr_name:
                if self.attributes is not None and each.ref_attr_name in self.attributes:
                    found[each.name] = self.attributes[each.ref_attr_name]
                continue
            try:
                found[each.name] = attribute_value(each)
            except ValueError as error:
                raise Refused(f"attribute '{each.name}' cannot be read: {error}") from None
        return found

    def _inlined(self, node: Node) -> Sequence[Value | None]:
        """Converts a node by the function that defines its operator: the model's, otherwise ONNX' schema's."""
        overload = getattr(node.proto, "overload", "")
        function = self.model.functions.get((node.domain, node.op_type, overload))
        if function is None:
            function = _schema_function(node)
        if function is None:
            raise _unknown(node)
        opsets = {**self.opsets, **{_domain(each.domain): each.version for each in function.opset_import}}
        attributes = {each.name: attribute_value(each) for each in function.attribute_proto}
        attributes.update(_defaults(node.op_type, node.opset, node.domain))
        attributes.update(node.attributes)
        inner = GraphImporter(self.model, self.builder, opsets, None, attributes)
        for name, value in zip(function.input, node.inputs, strict=False):
            if value is not None:
                inner.values[name] = value
        refused = len(self.model.refused)
        for proto in in_order(function.node):
            if any(each and inner.lookup(each) is None for each in proto.input) and _is_of_missing(
                proto, function, node
            ):
                copy = type(proto)()
                copy.CopyFrom(proto)
                copy.input[:] = ["" if inner.lookup(each) is None else each for each in proto.input]
                proto = copy
            inner.convert_node(proto)
        if len(self.model.refused) > refused:
            reason = self.model.refused[refused].message
            del self.model.refused[refused:]
            raise Refused(f"in the function that defines it: {reason}")
        found = [inner.lookup(each) for each in function.output]
        return [None if isinstance(each, Unsupported) else each for each in found]

    def _give_up(self, proto: Any) -> None:
        """Names the outputs of a refused node, so that the nodes after it are checked, too.

        They are parameters of the types that ONNX infers.
        """
        types = self.model.types() if self.outer is None and self.attributes is None else {}
        for output in proto.output:
            if not output:
                continue
            self.values[output] = UNSUPPORTED
            type = types.get(output)
            if type is None or type.WhichOneof("value") != "tensor_type" or not type.tensor_type.HasField("shape"):
                continue
            dtype = element_dtype(type.tensor_type.elem_type)
            sizes = [size_of(each) for each in type.tensor_type.shape.dim]
            if dtype is not None:
                self.values[output] = self.builder.parameter(f"refused {output}", dtype, sizes)


def _is_of_missing(proto: Any, function: Any, node: Node) -> bool:
    """Returns whether a node of a function takes an input of the function that its call leaves out."""
    given = {name for name, value in zip(function.input, node.inputs, strict=False) if value is not None}
    return any(each in function.input and each not in given for each in proto.input)


def _unknown(node: Node) -> Refused:
    from ...support.text import nearest
    from .registry import converted_operators, first_opset

    full = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    since = first_opset(node.domain, node.op_type)
    if since is not None:
        return Refused(f"{full} is supported from opset {since} on, and the model imports opset {node.opset}")
    if _schema(node.op_type, node.opset, node.domain) is not None:
        return Refused(f"{full} is not supported", OWN_OPERATORS)
    known = [f"{domain}.{name}" if domain else name for domain, name in converted_operators()]
    near = nearest(full, [*known, *ruled_operators()])
    hint = "" if near is None else f"; did you mean {near}?"
    return Refused(
        f"there is no operator {full} in opset {node.opset}{hint}",
        OWN_OPERATORS,
    )


def _schema_function(node: Node) -> Any:
    """Returns the function by which ONNX' schema defines an operator; None where it does not."""
    onnx = require_onnx()
    schema = _schema(node.op_type, node.opset, node.domain)
    if schema is None:
        return None
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= node.opset]
        if versions:
            return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(max(versions)))
    if schema.has_context_dependent_function:
        from .protos import type_proto

        versions = [version for version in schema.context_dependent_function_opset_versions if version <= node.opset]
        types = [
            (type_proto(each) if isinstance(each, SSAValue) else onnx.TypeProto()).SerializeToString()
            for each in node.inputs
        ]
        if versions:
            text = schema.get_context_dependent_function_with_opset_version(
                max(versions), node.proto.SerializeToString(), types
            )
            return onnx.FunctionProto.FromString(text) if text else None
    return None


@cache
def _schema(op_type: str, opset: int, domain: str) -> Any:
    onnx = require_onnx()
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


def _check_number_of_inputs(node: Node) -> None:
    """Raises Refused where a node has more inputs than its operator takes."""
    schema = _schema(node.op_type, node.opset, node.domain)
    if schema is not None and len(node.inputs) > schema.max_input:
        raise node.refuse(f"it has {counted(len(node.inputs), 'input')}, and takes {schema.max_input} at most")


@cache
def _defaults(op_type: str, opset: int, domain: str) -> Mapping[str, Any]:
    schema = _schema(op_type, opset, domain)
    if schema is None:
        return {}
    onnx = require_onnx()
    return {
        name: attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
    }


def _name_of(proto: Any) -> str:
    return proto.name or next((each for each in proto.output if each), proto.op_type)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
