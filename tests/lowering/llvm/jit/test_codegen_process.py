"""LLVM in processes of its own: what ends one of them is told, and ends neither the compilation nor the process that asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.lowering.llvm.jit import codegen_process
from mirstack.lowering.llvm.jit.codegen_process import SCRIPT
from mirstack.lowering.llvm.jit.load import Target, emit_assembly, emit_object
from mirstack.support import settings
from mirstack.support.diagnostics import MirError

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="this system starts no such processes")

TEXT = "define i32 @seven() {\n ret i32 7\n}\ndefine i32 @eight() {\n ret i32 8\n}\n"

SERVER = """
import os, sys
sys.path.append(sys.argv[1])
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("codegen", {script!r})
codegen = module_from_spec(spec)
spec.loader.exec_module(codegen)
def compile(request, text):
{body}
    return codegen.compiled(request, text)
codegen.serve(compile)
"""

ASSERTED = b'x.cpp:1: void f(): Assertion `a == b && "the cost models disagree"\' failed.\n'

Serve = Callable[[str], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Serve]:
    """Has a server compile that runs these statements on each `request` and `text` first."""
    processes = codegen_process._Processes()
    monkeypatch.setattr(codegen_process, "_PROCESSES", processes)
    monkeypatch.setattr(codegen_process, "_KEPT_TEXTS", dict[bytes, str]())
    monkeypatch.setattr(settings, "_SAID", set[str]())
    monkeypatch.setattr(codegen_process.tempfile, "tempdir", str(tmp_path))

    def start(body: str) -> None:
        script = tmp_path / "server.py"
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        script.write_text(SERVER.format(script=str(SCRIPT), body=lines))
        monkeypatch.setattr(codegen_process, "SCRIPT", script)

    yield start
    for worker in processes.idle:
        worker.close()
    if processes.channel is not None:
        processes.lose(processes.channel)


def test_a_safer_pipeline_is_taken_and_told(serve: Serve, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    serve(f"if request.vectorize:\n    os.write(2, {ASSERTED!r})\n    os.abort()")
    assert "mov" in emit_assembly(TEXT, Target(cpu="x86-64", triple="x86_64-unknown-linux-gnu"))
    (kept,) = tmp_path.glob("*.ll")
    assert kept.read_text() == TEXT
    assert capfd.readouterr().err == (
        "mirstack: warning: LLVM does not survive the function 'seven' and 1 more, which is compiled without vectorizing its "
        f"loops instead (LLVM says: the cost models disagree); the LLVM text is in {kept}\n"
    )


def test_a_processor_that_llvm_does_not_know() -> None:
    with pytest.raises(MirError) as caught:
        emit_assembly(TEXT, Target(cpu="znver9", triple="x86_64-unknown-linux-gnu"))
    assert str(caught.value) == (
        "error: this version of LLVM does not know the processor 'znver9'\n"
        "note: name an older one of its family with -mcpu, such as znver4, or install a newer llvmlite"
    )


@pytest.mark.parametrize("level", [0, 1, 3])
def test_no_pipeline_is_safe_enough(serve: Serve, tmp_path: Path, level: int) -> None:
    serve('os.write(2, b"LLVM ERROR: Cannot select: t5: v3bf16\\n")\nos.abort()')
    with pytest.raises(MirError) as caught:
        emit_object(TEXT, Target(opt_level=level))
    (kept,) = tmp_path.glob("*.ll")
    assert str(caught.value) == (
        "error: LLVM does not survive the function 'seven' and 1 more: LLVM says: Cannot select: t5: v3bf16\n"
        "note: this is a defect of LLVM or of what it was given, not of the program\n"
        f"note: the LLVM text is in {kept}"
    )


def test_a_worker_that_is_killed_says_nothing(serve: Serve) -> None:
    serve("os.kill(os.getpid(), 9)")
    with pytest.raises(MirError, match="'seven' and 1 more: its process was ended"):
        emit_object(TEXT)


def test_a_compilation_without_end_is_given_up(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("while request.vectorize: pass")
    monkeypatch.setenv("MIRSTACK_LLVM_SECONDS", "1")
    assert emit_object(TEXT)
    assert "instead (it took more than 1 s); the LLVM text is in " in capfd.readouterr().err


def test_a_setting_that_means_nothing_is_told(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("assert request.seconds == 600")
    monkeypatch.setenv("MIRSTACK_LLVM_SECONDS", "soon")
    assert emit_object(TEXT)
    assert capfd.readouterr().err == (
        "mirstack: warning: MIRSTACK_LLVM_SECONDS is 'soon', which counts as absent: it takes a whole number from 0 on\n"
    )


def test_workers_are_renewed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve("pass")
    monkeypatch.setattr(codegen_process, "USES", 2)
    seen: list[object] = []
    for _ in range(3):
        assert emit_object(TEXT)
        seen += codegen_process._PROCESSES.idle
    assert len(seen) == 2 and seen[0] is not seen[1]


@pytest.mark.parametrize("executable", ["", "/nowhere/python", "/bin/true"])
def test_where_no_process_starts_llvm_runs_inside(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    serve("pass")
    monkeypatch.setattr(sys, "executable", executable)
    for _ in range(5):
        assert emit_object(TEXT)[:4]
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("mirstack: warning: no process for LLVM can be started (")
    assert lines[0].endswith("); it runs inside of this one, which ends where LLVM does")


def test_a_server_that_ended_is_started_again(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    serve("pass")
    assert emit_object(TEXT)
    processes = codegen_process._PROCESSES
    while processes.idle:
        processes.idle.pop().close()
    first = processes.server
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert emit_object(TEXT)
    assert processes.server not in (0, first)
    # None is left for the system to remember.
    with pytest.raises(ChildProcessError):
        os.waitpid(first, os.WNOHANG)
    assert not capfd.readouterr().err


def test_a_fork_is_served_too(serve: Serve) -> None:
    serve("pass")
    expected = emit_object(TEXT)
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            code = 0 if emit_object(TEXT) == expected and codegen_process._PROCESSES.server == 0 else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert emit_object(TEXT) == expected


# SIGINT is ignored in what a shell runs in the background.
CHILD = """
import os, signal, sys, threading, time
from mirstack.lowering.llvm.jit import codegen_process
from mirstack.lowering.llvm.jit.load import emit_object
signal.signal(signal.SIGINT, signal.default_int_handler)
codegen_process.SCRIPT = sys.argv[1]
threading.Thread(target=emit_object, args=("define void @f() { ret void }",), daemon=True).start()
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_process_that_ends(serve: Serve, tmp_path: Path, ending: signal.Signals) -> None:
    """Even where LLVM is at work."""
    serve(f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}} ')\nwhile True: pass")
    script = str(codegen_process.SCRIPT)
    process = subprocess.Popen([sys.executable, "-c", CHILD, script], stderr=subprocess.DEVNULL, process_group=0)
    pids = tmp_path / "pids"
    _wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    os.killpg(process.pid, ending)
    process.wait()
    _wait_for(lambda: not any(_runs(int(pid)) for pid in pids.read_text().split()))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


PROGRAM = """# from tvm.script import tir as T

@T.prim_func
def main(B0: T.Buffer((14,), "int32"), B3: T.Buffer((9, 12), "int32")):
    # with T.block("root"):
    B1 = T.alloc_buffer((6, 2), "int32")
    B2 = T.alloc_buffer((17,), "int32")
    for i1_0, k1_0 in T.grid(12, 3):
        with T.block("blk1"):
            v1_0, w1_0 = T.axis.remap("SR", [i1_0, k1_0])
            T.reads(B0[v1_0 + w1_0])
            T.writes(B1[v1_0 // 2, v1_0 % 2])
            with T.init():
                B1[v1_0 // 2, v1_0 % 2] = 2147483647
            B1[v1_0 // 2, v1_0 % 2] = T.min(B1[v1_0 // 2, v1_0 % 2], B0[v1_0 + w1_0])
    for i2_0 in range(17):
        with T.block("blk2"):
            v2_0 = T.axis.opaque(17, i2_0)
            T.reads(B2[T.max(v2_0 - 1, 0)], B0[T.min(v2_0, 13)], B1[v2_0 % 12 // 2, v2_0 % 2], B1[3, 1])
            T.writes(B2[v2_0])
            B2[v2_0] = T.if_then_else(v2_0 > 0, B2[T.max(v2_0 - 1, 0)], 1) + T.if_then_else(v2_0 < 1, B0[T.min(v2_0, 13)] + B1[v2_0 % 12 // 2, v2_0 % 2], T.Select(v2_0 % 2 == 0, B1[3, 1], B1[v2_0 % 12 // 2, v2_0 % 2]))
    for i3_0, i3_1 in T.grid(9, 12):
        with T.block("blk3"):
            v3_0, v3_1 = T.axis.remap("SS", [i3_0, i3_1])
            T.reads(B1[(1 - v3_0) // 2 + 5, (1 - v3_0) % 2])
            T.writes(B3[v3_0, v3_1])
            B3[v3_0, v3_1] = B1[(1 - v3_0) // 2 + 5, (1 - v3_0) % 2]
"""


def test_a_program_whose_assertion_fails_in_llvm_runs(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM 22.1's loop vectorizer has two cost models, which disagree on this program's loops."""
    codegen_process.start()
    module = mirstack.parse(PROGRAM)
    given = np.arange(14, dtype=np.int32) * 7 % 11
    results = [np.zeros((9, 12), np.int32) for _ in range(2)]
    mirstack.compile(module)(given, results[0])
    mirstack.compile(module, "interp")(given, results[1])
    assert np.array_equal(results[0], results[1])
    said = capfd.readouterr().err
    assert not said or "LLVM does not survive the function 'main', which is compiled without vectorizing" in said


def test_what_llvm_warns_of_is_not_shown(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    serve('os.write(2, b"warning: loop not vectorized")')
    assert emit_object(TEXT)
    assert not capfd.readouterr().err
