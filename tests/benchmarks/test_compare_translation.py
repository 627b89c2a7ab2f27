"""What is translated for the other engines means what the interpreter says; what is not installed is skipped."""

from __future__ import annotations

from pathlib import Path

import mirstack
import pytest
from extras import absent
from mirstack.benchmarks.compare.engine import ENGINES, engine_of
from mirstack.benchmarks.compare.graph import graph_of
from mirstack.benchmarks.compare.material import Material
from mirstack.benchmarks.compare.quantized import Quantized
from mirstack.benchmarks.compare.run import difference
from mirstack.benchmarks.compare.setting import Setting
from mirstack.benchmarks.compare.workloads import Source, Workload
from mirstack.lowering.driver.loading.executable import flatten

T = "Tensor[({}), float32]".format
IMAGE, CHANNELS_LAST = "%x: " + T("1, 4, 7, 6"), "%x: " + T("1, 7, 6, 4")
PAIR = f"%x: {T('2, 3, 4')}, %y: {T('2, 3, 4')}"

PROGRAMS = {
    "conv2d": (f"{IMAGE}, %w: {T('6, 2, 3, 3')}", "nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], groups=2, channels=6, kernel_size=[3, 3])"),
    "conv2d_nhwc": (f"{CHANNELS_LAST}, %w: {T('3, 3, 4, 6')}", 'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")'),
    "conv2d_transpose": (f"{IMAGE}, %w: {T('4, 5, 4, 4')}", "nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1], channels=5, kernel_size=[4, 4])"),
    "max_pool2d": (IMAGE, "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 0])"),
    "avg_pool2d": (IMAGE, "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"),
    "max_pool2d_nhwc": (CHANNELS_LAST, 'nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 0], dilation=[1, 2], layout="NHWC")'),
    "avg_pool2d_nhwc": (CHANNELS_LAST, 'nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout="NHWC")'),
    "global_avg_pool2d_nhwc": (CHANNELS_LAST, 'nn.global_avg_pool2d(%x, layout="NHWC")'),
    "global_avg_pool2d": (IMAGE, "nn.global_avg_pool2d(%x)"),
    "dense": (f"%x: {T('3, 5')}, %w: {T('4, 5')}, %b: {T('4')}", "nn.relu(nn.bias_add(nn.dense(%x, %w, units=4), %b))"),
    "matmul": (f"%x: {T('5, 3')}, %w: {T('4, 5')}", "nn.matmul(%x, %w, transpose_a=True, transpose_b=True)"),
    "batch_matmul": (PAIR, "nn.batch_matmul(%x, %y, transpose_b=True)"),
    "bias_add": (f"{IMAGE}, %b: {T('4')}", "nn.bias_add(%x, %b)"),
    "batch_norm": (f"{IMAGE}, %g: {T('4')}, %b: {T('4')}", "nn.batch_norm(%x, %g, %b, %b, exp(%g), epsilon=0.01f).0"),
    "layer_norm": (f"%x: {T('2, 3, 4')}, %g: {T('4')}", "nn.layer_norm(%x, %g, %g)"),
    "softmax": (f"%x: {T('2, 3, 4')}", "nn.softmax(%x, axis=1)"),
    "arithmetic": (PAIR, "divide(subtract(multiply(%x, 2f), %y), add(exp(%x), 1f))"),
    "functions": (PAIR, "add(power(exp(%x), 2f), where(less(%x, %y), tanh(%x), multiply(sigmoid(%y), erf(%x))))"),
    "bounds": (PAIR, "maximum(minimum(clip(%x, a_min=-1f, a_max=0.5f), negative(%y)), log(sqrt(exp(%y))))"),
    "sum": (f"%x: {T('2, 3, 4')}", "sum(%x, axis=[0, 2])"),
    "mean_all": (f"%x: {T('2, 3, 4')}", "mean(%x)"),
    "max_keepdims": (f"%x: {T('2, 3, 4')}", "max(%x, axis=[1], keepdims=True)"),
    "reshape": (IMAGE, "nn.batch_flatten(reshape(%x, newshape=[4, -1, 3]))"),
    "transpose": (f"%x: {T('2, 3, 4')}", "transpose(%x, axes=[2, 0, 1])"),
    "take": (f"%x: {T('5, 3')}, %i: Tensor[(2, 4), int32]", 'take(%x, %i, axis=0, mode="clip")'),
    "split_concatenate": (f"%x: {T('2, 6')}", "%0 = split(%x, indices_or_sections=3, axis=1); concatenate((%0.2, %0.0), axis=0)"),
}  # fmt: skip

RECURSION = f"""
def @steps(%k: int32, %x: {T("3, 4")}, %s: {T("4")}) -> {T("4")} {{
  if (less(%k, 3)) {{ @steps(add(%k, 1), %x, add(multiply(%s, 0.5f), take(%x, %k, axis=0))) }} else {{ %s }}
}}
def @main(%x: {T("3, 4")}) -> {T("4")} {{ @steps(0, %x, zeros(shape=[4], dtype="float32")) }}
"""

TEXTS = {name: f"def @main({params}) {{ {body} }}" for name, (params, body) in PROGRAMS.items()} | {
    "recursion": RECURSION
}


@pytest.mark.extra
@pytest.mark.parametrize("engine_name", [name for name in ENGINES if name not in ("tvm", "iree")])
@pytest.mark.parametrize("program", TEXTS)
def test_engines_agree_with_the_interpreter(program: str, engine_name: str, tmp_path: Path) -> None:
    try:
        engine = engine_of(engine_name)
    except ImportError:
        absent(engine_name, "bench")
    text = '#[version = "0.0.5"]\n' + TEXTS[program]
    material = Material(Workload(program, "memory", lambda: Source(lambda _: text, {}), indices=5), tmp_path)
    inputs = material.inputs
    expected = flatten(mirstack.compile(material.source, target="interp")(*inputs))
    call = engine.bind(engine.load(engine.prepare(material), Setting()), inputs)
    assert difference(call.read(call.run()), expected) < 1e-5


@pytest.mark.extra
@pytest.mark.parametrize("engine_name", ["mirstack", "onnxruntime", "openvino", "torch"])
def test_quantized_programs(engine_name: str, tmp_path: Path) -> None:
    """In integers they are off by a unit or two of what the real numbers give."""
    try:
        engine = engine_of(engine_name)
    except ImportError:
        absent(engine_name, "bench")

    def source() -> Source:
        program = Quantized(1, 8, 9, 9)
        x = program.convolution(program.input, 12, 3)
        x = program.add(x, program.convolution(x, 12, 3, groups=12))
        result = program.dense(program.mean(program.max_pool(x)), 20)
        return Source(lambda file: program.text(result, file), program.weights)

    material = Material(Workload("q_all", "quantized", source, indices=256), tmp_path)
    inputs = material.inputs
    expected = flatten(mirstack.compile(material.source, target="interp")(*inputs))
    call = engine.bind(engine.load(engine.prepare(material), Setting()), inputs)
    assert difference(call.read(call.run()), expected) < 0.03


def test_what_depends_on_the_inputs_is_refused() -> None:
    module = mirstack.parse("def @main(%c: bool, %x: float32) { if (%c) { %x } else { exp(%x) } }")
    with pytest.raises(ValueError, match="a branch depends on the inputs"):
        graph_of(module)


def test_steps_of_a_recursion_are_unrolled() -> None:
    graph = graph_of(mirstack.parse('#[version = "0.0.5"]\n' + RECURSION))
    assert [node.op for node in graph.nodes] == ["take", "add"] + ["multiply", "take", "add"] * 2
