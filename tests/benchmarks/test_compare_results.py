"""Ratios, means, tables and the README's sections of the comparison with other engines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from mirstack.benchmarks.compare import __main__, measure, tables
from mirstack.benchmarks.compare.measure import SAMPLE, Timed, calls_of, interleaved, settle
from mirstack.benchmarks.compare.results import Cost, Results, Row, geometric_mean
from mirstack.benchmarks.compare.run import difference
from mirstack.benchmarks.compare.setting import HELD, SETTINGS, Setting
from mirstack.benchmarks.compare.worker import Worker
from mirstack.benchmarks.compare.workloads import WORKLOADS, named

ONE = Setting()


class Clock:
    """A program that takes these seconds in turn."""

    def __init__(self, *seconds: float):
        self.seconds = list(seconds)
        self.calls: list[int] = []

    def sample(self, calls: int) -> float:
        self.calls.append(calls)
        return self.seconds[min(len(self.calls), len(self.seconds)) - 1]


def some_results() -> Results:
    results = Results(cpu="a processor", versions={"onnxruntime": "1.2"})
    row = Row(
        {"mirstack": 3e-3, "onnxruntime": 2e-3, "torch": 4e-3},
        {"tvm": "does not fit"},
        100.0,
        20.0,
        "2026-01-02T03:04:05",
    )
    results.put(ONE, "matmul_512", row)
    results.put(
        ONE, "matmul_1024", Row({"mirstack": 20e-3, "onnxruntime": 40e-3}, {}, 100.0, 20.0, "2026-01-03T00:00:00")
    )
    results.costs["resnet18"] = {
        "mirstack": Cost(4.5, 0.5, 200_000_000, 50_000_000, (1100, 1000)),
        "iree": Cost(6.0, None, 1, 2),
    }
    return results


def test_ratio_is_ours_to_the_best_other() -> None:
    row = Row({"mirstack": 3.0, "torch": 4.0, "jax": 2.0})
    assert row.best == ("jax", 2.0)
    assert row.ratio == 1.5
    assert Row({"jax": 2.0}).ratio is None
    assert Row({"mirstack": 2.0}).best is None


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="there is no mean of nothing"):
        geometric_mean([])


def test_results_are_kept_and_merged(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = some_results()
    results.put(ONE, "matmul_512", Row({"mirstack": 1e-3, "tvm": 5e-3}, {"torch": "broken"}))
    row = results.of(ONE)["matmul_512"]
    assert row.seconds == {"mirstack": 1e-3, "tvm": 5e-3}
    assert row.earlier == {"onnxruntime": 2e-3}
    assert row.ratio == 0.2
    assert "| matmul_512 | 1.00 ms | (2.00 ms) | fails | **5.00 ms** | 0.20 | |" in tables.timings(
        results, ONE, ("matmul",)
    ).replace("|  |", "| |")
    assert row.problems == {"torch": "broken"}
    results.save(path)
    assert Results.load(path) == results
    assert Results.load(tmp_path / "none.json") == Results()


def test_tables() -> None:
    results = some_results()
    assert "| matmul | 2 | 0.87 | 1.50 (matmul_512) | 1 |" in tables.summary(results, ONE)
    table = tables.timings(results, ONE, ("matmul",))
    assert "| Workload | mirstack | onnxruntime | torch | tvm | Ratio | Limit |" in table
    assert "| matmul_512 | 3.00 ms | **2.00 ms** | 4.00 ms | fails | 1.50 | 89% FMA |" in table
    assert tables.problems(results, ONE) == "- matmul_512, tvm: does not fit"
    assert "Measured 2026-01-02 to 2026-01-03 on a processor" in tables.conditions(results)
    costs = tables.costs(results)
    assert "| resnet18 | 4.50 s / 500 ms | 6.00 s |" in costs
    assert "200.0 MB, 50.0 MB | 0.0 kB, 0.0 kB | 1.1 kB | 1.0 kB | 1.10 |" in costs


def test_limit_is_copying_where_that_takes_longer() -> None:
    gather = named("relu_fma_16M")
    row = Row({"mirstack": 2 * gather.bytes / 20e9}, {}, 100.0, 20.0)
    assert tables.limit_text(gather, row) == "50% copy"
    assert tables.limit_text(named("gelu_1k"), Row({"mirstack": 1e-6}, {}, 100.0, 0.0)) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.234, "1.23 s"), (0.0999, "99.9 ms"), (0.01, "10.0 ms"), (3.14e-6, "3.14 µs"), (5e-8, "50 ns")],
)
def test_times(seconds: float, text: str) -> None:
    assert tables.time_text(seconds) == text


def test_readme_sections_are_replaced() -> None:
    text = "before\n<!-- compare: a -->\nold\n<!-- end -->\nbetween\n<!-- compare: b -->\nold\n<!-- end -->\nafter\n"
    found = {"a": "| new |", "b": ""}
    fresh = tables.written(text, found)
    assert fresh == (
        "before\n<!-- compare: a -->\n\n| new |\n\n<!-- end -->\nbetween\n<!-- compare: b -->\n\n<!-- end -->\nafter\n"
    )
    assert tables.written(fresh, found) == fresh
    with pytest.raises(ValueError, match="the README has a section 'b' that is not written; there are a"):
        tables.written(text, {"a": ""})


def test_every_section_of_the_readme_is_written() -> None:
    text = tables.README.read_text(encoding="utf-8")
    tables.written(text, tables.sections(some_results()))


def test_quick_programs_are_called_often() -> None:
    assert calls_of(Clock(1.0)) == (1, 1.0)
    calls, seconds = calls_of(Clock(1e-6))
    assert calls * seconds >= SAMPLE


def test_turns_give_medians_and_slow_programs_few() -> None:
    quick, slow = Clock(1.0, 1.0, 3.0, 5.0, 4.0, 2.0), Clock(9.0, 10.0, 12.0)
    assert interleaved({"quick": quick, "slow": slow}, 0.0) == {"quick": 3.0, "slow": 11.0}
    assert len(slow.calls) == 3


def test_quick_programs_are_warm_again_after_the_waiting() -> None:
    # The cold one of each pair does not count.
    quick = Clock(2e-3, 0.9, 1e-3, 0.9, 3e-3, 0.9, 5e-3, 0.9, 4e-3, 0.9, 2e-3)
    assert interleaved({"quick": quick}, 0.0) == {"quick": 3e-3}
    assert len(quick.calls) == 11


def test_limits_take_turns_and_are_not_compared() -> None:
    program, limit = Clock(90.0, 9.0, 10.0, 12.0, 11.0, 13.0), Clock(1.0, 1.0, 3.0, 5.0, 4.0, 2.0)
    assert interleaved({"program": program}, 0.0, {"limit": limit}) == {"limit": 3.0, "program": 11.0}
    assert len(program.calls) == len(limit.calls) == 6


@pytest.mark.parametrize(("workload", "copies"), [("gelu_1k", False), ("gelu_1M", True)])
def test_copying_is_measured_where_it_is_a_limit(workload: str, copies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(programs: Mapping[str, Timed], budget: float, limits: Mapping[str, Timed]) -> dict[str, float]:
        return {name: timed.sample(1) for name, timed in limits.items()}

    monkeypatch.setattr(measure, "interleaved", once)
    monkeypatch.setattr(__main__, "cache_bytes", lambda: 1 << 20)
    row = __main__.measured(named(workload), [], __main__.argument_parser().parse_args([]), {})
    assert row.peak_gflops > 0 and (row.copy_gbytes > 0) == copies and not row.seconds


@pytest.mark.parametrize(("busy", "waits"), [(0, 1), (3, 2), (30, 4), (1000, 9)])
def test_the_next_program_waits_until_the_last_ones_threads_are_done(
    busy: int, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that the last program left has so many milliseconds of work."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(measure.time, "sleep", sleep)
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    monkeypatch.setattr(measure.time, "process_time", lambda: min(now, busy * 1e-3))
    settle()
    assert round(now / measure.SETTLED) == waits


def test_a_worker_measures_says_what_failed_and_is_started_again(tmp_path: Path) -> None:
    worker = Worker("mirstack", ONE, tmp_path)
    try:
        with pytest.raises(RuntimeError, match="nothing is loaded"):
            worker.sample(1)
        with pytest.raises(RuntimeError, match="KeyError: 'no_such_workload'"):
            worker.ask(load="no_such_workload")
        assert worker.ask(load="gelu_1k", results=str(tmp_path / "results.npz"))["first"] > 0
        assert worker.sample(3) > 0
        with np.load(tmp_path / "results.npz") as results:
            assert results["arr_0"].shape == (1024,)
        worker.kill()
        with pytest.raises(RuntimeError, match="the process ended with status -9"):
            worker.sample(1)
        with pytest.raises(RuntimeError, match="nothing is loaded"):
            worker.sample(1)
    finally:
        worker.close()


def test_difference_is_relative_to_the_largest() -> None:
    assert difference([np.array([1.0, 4.0])], [np.array([1.5, 5.0])]) == pytest.approx(0.2)
    assert difference([np.zeros(2)], [np.zeros(3)]) == float("inf")
    assert difference([np.array([np.nan])], [np.array([1.0])]) == float("inf")


def test_workloads_have_names_of_their_own() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names)


def test_an_engine_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main(["--engines", "mirstack,abacus"])
    assert "there is no engine 'abacus'; there are mirstack, onnxruntime" in capsys.readouterr().err


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "find_spec", lambda name: None if name == "iree" else name)
    assert __main__.missing("iree") == ["iree"]
    assert __main__.missing("openvino") == []


def test_a_workload_is_measured_and_kept(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare", "--engines", "mirstack", "--workload", "gelu_1k", "--budget", "0.01",
         "--results", str(tmp_path / "r.json"), "--files", str(tmp_path / "files")],
        cwd=root, env=os.environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gelu_1k")
    row = Results.load(tmp_path / "r.json").of(ONE)["gelu_1k"]
    assert row.seconds["mirstack"] > 0 and row.peak_gflops > 0 and row.copy_gbytes == 0


def test_settings_are_kept_apart(tmp_path: Path) -> None:
    assert [setting.key for setting in SETTINGS] == ["1", "2", "haswell-1", "haswell-2"]
    results = some_results()
    results.put(Setting(1, "haswell"), "matmul_512", Row({"mirstack": 3e-3, "torch": 6e-3}))
    results.save(tmp_path / "r.json")
    results = Results.load(tmp_path / "r.json")
    assert results.of(ONE)["matmul_512"].ratio == 1.5 and results.of(Setting(1, "haswell"))["matmul_512"].ratio == 0.5
    found = tables.sections(results)
    assert "3.00 ms" in found["matmul-haswell-1"] and "3.00 ms" in found["matmul-1"]
    assert "| torch |" in found["matmul-haswell-1"] and "onnxruntime" not in found["matmul-haswell-1"]


def test_an_engine_that_cannot_be_held_is_set_apart() -> None:
    results, avx2 = some_results(), Setting(1, "haswell")
    results.put(avx2, "matmul_512", Row({"mirstack": 3e-3, "torch": 6e-3, "onnxruntime": 2e-3}))
    assert "| matmul | 1 | 1.50 | 1.50 (matmul_512) | 1 | 0.50 | 0.50 (matmul_512) | 0 |" in tables.summary(
        results, avx2
    )
    assert "| 6.00 ms | 1.50 (0.50) |" in tables.timings(results, avx2, ("matmul",))
    assert "Held" not in tables.summary(results, ONE) and "(" not in tables.timings(results, ONE, ("matmul",))
    results.put(avx2, "matmul_512", Row({"mirstack": 3e-3, "onnxruntime": 2e-3}))
    assert "| matmul | 1 | 1.50 | 1.50 (matmul_512) | 1 |  |  |  |" in tables.summary(results, avx2)


def test_libraries_are_held_by_the_environment() -> None:
    code = (
        "import os; from mirstack.benchmarks.compare.setting import Setting; Setting(1, 'haswell').restrict();"
        "print(os.environ['XLA_FLAGS'], os.environ['ONEDNN_MAX_CPU_ISA'], os.environ['OMP_NUM_THREADS'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--xla_cpu_max_isa=AVX2", "--xla_cpu_multi_thread_eigen=false", "AVX2", "1"]
    assert set(HELD) == {setting.cpu for setting in SETTINGS if setting.cpu}


def test_costs_are_not_of_another_processor(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main(["--costs", "--cpu", "haswell", "--engines", "mirstack"])
    assert "costs are measured for the processor at hand" in capsys.readouterr().err
