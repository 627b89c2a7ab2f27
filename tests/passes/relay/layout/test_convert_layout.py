"""convert-layout: its errors, operators that no other test converts, and chains of any length."""

from __future__ import annotations

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay.layouts import SCALAR, blocks_of_one, expanded, is_transform, last_dims, transformed_like
from mirstack.dialects.relay.operators.common.layout_strings import Layout, layout
from mirstack.driver.check_each import first_difference, interpret
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.layout.convert_layout import ConvertLayout
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

CONV = "%0 = nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1], padding=[0, 0, 0, 0]);"
HEAD = "def @main(%x: Tensor[(2, 4, 6, 8), float32], %w: Tensor[(4, 4, 1, 1), float32], %v: Tensor[(4), float32])"


def converted(text: str, layouts: str) -> ModuleOp:
    """The program converted; it computes the same."""
    before, module = parse_mir(text, "program.mir"), parse_mir(text, "program.mir")
    ConvertLayout(layouts).apply(Context(), module)
    assert find_errors(module) == []
    assert first_difference(interpret(before, 0), interpret(module, 0)) is None
    return module


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        ("nn.conv2d", "'nn.conv2d' names no layout"),
        ("nn.conf2d:NCHW,default", "there is no operator 'nn.conf2d'"),
        ("nn.dense:NC", "nn.dense computes in one layout only"),
        ("nn.conv2d:NHWC", "nn.conv2d takes two layouts, of its data and its kernel, not 1"),
        ("nn.max_pool2d:NHWC,default", "nn.max_pool2d takes one layout, not 2"),
        ("nn.conv2d:NHWC,OIH", "'OIH' is not a layout for nn.conv2d"),
        ("nn.conv2d:default,OIHW", "'default' is not a layout for nn.conv2d"),
    ],
)
def test_refused(layouts: str, message: str) -> None:
    with pytest.raises(MirError) as error:
        ConvertLayout(layouts).apply(Context(), parse_mir("def @main(%x: float32) { %x }"))
    assert f"convert-layout: {message}" in str(error.value)
    assert "layouts are written as layouts=" in str(error.value)


# What stands behind a convolution, and how many transforms the whole takes in NHWC: one each for data, kernel and result
# where the layout runs through.
BEHIND = {
    "nn.relu(%0)": 3,
    "nn.batch_norm(%0, %v, %v, %v, exp(%v)).0": 3,
    "nn.instance_norm(%0, %v, %v)": 3,
    "nn.layer_norm(%0, %v, %v, axis=1)": 3,
    "nn.group_norm(%0, %v, %v, num_groups=2)": 3,
    "nn.l2_normalize(%0, eps=0.1f, axis=[1])": 3,
    "nn.prelu(%0, %v)": 3,
    "nn.softmax(%0, axis=1)": 3,
    "reshape(%0, newshape=[2, -1])": 3,
    "transpose(%0, axes=[0, 2, 3, 1])": 2,
    "transpose(%0)": 2,
    "sum(%0, axis=[1], exclude=True)": 2,
    "max(%0, axis=[2, 3], keepdims=True)": 3,
    "argmax(%0, axis=[1])": 2,
    "argmax(%0, axis=[1, 2])": 3,
    "variance(%0, mean(%0, axis=[1], keepdims=True), axis=[1])": 2,
    "squeeze(mean(%0, axis=[2, 3], keepdims=True), axis=[2, 3])": 2,
    "nn.pad(%0, 1f, pad_width=[[0, 0], [1, 2], [3, 4], [5, 6]])": 3,
    "strided_slice(%0, begin=[0, 1], end=[2, 3])": 3,
    "strided_slice(%0, begin=[1, 2], end=[2, -1], strides=[1, 1], axes=[3, 2], slice_mode=\"size\")": 3,
    "split(%0, indices_or_sections=[1, 3], axis=1)": 5,
    "concatenate((%0, exp(%0)), axis=1)": 3,
    "concatenate((%0, %x), axis=1)": 3,
    "add(%0, %0)": 3,
    "slice_like(%0, strided_slice(%0, begin=[0, 0, 1], end=[2, 4, 4]), axes=[2])": 3,
    "nn.avg_pool2d(%0, pool_size=[2, 3])": 3,
    "nn.global_max_pool2d(%0)": 3,
    "nn.upsampling(%0, scale_h=2f, scale_w=3f)": 3,
    "image.resize2d(%0, size=[3, 4])": 3,
    "multiply(2f, %0)": 3,
    "subtract(strided_slice(%w, begin=[0], end=[2]), nn.avg_pool2d(%0, pool_size=[6, 8]))": 3,
    "less(%v, transpose(%0, axes=[0, 2, 3, 1]))": 2,
}  # fmt: skip


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("data", ["NHWC", "NCHW2c", "HWNC", "NCHW4c"])
def test_behind(behind: str, data: str) -> None:
    text = f"{HEAD} {{ {CONV} {behind} }}"
    module = converted(text, f"nn.conv2d:{data},default")
    printed = print_mir(module)
    if data == "NHWC":
        assert printed.count("layout_transform(") == BEHIND[behind], printed
    ConvertLayout(f"nn.conv2d:{data},default").apply(Context(), module)
    assert print_mir(module) == printed


def test_blocks_that_do_not_divide() -> None:
    """The operator stays as it is."""
    text = f"{HEAD} {{ {CONV} nn.relu(%0) }}"
    assert print_mir(converted(text, "nn.conv2d:NCHW8c,default")) == print_mir(parse_mir(text))


def test_functions_and_branches() -> None:
    """What enters or leaves a block is as it was written; inside, a value is transformed once."""
    text = f"""{HEAD} {{
      {CONV}
      let %f = fn (%y: Tensor[(2, 4, 6, 8), float32]) {{ add(nn.relu(%y), %0) }};
      %1 = if (any(less(%v, %v))) {{ %f(%0) }} else {{ nn.relu(%0) }};
      (%1, %0)
    }}"""
    printed = print_mir(converted(text, "nn.conv2d:NHWC,default"))
    assert printed.count('src_layout="NHWC"') == 4


def test_linear() -> None:
    """Eight times the operators take about eight times as long."""

    def seconds(length: int) -> float:
        steps = " ".join(f"%{i} = add(nn.relu(%{i - 1}), %{max(i - 3, 0)});" for i in range(1, length))
        module = parse_mir(f"{HEAD} {{ {CONV} {steps} %{length - 1} }}")
        return cpu_seconds(lambda: ConvertLayout("nn.conv2d:NHWC,default").apply(Context(), module))

    assert growth(seconds, 150, 1_200, below=20) < 20


def text_of(found: Layout | None) -> str | None:
    return None if found is None else found.text


def test_algebra() -> None:
    assert text_of(last_dims(layout("NCHW"), 2)) == "HW"
    assert text_of(last_dims(layout("NCHW4c"), 1)) is None
    assert last_dims(layout("NCHW"), 0) is SCALAR
    assert text_of(expanded(layout("C"), layout("NCHW"))) == "NHWC"
    assert text_of(transformed_like(layout("CHW"), layout("NCHW"), layout("NHWC"))) == "NHWC"
    assert text_of(transformed_like(layout("ABCD"), layout("NCHW"), layout("NHWC"))) == "ACDB"
    assert text_of(transformed_like(layout("N"), layout("NCHW"), layout("NHWC"))) == "AHNC"
    assert text_of(transformed_like(layout("NCHW"), layout("NCHW2c"), layout("NHWC"))) is None
    assert transformed_like(SCALAR, layout("NCHW"), layout("NHWC")) is SCALAR
    assert text_of(blocks_of_one(layout("NCHW4c"), layout("NCHW"), (2, 1, 3, 3))) == "NCHW1c"
    assert text_of(blocks_of_one(layout("NCHW4c"), layout("NCHW"), (2, 8, 3, 3))) == "NCHW4c"
    assert is_transform(layout("HW"), layout("NHW"), (2, 3))
    assert not is_transform(layout("NCHW"), layout("NCHW4c"), (1, 6, 2, 2))
    assert not is_transform(layout("NCHW"), layout("NHW"), (1, 6, 2, 2))
