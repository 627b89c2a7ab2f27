"""Verifies a module: every op's rules, then dominance; reports all errors at once, at their places."""

from __future__ import annotations

import threading
from collections.abc import Generator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, NoTerminator, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .diagnostics import Diagnostic, MirError
from .dominance import dominance_errors
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
    """Two symbols of one name."""
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
