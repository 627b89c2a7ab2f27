"""Rules marked `fast` and strict-math, which leaves them out where floats are computed."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.rule import rewrites_of
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.rules.apply_rules import rewrite_all
from mirstack.support.verify import verify

MARKED = """
fast rewrite @zero { %r = add(%x, 0) => %x where %r.type == %x.type }

def @main(%x: Tensor[(2), float32], %n: Tensor[(2), int32]) { (add(%x, 0f), add(%n, 0)) }
"""


@pytest.mark.parametrize("mode", ["fixpoint", "once", "saturate"])
def test_strict_math_leaves_marked_rules_out(mode: str):
    module = parse_mir(MARKED)
    verify(module)
    infer_types(module)
    for strict_math, left in ((True, 1), (False, 0)):
        copy = module.clone()
        rewrite_all(copy, rewrites_of(copy), mode, strict_math)
        text = print_mir(copy)
        assert text.count("= add(%x, 0f") + text.count("= add(%n, 0") == left, text
        assert "fast rewrite @zero {" in text
