"""Translates quantized programs to torch's quantized operators.

qnn.dequantize → nn.conv2d, add, nn.relu → qnn.quantize  is  torch.ao.nn.quantized.ConvReLU2d
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .graph import Array, Graph, Node, Value, pairs

Step = Callable[[list[Any]], Any]
"""A call of an operator, of all tensors that were computed before it."""


@dataclass
class Pending:
    """Real numbers that are not quantized yet: the node that makes them, and what was done to them since."""

    node: Node
    bias: Any = None
    relu: bool = False


@dataclass
class Program:
    """A list of calls, one after the other."""

    steps: list[Step] = field(default_factory=list[Step])
    quantized: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """Scale and zero point of each input."""
    result: int = 0

    def inputs(self, arrays: Sequence[Array]) -> list[Any]:
        """Bytes as quantized tensors, images in torch's memory format for them."""
        made: list[Any] = []
        for array, (scale, zero) in zip(arrays, self.quantized, strict=True):
            tensor = torch._make_per_tensor_quantized_tensor(torch.from_numpy(array), scale, zero)  # pyright: ignore
            made.append(tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor)
        return made

    def __call__(self, *tensors: Any) -> Any:
        values = list(tensors)
        for step in self.steps:
            values.append(step(values))
        return values[self.result]


def program_of(graph: Graph) -> Program:
    """Returns the graph in quantized operators. Raises KeyError for an operator that has no such form."""
    # The other engines saturate sums of two products, where they have no dot products for them.
    torch.backends.quantized.engine = "onednn"
    program = Program(quantized=[(0.0, 0)] * len(graph.inputs))
    places = {value: k for k, value in enumerate(graph.inputs)}
    real: dict[Value, Any] = {}
    for node in graph.nodes:
        result = node.outputs[0]
        if node.op == "qnn.dequantize":
            x = node.inputs[0]
            real[result] = x if x.array is None else _constant(node)
            if x in graph.inputs:
                program.quantized[graph.inputs.index(x)] = _parameters(node)
        elif node.op == "nn.bias_add":
            real[result] = real[node.inputs[0]]
            real[result].bias = real[node.inputs[1]]
        elif node.op == "nn.relu":
            real[result] = real[node.inputs[0]]
            real[result].relu = True
        elif node.op == "qnn.quantize":
            pending: Pending = real[node.inputs[0]]
            inputs = [real[value] for value in pending.node.inputs]
            step = STEPS[pending.node.op](pending, _parameters(node))
            program.steps.append(step([places.get(each, each) if isinstance(each, Value) else each for each in inputs]))
            places[result] = len(graph.inputs) + len(program.steps) - 1
        else:
            real[result] = Pending(node)
    program.result = places[graph.results[0]]
    return program


def _parameters(node: Node) -> tuple[float, int]:
    scale, zero_point = (value.array for value in node.inputs[1:])
    assert scale is not None and zero_point is not None
    return float(scale), int(zero_point)


def _constant(node: Node) -> Any:
    """Weights as a quantized tensor, a bias in float32."""
    array, scale = node.inputs[0].array, node.inputs[1].array
    assert array is not None and scale is not None
    if array.dtype != np.int8:
        return torch.from_numpy((array * scale).astype(np.float32))
    zeros = torch.zeros(scale.size, dtype=torch.int64)
    scales = torch.from_numpy(scale.astype(np.float64))
    return torch._make_per_channel_quantized_tensor(torch.from_numpy(np.array(array)), scales, zeros, 0)  # pyright: ignore


def _convolution(pending: Pending, to: tuple[float, int]) -> Callable[[list[Any]], Step]:
    a = pending.node.attrs
    (top, _), (left, _) = pairs(a.padding)
    ops = torch.ops.quantized
    call = ops.conv2d_relu if pending.relu else ops.conv2d

    def step(inputs: list[Any]) -> Step:
        x, weight = inputs
        packed = ops.conv2d_prepack(weight, pending.bias, list(a.strides), [top, left], list(a.dilation), a.groups)
        return lambda values: call(values[x], packed, *to)

    return step


def _dense(pending: Pending, to: tuple[float, int]) -> Callable[[list[Any]], Step]:
    ops = torch.ops.quantized
    call = ops.linear_relu if pending.relu else ops.linear

    def step(inputs: list[Any]) -> Step:
        x, weight = inputs
        packed = ops.linear_prepack(weight, pending.bias)
        return lambda values: call(values[x], packed, *to)

    return step


def _add(pending: Pending, to: tuple[float, int]) -> Callable[[list[Any]], Step]:
    call = torch.ops.quantized.add_relu if pending.relu else torch.ops.quantized.add
    return lambda inputs: lambda values: call(values[inputs[0]], values[inputs[1]], *to)


def _on_bytes(function: Callable[[Node, Any], Any]) -> Callable[..., Callable[[list[Any]], Step]]:
    """Translates an operator that torch computes on quantized tensors directly, in their own scale."""
    return lambda pending, to: lambda inputs: lambda values: function(pending.node, values[inputs[0]])


def _max_pool(node: Node, x: Any) -> Any:
    (top, _), (left, _) = pairs(node.attrs.padding)
    return F.max_pool2d(x, list(node.attrs.pool_size), list(node.attrs.strides), (top, left))


STEPS: dict[str, Callable[[Pending, tuple[float, int]], Callable[[list[Any]], Step]]] = {
    "nn.conv2d": _convolution,
    "nn.dense": _dense,
    "add": _add,
    "nn.max_pool2d": _on_bytes(_max_pool),
    "nn.global_avg_pool2d": _on_bytes(lambda node, x: F.adaptive_avg_pool2d(x, 1)),
    "nn.batch_flatten": _on_bytes(lambda node, x: torch.flatten(x, 1)),
}
"""By Relay's name."""
