"""What makes a rule well formed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...support.diagnostics import error_at
from ...support.text import counted, nearest
from ..relay.operator import from_attribute
from .functions import FUNCTIONS, LAZY
from .levels import LEVELS, level_of
from .ops import (
    AnyOp,
    AttrOp,
    BuildOp,
    ComputeOp,
    DataOp,
    LiteralOp,
    MatchOp,
    ReplaceOp,
    RewriteOp,
    RulesetOp,
    WhereOp,
)
from .types import RUN, VALUE


def verify_rewrite(rule: RewriteOp) -> None:
    """Raises MirError for a rule that no program could be rewritten with.

    The pattern's roots must be ops, each connected to the first by a captured value; a pattern is made of patterns;
    ops and functions must exist and get as many arguments as they take; conditions are of what the pattern captures.
    """
    if rule.level.data not in LEVELS:
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
        if level.resolve(name.removeprefix("relay.") if level.name == "relay" else name) is None:
            raise error_at(op, f"there is no op '{name}'")
        problem = level.problem(name, count, attributes)
        if problem is not None:
            raise error_at(op, problem)


def _verify_condition(op: WhereOp) -> None:
    """Conditions are decided before anything is made."""
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
    """Every further root shares a value with those before it, from which it can be found."""
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
    from xdsl.ir import SSAValue

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
    """The rules of a module in order; those of the set or the single rule called `name` if it is given.

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
    # What sets include is looked up, too: the names must be there.
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
