"""Defines the types and ops of rules, and verifies that rules are well-formed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
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

from ...support.diagnostics import error_at
from ...support.notebook import text_html
from ...support.text import counted, nearest
from ..relay.operator import from_attribute, operator_at
from .functions import FUNCTIONS, LAZY
from .levels import LEVELS, is_level, level_of
from .numbers import check_number


def _rule_html(op: Operation) -> str:
    """Returns the rule's text for notebooks."""
    # By name: printers of formats import dialects.
    printer = import_module("....parser.rules.printer", __name__)
    return text_html(printer.print_rule(op))


@irdl_attr_definition
class ValueType(ParametrizedAttribute, TypeAttribute):
    """One SSA value of the program: `%x`."""

    name = "rule.value"


@irdl_attr_definition
class RunType(ParametrizedAttribute, TypeAttribute):
    """Any number of neighbouring operands: `%xs...`."""

    name = "rule.run"


@irdl_attr_definition
class AttrType(ParametrizedAttribute, TypeAttribute):
    """`$a`: an attribute or a computed value: a number, string, bool, None, tuple, shape or dtype."""

    name = "rule.attr"


@irdl_attr_definition
class AttrsType(ParametrizedAttribute, TypeAttribute):
    """The attributes of a matched op that the pattern does not name: `**$rest`."""

    name = "rule.attrs"


@irdl_attr_definition
class OperationType(ParametrizedAttribute, TypeAttribute):
    """The op that was matched among several: `[add, subtract]$op`."""

    name = "rule.operation"


VALUE, RUN, ATTR, ATTRS, OPERATION = ValueType(), RunType(), AttrType(), AttrsType(), OperationType()


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
        """Returns True if the rule is marked `fast`."""
        return self.fast is not None

    def verify_(self) -> None:
        verify_rewrite(self)

    def __repr__(self) -> str:
        return f"RewriteOp(@{self.sym_name.data})"

    def _repr_html_(self) -> str:
        return _rule_html(self)


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
        verify_ruleset(self)

    def __repr__(self) -> str:
        return f"RulesetOp(@{self.sym_name.data})"

    def _repr_html_(self) -> str:
        return _rule_html(self)


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
    """`%m = [add, subtract]$op(%x, %y, axis=$a, **$rest)`: an op of one of the names, and its operands.

    `attr_names[k]` must have the value of `attrs[k]`; other attributes may be anything. Results: the op's value; with
    `rest`, the attributes not named; with `op_capture`, the op's name.
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
    """`$a` in a pattern: the value of the attribute."""

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
    """`prod(%x.shape) // $n`: a function of the registry applied to values and attributes.

    `capture` is its name in `where $s = …`.
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
            operands=[list(args)], properties={"function": StringAttr(function), **_named(capture)}, result_types=[ATTR]
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

    The op is `callee`, or the op captured as `op` (the `$op` of a pattern). `rest` are attributes taken over from a match;
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
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))
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
            operands=[list(args), list(attrs.values()), [] if rest is None else [rest], [] if by_name else [callee]],
            properties={
                "attr_names": _strings(attrs),
                **_named(callee if by_name else None, "callee"),
                **_named(capture),
            },
            result_types=[VALUE],
        )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A number or array as a constant of `dtype`, by default of the replaced value's element type."""

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
    """`fold(multiply(%w, %s))`: a value computed while rewriting; the rule applies only to constants."""

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
    """`multiply(%s, %g) if $scale else %s` in a replacement: builds both values and drops one."""

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


def capture_of(value: SSAValue) -> str | None:
    """Returns the name of a value in a rule's text, without its sigil."""
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


def verify_rewrite(rule: RewriteOp) -> None:
    """Raises MirError for a rule that no program could be rewritten with.

    The pattern's roots must be ops, each connected to the first by a captured value; a pattern is made of patterns;
    ops and functions must exist and have their numbers of arguments; conditions use only captures of the pattern.
    """
    if not is_level(rule.level.data):
        raise error_at(
            rule, f"there is no dialect '{rule.level.data}' to rewrite", f"a rule is for one of {', '.join(LEVELS)}"
        )
    if rule.benefit.value.data < 0:
        raise error_at(rule, "a benefit is 0 or more")
    last = rule.body.block.last_op
    if not isinstance(last, ReplaceOp):
        raise error_at(rule, f"rule @{rule.sym_name.data} ends without a replacement", "write lhs => rhs")
    roots, values = list(last.roots), list(last.values)
    if not roots or len(roots) != len(values):
        raise error_at(
            rule,
            f"rule @{rule.sym_name.data} replaces {counted(len(roots), 'value')} by {len(values)}",
            "each root of the left side has its replacement on the right, in the same order",
        )
    for root in roots:
        if not isinstance(root.owner, MatchOp):
            raise error_at(root, "a rule's left side must be an op", "a bare capture would match every value there is")
    for op in rule.body.block.ops:
        match op:
            case ComputeOp():
                _verify_function(op)
            case MatchOp():
                _verify_match(op)
            case BuildOp():
                _verify_build(op)
            case LiteralOp():
                if not isinstance(from_attribute(op.value), int | float):
                    raise error_at(op, "a literal of a pattern is a number, True or False")
            case WhereOp():
                _verify_condition(op)
            case ConstantOp() if isinstance(op.value.owner, DataOp) and op.dtype and isinstance(op.dtype.owner, DataOp):
                number, dtype = from_attribute(op.value.owner.value), from_attribute(op.dtype.owner.value)
                check_number(op, number, dtype, rule.level.data, True)
            case _:
                if not op.name.startswith("rule."):
                    raise error_at(op, f"a rule holds ops of its own dialect, not '{op.name}'")
    _verify_connected(rule, roots)


def _verify_match(op: MatchOp) -> None:
    if not op.names.data:
        raise error_at(op, "a pattern names the op that it matches, or several")
    for arg in op.args:
        if not isinstance(arg.owner, AnyOp | LiteralOp | MatchOp) or arg.type not in (VALUE, RUN):
            raise error_at(op, "a pattern is made of patterns", "what a rule makes or computes cannot be matched")
    for attr in op.attrs:
        if not isinstance(attr.owner, AttrOp | DataOp):
            raise error_at(
                op, "an attribute's pattern is a literal or a capture", "compare what is computed by a condition"
            )
    _verify_call(op, [name.data for name in op.names.data])


def _verify_build(op: BuildOp) -> None:
    if (op.callee is None) == (op.op is None):
        raise error_at(op, "a new op is either named, or one that the pattern captured")
    for arg in op.args:
        if arg.type not in (VALUE, RUN):
            raise error_at(op, "a new op's arguments are values", "attributes are given by name")
    _verify_call(op, [] if op.callee is None else [op.callee.data])


def _verify_call(op: MatchOp | BuildOp, names: Sequence[str]) -> None:
    attributes = [name.data for name in op.attr_names.data]
    if len(attributes) != len(op.attrs):
        raise error_at(op, f"{counted(len(attributes), 'attribute name')} for {counted(len(op.attrs), 'attribute')}")
    count = None if any(arg.type == RUN for arg in op.args) else len(op.args)
    for name in names:
        level = level_of(name)
        plain = name.removeprefix("relay.") if level.name == "relay" else name
        if level.resolve(plain) is None and operator_at(plain, op) is None:
            raise error_at(op, f"there is no op '{name}'")
        problem = level.problem(name, count, attributes)
        if problem is not None:
            raise error_at(op, problem)


def _verify_condition(op: WhereOp) -> None:
    """Verifies a condition, which is decided before anything is built."""
    pending, seen = [op.condition], set[object]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        match value.owner:
            case ComputeOp() as compute:
                pending += compute.args
            case AnyOp() | LiteralOp() | MatchOp() | AttrOp() | DataOp():
                pass
            case _:
                raise error_at(
                    op, "a condition of what is not there yet", "conditions are of what the pattern captures"
                )


def _verify_function(op: ComputeOp) -> None:
    name = op.function.data
    arity = LAZY.get(name)
    if arity is None:
        function = FUNCTIONS.get(name)
        if function is None:
            near = nearest(name, FUNCTIONS)
            hint = f"did you mean '{near}'?" if near else "docs/rules.md lists those that there are"
            raise error_at(op, f"there is no function '{name}'", hint)
        arity = function.arity
    if arity is not None and len(op.args) != arity:
        raise error_at(op, f"{name} takes {counted(arity, 'argument')}, not {len(op.args)}")


def _verify_connected(rule: RewriteOp, roots: Sequence[object]) -> None:
    """Verifies that every further root shares a value with those before it, from which it can be found."""
    reached: set[object] = set()
    for index, root in enumerate(roots):
        found = _captures_below(root)
        if index and not any(capture in reached for capture in found if isinstance(capture, AnyOp | MatchOp)):
            raise error_at(
                getattr(root, "owner", rule),
                "this root has no value in common with those before it",
                "roots are found from one another by a captured value that both use",
            )
        reached |= found


def _captures_below(root: object) -> set[object]:
    found: set[object] = set()
    pending = [root]
    while pending:
        value = pending.pop()
        if not isinstance(value, SSAValue) or not isinstance(value.owner, Operation) or value.owner in found:
            continue
        found.add(value.owner)
        if isinstance(value.owner, MatchOp):
            pending += value.owner.args
    return found


def verify_ruleset(ruleset: RulesetOp) -> None:
    """Raises MirError where a set holds anything but rules."""
    for op in ruleset.body.block.ops:
        if not isinstance(op, RewriteOp):
            raise error_at(op, f"a ruleset holds rules, not '{op.name}'")


def rewrites_of(module: ModuleOp, name: str | None = None) -> list[RewriteOp]:
    """Returns the rules of a module in order, or of the set or single rule called `name`.

    Raises:
        MirError: where the name, or that of any included set, is not in the module, or sets include each other.
    """
    named = {_symbol(op): op for op in _all(module) if isinstance(op, RewriteOp | RulesetOp)}
    found: list[RewriteOp] = []
    seen: set[str] = set()

    def collect(name: str, where: Operation, open_sets: tuple[str, ...]) -> None:
        op = named.get(name)
        if op is None:
            known = ", ".join(f"@{n}" for n in named) or "none"
            raise error_at(where, f"there is no rule or ruleset @{name}", f"there are: {known}")
        if name in open_sets:
            raise error_at(op, f"ruleset @{name} includes itself", " → ".join(f"@{n}" for n in (*open_sets, name)))
        if name in seen:
            return
        seen.add(name)
        if isinstance(op, RewriteOp):
            found.append(op)
            return
        for included in op.includes.data:
            collect(included.root_reference.data, op, (*open_sets, name))
        for rule in _rules_in(op):
            if _symbol(rule) not in seen:
                seen.add(_symbol(rule))
                found.append(rule)

    if name is not None:
        collect(name, module, ())
        return found
    # Included sets are looked up, too: the names must exist.
    for op in module.ops:
        if isinstance(op, RulesetOp):
            collect(_symbol(op), op, ())
    return [rule for op in module.ops for rule in _rules_in(op)]


def _all(module: ModuleOp) -> Iterable[Operation]:
    for op in module.ops:
        yield op
        if isinstance(op, RulesetOp):
            yield from op.body.block.ops


def _rules_in(op: Operation) -> list[RewriteOp]:
    if isinstance(op, RewriteOp):
        return [op]
    return [rule for rule in op.body.block.ops if isinstance(rule, RewriteOp)] if isinstance(op, RulesetOp) else []


def _symbol(op: RewriteOp | RulesetOp) -> str:
    return op.sym_name.data
