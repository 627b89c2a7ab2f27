"""Stores weights transposed that dense layers transpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....support.public_names import public_names
from ...nd import NDArray, array, as_numpy
from ..expr import Function
from ..fc_transpose import SUFFIX, transposed_parameters, without_transposes


def convert(func: Function, params: Mapping[str, Any]) -> tuple[Function, dict[str, NDArray]]:
    """Returns the function without transposes of weights, and the weights for it.

        nn.dense(%x, transpose(%w, axes=[1, 0]))   →   nn.dense(%x, %w.T)

    Only weights of `params` are concerned.
    """
    names = [w.name_hint for w in transposed_parameters(func) if w.name_hint in params]
    new = without_transposes(func, names)
    left = {param.name_hint for param in new.params}
    values = {name: as_numpy(value) for name, value in params.items()}
    found = {name: array(value) for name, value in values.items() if name in left or name not in names}
    found.update({f"{name}{SUFFIX}": array(np.ascontiguousarray(values[name].T)) for name in names})
    return new, found


__all__ = ["convert"]


__dir__ = public_names(__name__)
