"""Every executable Relay program of the corpus gives, interpreted, what TVM computed."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.parser import parse_mir
from reference import Case, cases, corpus_dir

# What TVM computes here is not what the program says.
EXCEPTIONS = {
    "0841_pass_fold_scale_axis__test_fold_bwd_fail": "TVM ignores out_layout=CNHW of a convolution",
}

CASES = [c for c in cases(corpus_dir("relay"), ".relay") if c.executable]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_interpreted(case: Case) -> None:
    if case.name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[case.name])
    module = parse_mir(case.text, case.name, directory=str(case.json_path.parent))
    outputs = flatten(interpret(module, "main", case.inputs()))
    narrow = any(o.dtype.name in ("float16", "bfloat16") for o in outputs) or "float16" in case.text
    # Half precision sums in another order than TVM, which accumulates in half precision, too.
    scale = max((float(np.nanmax(np.abs(o.astype(np.float64)), initial=0.0)) for o in outputs), default=0.0)
    case.check(outputs, atol=max(1e-5, scale * (2e-2 if narrow else 1e-6)))
