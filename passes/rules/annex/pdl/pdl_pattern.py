"""One `pdl.pattern` of a rule in which every choice is made; see `convert_rules_to_pdl`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

from xdsl.dialects import pdl
from xdsl.dialects.builtin import IntegerType, StringAttr, bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    AttrSizedOperandSegments,
    IRDLOperation,
    OpDef,
    OptOperandDef,
    OptPropertyDef,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
    VarOperandDef,
    VarResultDef,
    VerificationContext,
)
from xdsl.traits import SameOperandsAndResultType
from xdsl.utils.exceptions import VerifyException

from .....dialects import rule as ir
from .....dialects.relay.operator import from_attribute
from .....dialects.rule.dtypes import dtype_source
from .....dialects.rule.functions import FUNCTIONS
from .....dialects.rule.levels import level_of
from .....dialects.rule.levels.other import OtherLevel
from .....dialects.tir.types import dtype_to_type
from .....support.diagnostics import MirError, error_at

_SCALARS: tuple[Attribute, ...] = (i1, i8, i16, i32, i64, f16, bf16, f32, f64)
_APPLY = "apply it with apply-rules, which takes every rule"


def refuse(op: Operation, why: str, *notes: str) -> MirError:
    """The error that the rule of `op` cannot be said in PDL, at the rule."""
    rule = op
    while not isinstance(rule, ir.RewriteOp):
        parent = rule.parent_op()
        assert parent is not None
        rule = parent
    return error_at(rule, f"rule @{rule.sym_name.data} cannot be a pdl.pattern: {why}", *(notes or (_APPLY,)))


@dataclass(frozen=True)
class MatchChoice:
    """One choice of a pattern: the op of each match, and the matches whose two operands are exchanged."""

    names: Mapping[ir.MatchOp, str]
    swapped: frozenset[ir.MatchOp]


class _Types:
    """Types of a rule's values: sets of values of one type, and what is known of each."""

    def __init__(self) -> None:
        self.parent: dict[SSAValue, SSAValue] = {}
        self.fixed: dict[SSAValue, Attribute] = {}
        self.constraints: dict[SSAValue, list[AttrConstraint]] = {}

    def find(self, value: SSAValue) -> SSAValue:
        while (above := self.parent.get(value, value)) is not value:
            value = above
        return value

    def unify(self, a: SSAValue, b: SSAValue) -> None:
        a, b = self.find(a), self.find(b)
        if a is not b:
            self.parent[b] = a
            self.constraints.setdefault(a, []).extend(self.constraints.pop(b, []))

    def allows(self, value: SSAValue, type: Attribute) -> bool:
        for constraint in self.constraints.get(self.find(value), []):
            try:
                constraint.verify(type, VerificationContext())
            except VerifyException:
                return False
        return True


class PatternWriter:
    """Writes the patterns of a rule for one choice."""

    def __init__(self, rule: ir.RewriteOp, choice: MatchChoice):
        self.rule, self.choice = rule, choice
        self.types = _Types()
        self.concrete: dict[SSAValue, Attribute] = {}
        """The type of a class of values, where a pattern has to name it."""
        self.values: dict[SSAValue, SSAValue] = {}
        self.operations: dict[SSAValue, SSAValue] = {}
        self.type_values: dict[SSAValue, SSAValue] = {}
        self.ops: list[Operation] = []
        self.constraints: list[tuple[ir.ComputeOp, bool]] = []
        last = rule.body.block.last_op
        assert isinstance(last, ir.ReplaceOp)
        self.replace = last

    def write(self) -> Iterator[tuple[list[Operation], pdl.RewriteOp]]:
        """The ops that match and the one that rewrites, for each choice of the types that have to be named."""
        if len(self.replace.roots) != 1:
            raise refuse(self.rule, "it has several roots", "write a rule for each root, or apply it with apply-rules")
        root, value = self.replace.roots[0], self.replace.values[0]
        assert isinstance(root.owner, ir.MatchOp)
        if isinstance(value.owner, ir.ConstantOp) and _definition(self.choice.names[root.owner]) is None:
            raise refuse(self.rule, "PDL cannot say a constant of Relay, which is an array of any shape")
        named: list[SSAValue] = []
        for op in self.rule.body.block.ops:
            self._read(op, root, named)
        self.types.unify(root, value)
        classes = list(dict.fromkeys(self.types.find(v) for v in named))
        options = [[t for t in _SCALARS if self.types.allows(c, t)] for c in classes]
        for types in product(*options):
            self.concrete = dict(zip(classes, types, strict=True))
            for v, type in self.types.fixed.items():
                if self.concrete.setdefault(self.types.find(v), type) != type:
                    break
            else:
                written = self._write(root, value)
                if written is not None:
                    yield written

    # What the rule says ------------------------------------------------------------------------------------------------

    def _read(self, op: Operation, root: SSAValue, named: list[SSAValue]) -> None:
        match op:
            case ir.AnyOp() if op.result.type == ir.RUN:
                raise refuse(op, "PDL has no run of operands between others (%xs...)")
            case ir.MatchOp():
                if op.rest is not None:
                    raise refuse(op, "PDL cannot take over the attributes that are not named (**$rest)")
                self._call(op, self.choice.names[op], op.args, op.attr_names.data)
            case ir.BuildOp():
                self._call(op, self._callee(op), op.args, op.attr_names.data)
            case ir.LiteralOp():
                named.append(op.result)
            case ir.ConstantOp():
                if not isinstance(op.value.owner, ir.DataOp):
                    raise refuse(op, "PDL cannot compute the value of a constant", "write the constant as a literal")
                if op.dtype is None:
                    # Of the type of the value beside it, otherwise of the replaced one's, and so is what is used with it.
                    self.types.unify(dtype_source(op) or root, op.result)
                    named.append(op.result)
                elif isinstance(op.dtype.owner, ir.DataOp):
                    self.types.fixed[op.result] = dtype_to_type(cast("str", from_attribute(op.dtype.owner.value)))
                    named.append(op.result)
                else:
                    raise refuse(op, "PDL cannot compute the dtype of a constant", "name the dtype")
            case ir.FoldOp():
                raise refuse(op, "PDL cannot compute a value while rewriting (fold)")
            case ir.SelectOp():
                raise refuse(op, "PDL has no replacement that depends on a condition (if … else)")
            case ir.WhereOp():
                self._condition(op.condition, True)
            case _:
                pass

    def _callee(self, op: ir.BuildOp) -> str:
        if op.op is not None and isinstance(op.op.owner, ir.MatchOp):
            return self.choice.names[op.op.owner]
        assert op.callee is not None
        return op.callee.data

    def _call(
        self, op: ir.MatchOp | ir.BuildOp, name: str, args: Sequence[SSAValue], attrs: Sequence[StringAttr]
    ) -> None:
        """Adds the constraints of an op's definition on its types.

        Relay's types follow from relations instead.
        """
        definition = _definition(name)
        if definition is None:
            if attrs:
                raise refuse(op, "PDL does not see the defaults of Relay's attributes")
            if any(isinstance(arg.owner, ir.LiteralOp | ir.ConstantOp) for arg in args):
                raise refuse(op, "PDL cannot say a constant of Relay, which is an array of any shape")
            return
        sized = any(isinstance(option, AttrSizedOperandSegments) for option in definition.options)
        if len(definition.results) != 1 or isinstance(definition.results[0][1], VarResultDef) or sized:
            raise refuse(op, f"{name} has not one result, or has operands of several lengths")
        by_variable: dict[str, SSAValue] = {}
        operands = list(definition.operands)
        places = [(op.result, definition.results[0][1].constr)]
        if not any(isinstance(operand, VarOperandDef | OptOperandDef) for _, operand in operands):
            places += [
                (arg, operand.constr) for arg, (_, operand) in zip(self._ordered(op, args), operands, strict=True)
            ]
        same = any(isinstance(trait, SameOperandsAndResultType) for trait in definition.traits.traits)
        for value, around in places:
            constraint = around.constraint if isinstance(around, RangeLengthConstraint) else around
            if not isinstance(constraint, RangeOf):
                continue
            constraint = constraint.constr
            variable = "" if same else constraint.name if isinstance(constraint, VarConstraint) else None
            self.types.constraints.setdefault(self.types.find(value), []).append(constraint)
            if variable is not None:
                self.types.unify(by_variable.setdefault(variable, value), value)

    def _ordered(self, op: ir.MatchOp | ir.BuildOp, args: Sequence[SSAValue]) -> list[SSAValue]:
        return list(reversed(args)) if op in self.choice.swapped else list(args)

    def _condition(self, condition: SSAValue, wanted: bool) -> None:
        op = condition.owner
        if isinstance(op, ir.ComputeOp):
            name, args = op.function.data, list(op.args)
            if name == "not_":
                return self._condition(args[0], not wanted)
            if name == "and_" and wanted:
                for arg in args:
                    self._condition(arg, True)
                return None
            if name == "eq" and all(_is_type(arg) for arg in args):
                name, args = "same_type", [cast("ir.ComputeOp", arg.owner).args[0] for arg in args]
            if name == "same_type" and wanted and all(_is_matched(arg) for arg in args):
                return self.types.unify(args[0], args[1])
            function = FUNCTIONS.get(name)
            if function is not None and function.wants_values and args == list(op.args) and all(map(_is_matched, args)):
                self.constraints.append((op, wanted))
                return None
        raise refuse(
            op if isinstance(op, Operation) else self.rule,
            "PDL cannot compute its condition",
            "a condition can be a predicate of captured values, such as one_use(%m), or ask for the same type",
            _APPLY,
        )

    # What PDL says -----------------------------------------------------------------------------------------------------

    def _write(self, root: SSAValue, value: SSAValue) -> tuple[list[Operation], pdl.RewriteOp] | None:
        """Writes matcher and rewrite; None if a literal is not a value of its type."""
        self.values, self.operations, self.type_values, self.ops = {}, {}, {}, []
        try:
            root_op = self._match(root)
            for op, wanted in self.constraints:
                args = [self._value(arg) for arg in op.args]
                self._add(pdl.ApplyNativeConstraintOp(op.function.data, args, [], not wanted))
            matcher, self.ops = self.ops, []
            new = self._value(value)
        except _NoValue:
            return None
        made = isinstance(value.owner, ir.BuildOp | ir.ConstantOp)
        if made:
            # The op represents its value, which is its only one.
            result = cast("pdl.ResultOp", new.owner)
            operation = result.parent_
            self.ops.remove(result)
            result.erase()
            self._add(pdl.ReplaceOp(root_op, operation))
        else:
            self._add(pdl.ReplaceOp(root_op, repl_values=[new]))
        return matcher, pdl.RewriteOp(root_op, Region(Block(self.ops)))

    def _add(self, op: Operation) -> Operation:
        self.ops.append(op)
        return op

    def _type(self, value: SSAValue) -> SSAValue:
        found = self.types.find(value)
        if found not in self.type_values:
            self.type_values[found] = self._add(pdl.TypeOp(self.concrete.get(found))).results[0]
        return self.type_values[found]

    def _value(self, value: SSAValue) -> SSAValue:
        """The PDL value of a value or attribute of the rule; makes it where it is not there yet."""
        if value in self.values:
            return self.values[value]
        match value.owner:
            case ir.AnyOp():
                made = self._add(pdl.OperandOp(self._type(value)))
            case ir.MatchOp() | ir.LiteralOp():
                made = self._add(pdl.ResultOp(0, self._match(value)))
            case ir.BuildOp() as op:
                made = self._add(pdl.ResultOp(0, self._build(op)))
            case ir.ConstantOp() as op:
                data = cast("ir.DataOp", op.value.owner).value
                made = self._add(pdl.ResultOp(0, self._constant(op.result, data)))
            case ir.AttrOp():
                made = self._add(pdl.AttributeOp())
            case ir.DataOp() as op:
                return self._add(pdl.AttributeOp(op.value)).results[0]
            case ir.ComputeOp() as op:
                raise refuse(
                    op, "PDL cannot compute attributes", "write the attribute, or take it over from the pattern"
                )
            case _:
                raise TypeError(value)
        self.values[value] = made.results[0]
        return made.results[0]

    def _match(self, value: SSAValue) -> SSAValue:
        """Returns the `pdl.operation` that computes a matched value."""
        if value in self.operations:
            return self.operations[value]
        op = value.owner
        if isinstance(op, ir.LiteralOp):
            return self._constant(value, op.value)
        assert isinstance(op, ir.MatchOp)
        name = self.choice.names[op]
        args = [self._value(arg) for arg in self._ordered(op, op.args)]
        return self._operation(value, name, args, dict(zip(op.attr_names.data, op.attrs, strict=True)))

    def _build(self, op: ir.BuildOp) -> SSAValue:
        """The `pdl.operation` that makes a value of the replacement."""
        args = [self._value(arg) for arg in op.args]
        found = self.types.find(op.result)
        if found not in self.type_values and found not in self.concrete:
            raise refuse(
                op,
                f"the type of a new {self._callee(op)} inside of the replacement does not follow from the pattern",
                _APPLY,
            )
        attrs = dict(zip(op.attr_names.data, op.attrs, strict=True))
        return self._operation(op.result, self._callee(op), args, attrs, made=True)

    def _operation(
        self,
        value: SSAValue,
        name: str,
        args: Sequence[SSAValue],
        attrs: Mapping[StringAttr, SSAValue],
        *,
        made: bool = False,
    ) -> SSAValue:
        definition = _definition(name)
        properties = {} if definition is None else definition.properties
        pdl_attrs: dict[str, SSAValue] = {}
        for key, attr in attrs.items():
            definite = properties.get(key.data)
            if isinstance(attr.owner, ir.DataOp) and definite is not None:
                try:
                    definite.constr.verify(attr.owner.value, VerificationContext())
                except VerifyException:
                    raise refuse(
                        self.rule,
                        f"the attribute '{key.data}' of {name} is not what the rule's literal is in PDL",
                        f"capture it ({key.data}=$a), or apply the rule with apply-rules",
                    ) from None
            pdl_attrs[key.data] = self._value(attr)
        if made:
            # PDL makes an op of what is given, without its defaults.
            for key, property in properties.items():
                if key not in pdl_attrs and property.default_value is not None:
                    pdl_attrs[key] = self._add(pdl.AttributeOp(property.default_value)).results[0]
                elif key not in pdl_attrs and not isinstance(property, OptPropertyDef):
                    raise refuse(self.rule, f"a new {name} needs the attribute '{key}'", f"give it: {key}=…")
        names = [StringAttr(key) for key in pdl_attrs]
        op = pdl.OperationOp(name, names, args, list(pdl_attrs.values()), [self._type(value)])
        self.operations[value] = self._add(op).results[0]
        return self.operations[value]

    def _constant(self, value: SSAValue, data: Attribute) -> SSAValue:
        """The `pdl.operation` of a constant. Raises _NoValue where its type has no such value."""
        type = self.concrete[self.types.find(value)]
        number = cast("float", from_attribute(data))
        if isinstance(type, IntegerType) and int(number) != number:
            raise _NoValue
        root = self.replace.roots[0].owner
        assert isinstance(root, ir.MatchOp)
        try:
            constant = level_of(self.choice.names[root]).make_constant(number, None, type)
        except VerifyException as error:
            raise _NoValue from error
        attr = self._add(pdl.AttributeOp(constant.properties["value"])).results[0]
        op = pdl.OperationOp(constant.name, [StringAttr("value")], [], [attr], [self._type(value)])
        self.operations[value] = self._add(op).results[0]
        return self.operations[value]


class _NoValue(Exception):
    """A number is not a value of a type."""


def _definition(name: str) -> OpDef | None:
    """The definition of an op; None for Relay's, whose types follow from relations."""
    level = level_of(name)
    return (
        cast("type[IRDLOperation]", level.classes[name]).get_irdl_definition()
        if isinstance(level, OtherLevel)
        else None
    )


def _is_type(value: SSAValue) -> bool:
    return isinstance(value.owner, ir.ComputeOp) and value.owner.function.data == "type"


def _is_matched(value: SSAValue) -> bool:
    return value.type == ir.VALUE and isinstance(value.owner, ir.AnyOp | ir.MatchOp | ir.LiteralOp)
