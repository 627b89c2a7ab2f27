"""Writes a program as what a file's name asks for.

net.mirpkg    a package: `mirstack.Executable.load` and `mir-run` run it, without compiling
net.so        a shared library, and net.h, its header for C; net.o likewise, unlinked
net.ll, net.s the library as LLVM IR or assembly
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from ....support.diagnostics import Diagnostic, MirError
from ...llvm.jit import load as codegen
from ...options import target_of
from ..program import KernelProgram
from .c_interface import WORD, Interface, identifier
from .kernel_library import KernelInterface, KernelLibrary, kernel_interface
from .levels import Wanted, library_levels, package_levels
from .library_ir import Library, Weights
from .link import link_object, link_shared
from .narrow_words import pointer_bytes
from .package import ENDING, write_package
from .page import page_of
from .wasm_library import wasm_library

NEAR = 1 << 30
"""Bytes of weights from which on code addresses them as if they were anywhere."""
BROWSERS = (".wasm", ".html")
ENDINGS = (ENDING, ".so", ".o", ".ll", ".s", *BROWSERS)


def export(wanted: Wanted, path: Path, weights: Path | None = None) -> list[Path]:
    """Writes a program to a file, by its ending; returns all files that were written.

    `weights` is the file that gets the weights of a library, instead of the library. Raises MirError for a name that asks for nothing,
    for what cannot be compiled or linked, and for files that cannot be written.
    """
    if path.suffix not in ENDINGS:
        raise MirError(
            Diagnostic(f"{path}: nothing is written to files that end in '{path.suffix}'").with_note(
                f"the endings are {', '.join(ENDINGS)}"
            )
        )
    for each in (path, weights):
        if each is not None and not each.parent.is_dir():
            raise MirError(Diagnostic(f"{each}: cannot be written: No such file or directory"))
    if path.suffix == ENDING:
        if weights is not None:
            raise MirError(Diagnostic("a package holds its weights").with_note("leave the file of weights out"))
        write_package(path, package_levels(wanted), wanted.options.threads, version("mirstack"))
        return [path]
    return _export_library(wanted, path, weights)


def _export_library(wanted: Wanted, path: Path, weights: Path | None) -> list[Path]:
    if path.suffix in BROWSERS:
        wanted = _for_browsers(wanted, path, weights)
    levels, kernel = library_levels(wanted)
    name = identifier(path.stem)
    targets = [target_of(options) for options, _ in wanted.each()]
    if len(targets) > 1 and path.suffix not in (".so", ".o"):
        raise MirError(
            Diagnostic(f"{path}: code for several processors is several modules, and a text has one").with_note(
                "write a shared library (.so), an object file (.o) or a package (.mirpkg), or a text for each processor"
            )
        )
    target = targets[0]
    triple, address = target.resolved()[0], WORD
    if path.suffix not in BROWSERS:
        address = pointer_bytes(triple)
    weights_of = Weights.of(level.program for level in levels)
    threads = wanted.options.threads or 1
    if kernel is None:
        interface = Interface.of(name, levels[0].program, address)
        library = Library(name, interface, levels, weights_of, triple, threads, weights is not None)
    else:
        interface = _kernel_interface(name, kernel, address, path, weights)
        library = KernelLibrary(name, interface, levels, weights_of, triple, threads, False, kernel)
    modules = library.modules()
    written = [path]
    # Code that is to be loaded into this process may be far from its data, which costs instructions.
    is_far = len(library.weights.data) >= NEAR
    # Of another kind of processor, and so that no process is needed to keep this one alive, LLVM runs apart.
    match path.suffix:
        case ".wasm":
            module, script = wasm_library(library, codegen.emit_object(modules[0], target))
            _write(path, module)
            _write(path.with_suffix(".mjs"), script.encode())
            return [path, path.with_suffix(".mjs")]
        case ".html":
            module, script = wasm_library(library, codegen.emit_object(modules[0], target))
            _write(path, page_of(library.interface, module, script).encode())
            return [path]
        case ".ll":
            _write(path, modules[0].encode())
        case ".s":
            _write(path, codegen.emit_assembly(modules[0], target).encode())
        case ".o" if len(modules) == 1:
            _write(path, codegen.emit_object(modules[0], target, to_load=is_far))
        case _:
            # What chooses among the levels is for the least of them.
            objects = [
                codegen.emit_object(module, each, to_load=is_far)
                for module, each in zip(modules, [*targets, targets[-1]][-len(modules) :], strict=True)
            ]
            if path.suffix == ".o":
                link_object(objects, path, target.triple)
            else:
                link_shared(objects, path, path.name, target.triple)
    header = path.with_suffix(".h")
    shown = library.interface.header(
        parallel=library.is_parallel, external=library.external, most_threads=library.threads
    )
    _write(header, shown.encode())
    written.append(header)
    if weights is not None:
        _write(weights, library.weights.data)
        written.append(weights)
    return written


def _kernel_interface(
    name: str, kernel: KernelProgram, address: int, path: Path, weights: Path | None
) -> KernelInterface:
    """Returns how C calls a function of TE or TIR. Raises MirError where it cannot."""

    def refuse(why: str) -> MirError:
        return MirError(
            Diagnostic(f"a library for C cannot have @{kernel.entry}: {why}").with_note(
                f"call it from a function of Relay: def @main(%x: Tensor[…]) {{ call_tir(@{kernel.entry}, %x) }}"
            )
        )

    if path.suffix in BROWSERS:
        raise refuse("a module of WebAssembly needs a function of Relay")
    if weights is not None:
        raise refuse("a function of TE or TIR has no weights")
    return kernel_interface(name, kernel, address, refuse)


def _for_browsers(wanted: Wanted, path: Path, weights: Path | None) -> Wanted:
    """Returns what is built for WebAssembly, by default with vectors.

    Raises MirError for what a module does not have.
    """
    if weights is not None:
        raise MirError(Diagnostic(f"{path}: a module of WebAssembly holds its weights").with_note("leave the file out"))
    if wanted.options.debug_info:
        raise MirError(
            Diagnostic(f"{path}: a module of WebAssembly has no lines for debuggers").with_note(
                "leave -g (debug_info) out, or build for this machine"
            )
        )
    cpus = {None: "wasm32", "wasm32": "wasm32", "relaxed": "wasm32-relaxed", "wasm32-relaxed": "wasm32-relaxed"}
    if len(wanted.cpus) != 1 or wanted.cpus[0] not in cpus:
        raise MirError(
            Diagnostic(f"{path}: '{','.join(map(str, wanted.cpus))}' is not a processor of WebAssembly").with_note(
                "leave --mcpu out, or name `relaxed` for relaxed SIMD"
            )
        )
    return replace(wanted, cpus=(cpus[wanted.cpus[0]],), options=replace(wanted.options, threads=1))


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be written: {error.strerror or error}")) from None
