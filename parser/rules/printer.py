"""Rules as text: the inverse of `build`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from math import isinf
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from ...dialects import rule
from ...dialects.relay.operator import AttrValue, from_attribute
from ...dialects.rule.levels import Level, level_of, named_level
from ...dialects.rule.ops import capture_of
from .lexer import INFIX

_SIGNS = {function: sign for sign, function in INFIX.items()}
# How tightly each operator binds, as in rules.lark.
_LEVELS = {"or_": 1, "and_": 2, "not_": 3, **dict.fromkeys(["lt", "le", "gt", "ge", "eq", "ne", "contains"], 4),
           "add": 5, "sub": 5, "mul": 6, "truediv": 6, "mod": 6, "neg": 7, "getitem": 8, "slice": 8}  # fmt: skip
_MEMBERS = ("shape", "dtype", "rank", "size", "type")
_WIDTH = 120
_T = TypeVar("_T")
_MADE = rule.BuildOp | rule.ConstantOp | rule.FoldOp | rule.SelectOp


def print_rule(op: Operation) -> str:
    """A rule or a set of rules as an item of a `.mir` file."""
    if isinstance(op, rule.RewriteOp):
        return _Printer(op).text()
    assert isinstance(op, rule.RulesetOp)
    lines = [f"ruleset @{op.sym_name.data} {{"]
    if op.includes.data:
        lines.append("  include " + ", ".join(f"@{name.root_reference.data}" for name in op.includes.data))
    for inner in op.body.block.ops:
        lines += [f"  {line}" if line else line for line in print_rule(inner).split("\n")]
    return "\n".join([*lines, "}"])


def gradient_text(op: rule.RewriteOp) -> str:
    """Returns what an operator's gradient is, of the rule `(%result = …, %gradient) => (…)`."""
    printer = _Printer(op)
    last = op.body.block.last_op
    assert isinstance(last, rule.ReplaceOp)
    (pattern,) = last.roots
    assert isinstance(pattern.owner, rule.MatchOp)
    use = pattern.owner.args[0]
    printer.names[use] = "result"
    printer.shown.add(use)
    (made,) = last.values
    assert isinstance(made.owner, rule.BuildOp)
    return ", ".join(printer.value(value) for value in made.owner.args)


def print_kernel_rule(op: Operation) -> str:
    """The pattern and conditions of a schedule rule: `rule for nn.dense(%x, %w) where $rows = 4`."""
    assert isinstance(op, rule.RewriteOp)
    return _Printer(op).kernel_text()


class _Printer:
    def __init__(self, op: rule.RewriteOp):
        self.op = op
        self.level: Level = named_level(op.level.data)
        self.names: dict[SSAValue, str] = {}
        self.shown: set[SSAValue] = set()
        self._name_values()

    def _name_values(self) -> None:
        """A name for each value that the text must name: captures, and what is used more than once."""
        taken: set[str] = set()
        unnamed: list[SSAValue] = []
        for inner in self.op.body.block.ops:
            for result in inner.results:
                name = capture_of(result)
                if name is not None and name not in taken:
                    self.names[result] = name
                    taken.add(name)
                elif self._needs_name(inner, result):
                    unnamed.append(result)
        fresh = (name for name in _fresh_names() if name not in taken)
        for value, name in zip(unnamed, fresh, strict=False):
            self.names[value] = name

    def _needs_name(self, op: Operation, value: SSAValue) -> bool:
        if isinstance(op, rule.DataOp | rule.LiteralOp | rule.ComputeOp):
            return False
        uses = list(value.uses)
        if isinstance(op, rule.AnyOp):
            return bool(uses) and (len(uses) > 1 or not isinstance(uses[0].operation, rule.MatchOp))
        in_replace = sum(isinstance(use.operation, rule.ReplaceOp) for use in uses)
        return len(uses) - in_replace > (0 if in_replace and isinstance(op, rule.MatchOp) else 1) or (
            isinstance(op, rule.MatchOp)
            and any(not isinstance(u.operation, rule.MatchOp | rule.ReplaceOp) for u in uses)
        )

    def text(self) -> str:
        op = self.op
        head = f"{'fast ' if op.is_fast else ''}rewrite @{op.sym_name.data}"
        if op.benefit.value.data != 1:
            head += f" benefit({op.benefit.value.data})"
        if op.level.data != "relay":
            head += f" for {op.level.data}"
        last = op.body.block.last_op
        assert isinstance(last, rule.ReplaceOp)
        lhs = ", ".join(self.value(root) for root in last.roots)
        conditions = list(self.conditions())
        rhs = ", ".join(self.value(value) for value in last.values)
        where = f" where {', '.join(conditions)}" if conditions else ""
        if len(head) + len(lhs) + len(rhs) + len(where) + 10 <= _WIDTH:
            return f"{head} {{ {lhs} => {rhs}{where} }}"
        lines = [f"  {lhs} => {rhs}"] if len(lhs) + len(rhs) + 6 <= _WIDTH else [f"  {lhs}", f"    => {rhs}"]
        if len(where) + 4 <= _WIDTH:
            lines += [f"   {where}"] if where else []
        else:
            lines += ["    where", *(f"      {condition}," for condition in conditions[:-1]), f"      {conditions[-1]}"]
        return "\n".join([f"{head} {{", *lines, "}"])

    def kernel_text(self) -> str:
        last = self.op.body.block.last_op
        assert isinstance(last, rule.ReplaceOp)
        (root,) = last.roots
        uses = [use.operation for use in root.uses if not isinstance(use.operation, rule.ReplaceOp)]
        if not uses:
            # Nothing speaks of the kernel by its name.
            self.names.pop(root, None)
        benefit = self.op.benefit.value.data
        head = "rule for" if benefit == 1 else f"rule benefit({benefit}) for"
        pattern, conditions = self.value(root), list(self.conditions())
        where = f" where {', '.join(conditions)}" if conditions else ""
        if len(head) + len(pattern) + len(where) + 1 <= _WIDTH:
            return f"{head} {pattern}{where}"
        return "\n".join(
            [f"{head} {pattern} where", *(f"  {each}," for each in conditions[:-1]), f"  {conditions[-1]}"]
        )

    def conditions(self) -> Iterator[str]:
        """The where clause: conditions, and what is given a name, in order."""
        for op in self.op.body.block.ops:
            if isinstance(op, rule.WhereOp):
                yield self.expression(op.condition, 0)
            elif isinstance(op, rule.ComputeOp | _MADE) and op.result in self.names:
                name = self.names.pop(op.result)
                text = self.expression(op.result, 0) if isinstance(op, rule.ComputeOp) else self.made(op.result)[0]
                self.names[op.result] = name
                yield f"{'$' if isinstance(op, rule.ComputeOp) else '%'}{name} = {text}"

    # Patterns and replacements.

    def value(self, value: SSAValue, outer: int = 0) -> str:
        """A pattern or a replacement, in parentheses where it binds less tightly than `outer`."""
        name = self.names.get(value)
        if isinstance(value.owner, rule.AnyOp):
            return "_" if name is None else f"%{name}..." if value.type == rule.RUN else f"%{name}"
        if name is not None and (value in self.shown or isinstance(value.owner, _MADE)):
            return f"%{name}"
        self.shown.add(value)
        text, own = self.made(value)
        if name is not None:
            text, own = f"%{name} = {text}", 0
        return f"({text})" if own < outer else text

    def made(self, value: SSAValue) -> tuple[str, int]:
        """The text of an op of a side, and how tightly it binds."""
        op = value.owner
        if isinstance(op, rule.SelectOp):
            a, b = self.value(op.on_true, 1), self.value(op.on_false)
            return f"{a} if {self.expression(op.condition, 1)} else {b}", 0
        if isinstance(op, rule.MatchOp | rule.BuildOp):
            infix = self.infix(op)
            if infix is not None:
                return infix
        text = self.primary(value)
        return text, 7 if text.startswith("-") else 9

    def infix(self, op: rule.MatchOp | rule.BuildOp) -> tuple[str, int] | None:
        """An op as the operator that the text has for it, where that is all there is to say."""
        if isinstance(op, rule.MatchOp):
            names = [name.data for name in op.names.data]
            plain = len(names) == 1 and op.op_name_capture is None and op.rest_name is None
        else:
            names = [] if op.callee is None else [op.callee.data]
            plain = len(names) == 1 and op.rest is None
        function = self.level.operator(names[0]) if plain and not op.attr_names.data else None
        if function is None or any(arg.type == rule.RUN for arg in op.args):
            return None
        own = _LEVELS[function]
        if function == "not_":
            return f"not {self.value(op.args[0], own)}", own
        sign = _SIGNS.get(function, function.rstrip("_"))
        # Comparisons do not chain.
        left = self.value(op.args[0], own + 1 if own == 4 else own)
        return f"{left} {sign} {self.value(op.args[1], own + 1)}", own

    def primary(self, value: SSAValue) -> str:
        op = value.owner
        match op:
            case rule.LiteralOp():
                return literal_text(from_attribute(op.value))
            case rule.MatchOp():
                rest = None if op.rest_name is None else op.rest_name.data
                names = [name.data for name in op.names.data]
                if len(names) == 1 and op.op_name_capture is None:
                    return self.call(names[0], op.args, op, rest)
                capture = "" if op.op_name_capture is None else f"${op.op_name_capture.data}"
                spelled = ", ".join(self.spelled(name) for name in names)
                return f"[{spelled}]{capture}({self.arguments(op.args, op, rest)})"
            case rule.BuildOp():
                rest = None if op.rest is None else capture_of(op.rest)
                if op.callee is not None:
                    return self.call(op.callee.data, op.args, op, rest)
                assert op.op is not None
                return f"${capture_of(op.op)}({self.arguments(op.args, op, rest)})"
            case rule.ConstantOp():
                plain = op.value.owner
                if op.dtype is None and isinstance(plain, rule.DataOp) and op.value not in self.names:
                    return literal_text(from_attribute(plain.value))
                dtype = "" if op.dtype is None else f", {self.expression(op.dtype, 0)}"
                return f"const({self.expression(op.value, 0)}{dtype})"
            case rule.FoldOp():
                return f"fold({self.value(op.value)})"
            case _:
                return "_"

    def call(self, name: str, args: Sequence[SSAValue], op: rule.MatchOp | rule.BuildOp, rest: str | None) -> str:
        if name == "relay.tuple":
            inner = ", ".join(self.value(arg) for arg in args)
            return f"({inner},)" if len(args) == 1 and args[0].type != rule.RUN else f"({inner})"
        if name == "relay.tuple_get_item":
            index = op.attrs[0].owner
            if isinstance(index, rule.DataOp):
                return f"{self.value(args[0], 8)}.{from_attribute(index.value)}"
        for place, attr in enumerate(op.attrs):
            # A name that implies an attribute, such as TIR's exp.
            value = from_attribute(attr.owner.value) if isinstance(attr.owner, rule.DataOp) else None
            if isinstance(value, str) and self.level.implied(value) == {op.attr_names.data[place].data: value}:
                return f"{value}({self.arguments(args, op, rest, place)})"
        return f"{self.spelled(name)}({self.arguments(args, op, rest)})"

    def spelled(self, name: str) -> str:
        level = level_of(name)
        return level.spelled(name) if level.name == self.level.name else name

    def arguments(
        self, args: Sequence[SSAValue], op: rule.MatchOp | rule.BuildOp, rest: str | None, implied: int | None = None
    ) -> str:
        parts = [self.value(arg) for arg in args]
        parts += [
            f"{name.data}={self.expression(value, 0)}"
            for place, (name, value) in enumerate(zip(op.attr_names.data, op.attrs, strict=True))
            if place != implied
        ]
        return ", ".join([*parts, *([f"**${rest}"] if rest is not None else [])])

    # Conditions and attributes.

    def expression(self, value: SSAValue, outer: int) -> str:
        name = self.names.get(value)
        if name is not None:
            run = "..." if value.type == rule.RUN else ""
            return f"${name}" if value.type == rule.ATTR else f"%{name}{run}"
        op = value.owner
        if isinstance(op, rule.DataOp):
            return literal_text(from_attribute(op.value))
        assert isinstance(op, rule.ComputeOp)
        text, own = self.function(op.function.data, op.args)
        return f"({text})" if own < outer else text

    def function(self, name: str, args: Sequence[SSAValue]) -> tuple[str, int]:
        """The text of a function's use, and how tightly it binds."""
        if name == "not_":
            inner = args[0].owner
            if isinstance(inner, rule.ComputeOp) and inner.function.data == "contains" and args[0] not in self.names:
                return f"{self.expression(inner.args[1], 5)} not in {self.expression(inner.args[0], 5)}", 4
        if name == "identity":
            return self.expression(args[0], 0), 0
        if name in _MEMBERS:
            return f"{self.expression(args[0], 8)}.{name}", 8
        if name == "attribute" and isinstance(args[1].owner, rule.DataOp):
            return f"{self.expression(args[0], 8)}.{from_attribute(args[1].owner.value)}", 8
        return function_text(name, args, self.expression)


def function_text(name: str, args: Sequence[_T], text: Callable[[_T, int], str]) -> tuple[str, int]:
    """Returns the text of a function or infix operator on operands, and how tightly it binds.

    `text(operand, outer)` is that of an operand, in parentheses where it binds less tightly than `outer`.
    """
    own = _LEVELS.get(name, 9)
    if name == "not_":
        return f"not {text(args[0], own)}", own
    if name == "contains":
        return f"{text(args[1], 5)} in {text(args[0], 5)}", own
    if name in ("or_", "and_"):
        return f" {name.rstrip('_')} ".join([text(args[0], own), text(args[1], own + 1)]), own
    if name in _SIGNS:
        left = own + 1 if own == 4 else own
        return f"{text(args[0], left)} {_SIGNS[name]} {text(args[1], own + 1)}", own
    if name == "neg":
        return f"-{text(args[0], own)}", own
    if name == "getitem":
        return f"{text(args[0], own)}[{text(args[1], 0)}]", own
    if name == "slice":
        bounds = ["" if (bound := text(arg, 0)) == "None" else bound for arg in args[1:]]
        return f"{text(args[0], own)}[{bounds[0]}:{bounds[1]}]", own
    if name == "ifelse":
        condition, a, b = (text(arg, 1) for arg in args)
        return f"{a} if {condition} else {b}", 0
    if name == "tuple":
        return f"[{', '.join(text(arg, 0) for arg in args)}]", own
    return f"{name}({', '.join(text(arg, 0) for arg in args)})", own


def literal_text(value: AttrValue) -> str:
    match value:
        case str():
            return json.dumps(value)
        case tuple() | list():
            return f"[{', '.join(literal_text(item) for item in value)}]"
        case float() if isinf(value):
            # The language has no word for it, but numbers beyond all floats.
            return "1e999" if value > 0 else "-1e999"
        case _:
            return repr(value)


def _fresh_names() -> Iterator[str]:
    number = 0
    while True:
        yield f"v{number}"
        number += 1
