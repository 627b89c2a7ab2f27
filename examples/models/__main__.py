"""Writes a model and summarizes it.

    python -m mirstack.examples.models resnet18 --out FOLDER [--batch 1] [--image 224] [--seed 0]

writes FOLDER/resnet18.mir and its weights, FOLDER/resnet18.safetensors, and prints its parameters, operators and FLOPs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import mirstack

from .registry import MODELS, build, options_of
from .summary import summarize


def argument_parser() -> argparse.ArgumentParser:
    """Returns a command a model, with the sizes that it has."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.examples.models", description=__doc__)
    commands = parser.add_subparsers(dest="model", required=True, metavar="MODEL")
    for name, (_, what) in MODELS.items():
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the two files go")
        command.add_argument("--seed", type=int, default=0, help="of the random weights (0)")
        for option in options_of(name):
            shown = f"{option.help} ({option.default:g})"
            command.add_argument(f"--{option.name}", type=_positive(option.kind), default=option.default, help=shown)
    return parser


def _positive(kind: type[int] | type[float]) -> Callable[[str], int | float]:
    def read(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e9:
            raise argparse.ArgumentTypeError(f"'{text}' is not a {'whole ' if kind is int else ''}number above 0")
        return value

    return read


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argument_parser()
    args = parser.parse_args(argv)
    sizes = {option.name: getattr(args, option.name) for option in options_of(args.model)}
    try:
        model = build(args.model, args.seed, **sizes)
    except ValueError as error:
        parser.error(str(error))
    try:
        path = model.write(args.out, args.model)
    except OSError as error:
        parser.error(f"{error.filename}: cannot be written: {error.strerror}")
    module = mirstack.load(path)
    found = summarize(model, module)
    print(
        f"{path}: {path.stat().st_size / 1e3:.1f} kB, weights {path.with_suffix('.safetensors').stat().st_size / 1e6:.2f} MB"
    )
    steps = "" if found.calls == 1 else f" a step, {found.calls} steps"
    print(f"{found.parameters:,} parameters, {found.ops} operators, {found.flops / 1e6:,.1f} MFLOP{steps}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
