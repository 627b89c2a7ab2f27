"""Reads StableHLO with xDSL's parser.

JAX writes a module as portable bytecode. MLIR's own library, which comes with JAX, decodes it and prints it in the generic form. Before
that each constant becomes `"mirstack.constant"() {index = 3}`, so that arrays are taken from memory, and each op gets its place in the
source as the attribute `mirstack.at`. xDSL has no dialect of StableHLO: its ops are read as unregistered ones, their attributes are defined here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, Builtin, DictionaryAttr, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from ...dialects.array import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONSTANT = "mirstack.constant"
"""The op that a constant is replaced by; its attribute `index` counts the arrays."""

PLACE = "mirstack.at"
"""The attribute with an op's place in the source."""


# Attributes --------------------------------------------------------------------------------------------------------


class FieldsAttr(ParametrizedAttribute):
    """Base of the attributes that are fields: `<offset_dims = [1], index_vector_dim = 1>`."""

    fields: DictionaryAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def field() -> tuple[str, Attribute]:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            return name, _integers(parser)

        return [DictionaryAttr(dict(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, field)))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.fields.data.items(), lambda item: printer.print_string(f"{item[0]} = {item[1]}"))

    def axes(self, name: str) -> list[int]:
        """Returns a field of axes; one that is not written is empty."""
        found = self.fields.data.get(name)
        return [each.data for each in found if isinstance(each, IntAttr)] if isinstance(found, ArrayAttr) else []

    def number(self, name: str) -> int:
        """Returns a field that is a number; one that is not written is 0."""
        found = self.fields.data.get(name)
        return found.data if isinstance(found, IntAttr) else 0


def _integers(parser: AttrParser) -> Attribute:
    single = parser.parse_optional_integer()
    if single is not None:
        return IntAttr(single)
    found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr([IntAttr(each) for each in found])


@irdl_attr_definition
class DotAttr(FieldsAttr):
    """The axes that `dot_general` pairs."""

    name = "stablehlo.dot"


@irdl_attr_definition
class GatherAttr(FieldsAttr):
    """The roles of axes in `gather`."""

    name = "stablehlo.gather"


@irdl_attr_definition
class ScatterAttr(FieldsAttr):
    """The roles of axes in `scatter`."""

    name = "stablehlo.scatter"


class WordAttr(ParametrizedAttribute, SpacedOpaqueSyntaxAttribute):
    """Base of the attributes that are one word: `#stablehlo<comparison_direction LT>`."""

    word: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f" {self.word.data}")


@irdl_attr_definition
class ComparisonDirectionAttr(WordAttr):
    """EQ, NE, GE, GT, LE or LT."""

    name = "stablehlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(WordAttr):
    """FLOAT, TOTALORDER, SIGNED or UNSIGNED."""

    name = "stablehlo.comparison_type"


@irdl_attr_definition
class PrecisionAttr(WordAttr):
    """DEFAULT, HIGH or HIGHEST."""

    name = "stablehlo.precision"


@irdl_attr_definition
class ConvAttr(ParametrizedAttribute):
    """The axes of a convolution, as letters for batch, features and numbers of spatial axes.

    `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` is "b01f", "01io", "b01f".
    """

    name = "stablehlo.conv"
    data: StringAttr = param_def()
    kernel: StringAttr = param_def()
    result: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def axis() -> str:
            number = parser.parse_optional_integer()
            return parser.parse_identifier() if number is None else str(number)

        def axes() -> StringAttr:
            return StringAttr("".join(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, axis)))

        with parser.in_angle_brackets():
            data = axes()
            parser.parse_keyword("x")
            kernel = axes()
            parser.parse_punctuation("->")
            return [data, kernel, axes()]

    def print_parameters(self, printer: Printer) -> None:
        parts = [f"[{', '.join(each.data)}]" for each in (self.data, self.kernel, self.result)]
        printer.print_string(f"<{parts[0]}x{parts[1]}->{parts[2]}>")


STABLEHLO = Dialect(
    "stablehlo",
    [],
    [DotAttr, GatherAttr, ScatterAttr, ComparisonDirectionAttr, ComparisonTypeAttr, PrecisionAttr, ConvAttr],
)


# Reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HloModule:
    """A module of StableHLO, with the arrays that its constants name by their index."""

    module: ModuleOp
    arrays: Sequence[NDArray[Any]]


def read_module(bytecode: bytes) -> HloModule:
    """Returns the module that jax.export has written as portable bytecode."""
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import sdy, stablehlo

    arrays: list[NDArray[Any]] = []
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        for dialect in (stablehlo, sdy):
            dialect.register_dialect(context)
        module: Any = stablehlo.deserialize_portable_artifact(context, bytecode)
        for op in list(_ops(module.operation)):
            place = _place(str(op.location))
            if place:
                op.attributes[PLACE] = ir.StringAttr.get(place)
            if op.name == "stablehlo.constant":
                _replace_constant(ir, op, len(arrays), place)
                arrays.append(_array(op.attributes["value"]))
                op.erase()
        # The printer leaves elements of large constants out; none is left.
        text: str = module.operation.get_asm(print_generic_op_form=True, assume_verified=True)
    xdsl_context = Context(allow_unregistered=True)
    xdsl_context.load_dialect(Builtin)
    xdsl_context.load_dialect(STABLEHLO)
    return HloModule(Parser(xdsl_context, text, "stablehlo").parse_module(), arrays)


def _ops(op: Any) -> Iterator[Any]:
    """Yields the ops inside of an op of MLIR's library."""
    pending = [op]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                for each in block.operations:
                    yield each.operation
                    pending.append(each.operation)


def _replace_constant(ir: Any, op: Any, index: int, place: str) -> None:
    """Creates the op that names an array in front of a constant, and uses it instead."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index)
    attributes = {"index": number, PLACE: ir.StringAttr.get(place)}
    types = [each.type for each in op.results]
    made = ir.Operation.create(
        CONSTANT, results=types, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op)
    )
    op.results[0].replace_all_uses_with(made.results[0])


DTYPES: dict[str, str] = {
    "i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Relay's names of element types."""


def dtype_name(element_type: object) -> str | None:
    """Returns Relay's name of an element type; None where Relay has none."""
    return DTYPES.get(str(element_type))


def _array(value: Any) -> NDArray[Any]:
    """Returns a constant's elements; equal ones take the memory of one."""
    name = dtype_name(value.type.element_type)
    shape = tuple(value.type.shape)
    if name is None:
        found = np.zeros(())  # The constant's type is refused when it is converted.
    elif name == "bfloat16":
        # MLIR's library does not hand these out as numbers.
        found = _from_text(str(value), numpy_dtype(name))
    elif value.is_splat:
        found = np.array(value.get_splat_value().value, numpy_dtype(name))
    else:
        found = np.array(value).astype(numpy_dtype(name), copy=False)
    return np.broadcast_to(found.reshape(()), shape) if found.size == 1 else found.reshape(shape)


_TOKEN = re.compile(r"0x[0-9A-F]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


def _from_text(text: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns the elements of `dense<…>` of 16-bit floats: bytes, or numbers and bit patterns."""
    body = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(": tensor"))]
    if body.startswith('"'):
        return np.frombuffer(bytes.fromhex(body.strip('"')[2:]), dtype)
    found = [
        np.array(int(each, 16), np.uint16).view(dtype) if each.startswith("0x") else np.array(float(each), dtype)
        for each in _TOKEN.findall(body)
    ]
    return np.array(found, dtype)


_NAME = re.compile(r'loc\("([^"]*)"')
_LINE = re.compile(r'"([^"]+)":(\d+):\d+')


def _place(location: str) -> str:
    """Returns the place of an op: `layer/dot_general (net.py:12)` for `jit(f)/layer/dot_general` there."""
    name = _NAME.match(location)
    line = _LINE.search(location)
    parts = [] if name is None or name.group(1).endswith(".py") else name.group(1).rstrip(":").split("/")
    if len(parts) > 1 and parts[0].startswith(("jit(", "pjit(")):
        parts = parts[1:]
    words = "/".join(re.sub(r"^p?jit\((.*)\)$", r"\1", each) for each in parts)
    if line is None:
        return words
    file = re.split(r"[/\\]", line.group(1))[-1]
    where = f"{file}:{line.group(2)}"
    return f"{words} ({where})" if words else where
