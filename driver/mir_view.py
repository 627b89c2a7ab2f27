"""`mir-view`: writes a page for a browser that shows what compiling a program does, step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..frontends.model_file import MODEL_FORMATS
from ..support.diagnostics import Sources, render_all
from .arguments import (
    add_allow_extern,
    add_caches,
    add_custom,
    add_frontend,
    add_level,
    add_shape,
    add_strict_math,
    whole_number,
)
from .command import command_parser, run_command
from .errors import OK, UsageError
from .modules import format_of, model_source, read_module

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from ..lowering.driver.loading.profile import Profile
    from ..lowering.options import Options
    from ..passes.relay.functional.bind_shapes import Shapes


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-view`."""
    parser = command_parser(
        "mir-view",
        "Compile the entry of a .mir, .mlir, .onnx or .pt2 file and write a page that shows each step.",
        "FILE -o PAGE.html",
    )
    parser.add_argument("file", metavar="FILE", help="the program to look into")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE.html", help="the page to write: one file")
    add_frontend(parser)
    parser.add_argument("--entry", metavar="NAME", help="the function to compile; by default the only one, or main")
    add_level(parser)
    parser.add_argument("--mcpu", "-mcpu", metavar="CPU", help="the CPU to compile for; this machine's by default")
    parser.add_argument(
        "--threads", type=_positive, metavar="N", help="threads for parallel loops; all cores by default"
    )
    add_caches(parser)
    parser.add_argument(
        "--run",
        type=_positive,
        metavar="N",
        help="call the program N times with random arguments, to show the time of each kernel",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="with --run, the value of a symbolic size, or of an open dimension by parameter and axis: x.0=3",
    )
    add_shape(parser)
    add_custom(parser)
    add_strict_math(parser)
    add_allow_extern(parser)
    return parser


def _positive(text: str) -> int:
    return whole_number(text, 1)


def run(args: argparse.Namespace) -> int:
    """Compiles and writes the page; returns the exit code."""
    path = Path(args.output)
    if path.is_dir():
        raise UsageError(f"{path}: cannot be written: Is a directory")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: cannot be written: No such file or directory")
    from ..lowering.driver.processor import with_processor
    from ..lowering.externs import names_of
    from ..lowering.pipeline import Options
    from ..support.target import named
    from .view.make_view import make_view
    from .view.page import page

    options = Options(
        opt_level=args.opt_level,
        cpu=args.mcpu,
        threads=args.threads,
        caches=args.caches,
        allow_extern=names_of(args.allow_extern),
        strict_math=args.strict_math,
    )
    text_format = format_of(args.file, args.frontend)
    shapes: dict[str, tuple[int, ...]] = args.shape
    if text_format in MODEL_FORMATS:
        module, shapes = model_source(args.file, text_format, shapes, args.custom).parse(), {}
    else:
        module = read_module(args.file, args.frontend)
    options = with_processor(options, module)
    named(options.cpu or "", args.threads, args.caches)
    if args.size and args.run is None:
        raise UsageError("--size: sizes are those of the arguments that --run N draws")
    profile = None if args.run is None else _profile(args, module.clone(), options, shapes)
    view = make_view(Path(args.file).name, module, args.entry, options, shapes, profile)
    sources = Sources.current()
    if sources.warnings:
        print(render_all(sources.warnings, sources), file=sys.stderr)
    text = page(view)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    steps = view.recording.steps
    changed = 1 + sum(before.parts != after.parts for before, after in pairwise(steps))
    print(f"{path}: {len(text) / 1e3:.0f} kB, {changed} of {len(steps)} steps change the program")
    return OK


def _profile(args: argparse.Namespace, module: ModuleOp, options: Options, shapes: Shapes) -> Profile:
    """Runs a program, whose module is used up, and returns the times of its kernels."""
    from ..lowering.driver.compile import compile_source
    from . import run_inputs

    profiled = replace(options, profile=True)
    # What is watched is not taken from the cache, where kernels are called by what they hold: they keep their names.
    executable = compile_source(module, "cpu", args.entry, profiled, (_watch,), shapes=shapes, specialize=False)
    parameters = run_inputs.named(executable.params)
    sizes = run_inputs.bind_sizes(parameters, {}, run_inputs.read_sizes(args.size, parameters))
    return executable.profile_run(run_inputs.draw(parameters, sizes, 0), calls=args.run)


def _watch(step: ModulePass, module: ModuleOp) -> None:
    """Sees a pass, and does nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, 1 for diagnostics, 2 for a wrong command line."""
    return run_command("mir-view", argument_parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
