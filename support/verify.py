"""Verifies a module: every op's rules, then dominance; reports all errors at once, at their places."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr, UnregisteredOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .diagnostics import Diagnostic, MirError, location_of
from .graph import dominator_tree
from .symbols import indexed_symbols
from .walk import walk_ops


class _Isolation(threading.local):
    """Set while this thread checks isolation in `dominance_errors`, which names both sides."""

    checked = False


ISOLATION = _Isolation()
_NOT_ISOLATED = "Operation using value defined out of its IsolatedFromAbove parent"


def verify(root: Operation) -> None:
    """Checks `root` and all inside it, in time linear in the number of ops and whatever their nesting.

    Raises:
        MirError: with one diagnostic for each op that breaks a rule.
    """
    errors = find_errors(root)
    if errors:
        raise MirError(errors)


def find_errors(root: Operation) -> list[Diagnostic]:
    """Returns a diagnostic for each op that breaks its own rules, its traits', structure or dominance."""
    errors: list[Diagnostic] = []
    failed: list[Exception] = []
    outer, ISOLATION.checked = ISOLATION.checked, True
    try:
        with indexed_symbols():
            for op in walk_ops(root):
                try:
                    errors += _errors_of(op)
                except Exception as exception:
                    # A verifier reads the ops inside, of which one may lack what its own verifier asks for.
                    failed.append(exception)
    finally:
        ISOLATION.checked = outer
    if failed and not errors:
        raise failed[0]
    return errors + dominance_errors(root)


def _errors_of(op: Operation) -> list[Diagnostic]:
    twice = list(_defined_twice(op)) if op.has_trait(SymbolTable, value_if_unregistered=False) else []
    if twice:
        return twice
    try:
        _check_structure(op)
        op.verify_()
    except MirError as error:
        return list(error.diagnostics)
    except VerifyException as error:
        if str(error).startswith(_NOT_ISOLATED):
            return []  # xDSL's own check, where it is not patched: `dominance_errors` reports it.
        return [_in_words(op, " ".join(str(error).split()))]
    except Exception as error:
        # xDSL's verifiers take for granted what generic syntax does not ensure (a region has a block, a type a shape).
        if type(op).__module__.partition(".")[0] == __name__.partition(".")[0]:
            raise
        return [_in_words(op, f"it is malformed ({type(error).__name__}: {error})")]
    return []


def _defined_twice(table: Operation) -> Generator[Diagnostic]:
    """Each symbol of a table that another one has the name of; xDSL's own check tells only of the table."""
    first: dict[str, Operation] = {}
    for op in [op for region in table.regions for block in region.blocks for op in block.ops]:
        name = op.get_attr_or_prop("sym_name")
        if isinstance(name, StringAttr) and first.setdefault(name.data, op) is not op:
            yield defined_twice(name.data, op, first[name.data])


def defined_twice(name: str, again: Operation, before: Operation) -> Diagnostic:
    """Returns the error for two symbols of one name."""
    diagnostic = Diagnostic(f"'{name}' is defined twice", again.location)
    return diagnostic.with_note("it was first defined here", before.location)


def _in_words(op: Operation, message: str) -> Diagnostic:
    if op.name not in message:
        message = f"'{op.name}' does not verify: {message}"
    return Diagnostic(message, op.location)


def _check_structure(op: Operation) -> None:
    """Checks an op as xDSL's `Operation.verify` does, without recursion or counting blocks."""
    block = op.parent
    region = None if block is None else block.parent
    for successor in op.successors:
        if block is None or block.last_op is not op:
            raise VerifyException(f"'{op.name}' branches, so it must be the last op of its block")
        if successor.parent is not region:
            raise VerifyException(f"'{op.name}' branches to a block of another region")
    if block is not None and region is not None and block.last_op is op and not op.has_trait(IsTerminator):
        parent = region.parent
        if region.first_block is not region.last_block:
            raise VerifyException(
                f"'{op.name}' ends a block, but is not a terminator: a branch or a return must follow"
            )
        if parent is not None and not parent.has_trait(NoTerminator):
            raise VerifyException(f"'{op.name}' ends the body of '{parent.name}', but is not a terminator")
    for region in op.regions:
        for block in region.blocks:
            is_only = region.first_block is region.last_block
            if block.first_op is None and is_only and not op.has_trait(NoTerminator):
                raise VerifyException(f"'{op.name}' has an empty body: at least a terminator is expected")


# Ops whose regions are graphs: their ops have no order (MLIR language reference, "Graph Regions").
GRAPH_REGION_OPS = frozenset({"builtin.module", "hw.module"})


@dataclass
class _Leave:
    """Work item: leaves a scope; `visible` is the set of values visible around an isolated op."""

    values: list[SSAValue]
    visible: set[SSAValue] | None = None


@dataclass
class _Enter:
    """Work item: a block, with its region's dominator tree."""

    block: Block
    tree: dict[Block, list[Block]]
    is_graph: bool


@dataclass
class _Resume:
    """Work item: continues in a block at `op`, after `done`; `scope` collects the block's values."""

    done: Operation | None
    op: Operation | None
    scope: list[SSAValue]
    is_graph: bool


def check_dominance(root: Operation) -> None:
    """Raises a `MirError` with the diagnostics of `dominance_errors`, if there are any."""
    errors = dominance_errors(root)
    if errors:
        raise MirError(errors)


def dominance_errors(root: Operation) -> list[Diagnostic]:
    """Returns a diagnostic for each operand inside `root` that its definition does not dominate.

    Walks blocks along the dominator tree with the set of visible values, so that the time is linear in the number of
    operands. Unreachable blocks are not checked, nor the regions of unregistered ops, whose kind is unknown.
    """
    errors: list[Diagnostic] = []
    visible: set[SSAValue] = set()
    work: list[_Enter | _Resume | _Leave] = []

    def push_regions(op: Operation) -> None:
        nonlocal visible
        if isinstance(op, UnregisteredOp):
            return
        if op.has_trait(IsolatedFromAbove):
            work.append(_Leave([], visible))
            visible = set()
        is_graph = op.name in GRAPH_REGION_OPS
        for region in reversed(op.regions):
            if region.first_block is not None:
                work.append(_Enter(region.first_block, dominator_tree(region.first_block), is_graph))

    push_regions(root)
    while work:
        item = work.pop()
        match item:
            case _Leave():
                visible.difference_update(item.values)
                if item.visible is not None:
                    visible = item.visible
            case _Enter():
                scope: list[SSAValue] = list(item.block.args)
                if item.is_graph:
                    scope += (result for op in item.block.ops for result in op.results)
                visible.update(scope)
                work.append(_Leave(scope))
                work += [_Enter(child, item.tree, item.is_graph) for child in reversed(item.tree.get(item.block, []))]
                work.append(_Resume(None, item.block.first_op, scope, item.is_graph))
            case _Resume():
                done, op = item.done, item.op
                while True:
                    if done is not None and not item.is_graph:
                        visible.update(done.results)
                        item.scope += done.results
                    if op is None:
                        break
                    errors += [_explain(op, i) for i, operand in enumerate(op.operands) if operand not in visible]
                    done, op = op, op.next_op
                    if done.regions:
                        # Its results become visible after its regions, which must not see them.
                        work.append(_Resume(done, op, item.scope, item.is_graph))
                        push_regions(done)
                        break
    return errors


def _explain(op: Operation, index: int) -> Diagnostic:
    """Explains why operand `index` of `op` is not visible there."""
    value = op.operands[index]
    name = f"%{value.name_hint}" if value.name_hint else f"operand #{index}"
    home, block = _home_of(value), op.parent
    if home is None:
        return Diagnostic(f"'{op.name}' uses {name}, which no op of the module defines", op.location)
    around: Operation | None = op
    isolating: Operation | None = None
    while around is not None and around.parent is not home:
        around = around.parent_op()
        if around is not None and isolating is None and around.has_trait(IsolatedFromAbove):
            isolating = around
    if around is not None and isolating is not None and around.parent is home:
        reason = (
            f"from outside of '{isolating.name}', which sees nothing of what surrounds it: pass it in as an argument"
        )
    elif around is not None and isinstance(value, OpResult) and around is value.op:
        reason = "inside the op that defines it"
    elif home is block or around is not None:
        reason = "before it is defined"
    elif block is not None and home.parent is block.parent:
        reason = "in a block that can be reached without passing its definition"
    else:
        reason = "outside of the region that defines it"
    return Diagnostic(f"'{op.name}' uses {name} {reason}", op.location).with_note("defined here", location_of(value))


def _home_of(value: SSAValue) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
