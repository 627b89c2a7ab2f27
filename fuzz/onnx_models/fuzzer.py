"""ONNX models imported and compiled, against onnxruntime."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
from onnx import checker, parser

from ...support.diagnostics import MirError
from ..case import Case, Verdict, reason
from . import onnx_operators  # noqa: F401  # pyright: ignore[reportUnusedImport]
from .writer import ModelWriter

TOLERANCE = 2e-3
"""The difference allowed, as a part of the largest magnitude of a result."""


class LeaveOutNodes:
    """Removes nodes of a model: lines of its text whose results nothing uses."""

    def units(self, case: Case) -> int:
        """Returns the number of nodes."""
        return len(_nodes(case.text))

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the case without these nodes; None where another node uses one of them."""
        nodes = _nodes(case.text)
        gone = {place for place, _ in nodes[first:last]}
        lines = case.text.split("\n")
        text = "\n".join(line for place, line in enumerate(lines) if place not in gone)
        return None if text == case.text or _parsed(text) is None else replace(case, text=text)


def _nodes(text: str) -> list[tuple[int, str]]:
    lines = text.split("\n")
    start = lines.index("{") if "{" in lines else len(lines)
    return [
        (place, line)
        for place, line in enumerate(lines)
        if place > start and " = " in line and not line.strip().startswith("y")
    ]


def _parsed(text: str) -> Any:
    """Returns the model of a text; None for one that is not valid."""

    try:
        model = parser.parse_model(text)
        checker.check_model(model)
    except Exception:
        return None
    return model


class OnnxFuzzer:
    """Draws a model and its inputs."""

    shrinkers = (LeaveOutNodes(),)

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"onnx/{seed}/{number}")
        writer = ModelWriter(rng)
        options = {"fixed": rng.random() < 0.3, "level": rng.choice((0, 2, 3, 3, 3))}
        return Case("onnx", writer.text(), writer.inputs, options, frozenset(writer.drawn))

    def check(self, case: Case) -> Verdict:
        """Runs a model in onnxruntime, by the interpreter and natively."""
        from ...api.compile import compile
        from ...api.importers import from_onnx

        verdict = Verdict()
        model = _parsed(case.text)
        if model is None:
            verdict.refused = "onnx: the model is not valid"
            return verdict
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        inputs = dict(case.inputs)
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            names = [each.name for each in session.get_inputs()]
            wanted = session.run(None, {name: inputs[name] for name in names})
        except Exception as error:
            verdict.refused = f"onnxruntime: {type(error).__name__}"
            return verdict
        try:
            shapes = {name: inputs[name].shape for name in names} if case.options.get("fixed") else None
            module = from_onnx(model, shapes)
        except MirError as error:
            verdict.refused = reason(error, "importer")
            return verdict
        except Exception as error:
            verdict.fail_by(error, "importing")
            return verdict
        for way in ("interp", "cpu"):
            try:
                executable = compile(module, way, opt_level=int(case.options.get("level", 3)), threads=1)
                got = executable(*(inputs[name] for name in names))
            except MirError as error:
                verdict.fail("refused", reason(error, way), f"{way} refuses the imported model: {error}")
                return verdict
            except Exception as error:
                verdict.fail_by(error, way)
                return verdict
            results = [np.asarray(each) for each in (got if isinstance(got, tuple) else (got,))]
            verdict.compared += 1
            wrong = _difference(wanted, results)
            if wrong is not None:
                verdict.fail("results", way, f"{way}: {wrong}")
                return verdict
        return verdict


def _difference(wanted: Sequence[Any], got: Sequence[np.ndarray]) -> str | None:
    """Describes the first difference between results; None where they agree."""
    if len(wanted) != len(got):
        return f"{len(got)} results instead of {len(wanted)}"
    for place, (old, new) in enumerate(zip(wanted, got, strict=True)):
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"y{place} is {new.dtype}{list(new.shape)} instead of {old.dtype}{list(old.shape)}"
        if old.dtype.kind != "f":
            agree = old == new
        else:
            finite = np.abs(old[np.isfinite(old)], dtype=np.float64)
            allowed = TOLERANCE * max(float(finite.max(initial=0.0)), 1e-3)
            agree = np.isclose(new.astype(np.float64), old.astype(np.float64), rtol=0, atol=allowed, equal_nan=True)
        if not np.all(agree):
            at = tuple(int(each) for each in np.argwhere(~np.asarray(agree))[0])
            return f"y{place}{list(at)} is {new[at]} instead of {old[at]}"
    return None


FUZZER = OnnxFuzzer()
