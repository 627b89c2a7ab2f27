"""Compiles LLVM IR text to machine code with llvmlite, in a process of its own or in this one.

Run as a program (`codegen_process` starts it), the file serves compilations: LLVM ends its process where an assertion fails or where it
has no instruction for an operation, and must not take anything else along. So it imports llvmlite and nothing of the package.

    python -I -S codegen.py FOLDER_OF_LLVMLITE      standard input is a socket, over which each byte comes with two files

For each such byte the server forks a worker, which has LLVM loaded already. The worker reads requests from the first file, a socket,
and answers there; LLVM's messages on standard error go to the second. It ends when the other end of its socket is closed, even in the
midst of a compilation, and so does the server.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path.append(sys.argv[1])

import llvmlite.binding as llvm
from llvmlite.binding import ffi

if TYPE_CHECKING:
    import socket

STACK_BYTES = 1 << 28
"""LLVM recurses over expressions and dominator trees: chains of thousands need more than a thread's usual stack."""


class Request(NamedTuple):
    """A request to compile a text to `kind`, an object, assembly or optimized LLVM IR, for a processor."""

    kind: str
    triple: str
    cpu: str
    features: str
    level: int
    """Of optimization, 0 to 3."""
    vectorize: bool
    """Whether loops and straight-line code may be vectorized, which levels 2 and 3 do."""
    jit: bool
    """Whether the code is to be linked into a process of this machine."""
    seconds: int
    """Processor time after which the compilation is given up; 0 for no such limit."""

    def encode(self) -> bytes:
        """Returns the request as one line."""
        return "\t".join(str(int(field) if isinstance(field, bool) else field) for field in self).encode()

    @staticmethod
    def decode(line: bytes) -> Request:
        """Inverts `encode`."""
        kind, triple, cpu, features, level, vectorize, jit, seconds = line.decode().split("\t")
        return Request(kind, triple, cpu, features, int(level), vectorize == "1", jit == "1", int(seconds))


class Made(NamedTuple):
    """The result of a compilation, and the seconds of reading, optimizing and generating code."""

    data: bytes
    seconds: tuple[float, float, float]


class Refused(Exception):
    """LLVM says what is wrong with a text or a target: a message and a note, which may be empty."""

    def __init__(self, message: str, note: str = ""):
        super().__init__(message, note)
        self.message = message
        self.note = note


def initialize(all_targets: bool) -> None:
    """Readies LLVM's code generators: this machine's, or all of them."""
    if all_targets:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()


def target_machine(triple: str, cpu: str, features: str, level: int, jit: bool) -> llvm.TargetMachine:
    """Returns LLVM's code generator for a processor. Raises Refused for an unknown triple."""
    try:
        found = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise Refused(f"LLVM knows no target '{triple}': {error}") from None
    codemodel = "jitdefault" if jit else "default"
    # A module of WebAssembly has memory of its own, so that its addresses are known.
    reloc = "static" if triple.startswith("wasm") else "pic"
    return found.create_target_machine(cpu=cpu, features=features, opt=level, reloc=reloc, codemodel=codemodel, jit=jit)


class _Machines(threading.local):
    """The target machines of one thread: LLVM lets no two threads use one."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str, int, bool], llvm.TargetMachine] = {}

    def of(self, request: Request) -> llvm.TargetMachine:
        """Returns the machine for a request: it remembers what the processor's features mean."""
        key = request.triple, request.cpu, request.features, request.level, request.jit
        machine = self.known.get(key)
        if machine is None:
            initialize(not request.jit)
            self.known[key] = machine = target_machine(*key)
        return machine


_MACHINES = _Machines()


def compiled(request: Request, text: str) -> Made:
    """Compiles the text. Raises Refused."""
    machine = _MACHINES.of(request)
    seconds = [0.0, 0.0]
    module = _prepared(text, request, machine, seconds)
    start = time.perf_counter()
    match request.kind:
        case "object":
            data = _emit(machine, module)
        case "assembly":
            machine.set_asm_verbosity(False)
            data = machine.emit_assembly(module).encode()
        case _:
            data = str(module).encode()
    return Made(data, (seconds[0], seconds[1], time.perf_counter() - start))


def _prepared(text: str, request: Request, machine: llvm.TargetMachine, seconds: list[float]) -> llvm.ModuleRef:
    """Returns the optimized module; adds the seconds of reading and optimizing to `seconds`.

    LLVM 22.1's SLP vectorizer may leave a value before its definition, from which code generation makes wrong code or ends
    the process (see `tests/lowering/llvm/test_slp_order.py`). So the result is verified, and made again without that vectorizer
    where it is wrong.
    """
    module = _optimized(text, request, machine, seconds, slp=True)
    if defect_of(module) is not None:
        module = _optimized(text, request, machine, seconds, slp=False)
        defect = defect_of(module)
        if defect is not None:
            raise Refused(
                f"LLVM's optimizer made a module that is wrong: {defect}",
                "this is a defect of LLVM; compile with opt_level=1",
            )
    return module


def _optimized(
    text: str, request: Request, machine: llvm.TargetMachine, seconds: list[float], *, slp: bool
) -> llvm.ModuleRef:
    start = time.perf_counter()
    module = parse(text)
    read = time.perf_counter()
    module.triple = request.triple
    module.data_layout = str(machine.target_data)
    vectorize = request.vectorize and request.level >= 2
    options = llvm.create_pipeline_tuning_options(speed_level=request.level)
    options.loop_vectorization = vectorize
    options.slp_vectorization = vectorize and slp
    options.loop_interleaving = vectorize
    options.loop_unrolling = request.level >= 2
    builder = llvm.create_pass_builder(machine, options)
    _library().LLVMPY_RunNewModulePassManager(builder.getModulePassManager(), module, builder)
    seconds[0] += read - start
    seconds[1] += time.perf_counter() - read
    return module


def parse(text: str) -> llvm.ModuleRef:
    """Parses IR text to LLVM's own module and verifies it. Raises Refused with LLVM's complaint."""
    try:
        # In a context of its own: contexts are not for several threads at once, and go with their modules.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise Refused(f"LLVM refuses the module: {str(error).strip()}", "this is a defect of the lowering") from None
    return module


def defect_of(module: llvm.ModuleRef) -> str | None:
    """Returns the complaint of LLVM's verifier about a module; None when there is none."""
    try:
        module.verify()
    except RuntimeError as error:
        return str(error).strip()
    return None


# The two long calls into LLVM, of which several threads may be in at a time. llvmlite keeps a lock around each call of its library, so
# that one thread at a time uses LLVM. LLVM itself asks only that threads share no context, module, target machine or pass manager (its
# Programmer's Manual, "Threads and LLVM"), and here each has its own. So optimizing and code generation are called in the same library,
# but not through the lock; all that takes no time goes through it.

_UNLOCKED: list[ctypes.CDLL] = []


def _library() -> ctypes.CDLL:
    """Returns llvmlite's library, which is loaded already."""
    if not _UNLOCKED:
        library = ctypes.CDLL(library_file())
        for name in ("LLVMPY_RunNewModulePassManager", "LLVMPY_TargetMachineEmitToMemory"):
            function, locked = getattr(library, name), getattr(ffi.lib, name)
            function.argtypes, function.restype = locked.argtypes, locked.restype
        _UNLOCKED.append(library)
    return _UNLOCKED[0]


def library_file() -> str:
    """Returns the path of llvmlite's library."""
    return str(ffi.lib._name)  # pyright: ignore[reportPrivateUsage]


def _emit(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    with ffi.OutputString() as error:
        buffer = _library().LLVMPY_TargetMachineEmitToMemory(machine, module, 1, error)
        if not buffer:
            raise Refused(f"LLVM makes no code of the module: {error}", "this is a defect of the lowering")
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


# What goes over the socket of a worker: a byte when it begins; then, for each request, a head and the request's line and text one way, a
# head and what was made the other.

READY = b"R"
REQUEST = struct.Struct("<QQ")
"""The bytes of the line and of the text."""
ANSWER = struct.Struct("<?QQddd")
"""Whether it was compiled, the bytes of two parts (what was made and nothing, or message and note), seconds."""


def received(connection: socket.socket, count: int) -> bytearray:
    """Receives `count` bytes; fewer only where the other end was closed."""
    data = bytearray(count)
    view, have = memoryview(data), 0
    while have < count:
        got = connection.recv_into(view[have:])
        if got == 0:
            return data[:have]
        have += got
    return data


def answered(line: bytes, text: bytes, compile: Callable[[Request, str], Made]) -> bytes:
    """Answers a request of a worker."""
    try:
        made, seconds = compile(Request.decode(line), text.decode())
        return ANSWER.pack(True, len(made), 0, *seconds) + made
    except Refused as refused:
        message, note = (text.encode("utf-8", "surrogatepass") for text in (refused.message, refused.note))
        return ANSWER.pack(False, len(message), len(note), 0.0, 0.0, 0.0) + message + note


def work(connection: socket.socket, compile: Callable[[Request, str], Made]) -> None:
    """Answers requests, LLVM in a thread with a large stack, until the other end is closed."""
    import signal
    from queue import SimpleQueue

    requests: SimpleQueue[tuple[bytes, bytes]] = SimpleQueue()

    def answer() -> None:
        while True:
            line, text = requests.get()
            # The signal ends the process, whatever LLVM is at.
            signal.setitimer(signal.ITIMER_PROF, Request.decode(line).seconds)
            reply = answered(line, text, compile)
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            connection.sendall(reply)

    def guarded() -> None:
        # Whatever happens is seen as the end of the worker; Python's traceback is on standard error.
        try:
            answer()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            sys.stderr.flush()
            os._exit(1)

    threading.stack_size(STACK_BYTES)
    threading.Thread(target=guarded, daemon=True).start()
    connection.sendall(READY)
    while len(head := received(connection, REQUEST.size)) == REQUEST.size:
        of_line, of_text = REQUEST.unpack(head)
        line, text = received(connection, of_line), received(connection, of_text)
        if len(line) + len(text) < of_line + of_text:
            break
        requests.put((bytes(line), bytes(text)))


def serve(compile: Callable[[Request, str], Made] = compiled) -> None:
    """Forks a worker for each request on standard input, until it is closed."""
    import resource
    import signal
    import socket

    initialize(False)
    # Who interrupts the process that started this one means the other: this one ends with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The system forgets workers that ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=0) as channel:
        while True:
            message, files, *_ = socket.recv_fds(channel, 1, 2)
            if not message:
                return
            if len(files) == 2 and os.fork() == 0:
                try:
                    channel.close()
                    os.dup2(files[1], 2)
                    work(socket.socket(fileno=files[0]), compile)
                finally:
                    os._exit(0)
            for file in files:
                os.close(file)


if __name__ == "__main__":
    try:
        serve()
    finally:
        # Without what Python does at its end.
        os._exit(0)
