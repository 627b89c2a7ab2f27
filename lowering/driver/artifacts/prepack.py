"""Packs weights for kernels when an artifact is built, so that nothing is computed where it is loaded.

    constants (w, b), prepared (packed w) by `mirstack_prepare`   →   constants (b), contents (packed w)

Weights are packed for one processor's kernels. Code for a processor that this machine lacks is compiled again for this one, as far as
`mirstack_prepare` reaches: it moves elements by loops that are the same on every processor.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import replace

from ....dialects.array_box import ArrayBox
from ....support.diagnostics import MirError
from ....support.target import Target, least_cpu, missing_here, named
from ...llvm.jit.load import HOST, CompiledModule, emit_object, link_objects
from ...relay.functions.calling_convention import PREPARE
from ...runtime import runtime_symbols, thread_count
from ..loading.call_memory import Prepared
from ..loading.preparation import constant_table, contiguous, prepare_constants
from ..program import RelayProgram

DEFINITION = re.compile(r'^define [^@\n]*@("[^"]*"|[\w.$-]+)\(.*?^\}\n', re.M | re.S)
DECLARATION = re.compile(r'^declare [^@\n]*@("[^"]*"|[\w.$-]+)\(.*\n', re.M)
NAME = re.compile(r'@("[^"]*"|[\w.$-]+)')
OF_A_PROCESSOR = re.compile(r'@"?llvm\.(x86|aarch64|arm|riscv|wasm)\.|\basm\b')
"""Instructions that only one kind of processor has."""


def prepacked(program: RelayProgram, objects: Sequence[bytes]) -> RelayProgram:
    """Returns a program that brings what its objects, which run here, prepare of its constants."""
    if not program.prepared:
        return program
    code = link_objects(objects, runtime=runtime_symbols)
    return _with_contents(program, code)


def prepacked_by_text(program: RelayProgram, text: str, target: Target) -> RelayProgram:
    """Returns a program that brings what is prepared of its constants, from its LLVM IR for any processor.

    It is returned as it is where that code uses instructions that this machine lacks: then it prepares them where it is loaded. So does
    a module of WebAssembly that would be larger by a tenth: it is sent over networks.
    """
    if not program.prepared or (target.arch == "wasm32" and program.grows_by_preparing):
        return program
    sliced = reachable_text(text, (PREPARE,))
    if missing_here(target.arch, target.vector_bytes, target.features) is not None:
        if OF_A_PROCESSOR.search(sliced):
            return program
        # For the least processor of this kind: every other makes the same bytes.
        cpu, features = least_cpu(named("").arch)
        sliced = re.sub(r'"target-cpu"="[^"]*"', f'"target-cpu"="{cpu}"', sliced)
        sliced = re.sub(r'"target-features"="[^"]*"', f'"target-features"="{features}"', sliced)
    try:
        data = emit_object(sliced, replace(HOST, opt_level=1))
    except MirError:
        return program
    return prepacked(program, [data])


def _with_contents(program: RelayProgram, code: CompiledModule) -> RelayProgram:
    constants = [contiguous(box) for box in program.constants]
    table = constant_table(constants)
    prepared = Prepared(program.prepared, cleared=True)
    threads = thread_count(code, None)
    prepare_constants(program, code, (ctypes.addressof(table), prepared.address), prepared.places, threads)
    return program.with_contents([ArrayBox(tensor) for tensor in prepared.tensors])


def reachable_text(text: str, roots: Sequence[str]) -> str:
    """Returns LLVM IR without the functions and declarations that the roots do not reach."""
    functions = {found[1]: found[0] for found in DEFINITION.finditer(text)}
    rest = DEFINITION.sub("", text)
    declared = {found[1]: found[0] for found in DECLARATION.finditer(rest)}
    # A table of addresses may call what it names.
    pending = [*roots, *NAME.findall(DECLARATION.sub("", rest))]
    wanted: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += NAME.findall(functions.get(name, ""))
    left = functions.keys() | declared.keys()
    left -= wanted
    for pattern in (DEFINITION, DECLARATION):
        text = pattern.sub(lambda found: "" if found[1] in left else found[0], text)
    return text
