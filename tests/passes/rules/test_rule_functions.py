"""What functions of rules say of arguments that they cannot compute with."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.rule import rewrites_of
from mirstack.parser import parse_mir
from mirstack.passes.rules.apply_rules import rewrite_all
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify


@pytest.mark.parametrize("axes", ["compose($a, $b)", "inverse($b)"])
def test_axes_that_are_not_given(axes: str):
    module = parse_mir(
        f"""rewrite @twice {{ transpose(transpose(%x, axes=$a), axes=$b) => transpose(%x, axes={axes}) }}
def @main(%x: Tensor[(2, 3), float32]) {{ transpose(transpose(%x, axes=[1, 0])) }}"""
    )
    verify(module)
    infer_types(module)
    with pytest.raises(MirError) as caught:
        rewrite_all(module, rewrites_of(module))
    said = "cannot be computed here: axes are None, which is back to front; full_axes(axes, rank) makes numbers of them"
    assert f"{axes.partition('(')[0]} {said}" in str(caught.value)
