"""Runs workloads in all engines that are installed and prints tables; `--help` lists the options."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from .engine import ENGINES, OURS
from .processors import cache_bytes, model_name
from .results import Results, Row
from .setting import HELD, NATIVE, SETTINGS, Setting
from .worker import Worker
from .workloads import FAMILIES, WORKLOADS, Workload

if TYPE_CHECKING:
    from .measure import Timed

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnx"),
    "openvino": ("openvino", "onnx"),
    "tvm": ("tvm", "onnx"),
    "iree": ("iree", "jax"),
}
"""What an engine needs, where that is more than itself."""


DISTRIBUTIONS = {"tvm": "apache-tvm", "iree": "iree-base-compiler"}
"""By what name pip installs an engine, where that is another."""


def missing(engine: str) -> list[str]:
    """Returns the packages that are not installed, by the names that one imports."""
    return [name for name in PACKAGES.get(engine, (engine,)) if find_spec(name) is None]


def version_of(engine: str) -> str:
    """Returns the version that is installed."""
    return version(DISTRIBUTIONS.get(engine, engine)).split(".post")[0]


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only these (may be repeated)")
    parser.add_argument("--workload", action="append", metavar="PATTERN", help="only those whose name fits, as resnet*")
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"of {','.join(ENGINES)}")
    parser.add_argument(
        "--best", type=int, metavar="N", help="only mirstack and the N quickest engines of each workload's results"
    )
    parser.add_argument(
        "--threads", type=int, default=1, choices=(1, 2), help="1: engines in one process; 2: a process an engine"
    )
    parser.add_argument(
        "--cpu",
        default=NATIVE,
        choices=tuple(HELD),
        help="hold mirstack, and the engines that can be held, to what it has",
    )
    parser.add_argument("--budget", type=float, default=1.5, help="seconds of timing a workload (1.5)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=1e9,
        help="begin no workload after so long; those measured longest ago come first",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file that results are kept in")
    parser.add_argument("--files", type=Path, default=Path("build/benchmarks"), help="where the workloads' files go")
    parser.add_argument("--costs", action="store_true", help="measure compile time and memory of the models instead")
    parser.add_argument(
        "--starts",
        type=int,
        metavar="N",
        help="measure cold and warm starts of the models in fresh processes, imports included, beside onnxruntime's: minima of N",
    )
    parser.add_argument(
        "--write", action="store_true", help="only write the kept results into the README, and its plots"
    )
    return parser


def _setting(args: argparse.Namespace) -> Setting:
    return Setting(args.threads, args.cpu)


def chosen(args: argparse.Namespace, results: Results) -> list[Workload]:
    """Returns the workloads that the options name, those measured longest ago first."""
    found = [
        w
        for w in WORKLOADS
        if (not args.family or w.family in args.family)
        and (not args.workload or any(fnmatch(w.name, pattern) for pattern in args.workload))
    ]
    rows = results.of(_setting(args))
    return sorted(found, key=lambda w: rows[w.name].time if w.name in rows else "") if args.seconds < 1e9 else found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argument_parser()
    args = parser.parse_args(argv)
    wanted = args.engines.split(",")
    for name in wanted:
        if name not in ENGINES:
            parser.error(f"there is no engine '{name}'; there are {', '.join(ENGINES)}")
    if args.costs and args.cpu:
        parser.error("costs are measured for the processor at hand: --costs does not go with --cpu")
    engines: list[str] = []
    for name in wanted:
        lacking = missing(name)
        if lacking:
            print(f"{name} is missing ({', '.join(lacking)}): install the extra `bench`", file=sys.stderr)
        else:
            engines.append(name)
    start = time.monotonic()
    results = Results.load(args.results)
    if args.write:
        return _write(results)
    workloads = chosen(args, results)
    args.files.mkdir(parents=True, exist_ok=True)
    if args.starts is not None:
        return _starts([w for w in workloads if w.family == "model"], engines, args)
    if args.costs:
        return _costs([w for w in workloads if w.family == "model"], engines, args, results, start)
    if args.threads == 1:
        _setting(args).restrict()
    results.cpu = model_name()
    results.versions |= {name: version_of(name) for name in engines}
    with _workers(engines if args.threads > 1 else [], args) as workers:
        for workload in workloads:
            if time.monotonic() - start > args.seconds:
                break
            row = measured(workload, _engines_for(workload, engines, args, results), args, workers)
            results.put(_setting(args), workload.name, row)
            results.save(args.results)
            _show(workload, row)
    return 0


def _starts(workloads: list[Workload], engines: list[str], args: argparse.Namespace) -> int:
    from . import start
    from .material import Material

    print(start.HEADER, flush=True)
    for workload in workloads:
        material = Material(workload, args.files)
        onnx = None
        if start.ORT in engines:
            from .engines.onnx_file import exported

            onnx = exported(material)
        try:
            found = start.measured(material.source, onnx, args.threads, args.starts)
        except RuntimeError as error:
            print(f"{workload.name}: {error}", flush=True)
            continue
        print(found.line(workload.name), flush=True)
    return 0


def _costs(
    workloads: list[Workload], engines: list[str], args: argparse.Namespace, results: Results, start: float
) -> int:
    from .cost import measured as costs_of
    from .tables import bytes_text, time_text

    every = [(workload, name) for workload in workloads for name in engines]
    if args.seconds < 1e9:
        every.sort(key=lambda pair: cost.time if (cost := results.costs.get(pair[0].name, {}).get(pair[1])) else "")
    for workload, name in every:
        if time.monotonic() - start > args.seconds:
            break
        try:
            cost = costs_of(name, workload.name, args.threads, args.files)
        except RuntimeError as error:
            print(f"{workload.name}, {name}: {error}", flush=True)
            continue
        results.costs.setdefault(workload.name, {})[name] = cost
        results.save(args.results)
        warm = "" if cost.warm is None else f", warm {time_text(cost.warm)}"
        memory = f"{bytes_text(cost.compile_bytes)} compiling, {bytes_text(cost.run_bytes)} running"
        print(f"{workload.name}, {name}: {time_text(cost.cold)}{warm}, {memory}", flush=True)
    return 0


def _write(results: Results) -> int:
    from . import plot, tables

    tables.write(results)
    if find_spec("matplotlib") is None:
        print("the plots are left as they are: matplotlib is missing, install the extra `bench`", file=sys.stderr)
        return 1
    for setting in SETTINGS:
        if results.of(setting):
            plot.draw(results, setting, tables.README.with_name(f"compare-{setting.key}.png"))
    return 0


def _engines_for(workload: Workload, engines: list[str], args: argparse.Namespace, results: Results) -> list[str]:
    engines = [name for name in engines if not workload.engines or name in workload.engines]
    row = results.of(_setting(args)).get(workload.name)
    if args.best is None or row is None:
        return engines
    every = {**row.earlier, **row.seconds}
    best = sorted((name for name in every if name != OURS), key=lambda name: every[name])[: args.best]
    return [name for name in engines if name == OURS or name in best]


def measured(workload: Workload, engines: list[str], args: argparse.Namespace, workers: Mapping[str, Worker]) -> Row:
    """Measures a workload's row: the engines interleaved, and with them the processor's limits.

    A copy is measured only for working sets larger than the caches: it does not limit smaller ones, and would evict them.
    """
    from .hardware import copying, multiply_adds
    from .measure import Here, interleaved

    row = Row(time=datetime.now(UTC).isoformat(timespec="seconds"))
    if args.threads == 1:
        programs = _in_process(workload, engines, args, row)
    else:
        programs = _in_processes(workload, {name: workers[name] for name in engines}, args, row)
    limits = {"multiply-adds": multiply_adds(args.cpu)}
    if workload.bytes > cache_bytes():
        limits["copying"] = copying()
    found = interleaved(programs, args.budget, {name: Here(limit.run) for name, limit in limits.items()})
    rates = {name: limit.amount / found.pop(name) for name, limit in limits.items()}
    row.peak_gflops = rates["multiply-adds"] * args.threads
    row.copy_gbytes = rates.get("copying", 0.0)
    row.seconds.update(found)
    return row


def _in_process(workload: Workload, engines: list[str], args: argparse.Namespace, row: Row) -> dict[str, Timed]:
    """Measures the engines' programs interleaved; notes in the row which of them are wrong or slow."""
    from .measure import Here
    from .run import difference, load, short

    programs: dict[str, Timed] = {}
    reference = None
    quickest = float("inf")
    for name in sorted(engines, key=lambda name: name == OURS):
        try:
            loaded = load(workload, name, _setting(args), args.files)
        except Exception as error:
            # An engine that does not take a program is a note under the table, not the end of the others.
            row.problems[name] = short(error)
            continue
        reference = reference or loaded.results
        off = difference(loaded.results, reference)
        if off > workload.tolerance:
            row.problems[name] = f"its result differs by {off:.1e} of the largest value"
        elif loaded.first_seconds > max(0.3, 20 * quickest):
            row.seconds[name] = loaded.first_seconds
        else:
            programs[name] = Here(loaded.call.run)
            quickest = min(quickest, loaded.first_seconds)
    return programs


def _in_processes(
    workload: Workload, workers: Mapping[str, Worker], args: argparse.Namespace, row: Row
) -> dict[str, Timed]:
    """As `_in_process`, in processes of their own."""
    import numpy as np

    from .run import difference

    programs: dict[str, Timed] = {}
    reference = None
    quickest = float("inf")
    with TemporaryDirectory() as folder:
        for name in sorted(workers, key=lambda name: name == OURS):
            file = Path(folder) / f"{name}.npz"
            try:
                answer = workers[name].ask(load=workload.name, results=str(file))
            except RuntimeError as error:
                row.problems[name] = str(error)
                continue
            with np.load(file, allow_pickle=False) as saved:
                arrays = [saved[f"arr_{k}"] for k in range(len(saved.files))]
            reference = reference or arrays
            off = difference(arrays, reference)
            if off > workload.tolerance:
                row.problems[name] = f"its result differs by {off:.1e} of the largest value"
            elif answer["first"] > max(0.3, 20 * quickest):
                row.seconds[name] = answer["first"]
            else:
                programs[name] = workers[name]
                quickest = min(quickest, answer["first"])
    return programs


@contextmanager
def _workers(engines: list[str], args: argparse.Namespace) -> Generator[dict[str, Worker]]:
    workers = {name: Worker(name, _setting(args), args.files) for name in engines}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def _show(workload: Workload, row: Row) -> None:
    from .tables import limit_text, time_text

    ratio = "" if row.ratio is None else f"{row.ratio:5.2f}"
    others = ", ".join(
        f"{name} {time_text(seconds)}" for name, seconds in sorted(row.seconds.items(), key=lambda i: i[1])
    )
    trouble = "".join(f"; {name}: {text}" for name, text in row.problems.items())
    print(f"{workload.name:<36}{ratio:>6} {limit_text(workload, row):>9}  {others}{trouble}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
