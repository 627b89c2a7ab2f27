"""`mir-quantize`: calibrates a graph on samples, and writes it with layers on bytes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..support.text import counted
from .arguments import whole_number
from .command import command_parser, run_command
from .errors import OK, UsageError
from .progress import shown

if TYPE_CHECKING:
    from ..api.quantize import Quantized
    from .run_inputs import Arrays

SHOWN = 20
"""Layers of the table, unless `--all` asks for every one."""


def part(text: str) -> float:
    """Parses a part: `0.5%` or 0.005. Raises argparse's error for other text."""
    number, percent = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        found = float(number) / percent
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a part, such as 0.5% or 0.005")
    return found


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-quantize`."""
    from ..api.quantize import METRICS, WIDTHS
    from ..passes.relay.quantize.calibration import METHODS

    parser = command_parser(
        "mir-quantize",
        "Quantize the convolutions and dense layers of a graph.",
        "FILE --data samples.npz [--max-drop 0.5%%] -o q.mir",
    )
    parser.add_argument("file", metavar="FILE", help="the graph to quantize")
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="FILE.npz",
        help="arrays of samples by the names of parameters, along a leading axis; may be repeated",
    )
    parser.add_argument(
        "--labels",
        default="labels",
        metavar="NAME",
        help="the array of the data that holds the class of each sample, if there is one (labels)",
    )
    parser.add_argument(
        "--max-drop",
        type=part,
        metavar="PART",
        help="by how much the metric may fall: the fewest layers that this takes stay in floats; 0.5%% or 0.005",
    )
    parser.add_argument(
        "--metric",
        choices=METRICS,
        help="accuracy (with labels), agreement of the largest class with the float graph's, or the relative error of results",
    )
    parser.add_argument(
        "--calibrate", choices=METHODS, default="minmax", help="how the range of a tensor follows from samples (minmax)"
    )
    parser.add_argument(
        "--weights", choices=tuple(WIDTHS), help="store only the weights of dense layers, in so many bits"
    )
    parser.add_argument(
        "--group",
        type=whole_number,
        default=32,
        metavar="N",
        help="numbers of a row that share a scale, with --weights (32)",
    )
    parser.add_argument(
        "--entry", metavar="NAME", help="the function to quantize; by default the only one, otherwise main"
    )
    parser.add_argument("--all", action="store_true", help=f"list every layer, not only the {SHOWN} worst")
    parser.add_argument("-o", "--output", metavar="FILE.mir", help="write the quantized graph, its arrays beside it")
    return parser


def load_data(paths: Sequence[str], labels: str) -> tuple[Arrays | None, Arrays]:
    """Loads the samples of some files, one after the other, by name; the labels apart.

    None for no files. Raises UsageError for a file that cannot be read, or whose arrays do not go with those of the others.
    """
    import numpy as np

    from .run_inputs import load_npz

    if not paths:
        return None, {}
    loaded = [load_npz(path) for path in paths]
    for path, arrays in zip(paths, loaded, strict=True):
        if arrays.keys() != loaded[0].keys():
            raise UsageError(f"{path}: holds {', '.join(arrays)}, and {paths[0]} {', '.join(loaded[0])}")
    try:
        merged = {name: np.concatenate([arrays[name] for arrays in loaded]) for name in loaded[0]}
    except ValueError as error:
        raise UsageError(f"{paths[-1]}: its arrays do not go with those of {paths[0]}: {error}") from None
    return {k: v for k, v in merged.items() if k != labels}, {k: v for k, v in merged.items() if k == labels}


def run(args: argparse.Namespace) -> int:
    """Quantizes, prints the table, writes the module."""
    from ..api.quantize import quantize
    from ..frontends.model_file import MODEL_FORMATS
    from .modules import format_of, model_source, read_module
    from .write_module import write_module

    output = None if args.output is None else Path(args.output)
    if output is not None and (output.suffix != ".mir" or not output.parent.is_dir()):
        raise UsageError(f"{output}: the result is a .mir file in a folder that exists")
    data, labels = load_data(args.data, args.labels)
    if data is None and (args.weights is None or args.max_drop is not None):
        raise UsageError("samples are missing: --data FILE.npz, with an array for each parameter")
    kind = format_of(args.file, None)
    with shown(f"mir-quantize {args.file}"):
        found = quantize(
            model_source(args.file, kind, {}).parse() if kind in MODEL_FORMATS else read_module(args.file),
            data,
            labels=labels.get(args.labels),
            max_drop=args.max_drop,
            metric=args.metric,
            calibrate=args.calibrate,
            weights=args.weights,
            group=args.group,
            entry=args.entry,
        )
    show(found, args.max_drop, every=args.all)
    if output is not None:
        side = write_module(found.module, output)
        print(f"wrote {output}" + ("" if side is None else f" and {side}"))
    return OK


def show(found: Quantized, max_drop: float | None, *, every: bool) -> None:
    """Prints the table of layers, worst first, and what quantizing cost."""
    shown = found.layers if every else found.layers[:SHOWN]
    width = max((len(layer.place) for layer in shown), default=0)
    print(f"{'layer':<{max(width, 5)}}  {'operator':<16}  error added")
    for layer in shown:
        error = f"{layer.error:11.4%}" if found.samples else f"{'-':>11}"
        print(
            f"{layer.place:<{max(width, 5)}}  {layer.operator:<16}  {error}{'  stays in floats' if layer.kept else ''}"
        )
    if len(shown) < len(found.layers):
        print(f"… and {counted(len(found.layers) - len(shown), 'layer')} that add less (--all)")
    kept = sum(layer.kept for layer in found.layers)
    print(f"{counted(len(found.layers), 'layer')}, {len(found.layers) - kept} quantized, {kept} in floats")
    if found.samples:
        limit = "" if max_drop is None else f" (at most {max_drop:.4g})"
        print(
            f"{counted(found.samples, 'sample')}: {found.metric} drops by {found.drop:.4g}{limit}; results differ by {found.error:.2%}"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    0; 1 when the graph or the samples are wrong; 2 for a wrong command line.
    """
    return run_command("mir-quantize", argument_parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
