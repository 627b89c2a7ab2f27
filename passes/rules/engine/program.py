"""Compilation of a rule to closures: its pattern as steps over slots, its replacement as makers.

Every SSA value of the rule has a slot. The steps of the pattern are put in the order in which a match is found, each
calling the next; a step with a choice (the order of a commutative op's operands, how many operands a run takes) calls the
next once for each, so that the first whole match wins. Which occurrence of a capture binds it and which compare is the
same for every choice, and so is known when the steps are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ....dialects import rule as ir
from ....dialects.relay.operator import from_attribute
from ....dialects.rule.dtypes import dtype_source
from ....dialects.rule.functions import FUNCTIONS, NoMatch, element_of, has_floats
from ....dialects.rule.knowledge import QUESTIONS, ask
from ....dialects.rule.levels import LEVELS, Level, level_of
from ....dialects.rule.numbers import check_number
from ....support.diagnostics import Diagnostic, MirError, error_at
from . import steps
from .steps import Classes, Reader, Slots, Step
from .values import evaluate, plain, same_attr, same_value, truth


@dataclass(frozen=True)
class Match:
    """One place where a rule applies: the ops of its roots, the ops inside the pattern, and the slots."""

    roots: tuple[Operation, ...]
    matched: tuple[Operation, ...]
    slots: Slots


@dataclass(frozen=True)
class Program:
    """A rule as it runs. `root_names` are the ops at which a match may begin."""

    rule: ir.RewriteOp
    name: str
    root_names: tuple[str, ...]
    first: Step
    size: int
    roots: tuple[int, ...]
    matched: tuple[int, ...]
    makers: tuple[Callable[[Slots, SSAValue], Any], ...]
    """Makes the new ops, detached, in order: (slots, the value to be replaced)."""
    results: tuple[int, ...]
    made: tuple[int, ...]
    """Slots of the values that are made, in order."""
    slots: Mapping[SSAValue, int]
    """The slot of each value of the rule."""

    def match(self, op: Operation) -> Match | None:
        """The match whose first root is `op`; None where the rule does not apply.

        Raises MirError, at the rule, where a condition cannot be computed.
        """
        slots: Slots = [None] * self.size
        slots[self.roots[0]] = op.results[0]
        if not self.first(slots):
            return None
        return _found(slots, self.roots, self.matched)

    def captures(self, match: Match) -> dict[str, Any]:
        """Returns what the conditions of a match computed under names, `$n = …`."""
        computed = (op for op in self.rule.body.block.ops if isinstance(op, ir.ComputeOp) and op.capture is not None)
        return {op.capture.data: match.slots[self.slots[op.result]] for op in computed if op.capture is not None}


def _found(slots: Slots, roots: Sequence[int], matched: Sequence[int]) -> Match:
    return Match(tuple(slots[slot].owner for slot in roots), tuple(slots[slot].owner for slot in matched), slots)


def compile_rule(
    rule: ir.RewriteOp,
    accepts: Callable[[Match], bool] | None = None,
    classes: Classes | None = None,
    strict_math: bool = False,
) -> Program:
    """Compiles a verified rule. If `accepts` refuses a match, another way to match is looked for.

    With `classes`, a value inside of the pattern may be any of those that are equal to it. With `strict_math`, a rule that is
    marked `fast` matches nothing that computes with floats.
    """
    if strict_math and rule.is_fast:
        return _Compiler(rule, classes).compile(lambda match: _is_exact(match) and (accepts is None or accepts(match)))
    return _Compiler(rule, classes).compile(accepts)


def _is_exact(match: Match) -> bool:
    """Returns whether no op of a match reads or makes floats."""
    values = (value for op in (*match.roots, *match.matched) for value in (*op.operands, *op.results))
    return not any(has_floats(value.type) for value in values)


_Made: TypeAlias = ir.BuildOp | ir.ConstantOp | ir.FoldOp | ir.SelectOp


def _source(op: ir.ConstantOp) -> SSAValue | None:
    return dtype_source(op) if op.dtype is None else None


def _in_order(ops: Sequence[_Made], sources: Mapping[_Made, SSAValue]) -> list[_Made]:
    """Returns the ops of a replacement in order: each after its operands and the op whose dtype it takes."""
    placed: dict[_Made, None] = {}
    waiting: set[_Made] = set()
    pending = list(reversed(ops))
    while pending:
        op = pending[-1]
        source = sources.get(op)
        needed = [value.owner for value in (*op.operands, *([] if source is None else [source]))]
        missing = [each for each in needed if isinstance(each, _Made) and each not in placed and each not in waiting]
        if missing and op not in placed:
            waiting.add(op)
            pending += reversed(missing)
            continue
        pending.pop()
        placed[op] = None
    return list(placed)


class _Compiler:
    def __init__(self, rule: ir.RewriteOp, classes: Classes | None):
        self.rule, self.classes = rule, classes
        self.slots: dict[SSAValue, int] = {}
        self.size = 0
        self.bound: set[SSAValue] = set()
        self.steps: list[Callable[[Step], Step]] = []
        """In the order of matching; each makes its step of the one that follows."""

    def compile(self, accepts: Callable[[Match], bool] | None) -> Program:
        block = self.rule.body.block
        last = block.last_op
        assert isinstance(last, ir.ReplaceOp)
        for op in block.ops:
            for result in op.results:
                self.slots[result] = self.new_slot()
        roots = list(last.roots)
        for index, root in enumerate(roots):
            if index:
                self.find_root(root, roots[:index])
            self.match_value(root, self.slots[root])
        ops = [
            op for op in block.ops if not isinstance(op, (ir.AnyOp, ir.LiteralOp, ir.MatchOp, ir.AttrOp, ir.ReplaceOp))
        ]
        for op in ops:
            if isinstance(op, ir.WhereOp) or (isinstance(op, ir.ComputeOp) and self._for_conditions(op)):
                self.condition(op)
        new = [op for op in ops if isinstance(op, ir.BuildOp | ir.ConstantOp | ir.FoldOp | ir.SelectOp)]
        sources: dict[_Made, SSAValue] = {
            op: source for op in new if isinstance(op, ir.ConstantOp) and (source := _source(op)) is not None
        }
        makers = [(op, self.maker(op, sources.get(op))) for op in _in_order(new, sources)]
        matches = [op for op in block.ops if isinstance(op, (ir.MatchOp, ir.LiteralOp))]
        root_slots = tuple(self.slots[root] for root in roots)
        matched_slots = tuple(self.slots[op.results[0]] for op in matches if op.results[0] not in roots)
        run: Step = lambda slots: accepts is None or accepts(_found(slots, root_slots, matched_slots))  # noqa: E731
        for step in reversed(self.steps):
            run = step(run)
        first = roots[0].owner
        assert isinstance(first, ir.MatchOp)
        return Program(
            self.rule,
            self.rule.sym_name.data,
            tuple(name.data for name in first.names.data),
            run,
            self.size,
            root_slots,
            matched_slots,
            tuple(make for _, make in makers),
            tuple(self.slots[value] for value in last.values),
            tuple(self.slots[op.results[0]] for op, _ in makers),
            self.slots,
        )

    def new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    # Patterns ------------------------------------------------------------------------------------------------------

    def match_value(self, pattern: SSAValue, source: int) -> None:
        """Steps that match the value in slot `source` against a pattern."""
        slot = self.slots[pattern]
        if pattern in self.bound:
            classes = self.classes
            if classes is not None and pattern.type == ir.VALUE:
                self.steps.append(lambda k: steps.same_class(slot, source, classes, k))
            else:
                self.steps.append(lambda k: lambda slots: same_value(slots[slot], slots[source]) and k(slots))
            return
        self.bound.add(pattern)
        match pattern.owner:
            case ir.AnyOp():
                classes = self.classes
                self.steps.append(
                    lambda k: (
                        steps.copy(slot, source, k) if classes is None else steps.preferred(slot, source, classes, k)
                    )
                )
            case ir.LiteralOp() as op:
                wanted = cast("float", from_attribute(op.value))
                classes = self.classes
                self.steps.append(
                    lambda k: (
                        steps.literal(slot, source, wanted, k)
                        if classes is None
                        else steps.some_literal(slot, source, wanted, classes, k)
                    )
                )
            case ir.MatchOp() as op:
                self.match_op(op, slot, source)
            case _:
                raise TypeError(pattern)

    def match_op(self, op: ir.MatchOp, slot: int, source: int) -> None:
        names = frozenset(name.data for name in op.names.data)
        classes = self.classes
        if classes is None or slot == source:
            self.steps.append(lambda k: steps.defined_by(slot, source, names, k))
        else:
            self.steps.append(lambda k: steps.some_defined_by(slot, source, names, classes, k))
        level = level_of(op.names.data[0].data)
        for name, attr in zip(op.attr_names.data, op.attrs, strict=True):
            self.match_attribute(level, slot, name.data, attr)
        if op.rest is not None:
            rest, named = self.slots[op.rest], frozenset(name.data for name in op.attr_names.data)
            self.steps.append(lambda k: steps.rest_of(rest, slot, level, named, k))
        if op.op is not None:
            which = self.slots[op.op]
            self.steps.append(lambda k: steps.which_op(which, slot, k))
        args = list(op.args)
        actual = [self.new_slot() for _ in args]
        runs = [arg.type == ir.RUN for arg in args]
        commutative = len(args) == 2 and args[0] is not args[1] and not any(runs)
        commutative = commutative and all(level_of(n).is_commutative(n) for n in names)
        self.steps.append(lambda k: steps.arguments(slot, actual, runs, commutative, k))
        # What can fail soonest comes first: ops and literals before captures.
        order = sorted(range(len(args)), key=lambda i: isinstance(args[i].owner, ir.AnyOp))
        for index in order:
            self.match_value(args[index], actual[index])

    def match_attribute(self, level: Level, slot: int, name: str, attr: SSAValue) -> None:
        target = self.slots[attr]
        if isinstance(attr.owner, ir.DataOp):
            wanted = from_attribute(attr.owner.value)
            self.steps.append(
                lambda k: steps.attribute(level, slot, name, lambda slots, value: same_attr(value, wanted), k)
            )
        elif attr in self.bound:
            self.steps.append(
                lambda k: steps.attribute(level, slot, name, lambda slots, value: same_attr(value, slots[target]), k)
            )
        else:
            self.bound.add(attr)

            def bind(slots: Slots, value: Any) -> bool:
                slots[target] = value
                return True

            self.steps.append(lambda k: steps.attribute(level, slot, name, bind, k))

    def find_root(self, root: SSAValue, before: Sequence[SSAValue]) -> None:
        """A step that tries every op which a bound value leads to from below as the next root."""
        path = _path_to_bound(root, self.bound)
        assert path is not None, "the verifier asks for a common value"
        start, names = self.slots[path[0]], [_names(value) for value in path[1:]]
        slot, taken = self.slots[root], [self.slots[value] for value in before]
        self.steps.append(lambda k: steps.other_root(slot, start, names, taken, k))

    # Conditions and computed attributes ----------------------------------------------------------------------------

    def _for_conditions(self, op: ir.ComputeOp) -> bool:
        """Returns whether a computation precedes the replacement; others are made where they are used."""
        return op.capture is not None

    def condition(self, op: ir.WhereOp | ir.ComputeOp) -> None:
        if isinstance(op, ir.WhereOp):
            read = self.reader(op.condition)
            self.steps.append(lambda k: steps.where(op, read, k))
            return
        slot, compute = self.slots[op.result], self.computed(op)
        self.bound.add(op.result)
        self.steps.append(lambda k: steps.bind(slot, compute, k))

    def reader(self, value: SSAValue) -> Reader:
        """Returns a reader of a value of the rule from the slots, which computes it if it was not bound."""
        slot = self.slots[value]
        match value.owner:
            case ir.DataOp() as op:
                data = from_attribute(op.value)
                return lambda slots: data
            case ir.ComputeOp() as op if value not in self.bound:
                return self.computed(op)
            case _:
                return lambda slots: slots[slot]

    def computed(self, op: ir.ComputeOp) -> Reader:
        name = op.function.data
        readers = [self.reader(arg) for arg in op.args]
        if name == "and_":
            a, b = readers
            return lambda slots: truth(a(slots), op) and truth(b(slots), op)
        if name == "or_":
            a, b = readers
            return lambda slots: truth(a(slots), op) or truth(b(slots), op)
        if name == "ifelse":
            condition, a, b = readers
            return lambda slots: a(slots) if truth(condition(slots), op) else b(slots)
        if name == "one_use" and self.classes is not None:
            return lambda slots: True  # Where both forms are kept, costs decide.
        function = FUNCTIONS[name]
        call, as_values, may_ask = function.call, function.wants_values, name in QUESTIONS

        def compute(slots: Slots) -> Any:
            given = [read(slots) for read in readers]
            try:
                args = [plain(arg, as_values) for arg in given]
            except NoMatch:
                if may_ask:
                    return ask(name, given)
                raise
            try:
                return call(*args)
            except (NoMatch, KeyError, MirError):
                raise
            except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
                raise error_at(op, f"{name} cannot be computed here: {error}") from error

        return compute

    # Replacements --------------------------------------------------------------------------------------------------

    def maker(self, op: _Made, typed_by: SSAValue | None) -> Callable[[Slots, SSAValue], Any]:
        """Returns a function that makes the op's value, stores it in its slot, and returns the new op, if any.

        A constant has the dtype of `typed_by`, otherwise that of the replaced value.
        """
        slot = self.slots[op.result]

        def level_at(like: SSAValue) -> Level:
            """Returns the level of new constants: of an extension's ops, which has none, the rule's."""
            name = _owner_name(like)
            return level_of(name if name.partition(".")[0] in LEVELS else f"{self.rule.level.data}.const")

        match op:
            case ir.ConstantOp():
                value, dtype = self.reader(op.value), None if op.dtype is None else self.reader(op.dtype)
                is_literal = isinstance(op.value.owner, ir.DataOp)
                beside = None if typed_by is None else self.slots[typed_by]

                def constant(slots: Slots, like: SSAValue) -> Operation:
                    level = level_at(like)
                    number = plain(value(slots), False)
                    name = None if dtype is None else dtype(slots)
                    type = like.type if beside is None else slots[beside].type
                    check_number(op, number, element_of(type) if name is None else name, level.name, is_literal, like)
                    try:
                        made = level.make_constant(number, name, type)
                    except MirError as error:
                        raise _at_rule(op, error) from error
                    slots[slot] = made.results[0]
                    return made

                return constant
            case ir.FoldOp():
                source = self.slots[op.value]

                def fold(slots: Slots, like: SSAValue) -> Operation | None:
                    value = slots[source]
                    level = level_at(like)
                    folded = evaluate(value)
                    made = level.make_constant(folded, None, value.type)
                    slots[slot] = made.results[0]
                    return made

                return fold
            case ir.SelectOp():
                condition, on_true, on_false = (
                    self.reader(op.condition),
                    self.slots[op.on_true],
                    self.slots[op.on_false],
                )

                def select(slots: Slots, like: SSAValue) -> None:
                    slots[slot] = slots[on_true if truth(condition(slots), op) else on_false]

                return select
            case _:
                return self.build(op, slot)

    def build(self, op: ir.BuildOp, slot: int) -> Callable[[Slots, SSAValue], Operation]:
        args = [(self.slots[arg], arg.type == ir.RUN) for arg in op.args]
        attrs = [(name.data, self.reader(value)) for name, value in zip(op.attr_names.data, op.attrs, strict=True)]
        rest = None if op.rest is None else self.slots[op.rest]
        which = None if op.op is None else self.slots[op.op]
        fixed = "" if op.callee is None else op.callee.data

        def build(slots: Slots, like: SSAValue) -> Operation:
            name: str = slots[which] if which is not None else fixed
            operands: list[SSAValue] = []
            for place, is_run in args:
                if is_run:
                    operands += slots[place]
                else:
                    operands.append(slots[place])
            attributes = dict(slots[rest]) if rest is not None else {}
            for key, read in attrs:
                attributes[key] = plain(read(slots), False)
            try:
                made = level_of(name).build(name, operands, attributes, like)
            except MirError as error:
                raise _at_rule(op, error) from error
            slots[slot] = made.results[0]
            return made

        return build


def _at_rule(op: Operation, error: MirError) -> MirError:
    """Returns the error of a new op at the rule, with the place in the program as a note."""
    first = error.diagnostics[0]
    diagnostic = Diagnostic(f"the replacement does not fit here: {first.message}", op.location)
    return MirError(diagnostic.with_note("where the rule was applied", first.location))


def _owner_name(value: SSAValue) -> str:
    return value.owner.name if isinstance(value.owner, Operation) else "relay.param"


def _names(value: SSAValue) -> frozenset[str]:
    assert isinstance(value.owner, ir.MatchOp)
    return frozenset(name.data for name in value.owner.names.data)


def _path_to_bound(root: SSAValue, bound: set[SSAValue]) -> list[SSAValue] | None:
    """Values from a bound one up to `root`, each an argument of the next."""
    if root in bound:
        return [root]
    if isinstance(root.owner, ir.MatchOp):
        for arg in root.owner.args:
            path = _path_to_bound(arg, bound)
            if path is not None and arg.type == ir.VALUE:
                return [*path, root]
    return None
