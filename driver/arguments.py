"""The options of `mir-opt`: all of `xdsl-opt`'s, some of which mean more here, and its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError

from ..frontends.model_file import MODEL_FORMATS
from ..support.text import natural, visible
from .errors import did_you_mean
from .timing_out import add_timing_out


class ShowVersion(argparse.Action):
    """Prints the versions of mirstack and xDSL; looking them up takes a tenth of the start-up."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        print(versions(parser.prog))
        parser.exit()


def versions(command: str) -> str:
    """Returns the line that `--version` prints."""
    from importlib.metadata import version

    own = f"mirstack {version('mirstack')}"
    return f"{own if command == 'mirstack' else f'{command} of {own}'}, on xdsl {version('xdsl')}"


def add_version(parser: argparse.ArgumentParser) -> None:
    """Declares `--version`."""
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the versions and exit")


def add_arguments(parser: argparse.ArgumentParser, targets: Iterable[str], default_target: str) -> None:
    """Declares every option on `parser`."""
    parser.prog = "mir-opt"
    suggest_options(parser)
    parser.description = (
        "Read a module of .mir or MLIR text, an ONNX model or a program of torch.export, run passes over it, print it."
    )
    parser.usage = "mir-opt [FILE] [-p PASSES] [-t mir|mlir|llvm|asm] [OPTION…] (--help shows all options)"
    _add_input_and_output(parser, [name for name in targets if name != default_target], default_target)
    _add_passes(parser)
    _add_mlir_style(parser)
    parser.add_argument("-v", "--version", action=ShowVersion, nargs=0, help="show the versions and exit")
    add_debug(parser)
    parser.add_argument(
        "--shrink", action="store_true", help="exit with 0 when a ShrinkException was raised, else with 1"
    )


def _add_input_and_output(parser: argparse.ArgumentParser, targets: list[str], default_target: str) -> None:
    def target(text: str) -> str:
        try:
            name = parse_spec(text).name
        except ArgSpecParseError:
            name = text
        # argparse sends the default through here too.
        if name not in targets and text != default_target:
            raise argparse.ArgumentTypeError(
                f"there is no target '{name}'{did_you_mean(name, targets)} (mir, mlir, llvm, asm and xDSL's targets)"
            )
        return text

    parser.add_argument("input_file", nargs="?", metavar="FILE", help="what to read; standard input without it")
    parser.add_argument(
        "-f",
        "--frontend",
        choices=("mir", "mlir", "onnx", "pt2"),
        help="the input's format, if the file name's ending does not tell",
    )
    parser.add_argument(
        "-t",
        "--target",
        type=target,
        default=default_target,
        help="what to print: mir (default for .mir, until it is lowered below TIR), mlir, llvm (the LLVM IR that runs), asm",
    )
    parser.add_argument(
        "--dot",
        action="store_true",
        help="print the graph of the Relay functions for Graphviz instead of the module: kernels that -p fuse-ops makes are clusters",
    )
    parser.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="optimization level of -t llvm and asm (3)"
    )
    parser.add_argument("--mcpu", "-mcpu", metavar="CPU", help="the CPU of -t llvm and asm; this machine's by default")
    add_caches(parser)
    add_shape(parser)
    add_custom(parser)
    add_strict_math(parser)
    add_allow_extern(parser)
    parser.add_argument("-o", "--output-file", metavar="FILE", help="where to write; standard output without it")
    parser.add_argument(
        "--split-input-file", action="store_true", help="compile the parts between lines `// -----` one by one"
    )
    parser.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="check that errors occur where comments `// expected-error {{text}}` expect them, and nowhere else",
    )
    parser.add_argument(
        "--parsing-diagnostics",
        action="store_true",
        help="print errors of reading to standard output and exit with 0",
    )
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help="read ops of unknown dialects")
    parser.add_argument(
        "--no-implicit-module", action="store_true", help="refuse MLIR text that is not inside builtin.module"
    )


def _add_passes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", "--passes", default="", help="passes to run: first,second{option=value}")
    parser.add_argument("--list-passes", action="store_true", help="list the passes with options and exit")
    add_load(parser)
    parser.add_argument(
        "--list-extensions",
        action="store_true",
        help="list what packages and --load define, with where it comes from, and exit",
    )
    parser.add_argument("--disable-verify", action="store_true", help="do not verify, whatever was read")
    parser.add_argument(
        "--verify-each", action="store_true", help="verify after each pass, naming the one that broke it"
    )
    parser.add_argument(
        "--check-each",
        action="store_true",
        help="interpret before and after each pass, naming the first one that changes a result",
    )
    parser.add_argument(
        "--allow-unchecked",
        action="store_true",
        help="with --check-each, go on where a module cannot be interpreted; an error otherwise",
    )
    parser.add_argument(
        "--inputs", type=whole_number, default=0, metavar="SEED", help="the seed of --check-each's inputs (0)"
    )
    parser.add_argument(
        "--print-ir-before-all", action="store_true", help="print the module before each pass, to standard error"
    )
    parser.add_argument(
        "--print-ir-after-all",
        "--print-between-passes",
        action="store_true",
        help="print the module after each pass, to standard error; in MLIR's form large arrays are only named",
    )
    parser.add_argument(
        "--print-ir-after-change",
        action="store_true",
        help="print what each pass changed, as a diff, to standard error",
    )
    parser.add_argument(
        "--dump-ir",
        metavar="DIR",
        help="write the module after each pass into this folder, and what the pass changed as a diff",
    )
    parser.add_argument(
        "--trace",
        type=_names,
        default=(),
        metavar="PASS,…",
        help="print what these passes do, op by op, with the source line and the rewrite rule, to standard error",
    )
    parser.add_argument(
        "--explain",
        type=_names,
        default=(),
        metavar="PASS,…",
        help="print why these passes changed nothing at some ops (fuse-ops: operators that are not fused; default-schedule: rules that a primitive refused), to standard error",
    )
    parser.add_argument(
        "--rule-stats",
        action="store_true",
        help="print how often each rewrite rule was tried and applied, and its seconds, to standard error",
    )
    parser.add_argument(
        "--check-rules",
        action="store_true",
        help="check the rewrite rules of FILE instead of running passes: types, meaning, termination, no rule hidden by another",
    )
    parser.add_argument(
        "--timing",
        "--time-passes",
        action="store_true",
        help="print seconds, ops and bytes of text after each stage and pass, to standard error",
    )
    add_timing_out(parser)


def add_frontend(parser: argparse.ArgumentParser) -> None:
    """Declares `--frontend`, the format of the file."""
    parser.add_argument(
        "-f",
        "--frontend",
        choices=("mir", "mlir", *MODEL_FORMATS),
        help="the file's format, when its name does not tell",
    )


def add_level(parser: argparse.ArgumentParser) -> None:
    """Declares `-O`, the optimization level."""
    parser.add_argument("-O", dest="opt_level", type=int, choices=range(4), default=3, help="optimization level (3)")


def add_caches(parser: argparse.ArgumentParser) -> None:
    """Declares `--caches`, the sizes of the data caches that schedules count on."""
    parser.add_argument(
        "--caches",
        default="",
        metavar="SIZES",
        help="sizes of the CPU's data caches, such as 32K,1M,16M, for schedules",
    )


def add_custom(parser: argparse.ArgumentParser) -> None:
    """Declares `--custom`."""
    parser.add_argument(
        "--custom",
        action="append",
        default=[],
        metavar="FILE.mir",
        help="TE and TIR functions that an ONNX model's operators of these names call; may be repeated",
    )


def add_load(parser: argparse.ArgumentParser) -> None:
    """Declares `--load`."""
    parser.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="FILE.mir|FILE.py",
        help="load operators, rules, passes, dialects of your own (docs/extend.md); may be repeated",
    )


def add_shape(parser: argparse.ArgumentParser) -> None:
    """Declares `--shape`."""
    parser.add_argument(
        "--shape",
        action=_AddShape,
        default={},
        metavar="NAME=SIZE,…",
        help="fix the open dimensions of a parameter of the entry: x=1,3,224,224, with ? for one that stays open; may be repeated",
    )


class _AddShape(argparse.Action):
    """Adds `x=1,?,8` to a dictionary of shapes by names, with DYNAMIC_INDEX for `?`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        from xdsl.dialects.builtin import DYNAMIC_INDEX

        text = str(values)
        name, _, sizes = text.partition("=")
        shape = [DYNAMIC_INDEX if size.strip() == "?" else natural(size.strip()) for size in sizes.split(",")]
        fixed = [size for size in shape if size is not None]
        if not name or len(fixed) < len(shape):
            raise argparse.ArgumentError(self, f"'{text[:40]}' is not NAME=SIZE,…, as in x=1,3,224,224 or x=?,8")
        known: dict[str, tuple[int, ...]] = getattr(namespace, self.dest)
        if name in known:
            raise argparse.ArgumentError(self, f"the shape of {name} is given twice")
        setattr(namespace, self.dest, {**known, name: tuple(fixed)})


def add_strict_math(parser: argparse.ArgumentParser) -> None:
    """Declares `--strict-math`."""
    parser.add_argument(
        "--strict-math",
        action="store_true",
        help="compute floats as the interpreter does, except for the order of sums (docs/rules.md)",
    )


def add_debug_info(parser: argparse.ArgumentParser) -> None:
    """Declares `-g`."""
    parser.add_argument(
        "-g",
        "--debug-info",
        dest="debug_info",
        action="store_true",
        help="put the lines of the source into machine code: debuggers and perf show them (docs/see-inside.md)",
    )


def suggest_options(parser: argparse.ArgumentParser) -> None:
    """Makes the error for an unknown option suggest the nearest one, and `--help` fail if output fails."""
    refuse, unknown = parser.error, "unrecognized arguments: "

    def error(message: str) -> NoReturn:
        for word in message.removeprefix(unknown).split() if message.startswith(unknown) else ():
            known = [name for action in parser._actions for name in action.option_strings]  # pyright: ignore[reportPrivateUsage]
            if hint := did_you_mean(word.partition("=")[0], known) if word.startswith("-") else "":
                message += hint
                break
        refuse(visible(message))

    # The parser of mir-opt is made by xDSL's driver.
    setattr(parser, "error", error)  # noqa: B010
    # argparse itself passes over an OSError of its writing.
    setattr(parser, "print_help", lambda: sys.stdout.write(parser.format_help()))  # noqa: B010


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Declares `--debug`."""
    parser.add_argument("--debug", action="store_true", help="with an internal error, show where it happened")


def add_allow_extern(parser: argparse.ArgumentParser) -> None:
    """Declares `--allow-extern`."""
    parser.add_argument(
        "--allow-extern",
        type=_c_names,
        default=(),
        metavar="NAME,…",
        help="C functions that the program may call besides those of C's math library (docs/security.md)",
    )


def whole_number(text: str, least: int = 0) -> int:
    """Parses a number. Raises argparse's error for other text, and below `least`."""
    number = natural(text, 4000)
    if number is None or number < least:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a whole number from {least} on")
    return number


def _c_names(text: str) -> tuple[str, ...]:
    for name in _names(text):
        if not (name.isascii() and name.isidentifier()):
            raise argparse.ArgumentTypeError(f"'{name[:40]}' is not the name of a C function")
    return _names(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _add_mlir_style(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print-op-generic", action="store_true", help="print ops in MLIR's generic form")
    parser.add_argument("--print-no-properties", action="store_true", help="print properties among the attributes")
    parser.add_argument("--print-debuginfo", action="store_true", help="print the location of each op")
    parser.add_argument("--syntax-highlight", action="store_true", help="print MLIR's form in colors")
