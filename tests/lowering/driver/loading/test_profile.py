"""Profiles of programs: rows, work at run sizes, traces; programs that are not profiled are as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.driver.mir_run import main as mir_run
from mirstack.lowering.driver.cache.keys import context_key
from mirstack.lowering.driver.loading import profile as profiles
from mirstack.lowering.driver.loading.profile import OUTSIDE, short_places
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.lowering.driver.machine_limits import MachineLimits, machine_limits
from mirstack.lowering.options import Options
from mirstack.lowering.runtime import profile as runtime_profile

NET = """
def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(4, 8), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.relu(%0);
  cumsum(%1, axis=1)
}
"""
OPEN = """
def @main(%x: Tensor[(?, 8), float32]) {
  cumsum(multiply(%x, %x), axis=1)
}
"""
TABLE = """
def @main(%table: Tensor[(1000, 16), float32], %ids: Tensor[(3), int32]) {
  take(%table, %ids, axis=0)
}
"""
SCALE = """
@T.prim_func
def scale(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
"""
PARALLEL = """
@T.prim_func
def double(A: T.Buffer((64, 4096), "float32"), B: T.Buffer((64, 4096), "float32")):
    for i, j in T.grid(64, 4096):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)

@T.schedule(double)
def by_rows(sch):
    i, j = sch.get_loops(sch.get_block("B"))
    sch.parallel(i)
"""


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine does 1000 GFLOP/s and 100 GB/s, so that nothing is measured."""
    monkeypatch.setattr(profiles, "machine_limits", lambda threads: MachineLimits(threads, 1000.0, 100.0))


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The log has room for one record at first."""
    monkeypatch.setattr(runtime_profile, "_ROOM", 7)
    runtime_profile._log.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    runtime_profile._log.cache_clear()  # pyright: ignore[reportPrivateUsage]


def compiled(text: str, **options: object) -> mirstack.Executable:
    return mirstack.compile(mirstack.parse(text, "net.mir"), **{"profile": True, **options})  # pyright: ignore[reportArgumentType]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_rows_of_a_program():
    profile = compiled(NET).profile(ones(2, 8), ones(4, 8), calls=3)
    assert profile.calls == 3
    *kernels, outside = profile.rows
    assert {row.kernel for row in kernels} == {"fused_nn_dense_nn_relu", "fused_cumsum"}
    dense = next(row for row in kernels if "dense" in row.kernel)
    assert dense.calls == 1
    assert dense.flops == dense.float32_flops == 2 * 2 * 4 * 8 + 2 * 4
    assert dense.bytes == 4 * (2 * 8 + 4 * 8 + 2 * 4)
    assert dense.places == ("net.mir:4:8", "net.mir:3:8")
    assert dense.rule
    assert outside.kernel == OUTSIDE and outside.seconds > 0


def test_rows_add_up_to_the_calls():
    profile = compiled(NET).profile(ones(2, 8), ones(4, 8))
    assert sum(row.seconds for row in profile.rows) == pytest.approx(profile.seconds)
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    assert all(row.seconds > 0 for row in profile.rows)


def test_kernels_of_a_call_follow_each_other_inside_of_it():
    profile = compiled(NET).profile(ones(2, 8), ones(4, 8), calls=2)
    for record in profile.records:
        times = [time for event in record.events for time in (event.start, event.end)]
        assert [record.start, *times, record.end] == sorted([record.start, *times, record.end])


@pytest.mark.parametrize("rows", [1, 5])
def test_work_at_run_sizes(rows: int):
    profile = compiled(OPEN).profile(ones(rows, 8))
    (multiply,) = [row for row in profile.rows if "multiply" in row.kernel]
    assert multiply.flops == rows * 8
    assert multiply.bytes == 4 * rows * 8 * 2


def test_a_gather_does_not_read_its_table():
    profile = compiled(TABLE).profile(ones(1000, 16), np.arange(3, dtype=np.int32))
    assert profile.rows[0].bytes is not None and profile.rows[0].bytes < 1000


def test_unoptimized():
    profile = compiled(NET, opt_level=0).profile(ones(2, 8), ones(4, 8))
    assert {row.kernel: row.rule for row in profile.rows} == {
        "fused_nn_dense": "",
        "fused_nn_relu": "",
        "fused_cumsum": "",
        OUTSIDE: "",
    }


def test_tir_entry():
    profile = compiled(SCALE).profile(ones(3, 8), np.zeros((3, 8), np.float32))
    kernel, outside = sorted(profile.rows, key=lambda row: row.kernel == OUTSIDE)
    assert (kernel.kernel, kernel.calls, kernel.flops, kernel.bytes) == ("scale", 1, 48, 192)
    assert kernel.places == ("net.mir:3:5",)
    assert outside.kernel == OUTSIDE


def test_chunks_of_parallel_loops_are_in_the_trace(tmp_path: Path):
    executable = compiled(PARALLEL, threads=2)
    result = np.zeros((64, 4096), np.float32)
    profile = executable.profile(ones(64, 4096), result, calls=2)
    assert (result == 2).all()
    profile.write_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = [event["name"] for event in events]
    assert names.count("double") == names.count("call of double") == 2
    assert "double (chunk)" in names
    assert {"process_name", "thread_name"} <= set(names)
    assert profile.rows[0].rule == "written schedule"
    # A region's chunks are inside of its kernel.
    kernel, chunk = (next(e for e in events if e["name"] == name) for name in ("double", "double (chunk)"))
    assert kernel["ts"] <= chunk["ts"] and chunk["dur"] <= kernel["dur"]


def test_table():
    profile = compiled(NET).profile(ones(2, 8), ones(4, 8), calls=2)
    title, head, *rows, total = str(profile).splitlines()
    assert (
        title.startswith("main: ")
        and "mean of the faster half of 2 calls; this machine: 1000 GFLOP/s of float32, 100 GB/s" in title
    )
    assert head.split()[:4] == ["kernel", "calls", "µs", "share"]
    assert [row for row in rows if "dense" in row and row.endswith("net.mir:3, 4")]
    assert rows[-1].startswith(OUTSIDE)
    assert total.startswith("total") and total.endswith("100.0%")


def test_plain_data():
    data = compiled(NET).profile(ones(2, 8), ones(4, 8)).to_json()
    assert json.loads(json.dumps(data)) == {
        **data,
        "rows": [{**row, "places": list(row["places"])} for row in data["rows"]],
    }
    dense = next(row for row in data["rows"] if "dense" in row["kernel"])
    assert dense["of_peak"] == pytest.approx(dense["float32_flops"] / dense["seconds"] / 1e12)
    assert dense["of_bandwidth"] == pytest.approx(dense["bytes"] / dense["seconds"] / 1e11)


def test_kernels_are_those_of_programs_that_are_not_profiled():
    plain, profiled = compiled(NET, profile=False), compiled(NET)
    assert isinstance(plain, RelayExecutable) and isinstance(profiled, RelayExecutable)
    assert plain._code.objects[:-1] == profiled._code.objects[:-1]  # pyright: ignore[reportPrivateUsage]
    assert plain._code.objects[-1] != profiled._code.objects[-1]  # pyright: ignore[reportPrivateUsage]
    assert not any("profile" in name for name in plain._code.imports)  # pyright: ignore[reportPrivateUsage]


def test_kernels_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path))
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT")

    def kernels() -> set[str]:
        return {path.name for path in tmp_path.glob("**/*.kernel")}

    compiled(NET, profile=False)
    known = kernels()
    compiled(NET)
    assert len(known) == 2 and kernels() == known


def test_keys_of_the_cache():
    assert context_key(Options()) != context_key(Options(profile=True))
    assert context_key(replace(Options(profile=True), profile=False)) == context_key(Options())


def test_a_profiled_program_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT")
    path = tmp_path / "net.mir"
    path.write_text(NET)
    first, second = (mirstack.compile(path, profile=True).profile(ones(2, 8), ones(4, 8)) for _ in range(2))

    def known(profile: profiles.Profile) -> Iterator[object]:
        for row in sorted(profile.rows, key=lambda row: row.kernel):
            yield row.kernel, row.symbol, row.flops, row.bytes, row.places, row.rule

    assert list(known(first)) == list(known(second))


def test_a_plain_call_of_a_profiled_program():
    executable = compiled(NET)
    np.testing.assert_array_equal(executable(ones(2, 8), ones(4, 8)), np.cumsum(np.full((2, 4), 8), axis=1))


def test_by_name():
    executable = compiled(NET)
    profile = executable.profile(w=ones(4, 8), x=ones(2, 8), calls=1)
    assert profile.calls == 1
    assert executable.profile_run({"w": ones(4, 8), "x": ones(2, 8)}, calls=1).calls == 1


def test_not_compiled_for_it():
    message = "main does not record when its kernels run; compile it with profile=True"
    with pytest.raises(ValueError, match=message):
        compiled(NET, profile=False).profile(ones(2, 8), ones(4, 8))


def test_interpreted():
    message = "main is interpreted, which runs no kernels; compile it with target='cpu' and profile=True"
    with pytest.raises(ValueError, match=message):
        compiled(NET, target="interp").profile(ones(2, 8), ones(4, 8))


def test_no_calls():
    with pytest.raises((TypeError, ValueError), match="calls"):
        compiled(NET).profile(ones(2, 8), ones(4, 8), calls=0)


def test_wrong_arguments_are_reported_as_in_a_call():
    with pytest.raises(ValueError, match="must have shape"):
        compiled(NET).profile(ones(2, 7), ones(4, 8))
    # The log is free again.
    assert compiled(NET).profile(ones(2, 8), ones(4, 8), calls=1).calls == 1


@pytest.mark.usefixtures("small_log")
def test_a_log_grows():
    profile = compiled(NET).profile(ones(2, 8), ones(4, 8), calls=2)
    assert [len(record.events) for record in profile.records] == [2, 2]


@pytest.mark.usefixtures("small_log")
def test_a_log_grows_up_to_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime_profile, "MOST_ROOM", 8)
    with pytest.raises(mirstack.MirError, match="a call of main runs too many kernels to be recorded"):
        compiled(NET).profile(ones(2, 8), ones(4, 8))


def test_places():
    assert short_places(["a/net.mir:10:3", "a/net.mir:9:1", "a/net.mir:10:7", "m.onnx: node 'Conv_1'"]) == (
        "net.mir:9, 10 m.onnx:node 'Conv_1'"
    )
    assert short_places([f"net.mir:{line}:1" for line in range(1, 7)]) == "net.mir:1, 2, 3, 4, …"


def test_limits_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path))
    monkeypatch.delenv("MIRSTACK_CACHE_LIMIT")
    found = machine_limits(1)
    assert found.gflops > 0 and found.gbytes > 0
    assert len(list(tmp_path.glob("**/*.limits"))) == 1
    monkeypatch.setattr("mirstack.lowering.driver.machine_limits._measured", None)
    assert machine_limits(1) == found


def test_packages_do_not_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, plain, exported = tmp_path / "net.mir", tmp_path / "plain.mirpkg", tmp_path / "net.mirpkg"
    path.write_text(NET)
    mirstack.compile(path).export(plain)
    mirstack.compile(path, profile=True).export(exported)
    assert exported.read_bytes() == plain.read_bytes()
    with pytest.raises(ValueError, match="main does not record when its kernels run"):
        mirstack.Executable.load(exported).profile(ones(2, 8), ones(4, 8))
    assert mir_run([str(exported), "--random", "1", "--profile"]) == 2
    assert f"--profile: the kernels of {exported} do not record when they run" in capsys.readouterr().err


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, trace = tmp_path / "net.mir", tmp_path / "t.json"
    path.write_text(NET)
    assert mir_run([str(path), "--random", "1", "--profile", "--profile-out", str(trace), "--repeat", "3"]) == 0
    text = capsys.readouterr().out
    assert "the faster half of 3 calls" in text and OUTSIDE in text
    assert json.loads(trace.read_text())["traceEvents"]
    assert mir_run([str(path), "--random", "1", "--profile-out", str(trace)]) == 0
    assert OUTSIDE not in capsys.readouterr().out


def test_command_line_of_the_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "net.mir"
    path.write_text(NET)
    assert mir_run([str(path), "--random", "1", "--profile", "--target", "interp"]) == 2
    assert (
        "--profile shows kernels, which the interpreter does not run: leave --target interp out"
        in capsys.readouterr().err
    )


def test_a_trace_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "net.mir"
    path.write_text(NET)
    assert mir_run([str(path), "--random", "1", "--profile-out", str(tmp_path / "missing" / "t.json")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
