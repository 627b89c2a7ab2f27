"""Effects of calls: finds those that only compute their result, so that an unused one can be erased."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.relay import ir
from ....support.walk import walk_ops
from ...common.effects import Effect, Effects
from .rewriting import inner_first

Callees = frozenset["ir.FnOp | ir.FuncOp"]
"""The functions that a value may be; constructors, whose calls do nothing else, are left out."""

# A value that may be one of more functions than this counts as unknown.
_MOST_CALLEES = 8


class CallEffects(Effects):
    """The effects of every op of a module, calls included.

    A call has the effects of the functions that it may reach, and a `let` those of the value that it binds.
    Functions that call themselves, or each other, are pure when nothing in them is impure, as in TVM; whether a recursion
    ends is not asked.
    """

    def __init__(self, root: Operation, *, ignore_impurity: bool = False):
        self._ignore_impurity = ignore_impurity
        self._graph = CallGraph(root)
        self._impure = set[Operation]() if ignore_impurity else self._graph.impure_functions()
        super().__init__(root)
        for op in walk_ops(root):
            # What is evaluated for its effect stays bound: as a part of a graph it would not be evaluated in TVM.
            if (
                isinstance(op, ir.LetOp)
                and isinstance(op.value.owner, Operation)
                and self[op.value.owner] & Effect.CHANGE
            ):
                self._of_op[op] = Effect.CHANGE

    def _find(self, op: Operation) -> int:
        if isinstance(op, ir.RefOp):
            return Effect.ALLOCATE_RESULT
        if not isinstance(op, ir.CallOp | ir.CallGlobalOp):
            return super()._find(op)
        if self._ignore_impurity:
            return Effect.NONE
        callees = self._graph.callees(op)
        return Effect.CHANGE if callees is None or callees & self._impure else Effect.NONE


class CallGraph:
    """The functions that each call of a module may reach."""

    def __init__(self, root: Operation):
        self.functions = {op.sym_name.data: op for op in _top_level(root) if isinstance(op, ir.FuncOp)}
        self._values: dict[SSAValue, Callees | None] = {}
        self._callers: dict[Operation, list[Operation]] = {}
        self._unsafe: list[Operation] = []
        self._effects = Effects(root)
        # The functions around each block; an op is of the innermost.
        self._home: dict[Block, Operation] = {}
        for op in walk_ops(root):
            home = self._home.get(op.parent) if op.parent is not None else None
            inner = op if isinstance(op, ir.FuncOp | ir.FnOp) else home
            if isinstance(op, ir.FnOp) and op.self_name is not None:
                self._values[op.body.block.args[0]] = frozenset((op,))
            for region in op.regions:
                for block in region.blocks:
                    if inner is not None:
                        self._home[block] = inner
        # Branches before the ops that hold them, operands before their users.
        for op in inner_first(root):
            self._visit(op)

    def callees(self, op: ir.CallOp | ir.CallGlobalOp) -> Callees | None:
        """The functions that a call may enter; None when that is not known."""
        if isinstance(op, ir.CallGlobalOp):
            function = self.functions.get(op.callee.root_reference.data)
            return None if function is None else frozenset((function,))
        return self._of(op.callee)

    def impure_functions(self) -> set[Operation]:
        """Returns the functions whose call may do more than compute a result.

        They write, hold a stateful or unknown op, or call such a function.
        """
        impure = set(self._unsafe)
        pending = list(impure)
        while pending:
            for caller in self._callers.get(pending.pop(), ()):
                if caller not in impure:
                    impure.add(caller)
                    pending.append(caller)
        return impure

    def _of(self, value: SSAValue) -> Callees | None:
        return self._values.get(value)

    def _visit(self, op: Operation) -> None:
        home = self._home.get(op.parent) if op.parent is not None else None
        if home is not None:
            self._note_effects(op, home)
        match op:
            case ir.FnOp():
                self._values[op.result] = frozenset((op,))
            case ir.GlobalRefOp():
                function = self.functions.get(op.symbol.root_reference.data)
                self._values[op.result] = None if function is None else frozenset((function,))
            case ir.ConstructorRefOp():
                self._values[op.result] = frozenset()
            case ir.LetOp():
                self._values[op.result] = self._of(op.value)
            case ir.IfOp() | ir.MatchOp():
                self._values[op.results[0]] = self._joined(_returned_values(op))
            case ir.TupleGetItemOp():
                made = op.tuple_value.owner
                if isinstance(made, ir.TupleOp) and op.index.value.data < len(made.operands):
                    self._values[op.result] = self._of(made.operands[op.index.value.data])
            case _:
                pass

    def _joined(self, values: Iterable[SSAValue]) -> Callees | None:
        joined: Callees = frozenset()
        for value in values:
            callees = self._of(value)
            if callees is None or len(joined | callees) > _MOST_CALLEES:
                return None
            joined |= callees
        return joined

    def _note_effects(self, op: Operation, home: Operation) -> None:
        if isinstance(op, ir.CallOp | ir.CallGlobalOp):
            callees = self.callees(op)
            if callees is None:
                self._unsafe.append(home)
            else:
                for callee in callees:
                    self._callers.setdefault(callee, []).append(home)
        elif not op.regions and not isinstance(op, ir.RefOp) and self._effects[op] & Effect.CHANGE:
            self._unsafe.append(home)


def _top_level(root: Operation) -> Iterable[Operation]:
    return root.ops if isinstance(root, ModuleOp) else (op for r in root.regions for b in r.blocks for op in b.ops)


def _returned_values(op: Operation) -> list[SSAValue]:
    ends = [region.block.last_op for region in op.regions]
    return [end.value for end in ends if isinstance(end, ir.ReturnOp)]
