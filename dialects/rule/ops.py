"""The ops of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolNameConstraint, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, NoTerminator, Pure, SymbolOpInterface

from .types import ATTR, ATTRS, OPERATION, RUN, VALUE


@irdl_op_definition
class RewriteOp(IRDLOperation):
    """`rewrite @name benefit(2) for tir { lhs => rhs where condition }`, or `fast rewrite @name …`.

    Of rules that match at one op, that of the greatest benefit is tried first. `level` is the dialect whose infix
    operators and unqualified op names the text uses ("relay" unless given). A `fast` rule holds for real numbers: of floats it
    keeps neither rounding nor NaN, infinities and signed zeros.
    """

    name = "rule.rewrite"
    assembly_format = "$sym_name attr-dict-with-keyword $body"
    sym_name = prop_def(SymbolNameConstraint())
    benefit = prop_def(IntegerAttr, default_value=IntegerAttr(1, 64))
    level = prop_def(StringAttr, default_value=StringAttr("relay"))
    fast = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, body: Region, *, benefit: int = 1, level: str = "relay", fast: bool = False):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "benefit": IntegerAttr(benefit, 64),
                "level": StringAttr(level),
                **({"fast": UnitAttr()} if fast else {}),
            },
            regions=[body],
        )

    @property
    def is_fast(self) -> bool:
        """Whether the rule is marked `fast`."""
        return self.fast is not None

    def verify_(self) -> None:
        from .verify import verify_rewrite

        verify_rewrite(self)


@irdl_op_definition
class RulesetOp(IRDLOperation):
    """`ruleset @name { include @other; rewrite @a { … } }`: rules that are applied together."""

    name = "rule.set"
    assembly_format = "$sym_name attr-dict-with-keyword $body"
    sym_name = prop_def(SymbolNameConstraint())
    includes = prop_def(ArrayAttr[SymbolRefAttr], default_value=ArrayAttr([]))
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface(), NoTerminator())

    def __init__(self, name: str, body: Region, includes: Sequence[str] = ()):
        super().__init__(
            properties={"sym_name": StringAttr(name), "includes": ArrayAttr([SymbolRefAttr(i) for i in includes])},
            regions=[body],
        )

    def verify_(self) -> None:
        from .verify import verify_ruleset

        verify_ruleset(self)


@irdl_op_definition
class AnyOp(IRDLOperation):
    """`%x`: any value (`_` without a name), or `%xs...`: any number of neighbouring operands."""

    name = "rule.any"
    assembly_format = "($capture^)? attr-dict `:` type($result)"
    capture = opt_prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, capture: str | None, *, run: bool = False):
        super().__init__(properties=_named(capture), result_types=[RUN if run else VALUE])


@irdl_op_definition
class LiteralOp(IRDLOperation):
    """`1`, `0.5`, `True` in a pattern: a constant each of whose elements is that number."""

    name = "rule.literal"
    assembly_format = "$value attr-dict `:` type($result)"
    value = prop_def(Attribute)
    result = result_def(VALUE)
    traits = traits_def(Pure())

    def __init__(self, value: Attribute):
        super().__init__(properties={"value": value}, result_types=[VALUE])


@irdl_op_definition
class MatchOp(IRDLOperation):
    """`%m = [add, subtract]$op(%x, %y, axis=$a, **$rest)`: an op of one of the names, and what it is applied to.

    `attr_names[k]` must have the value of `attrs[k]`; other attributes may be anything. Results: the op's value; with
    `rest`, the attributes not named; with `op_capture`, which op it was.
    """

    name = "rule.match"
    assembly_format = (
        "$names `(` $args `)` (`[` $attrs^ `]`)? attr-dict `:` type($args) `->` type($result) "
        "(`rest` type($rest)^)? (`op` type($op)^)?"
    )
    names = prop_def(ArrayAttr[StringAttr])
    capture = opt_prop_def(StringAttr)
    attr_names = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    args = var_operand_def()
    attrs = var_operand_def(ATTR)
    rest_name = opt_prop_def(StringAttr)
    op_name_capture = opt_prop_def(StringAttr)
    result = result_def(VALUE)
    rest = opt_result_def(ATTRS)
    op = opt_result_def(OPERATION)
    irdl_options = (
        ParsePropInAttrDict(),
        AttrSizedOperandSegments(as_property=True),
        AttrSizedResultSegments(as_property=True),
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        names: Sequence[str],
        args: Sequence[SSAValue],
        attrs: Mapping[str, SSAValue],
        *,
        capture: str | None = None,
        rest: str | None = None,
        op: str | None = None,
    ):
        properties: dict[str, Attribute] = {
            "names": _strings(names),
            "attr_names": _strings(attrs),
            **_named(capture),
            **_named(rest, "rest_name"),
            **_named(op, "op_name_capture"),
        }
        super().__init__(
            operands=[list(args), list(attrs.values())],
            properties=properties,
            result_types=[VALUE, [] if rest is None else [ATTRS], [] if op is None else [OPERATION]],
        )


@irdl_op_definition
class AttrOp(IRDLOperation):
    """`$a` in a pattern: what the attribute is there."""

    name = "rule.attr"
    assembly_format = "$capture attr-dict `:` type($result)"
    capture = prop_def(StringAttr)
    result = result_def(ATTR)
    traits = traits_def(Pure())

    def __init__(self, capture: str):
        super().__init__(properties=_named(capture), result_types=[ATTR])


@irdl_op_definition
class DataOp(IRDLOperation):
    """A literal of the attribute language: a number, a string, True, None, a list."""

    name = "rule.data"
    assembly_format = "$value attr-dict `:` type($result)"
    value = prop_def(Attribute)
    result = result_def(ATTR)
    traits = traits_def(Pure())

    def __init__(self, value: Attribute):
        super().__init__(properties={"value": value}, result_types=[ATTR])


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """`prod(%x.shape) // $n`: a function of the registry (`functions.py`) applied to values and attributes.

    `capture` is the name that a `where $s = …` gives it.
    """

    name = "rule.compute"
    assembly_format = "$function `(` $args `)` attr-dict `:` functional-type($args, $result)"
    function = prop_def(StringAttr)
    capture = opt_prop_def(StringAttr)
    args = var_operand_def()
    result = result_def(ATTR)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, function: str, args: Sequence[SSAValue], capture: str | None = None):
        super().__init__(
            operands=[list(args)],
            properties={"function": StringAttr(function), **_named(capture)},
            result_types=[ATTR],
        )


@irdl_op_definition
class WhereOp(IRDLOperation):
    """The rule applies only where the condition is true."""

    name = "rule.where"
    assembly_format = "$condition attr-dict `:` type($condition)"
    condition = operand_def(ATTR)

    def __init__(self, condition: SSAValue):
        super().__init__(operands=[condition])


@irdl_op_definition
class BuildOp(IRDLOperation):
    """`ewise_fma(%x, %y, %z)` in a replacement: a new op, its type inferred.

    Which op: `callee`, or what `op` (the `$op` of a pattern) was. `rest` are attributes taken over from a match;
    those of `attr_names` win over them.
    """

    name = "rule.build"
    assembly_format = (
        "(`of` $callee^)? `(` $args `)` (`[` $attrs^ `]`)? (`rest` $rest^)? (`op` $op^)? attr-dict "
        "`:` type($args) `->` type($result)"
    )
    callee = opt_prop_def(StringAttr)
    capture = opt_prop_def(StringAttr)
    attr_names = prop_def(ArrayAttr[StringAttr], default_value=ArrayAttr([]))
    args = var_operand_def()
    attrs = var_operand_def(ATTR)
    rest = opt_operand_def(ATTRS)
    op = opt_operand_def(OPERATION)
    result = result_def(VALUE)
    irdl_options = (
        ParsePropInAttrDict(),
        AttrSizedOperandSegments(as_property=True),
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        callee: str | SSAValue,
        args: Sequence[SSAValue],
        attrs: Mapping[str, SSAValue],
        *,
        rest: SSAValue | None = None,
        capture: str | None = None,
    ):
        by_name = isinstance(callee, str)
        super().__init__(
            operands=[
                list(args),
                list(attrs.values()),
                [] if rest is None else [rest],
                [] if by_name else [callee],
            ],
            properties={
                "attr_names": _strings(attrs),
                **_named(callee if by_name else None, "callee"),
                **_named(capture),
            },
            result_types=[VALUE],
        )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A number or an array as a constant of the program: of `dtype` if given, else of the replaced value's element type."""

    name = "rule.constant"
    assembly_format = "$value (`,` $dtype^)? attr-dict `:` type($value) (`,` type($dtype)^)? `->` type($result)"
    value = operand_def(ATTR)
    dtype = opt_operand_def(ATTR)
    capture = opt_prop_def(StringAttr)
    result = result_def(VALUE)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, dtype: SSAValue | None = None, capture: str | None = None):
        super().__init__(
            operands=[value, [] if dtype is None else [dtype]], properties=_named(capture), result_types=[VALUE]
        )


@irdl_op_definition
class FoldOp(IRDLOperation):
    """`fold(multiply(%w, %s))`: the value computed while rewriting; the rule applies only where it is constant."""

    name = "rule.fold"
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"
    value = operand_def(VALUE)
    capture = opt_prop_def(StringAttr)
    result = result_def(VALUE)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, capture: str | None = None):
        super().__init__(operands=[value], properties=_named(capture), result_types=[VALUE])


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`multiply(%s, %g) if $scale else %s` in a replacement: one of two values; both are made, and the other is dropped."""

    name = "rule.select"
    assembly_format = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)"
    condition = operand_def(ATTR)
    on_true = operand_def(VALUE)
    on_false = operand_def(VALUE)
    capture = opt_prop_def(StringAttr)
    result = result_def(VALUE)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue, capture: str | None = None):
        super().__init__(operands=[condition, on_true, on_false], properties=_named(capture), result_types=[VALUE])


@irdl_op_definition
class ReplaceOp(IRDLOperation):
    """Ends a rule: each root of the pattern and the value that takes its place."""

    name = "rule.replace"
    assembly_format = "$roots `with` $values attr-dict `:` type($roots) `with` type($values)"
    roots = var_operand_def(VALUE)
    values = var_operand_def(VALUE)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator())

    def __init__(self, roots: Sequence[SSAValue], values: Sequence[SSAValue]):
        super().__init__(operands=[list(roots), list(values)])


PATTERN_OPS: tuple[type[Operation], ...] = (AnyOp, LiteralOp, MatchOp, AttrOp)


def capture_of(value: SSAValue) -> str | None:
    """The name that the text gives a value of a rule, without its sigil."""
    owner = value.owner
    if isinstance(owner, MatchOp):
        if value is owner.rest:
            return owner.rest_name.data if owner.rest_name else None
        if value is owner.op:
            return owner.op_name_capture.data if owner.op_name_capture else None
    capture = getattr(owner, "capture", None)
    return capture.data if isinstance(capture, StringAttr) else None


def _named(name: str | None, key: str = "capture") -> dict[str, Attribute]:
    return {} if name is None else {key: StringAttr(name)}


def _strings(names: Sequence[str] | Mapping[str, SSAValue]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])
