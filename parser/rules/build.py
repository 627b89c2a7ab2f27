"""Builds ops of the rule dialect from the syntax tree.

An expression's meaning depends on its place: in a pattern, in a replacement, or in the language of conditions and
attributes; each has its method.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import rule
from ...dialects.relay.operator import AttrValue, to_attribute
from ...dialects.rule.functions import FUNCTIONS, LAZY
from ...dialects.rule.kernel_functions import KERNEL_FUNCTIONS
from ...dialects.rule.levels import LEVELS, Level, is_level, level_of, named_level
from ...support.diagnostics import MirError, error_at
from ...support.text import nearest
from ..source import Source
from . import tree
from .reader import KERNEL_FORM

KERNEL = "kernel"
"""The name of a schedule rule's root, where it has none."""

_BY_NAME = "an op's attributes are given by name: axis=1"
_MEMBERS = ("shape", "dtype", "rank", "size", "type")


def build_item(source: Source, item: tree.Rewrite | tree.Ruleset) -> Operation:
    """The op of an item. Raises MirError with all that is wrong in it."""
    if isinstance(item, tree.Rewrite):
        return RuleBuilder(source, item, item.header.level or "relay").build()
    errors: list[MirError] = []
    block = Block()
    for each in item.rules:
        try:
            block.add_op(RuleBuilder(source, each, each.header.level or item.header.level or "relay").build())
        except MirError as error:
            errors.append(error)
    if errors:
        raise MirError(diagnostic for error in errors for diagnostic in error.diagnostics)
    ruleset = rule.RulesetOp(item.name, Region(block), [name for _, name in item.includes])
    ruleset.location = source.location(item.at)
    return ruleset


def build_kernel_rule(source: Source, item: tree.KernelRule, name: str) -> rule.RewriteOp:
    """The rule that leaves what it matches as it is: the pattern and the conditions of a schedule rule."""
    if len(item.patterns) != 1:
        raise error_at(
            source.location(item.at), "a kernel has one result: a schedule rule has one pattern", KERNEL_FORM
        )
    (root,) = item.patterns
    if not isinstance(root, tree.Named):
        root = tree.Named(root.at, KERNEL, root)
    same = tree.Local(root.at, root.name)
    rewrite = tree.Rewrite(item.at, name, tree.Header(item.benefit), [root], [same], item.where)
    return RuleBuilder(source, rewrite, "relay", of_kernels=True).build()


class RuleBuilder:
    """One rule while it is built."""

    def __init__(self, source: Source, item: tree.Rewrite, level: str, of_kernels: bool = False):
        self.source, self.item, self.of_kernels = source, item, of_kernels
        if not is_level(level):
            raise error_at(
                source.location(item.at),
                f"there is no dialect '{level}' to rewrite",
                f"a rule is for one of {', '.join(LEVELS)}",
            )
        self.level: Level = named_level(level)
        self.deciding = False
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.values: dict[str, SSAValue] = {}
        self.attrs: dict[str, SSAValue] = {}
        self.rests: dict[str, SSAValue] = {}
        self.operations: dict[str, tuple[SSAValue, Sequence[str]]] = {}

    def build(self) -> rule.RewriteOp:
        item = self.item
        roots = [self.pattern(side) for side in item.lhs]
        for condition in item.where:
            if isinstance(condition, tree.Bind):
                self.bind(condition)
            elif isinstance(condition, tree.Named):
                self.replacement(condition)
            else:
                decided = self.condition(condition)
                if decided.type != rule.ATTR:
                    raise self.error(
                        condition.at,
                        "a value of the program is not a condition",
                        "ask something of it, such as all(%x > 0)",
                    )
                self.insert(rule.WhereOp(decided), condition.at)
        values = [self.replacement(side) for side in item.rhs]
        for value, side in zip(values, item.rhs, strict=True):
            if value.type == rule.RUN:
                raise self.error(side.at, "any number of values is not a replacement", "a tuple of them is (%xs...)")
        self.insert(rule.ReplaceOp(roots, values), item.at)
        rewrite = rule.RewriteOp(
            item.name,
            Region(self.block),
            benefit=1 if item.header.benefit is None else item.header.benefit,
            level=self.level.name,
            fast=item.header.fast,
        )
        rewrite.location = self.location(item.at)
        return rewrite

    def location(self, at: int) -> LocationAttr:
        return self.source.location(at)

    def error(self, at: int, message: str, *notes: str) -> MirError:
        return error_at(self.location(at), message, *notes)

    def number(self, node: tree.Literal) -> Attribute:
        """Returns a literal as an attribute."""
        if isinstance(node.value, int) and not -(1 << 63) <= node.value < 1 << 64:
            raise self.error(node.at, "this integer is too large", "a rule's integers have 64 bits")
        return to_attribute(node.value)

    def insert(self, op: Operation, at: int) -> None:
        op.location = self.location(at)
        self.builder.insert(op)

    def add(self, op: Operation, at: int) -> SSAValue:
        """Inserts an op, and returns its first result."""
        self.insert(op, at)
        return op.results[0]

    # Patterns ------------------------------------------------------------------------------------------------------

    def pattern(self, node: tree.Node, name: str | None = None) -> SSAValue:
        """A value that the node matches; `name` captures it."""
        match node:
            case tree.Local() | tree.Run():
                return self.capture(node)
            case tree.Wildcard():
                return self.add(rule.AnyOp(None), node.at)
            case tree.Named():
                if node.name in self.values:
                    raise self.error(
                        node.at, f"%{node.name} is captured twice", "a name stands for one value; use another"
                    )
                value = self.pattern(node.value, node.name)
                self.values[node.name] = value
                return value
            case tree.Literal(value=bool() | int() | float()):
                if name is not None:
                    raise self.error(node.at, "a literal cannot be named", f"write %{name}, and a condition on it")
                return self.add(rule.LiteralOp(self.number(node)), node.at)
            case tree.Tuple(brackets=False):
                return self.match(node.at, ["relay.tuple"], [self.pattern(i) for i in node.items], {}, capture=name)
            case tree.Field():
                index = self.add(rule.DataOp(to_attribute(node.index)), node.at)
                return self.match(
                    node.at, ["relay.tuple_get_item"], [self.pattern(node.value)], {"index": index}, capture=name
                )
            case tree.Operation():
                op = self.infix(node)
                return self.match(node.at, [op], [self.pattern(a) for a in node.args], {}, capture=name)
            case tree.RuleCall():
                return self.call_pattern(node, name)
            case _:
                raise self.error(
                    node.at,
                    "this is not a pattern",
                    "a pattern is a capture %x, a constant's value, a tuple, or an op applied to patterns",
                    *([_BY_NAME] if isinstance(node, tree.Attr | tree.Tuple | tree.Literal) else []),
                )

    def capture(self, node: tree.Local | tree.Run) -> SSAValue:
        found = self.values.get(node.name)
        if found is None:
            found = self.values[node.name] = self.add(rule.AnyOp(node.name, run=isinstance(node, tree.Run)), node.at)
        elif (found.type == rule.RUN) != isinstance(node, tree.Run):
            raise self.error(node.at, f"%{node.name} stands for one value in one place and for any number in another")
        return found

    def call_pattern(self, node: tree.RuleCall, name: str | None) -> SSAValue:
        callee = node.callee
        if callee.capture is not None and not callee.names:
            raise self.error(
                node.at, f"${callee.capture} names no op yet", f"write [add, subtract]${callee.capture}(…)"
            )
        if name is not None and name in self.values:
            raise self.error(node.at, f"%{name} is captured twice", "a name stands for one value; use another")
        names = [self.op_name(callee.at, each) for each in callee.names]
        args = [self.pattern(arg) for arg in node.args]
        attrs: dict[str, SSAValue] = {}
        for at, key, value in node.keywords:
            attrs[key] = self.attribute_pattern(at, key, value)
        implied = self.implied(callee)
        self.check_use(node, callee.names if implied else names, args, attrs)
        attrs |= implied
        rest = node.rest[1] if node.rest and node.rest[1] else None
        return self.match(node.at, names, args, attrs, capture=name, rest=rest, op=callee.capture)

    def match(
        self,
        at: int,
        names: Sequence[str],
        args: Sequence[SSAValue],
        attrs: dict[str, SSAValue],
        *,
        capture: str | None = None,
        rest: str | None = None,
        op: str | None = None,
    ) -> SSAValue:
        if op in self.operations:
            raise self.error(at, f"${op} is captured twice", "use another name")
        made = rule.MatchOp(names, args, attrs, capture=capture, rest=rest, op=op)
        self.add(made, at)
        if rest is not None and made.rest is not None:
            self.rests[rest] = made.rest
        if op is not None and made.op is not None:
            self.operations[op] = made.op, names
        return made.result

    def attribute_pattern(self, at: int, key: str, node: tree.Node) -> SSAValue:
        if isinstance(node, tree.Attr):
            found = self.attrs.get(node.name)
            if found is None:
                found = self.attrs[node.name] = self.add(rule.AttrOp(node.name), node.at)
            return found
        try:
            return self.add(rule.DataOp(to_attribute(self.literal(node))), node.at)
        except _NotLiteral as error:
            raise self.error(
                error.at,
                "an attribute's pattern is a literal or a capture",
                f"write {key}=${key}, and a condition on ${key}",
            ) from None

    def literal(self, node: tree.Node) -> AttrValue:
        match node:
            case tree.Literal():
                self.number(node)
                return node.value
            case tree.Tuple():
                return tuple(self.literal(item) for item in node.items)
            case _:
                raise _NotLiteral(node.at)

    # Names ---------------------------------------------------------------------------------------------------------

    def op_name(self, at: int, name: str) -> str:
        level = self.level
        found = level.resolve(name)
        if found is None:
            first = name.partition(".")[0]
            if "." in name and is_level(first) and first != level.name:
                level = named_level(first)
                found = level.resolve(name)
        if found is None and name == "const":
            raise self.error(
                at,
                "a constant is matched by its number, not by const(…)",
                "write add(%x, 0); in the replacement const(0, %x.dtype) makes one",
            )
        if found is None:
            close = level.close_to(name)
            infix = level.infix(name)
            close = level.spelled(infix) if infix else close
            raise self.error(
                at, f"there is no op '{name}' in {level.name}", *([f"did you mean '{close}'?"] if close else [])
            )
        return found

    def implied(self, callee: tree.RuleCallee) -> dict[str, SSAValue]:
        """Returns the attributes that an op's name implies, of TIR's intrinsics."""
        found = [self.level.implied(name) for name in callee.names]
        if len(found) > 1 and any(found):
            raise self.error(
                callee.at,
                "one of several intrinsics is matched by its attribute",
                'write call(%x, intrinsic=$f), and the condition $f in ["floor", "ceil"]',
            )
        implied = found[0].items() if found else ()
        return {key: self.add(rule.DataOp(to_attribute(value)), callee.at) for key, value in implied}

    def infix(self, node: tree.Operation) -> str:
        found = self.level.infix(node.function)
        if found is None:
            raise self.error(
                node.at, f"this operator has no op in {self.level.name}", "write the op by its name, or a rule for tir"
            )
        return found

    def check_use(
        self, node: tree.RuleCall, names: Iterable[str], args: Sequence[SSAValue], attrs: Iterable[str]
    ) -> None:
        """An op's arguments and attributes as far as they are wrong whatever is matched."""
        count = None if any(arg.type == rule.RUN for arg in args) else len(args)
        for name in names:
            level = self.level if self.level.implied(name) else level_of(name)
            problem = level.problem(name, count, list(attrs))
            if problem is not None:
                wrong = (at for at, key, _ in node.keywords if level.problem(name, None, [key]) == problem)
                raise self.error(next(wrong, node.at), problem)

    # Conditions and attributes -------------------------------------------------------------------------------------

    def bind(self, node: tree.Bind) -> None:
        if node.name in self.attrs:
            raise self.error(node.at, f"${node.name} is bound twice", "use another name")
        value = self.condition(node.value)
        if not isinstance(value.owner, rule.ComputeOp) or value.owner.capture is not None:
            value = self.add(rule.ComputeOp("identity", [value]), node.at)
        assert isinstance(value.owner, rule.ComputeOp)
        from xdsl.dialects.builtin import StringAttr

        value.owner.properties["capture"] = StringAttr(node.name)
        self.attrs[node.name] = value

    def condition(self, node: tree.Node) -> SSAValue:
        """A condition, or what is computed before anything is made."""
        self.deciding = True
        try:
            return self.expression(node)
        finally:
            self.deciding = False

    def expression(self, node: tree.Node) -> SSAValue:
        """A condition or a computed attribute."""
        match node:
            case tree.Local() | tree.Run():
                return self.bound(node)
            case tree.Attr():
                found = self.attrs.get(node.name)
                if found is None:
                    known = ", ".join(f"${name}" for name in self.attrs) or "none"
                    raise self.error(node.at, f"${node.name} is not captured", f"attributes captured here: {known}")
                return found
            case tree.Literal():
                return self.add(rule.DataOp(self.number(node)), node.at)
            case tree.Tuple():
                return self.compute("tuple", [self.expression(item) for item in node.items], node.at)
            case tree.Operation():
                return self.compute(node.function, [self.expression(arg) for arg in node.args], node.at)
            case tree.RuleMember():
                value = self.expression(node.value)
                if node.name in _MEMBERS:
                    return self.compute(node.name, [value], node.at)
                if value.type != rule.VALUE or not isinstance(value.owner, rule.MatchOp):
                    raise self.error(
                        node.at, f"there is no '.{node.name}'", f"values have {', '.join('.' + m for m in _MEMBERS)}"
                    )
                self.check_attribute(node, value.owner)
                name = self.add(rule.DataOp(to_attribute(node.name)), node.at)
                return self.compute("attribute", [value, name], node.at)
            case tree.RuleCall() if len(node.callee.names) == 1 and node.callee.capture is None:
                return self.call_function(node, node.callee.names[0])
            case _:
                raise self.error(
                    node.at, "this is not a condition", "conditions are of captured values, attributes and literals"
                )

    def check_attribute(self, node: tree.RuleMember, matched: rule.MatchOp) -> None:
        """That an attribute of a captured op is one of some op that it may be."""
        problems = [level_of(name.data).problem(name.data, None, [node.name]) for name in matched.names.data]
        if problems and problems[0] is not None and None not in problems:
            raise self.error(node.at, problems[0])

    def bound(self, node: tree.Local | tree.Run) -> SSAValue:
        found = self.values.get(node.name)
        if found is None:
            known = ", ".join(f"%{name}" for name in self.values) or "none"
            raise self.error(node.at, f"%{node.name} is not captured", f"values captured here: {known}")
        if (found.type == rule.RUN) != isinstance(node, tree.Run):
            raise self.error(node.at, f"%{node.name} stands for one value in one place and for any number in another")
        if self.deciding and not isinstance(found.owner, rule.AnyOp | rule.LiteralOp | rule.MatchOp):
            raise self.error(
                node.at,
                f"%{node.name} is not there yet when conditions are decided",
                "conditions are of what the pattern captures; the replacement is made once they hold",
            )
        return found

    def call_function(self, node: tree.RuleCall, name: str) -> SSAValue:
        if node.keywords or node.rest:
            raise self.error(node.at, f"the function {name} takes no attributes")
        if name not in FUNCTIONS and name not in LAZY:
            if self.level.resolve(name) is not None:
                raise self.error(
                    node.at,
                    f"'{name}' is an op, which has no place in a condition",
                    "conditions call functions of captured values",
                )
            near = nearest(name, FUNCTIONS)
            raise self.error(
                node.at,
                f"there is no function '{name}'",
                f"did you mean '{near}'?" if near else f"there are: {', '.join(sorted(FUNCTIONS))}",
            )
        if name in KERNEL_FUNCTIONS and not self.of_kernels:
            raise self.error(
                node.at,
                f"{name} is known of kernels only, when they are scheduled",
                "it belongs to the conditions of a schedule rule: rule for nn.dense(%x, %w) where …",
            )
        return self.compute(name, [self.expression(arg) for arg in node.args], node.at)

    def compute(self, function: str, args: Sequence[SSAValue], at: int) -> SSAValue:
        return self.add(rule.ComputeOp(function, args), at)

    # Replacements --------------------------------------------------------------------------------------------------

    def replacement(self, node: tree.Node, name: str | None = None) -> SSAValue:
        """Builds the value of a replacement's node; `name` names it in the rest of the replacement."""
        match node:
            case tree.Local() | tree.Run():
                return self.bound(node)
            case tree.Named():
                if node.name in self.values:
                    raise self.error(node.at, f"%{node.name} is bound twice", "use another name")
                value = self.replacement(node.value, node.name)
                self.values[node.name] = value
                return value
            case tree.Literal(value=bool() | int() | float()):
                value = self.add(rule.DataOp(self.number(node)), node.at)
                return self.add(rule.ConstantOp(value, capture=name), node.at)
            case tree.Tuple(brackets=False):
                return self.add(
                    rule.BuildOp("relay.tuple", [self.replacement(i) for i in node.items], {}, capture=name), node.at
                )
            case tree.Field():
                index = self.add(rule.DataOp(to_attribute(node.index)), node.at)
                value = self.replacement(node.value)
                return self.add(rule.BuildOp("relay.tuple_get_item", [value], {"index": index}, capture=name), node.at)
            case tree.Operation(function="ifelse", args=(condition, a, b)):
                chosen = self.expression(condition)
                values = self.replacement(a), self.replacement(b)
                return self.add(rule.SelectOp(chosen, *values, name), node.at)
            case tree.Operation():
                op = self.infix(node)
                return self.add(rule.BuildOp(op, [self.replacement(a) for a in node.args], {}, capture=name), node.at)
            case tree.RuleCall():
                return self.call_replacement(node, name)
            case _:
                raise self.error(
                    node.at,
                    "this is not a replacement",
                    "a replacement is a captured value, a constant, or an op applied to them",
                    *([_BY_NAME] if isinstance(node, tree.Attr | tree.Tuple | tree.Literal) else []),
                    *(["a number of the program is const(%x.rank)"] if isinstance(node, tree.RuleMember) else []),
                )

    def call_replacement(self, node: tree.RuleCall, name: str | None) -> SSAValue:
        callee = node.callee
        if callee.names == ("const",):
            return self.constant(node, name)
        if callee.names == ("fold",):
            if len(node.args) != 1 or node.keywords or node.rest:
                raise self.error(node.at, "fold takes one value", "fold(multiply(%w, %s)) is computed while rewriting")
            return self.add(rule.FoldOp(self.replacement(node.args[0]), name), node.at)
        if callee.capture is not None and not callee.names:
            if callee.capture not in self.operations:
                raise self.error(
                    callee.at, f"${callee.capture} is not a captured op", "capture it: [add, subtract]$op(…)"
                )
            op, names = self.operations[callee.capture]
            implied = {}
        elif len(callee.names) == 1:
            op, names = self.op_name(callee.at, callee.names[0]), ()
            implied = self.implied(callee)
        else:
            raise self.error(
                callee.at,
                "a replacement is one op",
                "capture which of several was matched as $op, and write $op(…) here",
            )
        args = [self.replacement(arg) for arg in node.args]
        attrs = {key: self.attribute(value) for _, key, value in node.keywords}
        self.check_use(node, callee.names if implied else [op] if isinstance(op, str) else names, args, attrs)
        attrs |= implied
        rest: SSAValue | None = None
        if node.rest is not None:
            rest = self.rests.get(node.rest[1])
            if rest is None:
                raise self.error(
                    node.rest[0],
                    f"${node.rest[1]} holds no attributes"
                    if node.rest[1]
                    else "a replacement takes over named attributes",
                    "capture them with **$rest in the pattern",
                )
        return self.add(rule.BuildOp(op, args, attrs, rest=rest, capture=name), node.at)

    def attribute(self, node: tree.Node) -> SSAValue:
        """Builds an attribute of a new op; a value of the program is its elements."""
        value = self.expression(node)
        if value.type == rule.RUN:
            raise self.error(node.at, "any number of values is not an attribute")
        return self.compute("identity", [value], node.at) if value.type == rule.VALUE else value

    def constant(self, node: tree.RuleCall, name: str | None) -> SSAValue:
        if not 1 <= len(node.args) <= 2 or node.keywords or node.rest:
            raise self.error(
                node.at, "const takes a value and a dtype", 'such as const(1, "int32") or const($a, %x.dtype)'
            )
        value, *dtype = [self.expression(arg) for arg in node.args]
        return self.add(rule.ConstantOp(value, dtype[0] if dtype else None, name), node.at)


class _NotLiteral(Exception):
    def __init__(self, at: int):
        super().__init__()
        self.at = at
