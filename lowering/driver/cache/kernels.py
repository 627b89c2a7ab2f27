"""Caches compiled kernels by structure: by the text of the TE function, not by its name.

A kernel's key is the text of its function in MLIR's generic form, without its name and the places where it was written, with all
that `keys.py` adds. Its symbol ends in the key's beginning, so that kernels of several programs have different names. An entry holds
the object file, how the program calls the kernel, and its messages; a message's place in the source is kept as the number of the op
that has it, and becomes that op's place in the program that uses the kernel.

Kernels that come with another function are not cached: those whose sizes a shape function computes, or that have a variant for large
sizes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from ....dialects import te, tir
from ....dialects.relay import ir as relay
from ....support.diagnostics import source_position
from ....support.operands import operands_of
from ....support.source_text import text_bytes
from ....support.stages import detail
from ....support.walk import walk_ops
from ...relay.kernels.shape_function import names_function
from ...tir.signature import SHAPE
from .kernel_types import Facts, Places, type_json
from .store import Store

if TYPE_CHECKING:
    # What kernels become is imported where one was lowered.
    from xdsl.dialects import llvm

    from ..lowered_unit import LoweredUnit
    from ..lowering_process import LoweringProcess
    from ..units import Unit

KIND = "kernel"
_NAME = "kernel"


@dataclass
class Known:
    """A compiled kernel, in the words of the program that uses it."""

    declarations: list[llvm.FuncOp]
    stub: relay.FuncOp
    messages: dict[int, str]
    object: Future[bytes]

    def join(self, unit: Unit, program: ModuleOp, declared: Collection[str]) -> None:
        """As `Unit.join`; functions that the program has `declared` already are not declared again."""
        stubs = dict.fromkeys(unit.calls, self.stub)
        unit.join(program, stubs, [op for op in self.declarations if op.sym_name.data not in declared])


class KernelCache:
    """The kernels of one build: those on disk, and those compiled so far. `context` is part of every key."""

    def __init__(self, store: Store | None, context: bytes, process: LoweringProcess | None = None):
        self.store = store
        self.context = context
        self.process = process
        """Lowers those that are not known, where there is such a process."""
        self.made: dict[bytes, tuple[Facts, Future[bytes]]] = {}
        """What is kept of kernels that this build made or read, by key."""
        self.fresh: list[bytes] = []
        """Keys of those that are not on disk yet."""
        self.text = KernelText()

    def candidate(self, unit: Unit) -> Candidate | None:
        """Returns the unit as an entry to look for, or None if it is not cached."""
        functions = [op for op in unit.module.ops if not isinstance(op, relay.FuncOp)]
        if len(functions) != 1 or len(unit.calls) != 1 or not isinstance(functions[0], te.FuncOp):
            return None
        function = functions[0]
        if names_function(function):
            return None
        if SHAPE not in function.attrs.data and any(isinstance(op, tir.VarOp) for op in function.body.block.ops):
            # Where sizes are checked at each call, what is said names the function.
            return None
        name = function.sym_name.data
        function.sym_name = StringAttr(_NAME)
        text = self.text(function)
        # Tensors may come in tuples, which is how a call shows and the function does not.
        (calls,) = unit.calls.values()
        types = [type_json(value.type) for value in (*calls[0].arguments, calls[0].result)]
        key = hashlib.sha256(self.context + text_bytes(text + json.dumps(types))).digest()
        symbol = f"{name.rstrip('_0123456789')}.{key.hex()[:12]}"
        _rename(unit, symbol)
        return Candidate(self, key, places_of(function), symbol, text, types)

    def write(self) -> None:
        """Puts on disk what is not there yet."""
        if self.store is None:
            return
        for key in self.fresh:
            facts, future = self.made[key]
            head = json.dumps(facts, separators=(",", ":")).encode()
            self.store.write(KIND, key, [len(head).to_bytes(8, "little"), head, future.result()])
        self.fresh.clear()


@dataclass
class Candidate:
    """A kernel that may be known."""

    cache: KernelCache
    key: bytes
    places: Places
    symbol: str
    text: str
    types: list[Any]
    """Of the arguments of a call, and of its result; None for what `type_json` does not say."""

    def is_known(self) -> bool:
        """Returns whether the kernel is on disk, or was compiled by this build."""
        return (self.cache.made.get(self.key) or self._read()) is not None

    def find(self, messages: Mapping[int, str]) -> Known | None:
        """Returns the kernel, if it is known; its messages must not contradict those that the program has."""
        from .kernel_facts import declarations_of, messages_at, stub_of

        entry = self.cache.made.get(self.key) or self._read()
        if entry is None:
            return None
        facts, future = entry
        try:
            own = messages_at(facts, self.places)
            if any(messages.get(code, text) != text for code, text in own.items()):
                return None
            known = Known(declarations_of(facts), stub_of(facts), own, future)
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        detail("kernel %s: found in the cache", self.symbol)
        return known

    def _read(self) -> tuple[Facts, Future[bytes]] | None:
        store = self.cache.store
        payload = None if store is None else store.read(KIND, self.key)
        if payload is None:
            return None
        length = int.from_bytes(payload[:8], "little")
        try:
            facts = json.loads(bytes(payload[8 : 8 + length]))
        except ValueError:
            return None
        entry = self.cache.made[self.key] = facts, finished(bytes(payload[8 + length :]))
        return entry

    def keep_lowered(self, lowered: LoweredUnit, future: Future[bytes]) -> None:
        """As `keep`, if plain data says what the unit became."""
        from .kernel_facts import facts_of

        facts = facts_of(lowered, self.places)
        if facts is not None:
            self.keep(facts, future)

    def keep(self, facts: Facts, future: Future[bytes]) -> None:
        """Notes a kernel that was, or is being, compiled."""
        self.cache.made[self.key] = facts, future
        self.cache.fresh.append(self.key)


def finished(data: bytes) -> Future[bytes]:
    """Returns a future that has an object file already."""
    future: Future[bytes] = Future()
    future.set_result(data)
    return future


def _rename(unit: Unit, symbol: str) -> None:
    """Gives the unit's only function another name, in its stub too."""
    (calls,) = unit.calls.values()
    unit.calls = {symbol: calls}
    for op in unit.module.ops:
        if isinstance(op, te.FuncOp):
            op.sym_name = StringAttr(symbol)
        for call in walk_ops(op):
            if isinstance(call, relay.CallTirOp):
                call.callee = SymbolRefAttr(symbol)


class KernelText:
    """Texts that identify kernels.

    A text is JSON: a list of attributes, each once, then the op, in which numbers refer to them. An attribute is a text in MLIR's
    syntax, a list of the numbers of an array's elements, or an object of those of a dictionary's entries. The op is

        [name, operands, results, properties, attributes, regions]

    Operands are the numbers of values, in the order of their definitions; results and the arguments of blocks are each a
    type and a name hint; properties and attributes are pairs of a key and a value. A region is a list of blocks, a block the list
    of its arguments and its ops. Places in the source are left out, and there are no successors.
    """

    def __init__(self) -> None:
        # By identity: attributes that are equal may read differently, as 0.0 and -0.0 do. They are kept, so that no other gets their
        # place in memory.
        self._known: dict[int, tuple[Attribute, str]] = {}
        self._printer = _Printer()

    def __call__(self, op: Operation) -> str:
        """Returns the text of an op and all that is in it."""
        numbers: dict[str | tuple[Any, ...], int] = {}
        listed: list[Any] = []
        values: dict[SSAValue, int] = {}
        known = self._known

        def number(attribute: Attribute) -> int:
            if type(attribute) is ArrayAttr:
                elements = [number(each) for each in attribute.data]
                return numbered((ArrayAttr, *elements), elements)
            if type(attribute) is DictionaryAttr:
                entries = pairs(attribute.data)
                return numbered((DictionaryAttr, *entries), dict(entries))
            entry = known.get(id(attribute))
            if entry is None:
                entry = known[id(attribute)] = attribute, self._printer.text(attribute)
            return numbered(entry[1], entry[1])

        def numbered(key: str | tuple[Any, ...], form: Any) -> int:
            found = numbers.get(key)
            if found is None:
                found = numbers[key] = len(listed)
                listed.append(form)
            return found

        def pairs(named: Mapping[str, Attribute]) -> list[tuple[str, int]]:
            return [(key, number(attribute)) for key, attribute in named.items()]

        def declared(made: Sequence[SSAValue]) -> list[Any]:
            for value in made:
                values[value] = len(values)
            return [(number(value.type), value.name_hint) for value in made]

        def written(op: Operation) -> list[Any]:
            assert not op.successors
            operands = [values[operand] for operand in operands_of(op)]
            results = declared(op.results)
            regions = [
                [(declared(block.args), [written(inner) for inner in block.ops]) for block in region.blocks]
                for region in op.regions
            ]
            return [op.name, operands, results, pairs(op.properties), pairs(op.attributes), regions]

        tree = written(op)
        return json.dumps([listed, tree], separators=(",", ":"))


def places_of(op: Operation) -> Places:
    """Returns the place of an op and of all ops in it."""
    return [source_position(each.location) for each in walk_ops(op)]


class _Printer(Printer):
    def __init__(self) -> None:
        super().__init__(print_generic_format=True)
        self._parts: list[str] = []

    def text(self, attribute: Attribute) -> str:
        """Returns an attribute in MLIR's syntax."""
        self._parts.clear()
        self.print_attribute(attribute)
        return "".join(self._parts)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self._parts.append(text)
