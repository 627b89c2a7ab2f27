"""Relay programs of the corpus: the distinct ones, and how near to TVM's results a correct evaluation comes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from mirstack.dialects.relay.operator import OperatorOp, OpPattern
from mirstack.support.walk import walk_ops
from reference import ATOL, Case, cases, corpus_dir, dtype_named
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType

# Programs whose recorded results are not what the text says, and why.
NOT_THE_PROGRAM = {
    "0841_pass_fold_scale_axis__test_fold_bwd_fail": "TVM's convolution does not follow out_layout=CNHW",
    "0778_pass_merge_composite__test_tuple_get_item_merge": "its variance is negative: TVM's nn.relu makes 0 of NaN",
    "BackwardFoldScaleAxis/016": "TVM reads the weight, OIHW1i16o, as if it had blocks of 16i: beyond its blocks",
}

# What passes made of programs, where TVM's result differs from the recorded one of the program before by one unit, too.
ROUNDED = {"FakeQuantizationToInteger/038.out": "requantization rounds where the program before computed in float32"}

_COMMENT = re.compile(r" /\*.*?\*/")
_FLOATS = re.compile(r"\b(?:bfloat|float)\d+\b")


def relay_cases() -> list[Case]:
    """The executable programs of `relay/`."""
    return [c for c in cases(corpus_dir("relay"), ".relay") if c.executable]


@cache
def pass_cases() -> Sequence[Case]:
    """The programs before and after passes that have numbers, each once, without those that are in `relay/`."""
    known = {_identity(c) for c in relay_cases()}
    distinct: list[Case] = []
    for path in sorted(corpus_dir("relay_passes").glob("*/*.json")):
        for suffix in (".in.relay", ".out.relay"):
            case = Case(path, suffix)
            if not path.with_suffix(suffix).exists() or not case.executable or not case.info.get("outputs"):
                continue
            identity = _identity(case)
            if identity not in known:
                known.add(identity)
                distinct.append(case)
    return distinct


def pass_id(case: Case) -> str:
    """`FuseOps/direct_000.in`."""
    return f"{case.json_path.parent.name}/{case.name}{case.text_suffix.removesuffix('.relay')}"


def _identity(case: Case) -> tuple[str, str]:
    """Same for programs that compute the same from the same inputs."""
    drawn = [[p.get(key) for key in ("shape", "dtype", "gen", "scale", "value")] for p in case.info["params"]]
    return _COMMENT.sub("", case.text), json.dumps([drawn, case.info["seed"]])


def check_outputs(case: Case, module: ModuleOp, outputs: list[Any]) -> None:
    """Compares with TVM's results: integers exactly, floats as near as the order of their sums lets them come."""
    if pass_id(case) in ROUNDED:
        stored = np.load(case.json_path.with_suffix(".npz"))
        for number, actual in enumerate(outputs):
            apart = np.abs(actual.astype(np.int64) - stored[f"out{number}"])
            assert apart.max(initial=0) <= 1
        return
    largest = max((_largest(o) for o in outputs), default=0.0)
    case.check(outputs, atol=max(ATOL, rounding(case.text, module) * largest))


def _largest(output: np.ndarray[Any, Any]) -> float:
    values = np.abs(np.asarray(output).astype(np.float64))
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def rounding(text: str, module: ModuleOp) -> float:
    """How far two correct evaluations lie apart, as a share of the largest element.

    The rounding errors of a sum of n terms grow with sqrt(n) on average (Higham, Accuracy and Stability of Numerical
    Algorithms, section 2.8), in units of the narrowest type that the program computes in.
    """
    narrowest = max((float(ml_dtypes.finfo(dtype_named(name)).eps) for name in set(_FLOATS.findall(text))), default=0.0)
    return narrowest * math.sqrt(terms(module))


def terms(module: ModuleOp) -> int:
    """About how many terms the program's longest sum has, at most."""
    longest = 1
    for op in walk_ops(module):
        if not isinstance(op, OperatorOp) or not op.args:
            continue
        shapes = [t.get_shape() for a in op.args if isinstance(t := a.type, TensorType)]
        if any(DYNAMIC_INDEX in shape for shape in shapes):
            continue
        if op.OPERATOR.pattern == OpPattern.OUT_ELEMWISE_FUSABLE and len(shapes) > 1:
            # An element of the result takes at most all of the weight but one of its axes.
            longest = max(longest, math.prod(shapes[1]) // min((d for d in shapes[1] if d > 1), default=1))
        elif op.OPERATOR.pattern == OpPattern.COMM_REDUCE and shapes and isinstance(t := op.result.type, TensorType):
            longest = max(longest, math.prod(shapes[0]) // max(1, math.prod(t.get_shape())))
    return longest
