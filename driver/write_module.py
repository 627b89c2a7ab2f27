"""Writes a module of Relay as text, with its arrays in a side file.

write_module(module, Path("q.mir"))   ->   q.mir, and q.safetensors with what is written meta[relay.Constant][w0] in it
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..support.text import take_name
from .errors import UsageError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.array_box import ArrayBox


def write_module(module: ModuleOp, path: Path) -> Path | None:
    """Writes the module and its side file; returns the latter's path, None where no array needs it.

    The module is changed to refer to the side file. Raises UsageError where a file cannot be written.
    """
    from ..parser import print_mir
    from ..parser.relay.constants import CONSTANTS_FILE

    side = path.with_suffix(".safetensors")
    module.attributes.pop(CONSTANTS_FILE, None)
    try:
        boxes = move_weights(module, side)
        path.write_text(print_mir(module), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename or path}: cannot be written: {error.strerror}") from None
    return side if boxes else None


def move_weights(module: ModuleOp, path: Path) -> list[ArrayBox]:
    """Writes the constants of a module, except for scalars, into the file that its text refers to."""
    from ..dialects.array import ArrayValueAttr
    from ..dialects.side_file import SAFETENSORS_DTYPES, write_safetensors
    from ..support.walk import walk_ops

    constants = [
        each.data for op in walk_ops(module) for each in op.properties.values() if isinstance(each, ArrayValueAttr)
    ]
    kinds = set(SAFETENSORS_DTYPES.values())
    found = [box for box in {id(box): box for box in constants}.values() if box.shape and box.dtype in kinds]
    taken: set[str] = set()
    names = [take_name(box.origin[1] if box.origin else "constant", taken) for box in found]
    if found:
        write_safetensors(path, dict(zip(names, (box.array for box in found), strict=True)))
    for box, name in zip(found, names, strict=True):
        box.origin = (path.name, name)
    return found
