"""Loads LLVM IR text as machine code into this process: compiles an object, links it, finds symbols.

Compiling and linking are apart: `emit_object` returns bytes that a cache may keep, `link_objects` loads such bytes. LLVM compiles in
other processes (`codegen_process`), and links in this one.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import llvmlite
import llvmlite.binding as llvm

from ....support.diagnostics import Diagnostic, MirError
from ....support.settings import setting
from ....support.target import assumed_cpu
from . import codegen

_LOCK = threading.Lock()
_LIBRARY_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Target:
    """The processor that code is made for.

    `cpu` and `features` are LLVM's `-mcpu` and `-mattr`; None means this machine's, as does the cpu "native".
    """

    triple: str | None = None
    cpu: str | None = None
    features: str | None = None
    opt_level: int = 3

    @property
    def is_host(self) -> bool:
        """Tells whether code for the target runs in this process."""
        return self.triple is None

    def describe(self) -> str:
        """Returns triple, cpu, features and level as one line: a part of a cache's key."""
        triple, cpu, features = self.resolved()
        return f"{triple} {cpu} {features} O{self.opt_level}"

    def resolved(self) -> tuple[str, str, str]:
        """Returns triple, cpu and features, with this machine's for None if the triple is this machine's."""
        assumed = assumed_cpu() if self.is_host and self.cpu in (None, "native") else None
        return _resolved(replace(self, cpu=assumed) if assumed else self)


@cache
def _resolved(target: Target) -> tuple[str, str, str]:
    _initialize(not target.is_host)
    triple = target.triple or llvm.get_process_triple()
    cpu, features = target.cpu, target.features
    if triple.startswith("wasm32"):
        return triple, "generic", WASM_FEATURES + (",+relaxed-simd" if cpu == "wasm32-relaxed" else "")
    if (known := LLVM_NAMES.get(cpu or "")) is not None:
        return triple, *known
    if triple.startswith("riscv64"):
        return triple, cpu or "", RISCV_VECTORS
    if target.is_host and cpu in (None, "native"):
        cpu = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten() if features is None else features
    tuning = SLOW_GATHERS if triple.startswith("x86_64") and not (cpu or "").startswith(QUICK_GATHERS) else ""
    return triple, cpu or "", ",".join(part for part in (features, tuning) if part)


RISCV_VECTORS = "+m,+a,+f,+d,+c,+v"
LLVM_NAMES = {
    "rv64gcv": ("generic-rv64", RISCV_VECTORS), "armv7": ("generic", "+neon"),
    "generic-aarch64": ("generic", ""), "aarch64": ("generic", ""),
}  # fmt: skip
"""LLVM's processor and features for names of `support.target` that are not LLVM's."""
WASM_FEATURES = "+simd128,+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext,+mutable-globals,+multivalue"
"""What all browsers of today have (https://webassembly.org/features)."""
SLOW_GATHERS = "+prefer-no-gather,+prefer-no-scatter"
"""LLVM makes no gathers and scatters of loops by itself: on most processors they take longer than as many loads (GCC's tuning avoids
them on all of AMD's for the same reason, and Intel's first ones, Haswell's, are microcode)."""
QUICK_GATHERS = (
    "skylake",
    "cascadelake",
    "cooperlake",
    "cannonlake",
    "icelake",
    "tigerlake",
    "rocketlake",
    "alderlake",
    "sapphirerapids",
    "emeraldrapids",
    "graniterapids",
)
"""Processors on which gathers are quicker than loads."""
HOST = Target()
LINES = b".debug_line\0"
"""The name of a section in object files that have lines for debuggers."""


@cache
def _initialize(all_targets: bool) -> None:
    """Readies LLVM's code generators: this machine's, or all of them."""
    codegen.initialize(all_targets)


def _request(kind: str, target: Target, jit: bool) -> codegen.Request:
    return codegen.Request(kind, *target.resolved(), target.opt_level, vectorize=True, jit=jit, seconds=0)


def parse(text: str) -> llvm.ModuleRef:
    """Parses IR text to LLVM's own module and verifies it. Raises `MirError` with LLVM's complaint."""
    _initialize(False)
    try:
        return codegen.parse(text)
    except codegen.Refused as refused:
        from .codegen_process import as_error

        raise as_error(refused) from None


def emit_object(text: str, target: Target = HOST, *, to_load: bool = True) -> bytes:
    """Compiles IR text to an object file for `target`.

    It links into this process unless foreign, or not `to_load`: such code is near its data, and shorter.
    """
    return _compiled_apart(_request("object", target, to_load and target.is_host), text)


def emit_assembly(text: str, target: Target = HOST) -> str:
    """Compiles IR text to optimized assembly text."""
    return _compiled_apart(_request("assembly", target, False), text).decode()


def emit_optimized_ir(text: str, target: Target = HOST) -> str:
    """Returns IR text after LLVM's optimizations."""
    return _compiled_apart(_request("ir", target, False), text).decode()


def _compiled_apart(request: codegen.Request, text: str) -> bytes:
    # Imported where something is compiled, which a program from the cache is not.
    from .codegen_process import compile_apart

    return compile_apart(request, text).data


LINKS = 64
"""Libraries that an engine links: it keeps some 9 KiB of each that was unloaded, until all of them are and it goes itself."""


class _Engines:
    """Linkers of objects; a full one lives on as long as the code that it linked."""

    def __init__(self) -> None:
        self._engine: llvm.LLJIT | None = None
        self._left = 0

    def next(self) -> llvm.LLJIT:
        """Returns the engine for one more library."""
        if self._engine is None or self._left == 0:
            machine = codegen.target_machine(*HOST.resolved(), HOST.opt_level, True)
            self._engine = llvm.create_lljit_compiler(machine, suppress_errors=True)
            self._left = LINKS
        self._left -= 1
        return self._engine


_ENGINES = _Engines()


@dataclass(eq=False)
class CompiledModule:
    """Loaded code. It, and all addresses taken from it, live as long as this object does."""

    tracker: llvm.orcjit.ResourceTracker
    objects: tuple[bytes, ...]
    """The object files that it was linked from."""
    exports: frozenset[str]
    imports: frozenset[str] = frozenset()
    """What it calls of the runtime and of the process's libraries."""
    keep_alive: tuple[object, ...] = ()
    """What the code points to: memory of imported symbols, other modules."""

    def address(self, name: str) -> int:
        """Returns the address of the public function or global `name`. Raises `MirError` when there is none."""
        if name not in self.exports:
            known = ", ".join(sorted(self.exports)) or "nothing"
            raise MirError(
                Diagnostic(f"the compiled module has no public symbol '{name}'").with_note(f"it has {known}")
            )
        return int(self.tracker[name])


def link_objects(
    objects: Sequence[bytes],
    *,
    symbols: Mapping[str, int] | None = None,
    runtime: Callable[[], Mapping[str, int]] = dict,
    keep_alive: tuple[object, ...] = (),
) -> CompiledModule:
    """Loads object files together into this process.

    `symbols` are addresses by name that the code refers to, and `runtime` returns those of the compiled runtime
    (`lowering.runtime.runtime_symbols`), which is loaded when code refers to one; those of the process's libraries (libc,
    libm) are found without. Raises `MirError` that names what is found nowhere.
    """
    from .object_symbols import symbols_of

    _initialize(False)
    table = [symbol for data in objects for symbol in symbols_of(data)]
    defined = {symbol.name for symbol in table if symbol.defined}
    wanted = {symbol.name for symbol in table if not symbol.defined} - defined
    given = dict(symbols or {})
    imports = {name: given[name] for name in wanted if name in given}
    imports |= _resolve(wanted - imports.keys(), runtime)
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in defined:
        builder.export_symbol(name)
    with _LOCK:
        try:
            tracker = builder.link(_ENGINES.next(), f"mirstack.{next(_LIBRARY_NUMBERS)}")
        except RuntimeError as error:
            raise MirError(Diagnostic(f"the compiled code cannot be loaded: {error}")) from None
    module = CompiledModule(tracker, tuple(objects), frozenset(defined), frozenset(imports), keep_alive)
    if any(LINES in data for data in objects):
        from .gdb import show_to_gdb

        show_to_gdb(module)
    if setting("MIRSTACK_PERF") is not None:
        from .perf_map import tell_perf

        tell_perf(module)
    return module


def _resolve(names: Iterable[str], runtime: Callable[[], Mapping[str, int]]) -> dict[str, int]:
    """Returns addresses of symbols of the compiled runtime and the process. Raises `MirError` for others."""
    found: dict[str, int] = {}
    missing: list[str] = []
    for name in sorted(names):
        address = runtime().get(name) if name.startswith("mirstack_") else process_symbol(name)
        if address is None:
            missing.append(name)
        else:
            found[name] = address
    if missing:
        raise MirError(
            Diagnostic(f"the code calls {', '.join(missing)}, which no loaded library has").with_note(
                "load the library that has it (llvmlite.binding.load_library_permanently), or give its address"
            )
        )
    return found


def process_symbol(name: str) -> int | None:
    """Returns the address of a function in the process's libraries, libm among them; None for no such."""
    import ctypes

    # By file name: ctypes.util.find_library would start a compiler to ask.
    for library in (None, "libm.so.6", "libgcc_s.so.1"):
        try:
            handle = ctypes.CDLL(library)
        except OSError:
            continue
        if hasattr(handle, name):
            return ctypes.cast(getattr(handle, name), ctypes.c_void_p).value
    address = llvm.address_of_symbol(name)
    return int(address) if address else None


class ObjectStore(Protocol):
    """Keeps bytes on disk, by a kind and a key (`lowering/driver/cache/store.py`)."""

    def read(self, kind: str, key: bytes) -> memoryview | None: ...
    def write(self, kind: str, key: bytes, parts: Sequence[bytes]) -> None: ...


_SHIPPED_KIND = "runtime"
_shipped_store: ObjectStore | None = None


def keep_shipped(store: ObjectStore) -> None:
    """Keeps the machine code of the package's own IR text in a store from now on."""
    global _shipped_store
    _shipped_store = store


def compile_shipped(text: str, *, symbols: Mapping[str, int] | None = None) -> CompiledModule:
    """Compiles the package's own IR text in this process, without optimizing, or reads its code."""
    target, store = Target(opt_level=0), _shipped_store
    versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    key = hashlib.sha256(f"{versions}\n{target.describe()}\n{text}".encode()).digest()
    known = None if store is None else store.read(_SHIPPED_KIND, key)
    if known is not None:
        return link_objects([bytes(known)], symbols=symbols)
    from .codegen_process import compile_inside

    data = compile_inside(_request("object", target, True), text).data
    if store is not None:
        store.write(_SHIPPED_KIND, key, [data])
    return link_objects([data], symbols=symbols)
