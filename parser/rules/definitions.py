"""Reads and prints operators that a file defines: `operator my.gelu(%x: Tensor) -> Tensor { … }`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from ...dialects import rule
from ...dialects.relay.operator import (
    REQUIRED,
    AttrSpec,
    AttrValue,
    Operator,
    attr,
    find_outside,
    kinds_of_attributes,
    operators_in_scope,
)
from ...dialects.relay.operators import NAMESPACES
from ...dialects.relay.own_operators import Description, make_operator
from ...support.diagnostics import MirError, error_at
from ...support.text import counted, did_you_mean
from ..items import Item, ParseContext
from ..source import Source
from . import tree
from .build import RuleBuilder
from .printer import gradient_text, literal_text
from .reader import read_item

GRADIENT, RESULT = "gradient", "result"
"""What a gradient calls the gradient of the operator's result, and the result."""


@dataclass
class _Read:
    """An item while it is read."""

    source: Source
    item: tree.Operator
    op: rule.DefineOperatorOp
    functions: list[Operation]
    entry: Operator


class DefinitionsFormat:
    """The text format of operators that a file defines."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """One op for each item; the operators are then known in the file."""
        read = [self._guarded(lambda item=item: _read(item, context), item, context) for item in items]
        # The gradient of one may be made of others.
        known = {each.op.sym_name.data: each.entry for each in read if each is not None}
        found: list[list[Operation]] = []
        with operators_in_scope(known):
            for item, each in zip(items, read, strict=True):
                made = each and self._guarded(lambda each=each: _define(each, context), item, context)
                found.append([] if made is None else [made])
        return found

    def _guarded(self, read: ..., item: Item, context: ParseContext) -> ...:
        try:
            return read()
        except (MirError, VerifyException) as error:
            context.report(error, item.location())
            context.failed.update(name for name in [item.text.split("(")[0].split()[-1]] if name)
            return None

    def owns(self, op: Operation) -> bool:
        """Returns whether an op of a module defines an operator."""
        return op.name == "rule.operator"

    def print(self, groups: Sequence[Sequence[Operation]], module: object) -> list[str]:
        """Each run of operators as text."""
        return ["\n\n".join(print_definition(op) for op in group) for group in groups]


def _read(item: Item, context: ParseContext) -> _Read:
    source = Source(item)
    parsed = read_item(source)
    assert isinstance(parsed, tree.Operator)
    _check_name(source, parsed, context)
    described, functions = _describe(source, parsed)
    op = rule.DefineOperatorOp.of(described, functions)
    found = op.functions_among(context.symbols)
    return _Read(source, parsed, op, found, make_operator(op.described(found)))


def _check_name(source: Source, item: tree.Operator, context: ParseContext) -> None:
    """Refuses a name that is not one of an own operator, or taken."""
    place = source.location(item.at)
    namespace, dot, _ = item.name.partition(".")
    if not dot or namespace in NAMESPACES:
        own = f"names in '{namespace}.'" if dot else "names without a namespace"
        raise error_at(
            place, f"operator {item.name}: {own} are mirstack's", "choose a namespace of your own, such as my.gelu"
        )
    if item.name in context.operators:
        raise error_at(place, f"operator {item.name} is defined twice")


def _describe(source: Source, item: tree.Operator) -> tuple[Description, list[str]]:
    """Returns what an item says, and the names of its functions."""
    values: list[tree.Declared] = []
    specs: dict[str, AttrSpec] = {}
    names: set[str] = set()
    for parameter in item.parameters:
        if parameter.name in names:
            raise error_at(source.location(parameter.at), f"'{parameter.name}' is declared twice")
        names.add(parameter.name)
        if parameter.kind is None:
            if specs:
                raise error_at(source.location(parameter.at), "an argument after an attribute", "write arguments first")
            values.append(parameter)
        else:
            specs[parameter.name] = _spec(source, parameter)
    if not values:
        raise error_at(
            source.location(item.at), f"operator {item.name} has no arguments", "its arguments are written %x: Tensor"
        )
    said: dict[str, tree.Clause] = {}
    for clause in item.clauses:
        if clause.word in said:
            raise error_at(source.location(clause.at), f"the clause '{clause.word}' is given twice")
        said[clause.word] = clause
    word = {name: clause.names[0][1] for name, clause in said.items() if name in ("type", "kind")}
    text = {name: str(_literal(source, clause.values[0])) for name, clause in said.items() if name in ("onnx", "doc")}
    described = Description(
        item.name,
        tuple(("*" if value.is_tuple else "") + value.name for value in values),
        tuple(value.type for value in values),
        item.result,
        tuple(specs.values()),
        word.get("type", ""),
        word.get("kind", ""),
        onnx=text.get("onnx", ""),
        doc=text.get("doc", ""),
        location=source.location(item.at),
    )
    functions = [name for _, name in said["compute"].names] if "compute" in said else []
    return described, functions


def _spec(source: Source, parameter: tree.Declared) -> AttrSpec:
    """Returns an attribute. Raises MirError for a kind that there is not, and a default of another kind."""
    place = source.location(parameter.at)
    kinds = kinds_of_attributes()
    default = REQUIRED if parameter.default is None else _literal(source, parameter.default)
    if parameter.kind and parameter.kind not in kinds:
        raise error_at(
            place,
            f"attributes have no kind '{parameter.kind}'{did_you_mean(parameter.kind, kinds)}",
            f"it is {', '.join(kinds)}",
        )
    spec = attr(parameter.name, default, parameter.kind or None, nullable=parameter.nullable)
    value = spec.convert(spec.otherwise)
    if not spec.is_required and not spec.accepts(value):
        raise error_at(
            place, f"the default of '{parameter.name}' must be {spec.values}, not {literal_text(spec.otherwise)}"
        )
    return spec if spec.is_required else replace(spec, default=value)


def _literal(source: Source, node: tree.Node) -> AttrValue:
    match node:
        case tree.Literal():
            return node.value
        case tree.Tuple():
            return tuple(_literal(source, item) for item in node.items)
        case _:
            raise error_at(
                source.location(node.at), "a default is a number, a string, True, False, None or a list of these"
            )


def _define(read: _Read, context: ParseContext) -> Operation:
    """Returns the op of an item with its gradient, and makes the operator known in the file."""
    clause = next((clause for clause in read.item.clauses if clause.word == GRADIENT), None)
    if clause is not None:
        read.op.body.add_block(Block([_gradient(read.source, read.item, clause)]))
    entry = read.op.define(read.functions)
    outside = find_outside(entry.name)
    if outside is not None and outside is not entry:
        raise error_at(
            read.op, f"operator {entry.name}: an extension that is loaded has defined it", "choose another name"
        )
    context.operators[entry.name] = entry
    return read.op


def _gradient(source: Source, item: tree.Operator, clause: tree.Clause) -> Operation:
    """Returns a gradient as a rule: a use and its result's gradient become its arguments' gradients."""
    arguments = [parameter for parameter in item.parameters if parameter.kind is None]
    for parameter in arguments:
        if parameter.name in (GRADIENT, RESULT):
            raise error_at(
                source.location(parameter.at),
                f"%{parameter.name} is the {_MEANS[parameter.name]} in a gradient",
                "call the argument otherwise",
            )
    if len(clause.values) != len(arguments):
        raise error_at(
            source.location(clause.at),
            f"operator {item.name} has {counted(len(arguments), 'argument')}, but {counted(len(clause.values), 'gradient')}",
            "there is one for each argument, separated by commas; zeros_like(%x) where nothing changes",
        )
    at = clause.at
    keywords = [(at, p.name, tree.Attr(at, p.name)) for p in item.parameters if p.kind is not None]
    use = tree.RuleCall(at, tree.RuleCallee(at, [item.name]), [tree.Local(at, a.name) for a in arguments], keywords)
    pattern = tree.Tuple(at, (tree.Named(at, RESULT, use), tree.Local(at, GRADIENT)))
    made = tree.Tuple(at, tuple(clause.values))
    name = item.name.replace(".", "_")
    return RuleBuilder(
        source, tree.Rewrite(at, f"{name}_gradient", tree.Header(), [pattern], [made], ()), "relay"
    ).build()


_MEANS = {GRADIENT: "gradient of the result", RESULT: "result"}


def print_definition(op: Operation) -> str:
    """Returns the item of an operator."""
    assert isinstance(op, rule.DefineOperatorOp)
    parameters: list[str] = []
    for name, type in zip(op.arguments.data, op.types.data, strict=True):
        run = "..." if name.data.startswith("*") else ""
        parameters.append(f"%{name.data.lstrip('*')}{run}: {type.data}")
    for spec in op.specs():
        default = "" if spec.is_required else literal_text(spec.otherwise)
        if default and attr(spec.name, spec.default) == spec:
            parameters.append(f"{spec.name}={default}")
        else:
            kind = f"{spec.name}: {spec.kind}{'?' if spec.nullable else ''}"
            parameters.append(f"{kind} = {default}" if default else kind)
    clauses: list[str] = []
    for word, text in (("type", op.relation), ("kind", op.kind)):
        if text.data:
            clauses.append(f"{word} {text.data}")
    if op.functions.data:
        clauses.append(f"compute {', '.join(f'@{name.data}' for name in op.functions.data)}")
    if isinstance(op.gradient, rule.RewriteOp):
        clauses.append(f"gradient {gradient_text(op.gradient)}")
    for word, text in (("onnx", op.onnx), ("doc", op.doc)):
        if text.data:
            clauses.append(f"{word} {_quoted(text)}")
    head = f"operator {op.sym_name.data}({', '.join(parameters)}) -> {op.result_type.data} {{"
    return "\n".join([head, *(f"  {clause}" for clause in clauses), "}"])


def _quoted(text: StringAttr) -> str:
    return literal_text(text.data)


FORMAT = DefinitionsFormat()
