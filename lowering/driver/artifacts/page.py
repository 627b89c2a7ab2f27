"""Writes a page on which a person draws an image and sees what a program makes of it."""

from __future__ import annotations

import base64
import html
from importlib.resources import files
from math import isqrt, prod

from ....support.diagnostics import Diagnostic, MirError
from ..program import DYNAMIC
from .c_interface import Interface

LARGEST_SIDE = 64
"""Pixels along a side of what can be drawn."""
MOST_CLASSES = 100


def page_of(interface: Interface, module: bytes, script: str) -> str:
    """Returns the page of a library: its module and JavaScript in one file.

    Raises MirError for a program that does not take one square image of gray values and return a row of numbers.
    """
    side = _side(interface)
    values = {
        "$NAME$": html.escape(interface.name),
        "$SIDE$": str(side),
        "$SCRIPT$": script.replace("export async function", "async function").replace(
            "import.meta.url", "location.href"
        ),
        "$MODULE$": base64.b64encode(module).decode(),
    }
    text = files(__package__ or "").joinpath("page.html").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _side(interface: Interface) -> int:
    """Returns the pixels along a side of the image that a program takes."""
    if len(interface.inputs) == len(interface.outputs) == 1:
        image, result = interface.inputs[0].tensor, interface.outputs[0].tensor
        if DYNAMIC not in (*image.shape, *result.shape):
            side = isqrt(prod(image.shape))
            floats = image.dtype == result.dtype == "float32"
            if (
                floats
                and 2 <= side <= LARGEST_SIDE
                and side * side == prod(image.shape)
                and prod(result.shape) <= MOST_CLASSES
            ):
                return side
    raise MirError(
        Diagnostic(
            f"a page is made of a program that takes one square image of gray values, and @{interface.entry} does not"
        ).with_note(
            f"it has one parameter of up to {LARGEST_SIDE}×{LARGEST_SIDE} floats, as Tensor[(1, 64), float32], and one result of up to "
            f"{MOST_CLASSES} floats; a .wasm file runs any program"
        )
    )
