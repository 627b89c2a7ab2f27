"""The corpus of reference programs: where it is, the inputs that it was run on, and comparison with what it computed.

The corpus is named by the environment variable MIRSTACK_CORPUS; `corpus_dir` skips the test where that is not set. Its
README says how inputs are made and outputs are stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

RTOL = 1e-4
ATOL = 1e-5

# TIR programs that reach outside of their buffers: refused by the interpreter, where TVM wrote to whatever lay there.
OUT_OF_BOUNDS = ("0359", "0616", "0939", "1062", "1380")
# TIR programs whose recorded result depends on memory that nothing wrote, or on the leading zeros of 0.
UNDEFINED = ("0330", "0700", "0779", "0982", "1331")


def corpus_dir(*parts: str) -> Path:
    """A folder of the corpus; skips the test (or, at import, the module) when the corpus is not here."""
    root = os.environ.get("MIRSTACK_CORPUS")
    if not root or not Path(root).is_dir():
        pytest.skip("MIRSTACK_CORPUS names no corpus", allow_module_level=True)
    return Path(root, *parts)


def dtype_named(name: str) -> np.dtype[Any]:
    """The numpy dtype that the corpus names."""
    if name == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"e4m3_float8": ml_dtypes.float8_e4m3fn, "e5m2_float8": ml_dtypes.float8_e5m2}.get(name, name))


@dataclass(frozen=True)
class Case:
    """One program: `text` and the json beside it."""

    json_path: Path
    text_suffix: str

    @property
    def name(self) -> str:
        return self.json_path.stem

    @cached_property
    def info(self) -> dict[str, Any]:
        return json.loads(self.json_path.read_text())

    @property
    def text(self) -> str:
        return self.json_path.with_suffix(self.text_suffix).read_text()

    @property
    def executable(self) -> bool:
        return bool(self.info.get("executable"))

    def inputs(self) -> list[Any]:
        """A value for every parameter, in order: the same draws as the recorded run's."""
        return make_inputs(self.info["params"], self.info["seed"], self.info.get("symbol_values") or {})

    def check(self, outputs: list[Any], rtol: float = RTOL, atol: float = ATOL) -> None:
        """Compares with the recorded outputs: `outputs[k]` is output k of a Relay program, or parameter k after the run."""
        stored = None
        for number, record in enumerate(self.info["outputs"]):
            place = record.get("param", number)
            key = f"p{place}" if "param" in record else f"out{number}"
            actual = np.asarray(outputs[place])
            assert list(actual.shape) == list(record["shape"]), f"{key} has shape {actual.shape}, not {record['shape']}"
            if record["stored"] == "npz":
                if stored is None:
                    stored = np.load(self.json_path.with_suffix(".npz"))
                compare(key, actual, stored[key], rtol, atol)
            else:
                compare_summary(key, actual, record, rtol, atol)


@cache
def cases(folder: Path, text_suffix: str) -> Sequence[Case]:
    """The cases of a folder that have a text, in order; for all tests of them the same."""
    return [Case(p, text_suffix) for p in sorted(folder.glob("*.json")) if p.with_suffix(text_suffix).exists()]


def make_inputs(params: list[dict[str, Any]], seed: int, symbols: dict[str, int]) -> list[Any]:
    """Values for parameters as the corpus README says: one generator, one draw for each in order."""
    rng = np.random.default_rng(seed)
    values: list[Any] = []
    for param in params:
        if param.get("value") is not None:
            values.append(param["value"])
            continue
        shape = [symbols.get(d, d) if isinstance(d, str) else d for d in param["shape"]]
        values.append(make_input(rng, param, shape))
    return values


def make_input(rng: np.random.Generator, param: dict[str, Any], shape: list[Any]) -> np.ndarray[Any, Any]:
    """One draw."""
    dtype = dtype_named(param["dtype"])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    values = rng.standard_normal(shape)
    if param.get("gen") == "abs_plus_half":
        values = np.abs(values) + 0.5
    return np.asarray(values * param.get("scale", 1.0)).astype(dtype)


def compare(key: str, actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], rtol: float, atol: float) -> None:
    """Equal for integers, close for floats; NaN equals NaN."""
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype), err_msg=key)
        return
    # float16 and narrower keep fewer digits than rtol asks for.
    digits = max(rtol, 2.0 * float(ml_dtypes.finfo(actual.dtype).eps))
    np.testing.assert_allclose(
        actual.astype(np.float64), np.asarray(expected).astype(np.float64), rtol=digits, atol=max(atol, digits / 10),
        err_msg=key, equal_nan=True,
    )  # fmt: skip


def compare_summary(key: str, actual: np.ndarray[Any, Any], record: dict[str, Any], rtol: float, atol: float) -> None:
    """Against mean, standard deviation and the first 64 elements."""
    expected = np.array([float(v) for v in record["first64"]])
    compare(key, actual.reshape(-1)[:64], expected, rtol, atol)
    values = actual.astype(np.float64)
    for field, value in (("mean", np.mean(values)), ("std", np.std(values))):
        scale = max(1.0, float(np.std(values))) if np.isfinite(np.std(values)) else 1.0
        np.testing.assert_allclose(
            value,
            float(record[field]),
            rtol=10 * rtol,
            atol=10 * atol * scale,
            err_msg=f"{field} of {key}",
            equal_nan=True,
        )
