"""`mir-build`: compiles an entry of a file to a package, a library for C, or its code in text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..support.target import cpu_of_triple
from ..support.text import counted
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
from .errors import OK, UsageError
from .progress import shown


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-build`."""
    parser = command_parser(
        "mir-build",
        "Compile the entry of a .mir, .mlir, .onnx or .pt2 file to a file. Its ending says what is made: .mirpkg a package that mir-run "
        "and Python run without compiling; .so a shared library with a header for C; .o an object file with a header; .ll, .s LLVM IR "
        "and assembly of the library; .wasm a module of WebAssembly with JavaScript; .html a page with it, to draw what it takes.",
        "FILE -o net.mirpkg|net.so|net.o|net.ll|net.s|net.wasm|net.html [--mcpu CPU,CPU…]",
    )
    parser.add_argument("file", metavar="FILE", help="the module to compile, - for standard input")
    parser.add_argument("-o", dest="output", metavar="OUT", required=True, help="the file to write")
    add_frontend(parser)
    parser.add_argument(
        "--entry", metavar="NAME", help="the function to compile; by default the only one, otherwise main"
    )
    parser.add_argument(
        "--mcpu",
        "-mcpu",
        type=_names,
        default=(None,),
        metavar="CPU,…",
        help="the processors to compile for; what is made chooses among them where it runs; this machine's by default",
    )
    parser.add_argument(
        "--target",
        choices=("cpu", "wasm32"),
        help="the kind of machine, where the file's ending does not tell: wasm32 for an .o, .ll or .s file of WebAssembly",
    )
    parser.add_argument(
        "--triple",
        metavar="TRIPLE",
        help="LLVM's name of the system that an .so, .o, .ll or .s file is for: riscv64-linux-gnu, armv7-linux-gnueabihf",
    )
    parser.add_argument(
        "--threads",
        type=lambda text: whole_number(text, 1),
        metavar="N",
        help="threads that parallel loops may use; 1 by default, all cores in a package",
    )
    parser.add_argument(
        "--weights", metavar="FILE.bin", help="write a library's weights to this file, which NAME_load(path) maps"
    )
    add_level(parser)
    add_caches(parser)
    add_shape(parser)
    add_custom(parser)
    add_strict_math(parser)
    add_debug_info(parser)
    add_allow_extern(parser)
    return parser


def _names(text: str) -> tuple[str, ...]:
    """Parses names of processors. Raises argparse's error for empty and repeated ones."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text[:80]}' is not a list of processors, such as haswell,skylake-avx512")
    return names


def _processors(args: argparse.Namespace, path: Path) -> tuple[str | None, ...]:
    """Returns the processors to compile for. Raises UsageError for options that contradict each other."""
    cpus: tuple[str | None, ...] = args.mcpu
    if args.triple is not None:
        if path.suffix not in (".so", ".o", ".ll", ".s"):
            raise UsageError(f"--triple: {path} must be an .so, .o, .ll or .s file")
        cpus = tuple(cpu_of_triple(args.triple, cpu) for cpu in cpus)
    if args.target is None or (args.target == "wasm32") == (path.suffix in (".wasm", ".html")):
        return cpus
    if args.target == "cpu" or path.suffix not in (".o", ".ll", ".s") or cpus != (None,):
        raise UsageError(f"--target {args.target}: {path} is not written for it")
    return ("wasm32",)


def run(args: argparse.Namespace) -> int:
    """Compiles and writes; prints the files."""
    from ..lowering.driver.artifacts.export import export
    from ..lowering.driver.artifacts.levels import Wanted
    from ..lowering.externs import names_of
    from ..lowering.options import Options
    from .modules import program_source

    path = Path(args.output)
    cpus = _processors(args, path)
    options = Options(
        opt_level=args.opt_level,
        triple=args.triple,
        threads=args.threads if path.suffix == ".mirpkg" else args.threads or 1,
        caches=args.caches,
        allow_extern=names_of(args.allow_extern),
        strict_math=args.strict_math,
        debug_info=args.debug_info,
    )
    program, shapes = program_source(args.file, args.frontend, args.shape, args.custom)
    weights = None if args.weights is None else Path(args.weights)
    with shown(f"mir-build {args.file}"):
        written = export(Wanted(program, args.entry, options, shapes, cpus), path, weights)
    for each in written:
        print(f"{each}: {counted(each.stat().st_size, 'byte')}")
    return OK


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    0; 1 when the program cannot be compiled or the file not be written; 2 for a wrong command line.
    """
    return run_command("mir-build", argument_parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
