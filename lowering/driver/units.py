"""Kernels apart from the program that calls them: each a module of its own, compiled by itself.

    def @main(%x) { call_tir(@k, %x) }     →     the program: @main, and `llvm.func @k`, declared
    @te.func def k(): …                          the unit of k: its function, and a stub that calls it:
                                                 def @stub(%p0) { call_tir(@k, %p0) }

The passes that lower a kernel may change how it is called (`lift-transform-params` does), which then shows in the stub. What the
stub has become is put in the place of each call of the program (`Unit.join`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import te, tir
from ...dialects.relay import ir as relay
from ...support.edit import erase_op, insert_op_before
from ...support.extensions import loaded
from ...support.graph import DisjointSets
from ...support.walk import walk_ops
from ..mangle_symbols import MangleSymbols
from ..relay.kernels.constant_arguments import kernel_calls
from .reachable import is_intrinsic

if TYPE_CHECKING:
    # What units become is imported where one is lowered.
    from xdsl.dialects import llvm

STUB = "mirstack_stub"
"""The names of stubs begin so."""


@dataclass
class Unit:
    """Functions that refer to each other, in a module; and the calls of them in the program."""

    module: ModuleOp
    calls: dict[str, list[relay.CallTirOp]]

    def add_stubs(self) -> None:
        """Puts a stub into the module for each function that the program calls."""
        for number, (name, calls) in enumerate(self.calls.items()):
            self.module.body.block.add_op(_stub(f"{STUB}{number}", name, calls[0]))

    def take_stubs(self) -> dict[str, relay.FuncOp]:
        """Takes the stubs out of the module; each under the name of the function that it is for."""
        stubs = [op for op in self.module.ops if isinstance(op, relay.FuncOp)]
        for stub in stubs:
            stub.detach()
        return dict(zip(self.calls, stubs, strict=True))

    def join(self, program: ModuleOp, stubs: Mapping[str, relay.FuncOp], declarations: Sequence[llvm.FuncOp]) -> None:
        """Declares the lowered functions in the program, and has the calls there be made as the stubs say."""
        program.body.block.add_ops(declarations)
        for name, calls in self.calls.items():
            for call in calls:
                replace_call(call, name, stubs[name])


def split(module: ModuleOp) -> list[Unit] | None:
    """Takes the kernels out of a module of Relay functions and kernels; of any other module returns None.

    Functions then have the names that the linker knows them by.
    """
    ops = list(module.ops)
    allowed = relay.FuncOp | relay.TypeDataOp | te.FuncOp | tir.PrimFuncOp
    rules = [op for op in ops if op.name in ("schedule.rule", "mirstack.target") or is_intrinsic(op)]
    ops = [op for op in ops if op not in rules]
    if not all(isinstance(op, allowed) for op in ops) or not any(isinstance(op, relay.FuncOp) for op in ops):
        return None
    MangleSymbols().apply(Context(), module)
    functions = {op.sym_name.data: op for op in ops if isinstance(op, te.FuncOp | tir.PrimFuncOp)}
    _embed(rules, functions)
    calls = kernel_calls(module)
    units: list[Unit] = []
    for names in _components(functions):
        for name in names:
            functions[name].detach()
        part = ModuleOp([functions[name] for name in names])
        units.append(Unit(part, {name: calls[name] for name in names if name in calls}))
    return units


def _embed(rules: Sequence[Operation], functions: Mapping[str, te.FuncOp | tir.PrimFuncOp]) -> None:
    """Takes descriptions and schedule rules out of the module; rules go into the functions they are for."""
    if not rules and not loaded("schedule.rule"):
        return
    from ...dialects.schedule import RuleOp
    from ...passes.autoschedule.written_rules import embed_rules

    values = (*(each.value for each in loaded("schedule.rule")), *rules)
    named = {rule.sym_name.data: rule for rule in values if isinstance(rule, RuleOp)}
    intrinsics = [rule for rule in rules if isinstance(rule, tir.PrimFuncOp)]
    for function in functions.values():
        embed_rules(function, named, intrinsics)
    for rule in rules:
        rule.detach()


def _components(functions: dict[str, te.FuncOp | tir.PrimFuncOp]) -> list[list[str]]:
    """Returns the functions in groups that do not refer to each other, in their order."""
    sets = DisjointSets[str]()
    for name, function in functions.items():
        for op in walk_ops(function) if isinstance(function, tir.PrimFuncOp) else ():
            for attr in op.properties.values():
                if isinstance(attr, SymbolRefAttr) and (other := attr.root_reference.data) in functions:
                    sets.join(other, name)
    groups: dict[str, list[str]] = {}
    for name in functions:
        groups.setdefault(sets.find(name), []).append(name)
    return list(groups.values())


def _stub(symbol: str, name: str, call: relay.CallTirOp) -> relay.FuncOp:
    """Returns a Relay function that makes a call as this one is made."""
    types = [argument.type for argument in call.arguments]
    block = Block(arg_types=types)
    inner = relay.CallTirOp(name, block.args, call.result.type)
    inner.location = call.location
    block.add_ops([inner, relay.ReturnOp(inner.result)])
    names = [f"p{place}" for place in range(len(types))]
    return relay.FuncOp(symbol, names, types, ret_type=call.result.type, body=Region(block))


def replace_call(call: relay.CallTirOp, name: str, stub: relay.FuncOp) -> None:
    """Puts what the stub does in the place of a call."""
    *ops, last = stub.body.block.ops
    assert isinstance(last, relay.ReturnOp)
    if len(ops) == 1 and isinstance(only := ops[0], relay.CallTirOp) and only.arguments == stub.body.block.args:
        call.callee = only.callee
        return
    mapper: dict[SSAValue, SSAValue] = dict(zip(stub.body.block.args, call.arguments, strict=True))
    for op in ops:
        copy = op.clone(mapper)
        copy.location = call.location
        insert_op_before(copy, call)
    call.result.replace_all_uses_with(mapper[last.operands[0]])
    erase_op(call)
