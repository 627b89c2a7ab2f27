"""Relay's operators in torch, recorded once by torch.fx: what runs is a plain list of torch calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .evaluate import Function, evaluate, shared_functions
from .graph import Graph, Node, pairs


def module_of(graph: Graph) -> Any:
    """Returns the graph as a torch module of its inputs, in evaluation mode; weights are its buffers."""

    # What is a view in torch must be there in memory at the end, as it is in every other engine.
    views = {output for node in graph.nodes if node.op in VIEWS for output in node.outputs}

    filters = {node.inputs[1] for node in graph.nodes if node.op == "nn.conv2d" and node.attrs.data_layout == "NHWC"}

    class Program(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass]  # where torch is not installed
        def __init__(self) -> None:
            super().__init__()
            for k, value in enumerate(graph.constants):
                array = torch.from_numpy(np.array(value.array))
                self.register_buffer(f"c{k}", _channels_last(array) if value in filters else array)

        def compute(self, inputs: Any, constants: Any) -> Any:
            results = evaluate(graph, FUNCTIONS, inputs, constants)
            return tuple(
                result.contiguous() if value in views else result
                for result, value in zip(results, graph.results, strict=True)
            )

    names = [f"x{k}" for k in range(len(graph.inputs))]
    program = Program().eval()
    return torch.fx.GraphModule(program, _traced(program, names))


def _traced(program: Any, names: list[str]) -> Any:
    """Returns the calls that the program makes of inputs of these names."""
    graph = torch.fx.Graph(tracer_cls=torch.fx.Tracer)
    tracer = torch.fx.proxy.GraphAppendingTracer(graph)
    inputs = [torch.fx.Proxy(graph.placeholder(name), tracer) for name in names]
    constants = {name: torch.fx.Proxy(graph.get_attr(name), tracer) for name, _ in program.named_buffers()}
    graph.output(
        torch.fx.node.map_aggregate(
            program.compute(inputs, list(constants.values())), lambda p: p.node if isinstance(p, torch.fx.Proxy) else p
        )
    )
    return graph


VIEWS = ("transpose", "split")


def _channels_last(weight: Any) -> Any:
    """Returns an HWIO weight as torch has it, in the memory format that its convolutions want."""
    return weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def _symmetric(padding: Any) -> tuple[int, int] | None:
    (top, bottom), (left, right) = pairs(padding)
    return (top, left) if (top, left) == (bottom, right) else None


def _padded(x: Any, padding: Any, filler: float) -> tuple[Any, tuple[int, int]]:
    same = _symmetric(padding)
    if same is not None:
        return x, same
    (top, bottom), (left, right) = pairs(padding)
    return F.pad(x, (left, right, top, bottom), value=filler), (0, 0)


def _as_nchw(x: Any, layout: str) -> Any:
    """An image as torch takes it: the same memory, in its channels_last format where channels come last."""
    return x.permute(0, 3, 1, 2) if layout == "NHWC" else x


def _from_nchw(x: Any, layout: str) -> Any:
    return x.permute(0, 2, 3, 1) if layout == "NHWC" else x


def _conv2d(node: Node, x: Any, w: Any) -> Any:
    a = node.attrs
    if a.data_layout == "NHWC" and node.inputs[1].array is None:
        w = _channels_last(w)
    x, padding = _padded(_as_nchw(x, a.data_layout), a.padding, 0.0)
    y = F.conv2d(x, w, None, a.strides, padding, a.dilation, a.groups)
    return _from_nchw(y, a.data_layout)


def _conv2d_transpose(node: Node, x: Any, w: Any) -> Any:
    a = node.attrs
    padding = _symmetric(a.padding)
    if padding is None:
        raise ValueError("torch's transposed convolution pads alike on both sides")
    return F.conv_transpose2d(x, w, None, a.strides, padding, a.output_padding, a.groups)


def _max_pool2d(node: Node, x: Any) -> Any:
    a = node.attrs
    x, padding = _padded(_as_nchw(x, a.layout), a.padding, -float("inf"))
    y = F.max_pool2d(x, a.pool_size, a.strides, padding, a.dilation, a.ceil_mode)
    return _from_nchw(y, a.layout)


def _avg_pool2d(node: Node, x: Any) -> Any:
    a = node.attrs
    padding = _symmetric(a.padding)
    if padding is None:
        raise ValueError("torch's average pooling pads alike on both sides")
    if any(step > 1 for step in a.dilation):
        raise ValueError("torch's average pooling has no dilation")
    y = F.avg_pool2d(_as_nchw(x, a.layout), a.pool_size, a.strides, padding, a.ceil_mode, a.count_include_pad)
    return _from_nchw(y, a.layout)


def _matmul(node: Node, x: Any, w: Any) -> Any:
    a = node.attrs
    return torch.matmul(x.transpose(-1, -2) if a.transpose_a else x, w.transpose(-1, -2) if a.transpose_b else w)


def _bias_add(node: Node, x: Any, bias: Any) -> Any:
    rank = len(node.inputs[0].shape)
    return x + bias.reshape((-1,) + (1,) * (rank - 1 - node.attrs.axis % rank))


def _batch_norm(node: Node, x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    return F.batch_norm(x, mean, var, gamma, beta, False, 0.0, node.attrs.epsilon), mean, var


def _layer_norm(node: Node, x: Any, gamma: Any, beta: Any) -> Any:
    return F.layer_norm(x, (node.inputs[0].shape[-1],), gamma, beta, node.attrs.epsilon)


def _split(node: Node, x: Any) -> Any:
    sizes = [output.shape[node.attrs.axis] for output in node.outputs]
    parts = torch.split(x, sizes, node.attrs.axis)
    return tuple(parts[k] for k in range(len(sizes)))


def _reduce(reduce: Any) -> Callable[[Node, Any], Any]:
    def reduced(node: Node, x: Any) -> Any:
        axis = node.attrs.axis or range(len(node.inputs[0].shape))
        return reduce(x, tuple(axis), node.attrs.keepdims)

    return reduced


def _take(node: Node, x: Any, indices: Any) -> Any:
    axis = node.attrs.axis
    shape = node.inputs[1].shape
    if shape == ():
        return torch.select(x, axis, int(np.asarray(node.inputs[1].array).item()))
    taken = torch.index_select(x, axis, indices.reshape(-1) if len(shape) > 1 else indices)
    return taken.reshape(node.outputs[0].shape) if len(shape) > 1 else taken


FUNCTIONS: dict[str, Function] = {
    **shared_functions(torch),
    "nn.conv2d": _conv2d,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "nn.global_avg_pool2d": lambda n, x: _from_nchw(
        F.adaptive_avg_pool2d(_as_nchw(x, n.attrs.layout), 1), n.attrs.layout
    ),
    "nn.dense": lambda n, x, w: F.linear(x, w),
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
    "nn.bias_add": _bias_add,
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.relu": lambda n, x: torch.relu(x),
    "nn.softmax": lambda n, x: torch.softmax(x, n.attrs.axis),
    "clip": lambda n, x: torch.clamp(x, n.attrs.a_min, n.attrs.a_max),
    "sigmoid": lambda n, x: torch.sigmoid(x),
    "erf": lambda n, x: torch.erf(x),
    "sum": _reduce(torch.sum),
    "mean": _reduce(torch.mean),
    "max": _reduce(torch.amax),
    "transpose": lambda n, x: x.permute(n.attrs.axes),
    "take": _take,
    "concatenate": lambda n, *xs: torch.cat(xs, n.attrs.axis),
    "split": _split,
}
"""By Relay's name."""
