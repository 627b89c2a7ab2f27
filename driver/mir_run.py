"""`mir-run`: compile an entry of a file and run it on arrays from files, random ones or zeros."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ..support.diagnostics import Sources, render_all
from ..support.stopwatch import process_start, timed
from .arguments import (
    add_allow_extern,
    add_caches,
    add_custom,
    add_debug_info,
    add_frontend,
    add_level,
    add_shape,
    add_strict_math,
    whole_number,
)
from .command import command_parser, run_command
from .errors import INVALID, OK, UsageError
from .progress import shown
from .sources import PACKAGE, extension
from .timing_out import add_timing_out, check_writable, timing_out

if TYPE_CHECKING:
    import numpy as np

    from .run_inputs import Arrays, Parameter

# How many elements of a result are shown.
SHOWN = 6

PROFILED = 10
"""Calls of a profile, if --repeat does not say."""


class Executable(Protocol):
    """The part of `mirstack.compile`'s result that is used here.

    `kind` is "relay", "te", "tir" or "func". `run` takes arrays by parameter name, all of them, and returns the results by name:
    those that a Relay entry names, otherwise `out0`, `out1`, … of Relay, the changed buffers of TE and TIR, both of a `func.func`. It may write into the arguments.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def params(self) -> Sequence[Parameter]: ...
    def run(self, inputs: Arrays) -> Arrays: ...


Compile = Callable[[argparse.Namespace], Executable]


def _positive(text: str) -> int:
    return whole_number(text, 1)


def _tolerance(text: str) -> float:
    """Parses a tolerance. Raises argparse's error for negative numbers, NaN, and anything else."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a tolerance: a number from 0 on, such as 1e-4")
    return found


class CacheAction(argparse.Action):
    """Prints what the cache of compiled code holds (`--cache-info`), or clears it (`--clear-cache`)."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ..lowering.driver.cache.store import Store, megabytes
        from ..support.text import counted

        store = Store.open()
        if store is None:
            print(f"the cache is turned off: {Store.why_off()}")
        elif self.dest == "clear_cache":
            print(f"{store.folder}: {counted(store.clear(), 'file')} deleted")
        else:
            usage = store.usage()
            print(f"{usage.folder}: {megabytes(usage.bytes)} of at most {megabytes(usage.limit)}")
            for kind, count in usage.files.items():
                print(f"  {count} of kind {kind}")
        parser.exit()


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-run`."""
    parser = command_parser(
        "mir-run",
        "Compile the entry of a .mir, .mlir, .onnx or .pt2 file and run it, or run a package (.mirpkg).",
        "FILE [--input x=x.npy] [--random SEED] [--output out.npz]",
    )
    parser.add_argument("file", metavar="FILE", help="the module to run, - for standard input")
    add_frontend(parser)
    parser.add_argument("--entry", metavar="NAME", help="the function to run; by default the only one, otherwise main")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE | NAME=FILE.npy | FILE.npz",
        help="a parameter's value, such as 5 or [1,2.5], or in a file, or the values of several by name; may be repeated",
    )
    parser.add_argument(
        "--random",
        type=whole_number,
        metavar="SEED",
        help="draw the parameters that are not given; without it those of TIR, TE and func are zeros",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="the value of a symbolic size, or of an open dimension by parameter and axis: x.0=3",
    )
    add_shape(parser)
    add_custom(parser)
    parser.add_argument("--output", metavar="FILE.npz", help="write the results")
    parser.add_argument(
        "--expect", metavar="FILE.npz", help="compare the results with these; exit with 1 if they differ"
    )
    parser.add_argument("--rtol", type=_tolerance, default=1e-4, help="relative tolerance of --expect (1e-4)")
    parser.add_argument("--atol", type=_tolerance, default=1e-5, help="absolute tolerance of --expect (1e-5)")
    parser.add_argument("--target", choices=("cpu", "interp"), default="cpu", help="native code, or the interpreter")
    parser.add_argument(
        "--threads", type=_positive, metavar="N", help="threads for parallel loops; all cores by default"
    )
    add_level(parser)
    parser.add_argument("--mcpu", "-mcpu", metavar="CPU", help="the CPU to compile for; this machine's by default")
    add_caches(parser)
    add_strict_math(parser)
    add_debug_info(parser)
    add_allow_extern(parser)
    parser.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="compile without reading or writing the cache on disk",
    )
    parser.add_argument(
        "--no-specialize",
        dest="specialize",
        action="store_false",
        help="with --repeat, do not compile code for the sizes of open dimensions beside the runs",
    )
    parser.add_argument(
        "--cache-info", action=CacheAction, nargs=0, help="show what the cache of compiled code holds, and exit"
    )
    parser.add_argument(
        "--clear-cache", action=CacheAction, nargs=0, help="delete all compiled code that is kept, and exit"
    )
    parser.add_argument("--timing", action="store_true", help="show where the time went, to standard error")
    add_timing_out(parser)
    parser.add_argument(
        "--profile",
        action="store_true",
        help="run again, as often as --repeat says (10 times), and show the time, work and source lines of each kernel",
    )
    parser.add_argument(
        "--profile-out",
        metavar="FILE.json",
        help="write when kernels and threads ran, in Chrome's format of traces: Perfetto shows it",
    )
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="run N times, showing best and median")
    return parser


def is_profiled(args: argparse.Namespace) -> bool:
    """Returns whether the command line asks for a profile."""
    return args.profile or args.profile_out is not None


def compile_entry(args: argparse.Namespace) -> Executable:
    """Compiles the entry that the command line asks for; raises `MirError`."""
    from ..lowering.driver.compile import compile_source
    from ..lowering.externs import names_of
    from ..lowering.pipeline import Options
    from .modules import program_source

    if extension(args.file) == PACKAGE:
        return _load_package(args)
    options = Options(
        opt_level=args.opt_level,
        cpu=args.mcpu,
        threads=args.threads,
        caches=args.caches,
        allow_extern=names_of(args.allow_extern),
        strict_math=args.strict_math,
        debug_info=args.debug_info,
        profile=is_profiled(args),
    )
    program, shapes = program_source(args.file, args.frontend, args.shape, args.custom, parse=args.target != "cpu")
    # One run has no use for what would be ready after it.
    specialize = args.specialize and args.repeat > 1
    return compile_source(
        program, args.target, args.entry, options, cache=args.cache, shapes=shapes, specialize=specialize
    )


FIXED = ("entry", "mcpu", "shape", "custom", "frontend", "caches", "strict_math", "debug_info", "allow_extern")
"""Options that say how a program is compiled, by their names in the namespace: a package is compiled already."""


def _load_package(args: argparse.Namespace) -> Executable:
    """Returns the program of a package.

    Raises UsageError for options that would compile it otherwise, and MirError for a package that is not loaded.
    """
    from ..lowering.driver.artifacts.package import load_package
    from .sources import check_file

    check_file(args.file)
    defaults = argument_parser()
    if args.target != "cpu":
        raise UsageError(f"{args.file}: a package holds native code, which --target {args.target} does not run")
    if is_profiled(args):
        raise UsageError(
            f"--profile: the kernels of {args.file} do not record when they run: profile what it was built from"
        )
    for name in (*FIXED, "opt_level"):
        if getattr(args, name) != defaults.get_default(name) and getattr(args, name):
            option = {"opt_level": "-O"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{option}: {args.file} is compiled already: mir-build takes this option")
    return load_package(Path(args.file), args.threads)


def run(args: argparse.Namespace, compile_with: Compile = compile_entry) -> int:
    """Compiles, runs, shows, writes and compares; returns the exit code."""
    from . import run_inputs

    if args.output is not None and args.output.endswith(".npy"):
        raise UsageError(f"{args.output}: results are written by name, into a .npz file")
    if is_profiled(args) and args.target == "interp":
        raise UsageError("--profile shows kernels, which the interpreter does not run: leave --target interp out")
    for path in (args.output, args.profile_out):
        if path is not None:
            check_writable(Path(path))
    expected: Arrays | None = None
    if args.expect is not None:
        expected = run_inputs.load_npz(args.expect, "save the results by name, as --output writes them: numpy.savez")
    start = time.perf_counter()
    with shown(f"mir-run {args.file}"), timed("compile"):
        executable = compile_with(args)
    compile_seconds = time.perf_counter() - start
    sources = Sources.current()
    if sources.warnings:
        print(render_all(sources.warnings, sources), file=sys.stderr)
    parameters = run_inputs.named(executable.params)
    given = run_inputs.load_inputs(args.input, parameters)
    sizes = run_inputs.bind_sizes(parameters, given, run_inputs.read_sizes(args.size, parameters))
    run_inputs.check(parameters, given, sizes)
    if args.random is not None:
        inputs = {**run_inputs.draw(parameters, sizes, args.random), **given}
    elif executable.kind == "relay":
        inputs = given
        missing = [parameter.name for parameter in parameters if parameter.name not in given]
        if missing:
            raise UsageError(
                f"no value for parameter {', '.join(missing)}: give --input {missing[0]}=FILE.npy or --random SEED"
            )
    else:
        inputs = {**run_inputs.zeros(parameters, sizes), **given}
    print(f"{executable.name} ({executable.kind}) on {args.target}, compiled in {_milliseconds(compile_seconds)}")
    for name, array in inputs.items():
        print(f"  {name}: {run_inputs.describe(array)}")
    results, seconds = _timed_runs(executable, inputs, args.repeat)
    for name, array in results.items():
        print(f"  -> {name}: {_shown_result(array)}")
    if args.repeat == 1:
        print(f"ran in {_milliseconds(seconds[0])}")
    else:
        best, median = min(seconds), statistics.median(seconds)
        print(f"ran {args.repeat} times, best {_milliseconds(best)}, median {_milliseconds(median)}")
    if is_profiled(args):
        _profile(args, executable, inputs)
    if args.output is not None or args.expect is not None:
        for name, value in results.items():
            if not hasattr(value, "dtype"):
                raise UsageError(f"result {name} is not a tensor: a .npz file holds tensors")
    if args.output is not None:
        _write(args.output, results)
    return OK if expected is None else _compare(args, expected, results)


def _profile(args: argparse.Namespace, executable: Executable, inputs: Arrays) -> None:
    """Prints a profile of the entry, and writes its trace."""
    from ..lowering.driver.loading.executable import Executable as Compiled

    assert isinstance(executable, Compiled)
    fresh = {name: array.copy() for name, array in inputs.items()}
    with timed("profile"):
        profile = executable.profile_run(fresh, calls=args.repeat if args.repeat > 1 else PROFILED)
    if args.profile:
        print(profile)
    if args.profile_out is not None:
        try:
            profile.write_trace(args.profile_out)
        except OSError as error:
            raise UsageError(f"{args.profile_out}: cannot be written: {error.strerror}") from None


def _timed_runs(executable: Executable, inputs: Arrays, repeat: int) -> tuple[Arrays, list[float]]:
    """Runs repeatedly from the same inputs; returns the last run's results and the seconds of each."""
    results: Arrays = {}
    seconds: list[float] = []
    for _ in range(repeat):
        fresh = {name: array.copy() for name, array in inputs.items()}
        start = time.perf_counter()
        with timed("run" if seconds else "first run", fine=True):
            results = executable.run(fresh)
        seconds.append(time.perf_counter() - start)
    return results, seconds


def _shown_result(value: object) -> str:
    """Returns a result as one line: a tensor by type and first elements, a data type's by constructors.

    Cons(float32[2] [1, 2], Nil)
    """
    from .run_inputs import describe

    def shown_array(array: np.ndarray) -> str:
        return f"{describe(array)} {short_view(array)}"

    if hasattr(value, "dtype"):
        return shown_array(cast("np.ndarray", value))
    # Only what the interpreter returns can be of a data type: what runs natively needs nothing of it.
    from ..dialects.relay.interpreter import AdtValue

    parts: list[str] = []
    # Values and the text between them. A list may be thousands deep.
    pending: list[object] = [value]
    shown = 0
    while pending:
        item = pending.pop()
        if isinstance(item, _Text):
            parts.append(item)
        elif shown > SHOWN:
            parts.append("…")
        elif isinstance(item, AdtValue | tuple):
            shown += 1
            fields = cast("tuple[object, ...]", item.fields if isinstance(item, AdtValue) else item)
            parts.append(item.constructor if isinstance(item, AdtValue) else "")
            if fields or isinstance(item, tuple):
                between: list[object] = [_Text("(")]
                for number, each in enumerate(fields):
                    between += [_Text(", "), each] if number else [each]
                pending += reversed([*between, _Text(")")])
        elif hasattr(item, "dtype"):
            parts.append(shown_array(cast("np.ndarray", item)))
        else:
            parts.append(repr(item))
    return "".join(parts)


class _Text(str):
    """Text of a shown value, as opposed to a value."""

    __slots__ = ()


def short_view(array: np.ndarray) -> str:
    """Returns the first few elements, as `[1, 2.5, …]`."""
    flat = array.reshape(-1)
    shown = ", ".join(f"{float(x):.4g}" if array.dtype.kind not in "biu" else str(x) for x in flat[:SHOWN])
    return f"[{shown}{', …' if flat.size > SHOWN else ''}]"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _write(path: str, results: Arrays) -> None:
    # Not by numpy.savez, in which an array cannot be called `file`.
    import zipfile

    from numpy.lib import format as npy

    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in results.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    npy.write_array(file, array, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _compare(args: argparse.Namespace, expected: Arrays, results: Arrays) -> int:
    from .check_each import array_difference
    from .run_inputs import reinterpret

    differences: list[str] = []
    for name, wanted in expected.items():
        if name not in results:
            differences.append(f"there is no result '{name}': the results are {', '.join(results) or 'none'}")
            continue
        difference = array_difference(reinterpret(wanted, results[name].dtype), results[name], args.rtol, args.atol)
        if difference is not None:
            differences.append(name + difference)
    for difference in differences:
        print(f"mir-run: {args.expect}: {difference}", file=sys.stderr)
    if not differences:
        print(f"as expected by {args.expect}: {', '.join(expected)}")
    return INVALID if differences else OK


def _run_timed(args: argparse.Namespace) -> int:
    """Runs the file; prints where the time went with `--timing`."""
    with timing_out(args.timing_out, "mir-run") as times:
        times.child("start").seconds = time.time() - process_start() if args.timing else 0.0
        try:
            return run(args)
        finally:
            if args.timing:
                print(times.report(), file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    0; 1 when the module is wrong or results differ; 2 for a wrong command line.
    """
    return run_command("mir-run", argument_parser, _run_timed, argv)


if __name__ == "__main__":
    sys.exit(main())
