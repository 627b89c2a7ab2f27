"""The ops of a schedule: the script, calls of primitives, items and slices of lists, arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from .arguments import Argument, Encoder, Lambda, Splat, decode
from .signature_table import Signature, SignatureError, signatures
from .types import EXPR, ExprType, ListType, OperandAttr, kind_of_type, type_of_kind

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class ScriptOp(IRDLOperation):
    """`@T.schedule(mm_relu) def mm_relu_tiled(sch): …`: primitives to apply, in order, to a function.

    Without a target, to the module: names of blocks are then of the only function or of `main`, until `sch.work_on`
    or `func_name=` says otherwise.
    """

    name = "schedule.script"
    sym_name = prop_def(StringAttr)
    target = opt_prop_def(SymbolRefAttr)
    parameters = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    """Names of the numbers that a rule's script is given, its block's arguments."""
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, body: Region, target: str | None = None, parameters: Sequence[str] = ()):
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "parameters": ArrayAttr([StringAttr(each) for each in parameters]),
        }
        if target is not None:
            properties["target"] = SymbolRefAttr(target)
        super().__init__(properties=properties, regions=[body])

    def verify_(self) -> None:
        args = self.body.block.args
        if args and not isinstance(self.parent_op(), RuleOp):
            raise VerifyException("a schedule script has no block arguments: handles come from sch.get_block")
        if len(args) != len(self.parameters) or any(not isinstance(arg.type, ExprType) for arg in args):
            raise VerifyException("the script of a rule has one block argument, a schedule.expr, for each parameter")
        for op in self.body.block.ops:
            if not isinstance(op, PrimitiveOp | ItemOp | SliceOp | ComputeOp):
                raise VerifyException(f"a schedule script holds schedule primitives, not '{op.name}'")

    @classmethod
    def parse(cls, parser: Parser) -> ScriptOp:
        name = parser.parse_symbol_name().data
        target: str | None = None
        if parser.parse_optional_punctuation("(") is not None:
            target = parser.parse_symbol_name().data
            parser.parse_punctuation(")")
        names: list[str] = []
        if parser.parse_optional_keyword("takes") is not None:
            names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        return cls(name, parser.parse_region(), target, names)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.target is not None:
            printer.print_string("(")
            printer.print_symbol_name(self.target.root_reference.data)
            printer.print_string(")")
        if self.parameters.data:
            printer.print_string(" takes [")
            printer.print_list(self.parameters.data, lambda each: printer.print_string_literal(each.data))
            printer.print_string("]")
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class RuleOp(IRDLOperation):
    """`rule for nn.dense(%x, %w) where $rows = 4` above `@T.schedule def dense_rows(sch, rows): …`.

    The script schedules each kernel of Relay's operators that the pattern matches. An optional one may be refused by a
    primitive: another rule then schedules the kernel.

    schedule.rule @dense_rows optional { rule.rewrite @dense_rows { … }  schedule.script @dense_rows takes ["rows"] { … } }
    """

    name = "schedule.rule"
    sym_name = prop_def(StringAttr)
    optional = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, body: Region, optional: bool = False):
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name)}
        if optional:
            properties["optional"] = UnitAttr()
        super().__init__(properties=properties, regions=[body])

    @property
    def pattern(self) -> Operation:
        """Returns the `rule.rewrite` whose left side and conditions a kernel must fit."""
        first = self.body.block.first_op
        assert first is not None
        return first

    @property
    def script(self) -> ScriptOp:
        """Returns the script."""
        last = self.body.block.last_op
        assert isinstance(last, ScriptOp)
        return last

    def verify_(self) -> None:
        if [op.name for op in self.body.block.ops] != ["rule.rewrite", "schedule.script"]:
            raise VerifyException("a schedule rule holds a rule.rewrite, its pattern, then a schedule.script")
        if self.script.target is not None:
            raise VerifyException("the script of a schedule rule has no target: it is of each kernel that matches")

    @classmethod
    def parse(cls, parser: Parser) -> RuleOp:
        name = parser.parse_symbol_name().data
        optional = parser.parse_optional_keyword("optional") is not None
        return cls(name, parser.parse_region(), optional)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" optional " if self.optional is not None else " ")
        printer.print_region(self.body)


class PrimitiveOp(IRDLOperation):
    """A primitive applied: `%j0, %j1 = schedule.split(%j, factors = [none, 4])`. One subclass a primitive.

    `arguments` holds what was written, by parameter; handles in it are references to the operands, lambdas to the regions.
    The first `positional` of them are written without their name. A list of results is bound to one name each, to one
    name for all (a single result of list type), or to some of both (`first, *rest`). `result_names` are the names.
    """

    handles = var_operand_def()
    outs = var_result_def()
    arguments = prop_def(DictionaryAttr)
    positional = prop_def(IntegerAttr)
    result_names = prop_def(ArrayAttr[StringAttr])
    lambdas = var_region_def()

    SIGNATURE: ClassVar[Signature]

    def __init__(
        self,
        arguments: Mapping[str, Argument],
        result_types: Sequence[Attribute] = (),
        *,
        positional: int = 0,
        names: Sequence[str] | None = None,
    ):
        encoder = Encoder()
        encoded = DictionaryAttr({name: encoder.encode(value) for name, value in arguments.items()})
        labels = [""] * len(result_types) if names is None else names
        super().__init__(
            operands=[encoder.operands],
            properties={
                "arguments": encoded,
                "positional": IntegerAttr(positional, i64),
                "result_names": ArrayAttr([StringAttr(n) for n in labels]),
            },
            result_types=[list(result_types)],
            regions=[encoder.regions],
        )
        name_results(self, labels)

    @property
    def bound(self) -> dict[str, Argument]:
        """Returns the arguments by parameter, as Python values."""
        return {
            name: decode(value, list(self.handles), list(self.lambdas)) for name, value in self.arguments.data.items()
        }

    def verify_(self) -> None:
        if len(self.result_names) != len(self.outs):
            raise VerifyException("there must be one name, perhaps empty, for each result")
        for operand in self.handles:
            if kind_of_type(operand.type) is None:
                raise VerifyException(f"a schedule primitive takes handles, not {operand.type}")
        bound = self.bound
        try:
            check_call(self.SIGNATURE, bound)
            check_results(self.SIGNATURE, bound, [r.type for r in self.outs])
        except SignatureError as error:
            raise VerifyException(f"{error.message}; {error.note}") from None
        for region in self.lambdas:
            if not isinstance(region.block.last_op, YieldOp):
                raise VerifyException("a lambda must end with schedule.yield of its values")
        positional = self.positional.value.data
        leading = [p.name for p in self.SIGNATURE.parameters][: max(positional, 0)]
        if len(leading) != positional or list(bound)[:positional] != leading:
            raise VerifyException(f"the first {positional} arguments are written without a name, but are not the first")

    @classmethod
    def parse(cls, parser: Parser) -> PrimitiveOp:
        from .text import parse_call

        arguments, positional, names, types = parse_call(parser, cls.SIGNATURE)
        return cls(arguments, types, positional=positional, names=names)

    def print(self, printer: Printer) -> None:
        from .text import print_call

        print_call(self, printer)


def check_call(signature: Signature, bound: Mapping[str, Argument]) -> None:
    """Raises SignatureError where arguments do not fit the parameters."""
    keywords = dict(bound)
    variadic = signature.variadic
    positional = keywords.pop(variadic.name, ()) if variadic is not None else ()
    items: Sequence[object] = positional if isinstance(positional, list | tuple) else (positional,)
    signature.bind(items, keywords)
    signature.check(bound)


def check_results(signature: Signature, bound: Mapping[str, Argument], types: Sequence[Attribute]) -> None:
    """Raises SignatureError where a call's results are bound to other or more names than it has results."""
    kinds = [kind_of_type(t) for t in types]
    note = f"it is called as sch.{signature}"
    if signature.element is None:
        expected = [] if signature.result == "none" else [signature.result]
        if len(kinds) > len(expected):
            gives = "nothing" if not expected else f"one {signature.result}"
            raise SignatureError(f"{signature.name} gives {gives}, but {_taken(len(kinds))}", note)
        if kinds and kinds != expected:
            raise SignatureError(f"{signature.name} gives a {signature.result}, not a {kinds[0]}", note)
        return
    lists = [k for k in kinds if k == signature.result]
    if len(lists) > 1 or any(k not in (signature.element, signature.result) for k in kinds):
        raise SignatureError(f"{signature.name} gives a list of {signature.element}s", note)
    known = bound.get(signature.counted_by) if signature.counted_by else None
    if isinstance(known, list) and any(isinstance(item, Splat) for item in known):
        return
    count = signature.result_count(bound)
    if kinds and count is not None and (len(kinds) - 1 > count if lists else len(kinds) != count):
        raise SignatureError(
            f"{signature.name} gives {counted(count, signature.element)} here, but {_taken(len(kinds))}",
            note,
        )


def _taken(names: int) -> str:
    return "1 name takes a result" if names == 1 else f"{names} names take results"


@irdl_op_definition
class ItemOp(IRDLOperation):
    """An item of a list of handles, `loops[-1]`.

    `schedule.item %loops[-1] as "last" : !schedule.list<!schedule.loop>`
    """

    name = "schedule.item"
    list = operand_def(ListType)
    index = prop_def(IntegerAttr)
    result_name = prop_def(StringAttr, default_value=StringAttr(""))
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, list: SSAValue, index: int, name: str = ""):
        assert isinstance(list.type, ListType)
        super().__init__(
            operands=[list],
            properties={"index": IntegerAttr(index, i64), "result_name": StringAttr(name)},
            result_types=[list.type.element],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ItemOp:
        from .text import parse_item

        return cls(*parse_item(parser))

    def print(self, printer: Printer) -> None:
        from .text import print_item

        print_item(self, printer)

    def verify_(self) -> None:
        assert isinstance(self.list.type, ListType)
        if self.result.type != self.list.type.element:
            raise VerifyException(f"an item of a {self.list.type} is a {self.list.type.element}")


@irdl_op_definition
class SliceOp(IRDLOperation):
    """A slice of a list of handles by Python's rules, `loops[1:]`.

    `schedule.slice %loops[1 : none : none] : …`
    """

    name = "schedule.slice"
    list = operand_def(ListType)
    start = opt_prop_def(IntegerAttr)
    stop = opt_prop_def(IntegerAttr)
    step = opt_prop_def(IntegerAttr)
    result_name = prop_def(StringAttr, default_value=StringAttr(""))
    result = result_def(ListType)
    traits = traits_def(Pure())

    def __init__(
        self, list: SSAValue, start: int | None = None, stop: int | None = None, step: int | None = None, name: str = ""
    ):
        bounds = {"start": start, "stop": stop, "step": step}
        super().__init__(
            operands=[list],
            properties={
                "result_name": StringAttr(name),
                **{key: IntegerAttr(value, i64) for key, value in bounds.items() if value is not None},
            },
            result_types=[list.type],
        )

    @property
    def bounds(self) -> slice:
        """Returns the slice in Python."""
        start, stop, step = (None if b is None else b.value.data for b in (self.start, self.stop, self.step))
        return slice(start, stop, step)

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        from .text import parse_slice

        return cls(*parse_slice(parser))

    def print(self, printer: Printer) -> None:
        from .text import print_slice

        print_slice(self, printer)

    def verify_(self) -> None:
        if self.result.type != self.list.type:
            raise VerifyException("a slice has the type of what it is taken from")
        if self.step is not None and self.step.value.data == 0:
            raise VerifyException("the step of a slice is not 0")


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """Arithmetic on drawn numbers, `v0 * 2`: two sides, each a number or an operand.

    `"schedule.compute"(%v0) <{op = "*", sides = [#schedule.operand<0>, 2 : i64]}> : (!schedule.expr) -> !schedule.expr`
    """

    name = "schedule.compute"
    handles = var_operand_def(ExprType)
    op = prop_def(StringAttr)
    sides = prop_def(ArrayAttr)
    result = result_def(ExprType)
    traits = traits_def(Pure())

    def __init__(self, op: str, left: Argument, right: Argument):
        encoder = Encoder()
        sides = ArrayAttr([encoder.encode(left), encoder.encode(right)])
        properties = {"op": StringAttr(op), "sides": sides}
        super().__init__(operands=[encoder.operands], properties=properties, result_types=[EXPR])

    @property
    def arguments(self) -> tuple[Argument, Argument]:
        """Returns the two sides."""
        left, right = (decode(side, list(self.handles), []) for side in self.sides.data)
        return left, right

    def verify_(self) -> None:
        if self.op.data not in ARITHMETIC:
            raise VerifyException(f"'{self.op.data}' is not arithmetic; there are {' '.join(ARITHMETIC)}")
        if len(self.sides.data) != 2 or not all(
            isinstance(side, OperandAttr | IntegerAttr) for side in self.sides.data
        ):
            raise VerifyException("arithmetic has two sides, each an operand or an integer")
        _ = self.arguments


ARITHMETIC = ("+", "-", "*", "//", "%")
"""The operators of `ComputeOp`."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values of a lambda: those of its tuple or list, or its one value when `single`.

    `schedule.yield %y, %x separators [1] : i32, i32`; `schedule.yield single %x : i32`. `separators` are the places (from 0, in rising order) of the values before which an axis separator stands.
    """

    name = "schedule.yield"
    values = var_operand_def()
    single = prop_def(IntegerAttr, default_value=IntegerAttr(0, 1))
    separators = prop_def(ArrayAttr[IntegerAttr], default_value=ArrayAttr([]))
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue], *, single: bool = False, separators: Sequence[int] = ()):
        places = ArrayAttr([IntegerAttr(place, i64) for place in separators])
        super().__init__(
            operands=[list(values)], properties={"single": IntegerAttr(int(single), 1), "separators": places}
        )

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        from .text import parse_yield

        values, single, separators = parse_yield(parser)
        return cls(values, single=single, separators=separators)

    def print(self, printer: Printer) -> None:
        from .text import print_yield

        print_yield(self, printer)

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), PrimitiveOp):
            raise VerifyException("schedule.yield ends a lambda of a schedule primitive")
        if self.single.value.data and len(self.values) != 1:
            raise VerifyException(f"a lambda of a single value yields {counted(len(self.values), 'value')}")
        places = [place.value.data for place in self.separators]
        if places != sorted(places) or any(not 0 <= place <= len(self.values) for place in places):
            raise VerifyException("axis separators stand between values, in rising order")


@cache
def primitive_class(name: str) -> type[PrimitiveOp]:
    """Returns the op class `schedule.NAME` of a primitive, created on first use; KeyError for other names."""
    signature = signatures()[name]
    namespace = {
        "name": f"schedule.{name}",
        "SIGNATURE": signature,
        "__doc__": f"`sch.{signature}`.",
        "__module__": __name__,
        "__annotations__": {"SIGNATURE": ClassVar[Signature]},
    }
    words = "".join(part.capitalize() for part in name.split("_"))
    return irdl_op_definition(type(f"{words}Op", (PrimitiveOp,), namespace))


def result_types(signature: Signature, whole: Sequence[bool]) -> list[Attribute]:
    """Returns the types of results bound to names; a name that is `whole` takes a list, or the rest of it."""
    if signature.element is None:
        kind = "block" if signature.result == "none" else signature.result
        return [type_of_kind(kind)] * len(whole)
    return [type_of_kind(signature.result if each else signature.element) for each in whole]


def name_results(op: Operation, names: Sequence[str]) -> None:
    """Names the results in MLIR's form, as far as it can spell the names."""
    for result, name in zip(op.results, names, strict=True):
        if name and SSAValue.is_valid_name(name):
            result.name_hint = name


def result_name(value: SSAValue) -> str:
    """Returns the name of a handle in the text; empty where it has none."""
    owner = value.owner
    if isinstance(owner, PrimitiveOp):
        return owner.result_names.data[value.index].data  # type: ignore[attr-defined]
    if isinstance(owner, ItemOp | SliceOp):
        return owner.result_name.data
    if isinstance(script := owner.parent_op() if isinstance(owner, Block) else None, ScriptOp):
        return script.parameters.data[value.index].data  # type: ignore[attr-defined]
    return ""


__all__ = [
    "ARITHMETIC",
    "ComputeOp",
    "ItemOp",
    "Lambda",
    "PrimitiveOp",
    "RuleOp",
    "ScriptOp",
    "SliceOp",
    "YieldOp",
    "check_call",
    "check_results",
    "name_results",
    "primitive_class",
    "result_name",
    "result_types",
]
