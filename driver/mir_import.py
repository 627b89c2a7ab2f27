"""`mir-import`: writes an ONNX or PyTorch model as Relay text, with its weights in a file beside it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..support.text import counted
from .arguments import add_custom, add_shape
from .command import command_parser, run_command
from .errors import OK, UsageError


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-import`."""
    parser = command_parser(
        "mir-import",
        "Write an ONNX model (.onnx) or a program of torch.export (.pt2) as Relay text, with its weights in a file beside it.",
        "MODEL.onnx|MODEL.pt2 [-o MODEL.mir] [--shape x=1,3,224,224]",
    )
    parser.add_argument("file", metavar="MODEL", help="the model, an .onnx or .pt2 file")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE.mir",
        help="where to write; without it the text goes to standard output and refers to the model's own weights",
    )
    parser.add_argument(
        "--weights", metavar="NAME", help="the file of weights in the folder of FILE.mir: FILE.safetensors by default"
    )
    add_shape(parser)
    add_custom(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Imports the model and writes it; raises UsageError and MirError."""
    from ..frontends.model_file import MODEL_FORMATS
    from ..parser import print_mir
    from .modules import model_source
    from .sources import extension
    from .write_module import move_weights

    output = None if args.output is None else Path(args.output)
    weights = _weights_file(args, output)
    kind = extension(args.file)
    if kind not in MODEL_FORMATS:
        kind = "onnx"
    module = model_source(args.file, kind, args.shape, args.custom).parse()
    if output is None or weights is None:
        sys.stdout.write(print_mir(module))
        return OK
    try:
        boxes = move_weights(module, weights)
        output.write_text(print_mir(module), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or output}: cannot be written: {error.strerror}") from None
    size = sum(box.array.nbytes for box in boxes)
    print(f"{output}: {counted(len(boxes), 'array')} in {weights.name}, {size / 1e6:.2f} MB" if boxes else output)
    return OK


def _weights_file(args: argparse.Namespace, output: Path | None) -> Path | None:
    """Returns the file of weights. Raises UsageError for one in another folder than the text."""
    if output is None:
        if args.weights is not None:
            raise UsageError("--weights: without -o no weights are written")
        return None
    path = output.with_suffix(".safetensors") if args.weights is None else output.parent / args.weights
    if path.parent != output.parent or path.suffix != ".safetensors":
        raise UsageError(
            f"--weights: '{args.weights}' is not the name of a .safetensors file in the folder of {output}"
        )
    if output.suffix != ".mir":
        raise UsageError(f"-o: '{output}' is not a .mir file")
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code.

    0; 1 when the model cannot be imported; 2 for a wrong command line.
    """
    return run_command("mir-import", argument_parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
