"""mirstack: a `.mir` text and its side file, called with numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.api.executable import flatten

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting

# What a user's program imports at its start; the other engines' imports are not counted, either.
mirstack.preload()


def prepare(material: Material) -> Path:
    return material.source


def load(prepared: Path, setting: Setting) -> Any:
    return mirstack.compile(prepared, threads=setting.threads, cpu=setting.target)


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    return Call(lambda: program(*inputs), lambda result: [np.asarray(array) for array in flatten(result)])
