"""Every executable Relay program of the corpus gives, in native code, what TVM computed."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.api.executable import flatten
from reference import Case, cases, corpus_dir

# Programs that are not run natively, and why.
EXCEPTIONS = {
    "0603_pass_dynamic_to_static__test_dynamic_to_static_top": "k of dyn.topk comes at run time: the result has no size",
    "0841_pass_fold_scale_axis__test_fold_bwd_fail": "TVM's result does not follow the program's out_layout",
}

CASES = [c for c in cases(corpus_dir("relay"), ".relay") if c.executable]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_native(case: Case) -> None:
    if case.name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[case.name])
    module = mirstack.parse(case.text, case.name, directory=str(case.json_path.parent))
    outputs = flatten(mirstack.compile(module, entry="main")(*case.inputs()))
    narrow = any(o.dtype.name in ("float16", "bfloat16") for o in outputs) or "float16" in case.text
    largest = max((float(np.nanmax(np.abs(o.astype(np.float64)), initial=0.0)) for o in outputs), default=0.0)
    # Sums are taken in another order than TVM's; half precision keeps three digits.
    case.check(outputs, atol=max(1e-5, (2e-2 if narrow else 1e-6) * largest))
