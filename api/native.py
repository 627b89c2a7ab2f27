"""Native executables: an entry lowered, compiled and called by address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects import te
from ..lowering.mangle_symbols import linked_name
from ..lowering.pipeline import Observer, Options, lower_module
from .entry import Arguments, find_entry, relay_params, result_tensors
from .executable import Executable, Kind
from .threads import thread_count

if TYPE_CHECKING:
    from ..lowering.llvm.jit import CompiledModule
    from ..lowering.tir.signature import KernelSignature


def compile_native(
    module: ModuleOp, entry: Operation, kind: Kind, options: Options, observers: Sequence[Observer]
) -> Executable:
    """Lowers and compiles the module, which is used up; `entry` is the function of it that Python calls."""
    from ..lowering.llvm.translation import translate
    from ..lowering.tir.signature import KernelSignature
    from .native_kernel import KernelExecutable
    from .native_relay import RelayExecutable

    if kind == "relay":
        params, arguments, result = relay_params(entry), Arguments.of(entry), entry.properties["ret_type"]
        result_tensors(result, entry)

        def keep_result(step: ModulePass, module: ModuleOp) -> None:
            # A shape that the program computes from what is known is part of the result's type from here on.
            nonlocal result
            if step.name == "dynamic-to-static":
                result = find_entry(module, options.entry).properties["ret_type"]

        lower_module(module, options, (keep_result, *observers))
        text = translate(module)
        threads = thread_count(text, options.threads)
        return RelayExecutable(options, params, arguments, result, module, load_code(text, options), threads)
    signatures: dict[str, KernelSignature] = {}

    def keep_signatures(step: ModulePass, module: ModuleOp) -> None:
        for op in module.ops:
            signature = KernelSignature.of(op)
            name = op.properties.get("sym_name")
            if signature is not None and isinstance(name, StringAttr):
                signatures[name.data] = signature

    names = entry.param_names() if isinstance(entry, te.FuncOp) else None
    # A private function is seen by no one outside of its module; the entry must be.
    entry.properties.pop("sym_visibility", None)
    lower_module(module, options, (keep_signatures, *observers))
    signature = signatures[linked_name(options.entry)]
    if names is not None:
        # The handle of a symbolic buffer has a name of its own; the tensor's is the one that counts.
        params = tuple(replace(param, name=name) for param, name in zip(signature.params, names, strict=True))
        signature = replace(signature, params=params)
    text = translate(module)
    threads = thread_count(text, options.threads)
    return KernelExecutable(options, kind, signature, module, load_code(text, options), threads)


def load_code(text: str, options: Options) -> CompiledModule:
    """The LLVM IR text as code in this process."""
    from ..lowering.llvm.jit import compile_ir

    return compile_ir(text, cpu=options.cpu, opt_level=options.opt_level)


def messages_of(module: ModuleOp) -> dict[int, str]:
    """What the statuses mean that the module's functions may return."""
    from ..lowering.llvm.converter import MESSAGES

    table = module.attributes.get(MESSAGES)
    if not isinstance(table, DictionaryAttr):
        return {}
    return {int(code): text.data for code, text in table.data.items() if isinstance(text, StringAttr)}
