"""From a module and its entry to a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ...dialects import relay, te, tir
from ...dialects.array import ArrayValueAttr
from ...support.diagnostics import source_position
from ...support.locations import places_of as places_in
from ..mangle_symbols import linked_name
from ..pipeline import Observer, Options
from ..tir.signature import KernelSignature
from .build import Built, build
from .entry import places_of, relay_params, relay_result, result_names
from .loading.executable import Kind
from .profile_facts import CallSite, ProfileFacts
from .program import KernelProgram, Program, RelayProgram, Tree

if TYPE_CHECKING:
    from .cache.kernels import KernelCache


class ModuleBuilder(Protocol):
    """Lowers and compiles a module: `build`, or `TextBuilder`."""

    def __call__(
        self, module: ModuleOp, options: Options, observers: Sequence[Observer], kernels: KernelCache | None
    ) -> Built: ...


def compile_program(
    module: ModuleOp,
    entry: Operation,
    kind: Kind,
    options: Options,
    observers: Sequence[Observer] = (),
    kernels: KernelCache | None = None,
    build: ModuleBuilder = build,
) -> Program:
    """Lowers and compiles the module, which is used up; `entry` is the function of it that Python calls."""
    if kind == "relay":
        return _relay_program(module, entry, options, observers, kernels, build)
    places, position = places_of(entry), source_position(entry.location)
    names = entry.param_names() if isinstance(entry, te.FuncOp) else None
    results = make_callable(entry, kind)
    taken = len(entry.params) if isinstance(entry, tir.PrimFuncOp) else None
    built = build(module, options, observers, None)
    signature = _signature(built.module, linked_name(options.entry))
    if taken is not None:
        results = len(signature.params) - taken
    signature = signature if names is None else signature.named(names)
    if position is not None:
        places = {param.name: ":".join(map(str, position)) for param in signature.params} | places
    facts = None
    if options.profile:
        site = CallSite(linked_name(options.entry), tuple(places_in(entry.location)), signature.symbols)
        facts = ProfileFacts((site,), built.work)
    return KernelProgram(options.entry, kind, signature, built.messages, built.objects, results, places, facts)


def make_callable(entry: Operation, kind: Kind) -> int:
    """Makes a function callable by Python, in place; returns how many results became parameters."""
    if kind == "relay":
        return 0
    # A private function is seen by no one outside of its module; the entry must be.
    entry.properties.pop("sym_visibility", None)
    if kind != "func":
        return 0
    from xdsl.dialects import func

    from ..func_entry import expose

    assert isinstance(entry, func.FuncOp)
    return expose(entry)


def _signature(module: ModuleOp, name: str) -> KernelSignature:
    """Returns the calling convention of the lowered function `name`."""
    for op in module.ops:
        if op.properties.get("sym_name") == StringAttr(name):
            signature = KernelSignature.of(op)
            if signature is not None:
                return signature
    raise AssertionError(f"@{name} was lowered without a signature")


def _relay_program(
    module: ModuleOp,
    entry: Operation,
    options: Options,
    observers: Sequence[Observer],
    kernels: KernelCache | None,
    build: ModuleBuilder,
) -> RelayProgram:
    params, result = relay_params(entry), entry.properties["ret_type"]
    relay_result(result, entry)
    names = result_names(entry)

    def keep_result(step: ModulePass, module: ModuleOp) -> None:
        # A shape that the program computes from what is known is part of the result's type from the pass on that finds it.
        nonlocal result
        for op in module.ops:
            if isinstance(op, relay.FuncOp) and op.sym_name.data == options.entry:
                result = op.ret_type

    built = build(module, options, (keep_result, *observers), kernels)
    return _with_facts(built, options.entry, params, relay_result(result), names)


def _with_facts(
    built: Built, entry: str, params: tuple[tuple[str, Tree], ...], result: Tree, names: tuple[str, ...]
) -> RelayProgram:
    from ..relay.functions.lower_relay_to_llvm import CONSTANTS, MEMORY
    from ..relay.functions.prepare_constants import PREPARE_ONLY, PREPARED
    from ..relay.functions.profile_hooks import SITES

    attributes = built.module.attributes
    sites = attributes.get(SITES)
    constants, memory, prepared = (attributes.get(key) for key in (CONSTANTS, MEMORY, PREPARED))
    assert isinstance(constants, ArrayAttr) and isinstance(memory, DictionaryAttr)
    # The module is used up, but is a cycle that only the collector frees.
    del attributes[CONSTANTS]
    return RelayProgram(
        entry,
        params,
        result,
        built.messages,
        tuple(attr.data for attr in constants.data if isinstance(attr, ArrayValueAttr)),
        _number(memory.data["arena"]),
        _number(memory.data["lower_bound"]),
        tuple(_number(item) for item in prepared.data) if isinstance(prepared, ArrayAttr) else (),
        _number(attributes[PREPARE_ONLY]) if PREPARE_ONLY in attributes else 0,
        built.objects,
        names,
        ProfileFacts(_call_sites(sites), built.work) if isinstance(sites, ArrayAttr) else None,
    )


def _call_sites(listed: ArrayAttr[Attribute]) -> tuple[CallSite, ...]:
    """Returns the call sites that a module's attribute lists."""
    found: list[CallSite] = []
    for entry in listed.data:
        assert isinstance(entry, ArrayAttr)
        match entry.data:
            case (StringAttr(data=kernel), ArrayAttr(data=places), ArrayAttr(data=names)):
                found.append(CallSite(kernel, _texts(places), _texts(names)))
            case _:
                raise AssertionError(f"{entry} is not a call site")
    return tuple(found)


def _texts(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    return tuple(each.data for each in attributes if isinstance(each, StringAttr))


def _number(attr: Attribute) -> int:
    assert isinstance(attr, IntegerAttr)
    return attr.value.data
