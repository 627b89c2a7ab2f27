"""The workloads: each a Relay text with weights, inputs of known shape, and its FLOPs or bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod, sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mirstack.examples.models.builder import Array, attribute_text, tensor, write_safetensors
from mirstack.examples.models.registry import build

from .quantized import Quantized, Tensor, mobilenet, resnet18

Family = Literal["matmul", "conv", "memory", "attention", "model", "quantized"]
FAMILIES: tuple[Family, ...] = ("matmul", "conv", "memory", "attention", "model", "quantized")
F32 = 4


@dataclass
class Source:
    """A module's text, which refers to its weights as `meta[relay.Constant][name]`."""

    text: Callable[[str], str]
    """Of the name of the side file that holds the weights."""
    weights: Mapping[str, Array]


@dataclass(frozen=True)
class Workload:
    """A program to be measured.

    `flops` counts multiplications and additions of contractions, `bytes` what must be read and written.
    """

    name: str
    family: Family
    make: Callable[[], Source] = field(repr=False)
    flops: float = 0.0
    bytes: float = 0.0
    indices: int = 0
    """Integer inputs are drawn below this."""
    tolerance: float = 2e-4
    """By how much results may differ from those of the reference, of the largest value: sums are taken in other orders."""
    engines: tuple[str, ...] = ()
    """The engines that can compute the same; empty: all."""

    def write(self, folder: Path) -> Path:
        """Writes `NAME.mir` and its weights into the folder; returns the former."""
        folder.mkdir(parents=True, exist_ok=True)
        file = self.name.replace("/", "_")
        source = self.make()
        path = folder / f"{file}.mir"
        path.write_text(source.text(f"{file}.safetensors" if source.weights else ""), encoding="utf-8")
        if source.weights:
            write_safetensors(folder / f"{file}.safetensors", source.weights)
        return path

    def inputs(self, shapes: list[tuple[tuple[int, ...], np.dtype[Any]]], seed: int = 1) -> list[Array]:
        """Draws inputs of these shapes: normal, or integers below `indices`."""
        rng = np.random.default_rng(seed)
        arrays: list[Array] = []
        for shape, dtype in shapes:
            if dtype.kind == "f":
                arrays.append(rng.standard_normal(shape, dtype=np.float32).astype(dtype))
            else:
                arrays.append(rng.integers(0, self.indices, shape).astype(dtype))
        return arrays


def expression(params: Mapping[str, str], body: str, weights: Mapping[str, tuple[int, ...]] | None = None) -> Source:
    """Returns a function; `{name}` in its body is a weight, normal of variance 1 / inputs."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Array] = {}
    for name, shape in (weights or {}).items():
        spread = 1 / sqrt(prod(shape[1:])) if len(shape) > 1 else 1.0
        arrays[name] = rng.standard_normal(shape, dtype=np.float32) * np.float32(spread)
    body = body.format_map({name: f"meta[relay.Constant][{name}]" for name in arrays})

    def text(file: str) -> str:
        head = '#[version = "0.0.5"]\n' + (f'#[constants = "{file}"]\n' if file else "")
        return f"{head}def @main({', '.join(f'%{p}: {t}' for p, t in params.items())}) {{\n  {body}\n}}\n"

    return Source(text, arrays)


def _model(name: str) -> Source:
    made = build(name)
    return Source(made.text, made.weights)


def _matmul(m: int, n: int, k: int, name: str | None = None) -> Workload:
    """Returns rows times a weight, as layers have it."""
    make = partial(expression, {"x": tensor(m, k)}, f"nn.dense(%x, {{w}}, units={n})", {"w": (n, k)})
    return Workload(name or f"dense_{m}x{n}x{k}", "matmul", make, 2.0 * m * n * k, F32 * (m * k + n * k + m * n))


def _square(n: int) -> Workload:
    """Returns a product of two inputs."""
    params = {"x": tensor(n, n), "y": tensor(n, n)}
    make = partial(expression, params, "nn.matmul(%x, %y)")
    return Workload(f"matmul_{n}", "matmul", make, 2.0 * n**3, F32 * 3 * n * n)


def _batch_matmul(b: int, m: int, n: int, k: int, transpose_b: bool) -> Workload:
    params = {"x": tensor(b, m, k), "y": tensor(b, n, k) if transpose_b else tensor(b, k, n)}
    make = partial(expression, params, f"nn.batch_matmul(%x, %y, transpose_b={transpose_b})")
    name = f"batch_matmul_{b}x{m}x{n}x{k}{'_nt' if transpose_b else ''}"
    return Workload(name, "matmul", make, 2.0 * b * m * n * k, F32 * b * (m * k + n * k + m * n))


def _conv(
    c: int, size: int, k: int, kernel: int, stride: int = 1, *, groups: int = 1, dilation: int = 1, layout: str = "NCHW"
) -> Workload:
    """Returns a square convolution that keeps the size, except for its stride."""
    padding = dilation * (kernel // 2)
    after = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    attrs = {
        "strides": [stride] * 2, "padding": [padding] * 4, "dilation": [dilation] * 2, "groups": groups,
        "channels": k, "kernel_size": [kernel] * 2,
    }  # fmt: skip
    shape, weight = (1, c, size, size), (k, c // groups, kernel, kernel)
    if layout == "NHWC":
        attrs |= {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        shape, weight = (1, size, size, c), (kernel, kernel, c // groups, k)
    given = ", ".join(f"{name}={attribute_text(value)}" for name, value in attrs.items())
    make = partial(expression, {"x": tensor(*shape)}, f"nn.conv2d(%x, {{w}}, {given})", {"w": weight})
    words = [f"conv_{c}x{size}", f"{k}", f"{kernel}x{kernel}s{stride}"]
    words += [f"g{groups}"] if groups > 1 else []
    words += [f"d{dilation}"] if dilation > 1 else []
    words += ["nhwc"] if layout == "NHWC" else []
    flops = 2.0 * k * (c // groups) * kernel**2 * after**2
    return Workload("_".join(words), "conv", make, flops, F32 * (c * size**2 + prod(weight) + k * after**2))


def _conv_transpose(c: int, size: int, k: int, kernel: int, stride: int, padding: int) -> Workload:
    given = f"strides=[{stride}, {stride}], padding=[{padding}, {padding}, {padding}, {padding}], channels={k}, kernel_size=[{kernel}, {kernel}]"
    params, weights = {"x": tensor(1, c, size, size)}, {"w": (c, k, kernel, kernel)}
    make = partial(expression, params, f"nn.conv2d_transpose(%x, {{w}}, {given})", weights)
    after = (size - 1) * stride + kernel - 2 * padding
    moved = F32 * (c * size**2 + c * k * kernel**2 + k * after**2)
    name = f"conv_transpose_{c}x{size}_{k}_{kernel}x{kernel}s{stride}"
    return Workload(name, "conv", make, 2.0 * c * k * kernel**2 * size**2, moved)


def _stream(name: str, body: str, inputs: int, size: int, shown: str) -> Workload:
    params = {letter: tensor(size) for letter in "xyz"[:inputs]}
    return Workload(f"{name}_{shown}", "memory", partial(expression, params, body), 0.0, F32 * size * (inputs + 1))


def _unary(
    name: str, shape: tuple[int, ...], body: str, outputs: int, weights: Mapping[str, tuple[int, ...]] | None = None
) -> Workload:
    make = partial(expression, {"x": tensor(*shape)}, body, weights)
    return Workload(name, "memory", make, 0.0, F32 * (prod(shape) + outputs))


def _gather(rows: int, width: int, taken: int) -> Workload:
    params = {"x": tensor(rows, width), "i": tensor(taken, dtype="int32")}
    make = partial(expression, params, 'take(%x, %i, axis=0, mode="clip")')
    return Workload(f"take_{rows}x{width}_{taken}", "memory", make, 0.0, F32 * taken * (2 * width + 1), rows)


def _concat(name: str, shapes: list[tuple[int, ...]], axis: int) -> Workload:
    params = {f"x{k}": tensor(*shape) for k, shape in enumerate(shapes)}
    make = partial(expression, params, f"concatenate(({', '.join('%' + p for p in params)}), axis={axis})")
    return Workload(name, "memory", make, 0.0, F32 * 2 * sum(map(prod, shapes)))


def _attention(heads: int, tokens: int, size: int) -> Workload:
    params = {name: tensor(heads, tokens, size) for name in "qkv"}
    scale = attribute_text(1 / sqrt(size))
    body = (
        f"%0 = multiply(nn.batch_matmul(%q, %k, transpose_b=True), {scale});\n"
        "  nn.batch_matmul(nn.softmax(%0), %v, transpose_b=False)"
    )
    flops = 4.0 * heads * tokens * tokens * size
    moved = F32 * 4 * heads * tokens * size
    return Workload(f"attention_{heads}x{tokens}x{size}", "attention", partial(expression, params, body), flops, moved)


def _perceptron(name: str, batch: int, sizes: list[int]) -> Workload:
    weights: dict[str, tuple[int, ...]] = {}
    lines: list[str] = []
    x = "%x"
    for k, (inputs, units) in enumerate(itertools.pairwise(sizes)):
        weights |= {f"w{k}": (units, inputs), f"b{k}": (units,)}
        last = k == len(sizes) - 2
        layer = f"nn.bias_add(nn.dense({x}, {{w{k}}}, units={units}), {{b{k}}})"
        lines.append(f"nn.softmax({layer})" if last else f"%{k} = nn.relu({layer});")
        x = f"%{k}"
    make = partial(expression, {"x": tensor(batch, sizes[0])}, "\n  ".join(lines), weights)
    flops = 2.0 * batch * sum(a * b for a, b in itertools.pairwise(sizes))
    return Workload(name, "model", make, flops, F32 * sum(map(prod, weights.values())))


def _quantized(
    name: str, shape: tuple[int, ...], layers: Callable[[Quantized], Tensor], flops: float, off: float = 0.01
) -> Workload:
    """Engines round at other places, so that results are off by a few units of 255."""

    def make() -> Source:
        program = Quantized(*shape)
        result = layers(program)
        return Source(lambda file: program.text(result, file), program.weights)

    engines = ("mirstack", "onnxruntime", "openvino", "torch")
    return Workload(name, "quantized", make, flops, 0.0, 256, off, engines)


def _quantized_dense(m: int, n: int, k: int) -> Workload:
    return _quantized(f"q_dense_{m}x{n}x{k}", (m, k), lambda q: q.dense(q.input, n), 2.0 * m * n * k)


def _quantized_conv(c: int, size: int, k: int, kernel: int, stride: int = 1, groups: int = 1) -> Workload:
    name = f"q_conv_{c}x{size}_{k}_{kernel}x{kernel}s{stride}{f'_g{groups}' if groups > 1 else ''}"
    flops = 2.0 * k * (c // groups) * kernel**2 * (-(-size // stride)) ** 2
    return _quantized(name, (1, c, size, size), lambda q: q.convolution(q.input, k, kernel, stride, groups), flops)


RESNET50 = (
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1),
)  # fmt: skip
"""The distinct convolutions of ResNet-50: channels, size, channels after, kernel, stride."""

DEPTHWISE = ((32, 112, 1), (64, 112, 2), (128, 56, 1), (256, 28, 1), (512, 14, 1), (512, 14, 2), (1024, 7, 1))
"""Of MobileNet: channels, size, stride."""

STREAMS = (("1k", 1 << 10), ("16k", 1 << 14), ("256k", 1 << 18), ("1M", 1 << 20), ("16M", 1 << 24))

CUBE = (128, 256, 512)

WORKLOADS: tuple[Workload, ...] = (
    *(_square(n) for n in (128, 256, 512, 1024, 2048)),
    *(_matmul(n, n, n) for n in (256, 1024)),
    _matmul(16, 4096, 1024), _matmul(4096, 16, 1024), _matmul(1024, 1024, 16), _matmul(4, 1024, 1024),
    _matmul(64, 128, 784), _matmul(127, 129, 131), _matmul(1000, 1000, 1000), _matmul(333, 777, 555),
    _matmul(1, 4096, 4096), _matmul(1, 128, 784), _matmul(8, 4096, 4096),
    _batch_matmul(12, 128, 128, 64, True), _batch_matmul(12, 128, 64, 128, False), _batch_matmul(32, 64, 64, 64, False),
    *(_conv(*layer) for layer in RESNET50),
    *(_conv(c, size, c, 3, stride, groups=c) for c, size, stride in DEPTHWISE),
    _conv(128, 28, 128, 5, 1, groups=128),
    _conv(128, 28, 256, 3, 1, groups=4), _conv(256, 28, 256, 3, 1, groups=32),
    _conv(128, 28, 128, 3, 1, dilation=2), _conv(128, 28, 128, 3, 1, layout="NHWC"), _conv(256, 14, 1024, 1, 1, layout="NHWC"),
    _conv(96, 27, 100, 3, 1), _conv(48, 55, 40, 5, 2),
    _conv_transpose(128, 16, 64, 4, 2, 1), _conv_transpose(256, 8, 128, 3, 2, 1),
    *(_stream("relu_fma", "nn.relu(add(multiply(%x, %y), %z))", 3, size, shown) for shown, size in STREAMS),
    *(_stream("gelu", "multiply(multiply(%x, 0.5f), add(1f, erf(multiply(%x, 0.70710678f))))", 1, size, shown) for shown, size in STREAMS),
    *(_stream("swish_tanh", "multiply(tanh(%x), sigmoid(%x))", 1, size, shown) for shown, size in STREAMS),
    _unary("softmax_1024x1024", (1024, 1024), "nn.softmax(%x)", 1 << 20),
    _unary("softmax_128x32000", (128, 32000), "nn.softmax(%x)", 128 * 32000),
    _unary("softmax_axis1_64x256x128", (64, 256, 128), "nn.softmax(%x, axis=1)", 64 * 256 * 128),
    _unary("layer_norm_128x768", (128, 768), "nn.layer_norm(%x, {g}, {b})", 128 * 768, {"g": (768,), "b": (768,)}),
    _unary("layer_norm_4096x1024", (4096, 1024), "nn.layer_norm(%x, {g}, {b})", 4 << 20, {"g": (1024,), "b": (1024,)}),
    *(_unary(f"sum_axis{k}_128x256x512", CUBE, f"sum(%x, axis=[{k}])", prod(CUBE) // CUBE[k]) for k in range(3)),
    _unary("max_axis2_128x256x512", CUBE, "max(%x, axis=[2])", 128 * 256),
    _unary("mean_all_128x256x512", CUBE, "mean(%x)", 1),
    _unary("sum_axes02_128x256x512", CUBE, "sum(%x, axis=[0, 2])", 256),
    _unary("transpose_1024x1024", (1024, 1024), "transpose(%x, axes=[1, 0])", 1 << 20),
    _unary("transpose_4096x1000", (4096, 1000), "transpose(%x, axes=[1, 0])", 4096000),
    _unary("transpose_nchw_nhwc_64x56x56", (1, 64, 56, 56), "transpose(%x, axes=[0, 2, 3, 1])", 64 * 56 * 56),
    _unary("transpose_0213_8x128x12x64", (8, 128, 12, 64), "transpose(%x, axes=[0, 2, 1, 3])", 8 * 128 * 12 * 64),
    _unary("max_pool_64x112", (1, 64, 112, 112), "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", 64 * 56 * 56),
    _unary("global_avg_pool_2048x7", (1, 2048, 7, 7), "nn.global_avg_pool2d(%x)", 2048),
    _gather(32768, 256, 8192), _gather(30522, 768, 128),
    _concat("concat_axis1_256x56x56", [(1, 128, 56, 56), (1, 64, 56, 56), (1, 64, 56, 56)], 1),
    _concat("concat_axis_last_4096x768", [(4096, 256), (4096, 512)], 1),
    _attention(12, 128, 64), _attention(12, 512, 64), _attention(8, 100, 80),
    _perceptron("mlp_digits", 1, [64, 128, 64, 10]),
    _perceptron("mlp_784_b1", 1, [784, 128, 10]), _perceptron("mlp_784_b64", 64, [784, 128, 10]),
    Workload("resnet18", "model", partial(_model, "resnet18"), 3.6281e9, 46.8e6),
    Workload("resnet50", "model", partial(_model, "resnet50"), 8.1784e9, 102.5e6),
    Workload("mobilenet", "model", partial(_model, "mobilenet"), 1.1375e9, 17.0e6),
    Workload("bert_layer", "model", partial(_model, "bert"), 1.8623e9, 28.4e6),
    Workload("lstm", "model", partial(_model, "lstm"), 32 * 0.7864e6, 1.6e6),
    *(_quantized_dense(m, n, k) for m, n, k in ((1024, 1024, 1024), (8, 4096, 4096), (64, 128, 784))),
    _quantized_conv(64, 56, 64, 3), _quantized_conv(256, 14, 256, 3), _quantized_conv(64, 56, 256, 1),
    _quantized_conv(128, 56, 128, 3, 2), _quantized_conv(128, 56, 128, 3, groups=128),
    _quantized("q_resnet18", (1, 3, 224, 224), resnet18, 3.6281e9, 0.05),
    _quantized("q_mobilenet", (1, 3, 224, 224), mobilenet, 1.1375e9, 0.05),
)  # fmt: skip
"""All, in the order of the tables."""


def named(name: str) -> Workload:
    """Returns the workload of this name. Raises KeyError where there is none."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise KeyError(name)
