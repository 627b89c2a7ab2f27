"""Relay's operators in ONNX, which ONNX Runtime, OpenVINO and TVM's Relax read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .graph import Array, Graph, Node, Value, pairs

OPSET = 18


def model_of(graph: Graph) -> Any:
    """Returns the graph as an ONNX model; weights are its initializers."""
    return _Writer(graph).model()


class _Writer:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: list[Any] = []
        self.initializers: dict[str, Array] = {}
        self.fresh = 0

    def model(self) -> Any:
        for node in self.graph.nodes:
            WRITERS[node.op](self, node)
        used = {name for node in self.nodes for name in node.input} | {v.name for v in self.graph.results}
        for value in self.graph.constants:
            if value.name in used and value.name not in self.initializers:
                self.initializers[value.name] = np.asarray(value.array)
        results: list[Value] = []
        for k, value in enumerate(self.graph.results):
            result = Value(f"out{k}", value.shape, value.dtype)
            self.nodes.append(helper.make_node("Identity", [value.name], [result.name]))
            results.append(result)
        _drop_identities(self.nodes, {value.name for value in (*self.graph.inputs, *self.graph.constants)})
        graph = helper.make_graph(
            self.nodes,
            "main",
            [info(value.name, value) for value in self.graph.inputs],
            [info(value.name, value) for value in results],
            [numpy_helper.from_array(array, name) for name, array in self.initializers.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(model)
        return model

    def add(self, kind: str, inputs: Sequence[str], output: str | None = None, **attrs: Any) -> str:
        """Adds a node of one output, with a new name unless one is given."""
        if output is None:
            self.fresh += 1
            output = f"t{self.fresh}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attrs))
        return output

    def with_bias(self, x: Value, bias: Value, result: Value) -> bool:
        """Adds `bias` to the op that produces x and renames its result, if x has only this use.

        Returns whether it could. Engines recognize quantized layers by this form.
        """
        maker = next((node for node in reversed(self.nodes) if x.name in node.output), None)
        readers = [node for node in self.graph.nodes if x in node.inputs]
        if maker is None or maker.op_type not in ("Conv", "Gemm") or len(maker.input) != 2 or len(readers) > 1:
            return False
        self.nodes.remove(maker)
        maker.input.append(bias.name)
        maker.output[0] = result.name
        self.nodes.append(maker)
        return True

    def constant(self, array: Array) -> str:
        self.fresh += 1
        name = f"k{self.fresh}"
        self.initializers[name] = array
        return name

    def transposed(self, value: Value, axes: Sequence[int]) -> str:
        """Transposes a value, a constant at once."""
        if value.array is not None:
            return self.constant(np.ascontiguousarray(np.transpose(value.array, axes)))
        return self.add("Transpose", [value.name], perm=list(axes))


def _drop_identities(nodes: list[Any], kept: set[str]) -> None:
    """Names each result where it is computed, unless that is an input, a constant, or used elsewhere, too."""
    uses: dict[str, int] = {}
    for node in nodes:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    makers = {name: node for node in nodes for name in node.output}
    for node in [n for n in nodes if n.op_type == "Identity"]:
        source = node.input[0]
        if source not in kept and uses[source] == 1 and source in makers:
            outputs = makers[source].output
            outputs[list(outputs).index(source)] = node.output[0]
            nodes.remove(node)


def info(name: str, value: Value) -> Any:
    """Returns an input or output of this name, of the value's type."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape))


def _pads(padding: Any) -> list[int]:
    (top, bottom), (left, right) = pairs(padding)
    return [top, left, bottom, right]


def _of_image(w: _Writer, node: Node, layout: str, kind: str, more: Sequence[str] = (), **attrs: Any) -> None:
    """Writes an ONNX node on an image in NCHW, with transposes around it for another `layout`."""
    x, result = node.inputs[0], node.outputs[0].name
    if layout == "NCHW":
        w.add(kind, [x.name, *more], result, **attrs)
        return
    data = w.transposed(x, [layout.index(c) for c in "NCHW"])
    w.add("Transpose", [w.add(kind, [data, *more], **attrs)], result, perm=["NCHW".index(c) for c in layout])


def _conv2d(w: _Writer, node: Node) -> None:
    a = node.attrs
    weight, kernel = node.inputs[1], a.kernel_layout or "OIHW"
    filters = weight.name if kernel == "OIHW" else w.transposed(weight, [kernel.index(c) for c in "OIHW"])
    _of_image(
        w, node, a.data_layout, "Conv", [filters],
        strides=a.strides, dilations=a.dilation, group=a.groups, pads=_pads(a.padding),
    )  # fmt: skip


def _conv2d_transpose(w: _Writer, node: Node) -> None:
    a = node.attrs
    w.add(
        "ConvTranspose", _names(node), node.outputs[0].name, strides=a.strides, pads=_pads(a.padding),
        output_padding=a.output_padding, group=a.groups,
    )  # fmt: skip


def _pool(kind: str) -> Callable[[_Writer, Node], None]:
    def write(w: _Writer, node: Node) -> None:
        a = node.attrs
        is_max = kind == "MaxPool"
        if not is_max and any(step > 1 for step in a.dilation):
            raise ValueError(f"average pooling of opset {OPSET} has no dilation")
        more: dict[str, Any] = {"dilations": a.dilation} if is_max else {"count_include_pad": int(a.count_include_pad)}
        _of_image(
            w, node, a.layout, kind, kernel_shape=a.pool_size, strides=a.strides, pads=_pads(a.padding),
            ceil_mode=int(a.ceil_mode), **more,
        )  # fmt: skip

    return write


def _dense(w: _Writer, node: Node) -> None:
    x, weight = node.inputs
    if weight.array is None and len(x.shape) == 2:
        w.add("Gemm", _names(node), node.outputs[0].name, transB=1)
        return
    w.add("MatMul", [x.name, w.transposed(weight, (1, 0))], node.outputs[0].name)


def _matmul(w: _Writer, node: Node) -> None:
    sides: list[str] = []
    for value, transposed in zip(node.inputs, (node.attrs.transpose_a, node.attrs.transpose_b), strict=True):
        rank = len(value.shape)
        axes = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(w.transposed(value, axes) if transposed else value.name)
    w.add("MatMul", sides, node.outputs[0].name)


def _bias_add(w: _Writer, node: Node) -> None:
    x, bias = node.inputs
    if bias.array is None and w.with_bias(x, bias, node.outputs[0]):
        return
    after = len(x.shape) - 1 - node.attrs.axis % len(x.shape)
    name = bias.name
    if after:
        shape = (-1, *(1,) * after)
        if bias.array is not None:
            name = w.constant(bias.array.reshape(shape))
        else:
            name = w.add("Reshape", [name, w.constant(np.array(shape, np.int64))])
    w.add("Add", [x.name, name], node.outputs[0].name)


def _batch_norm(w: _Writer, node: Node) -> None:
    w.add("BatchNormalization", _names(node), node.outputs[0].name, epsilon=node.attrs.epsilon)


def _layer_norm(w: _Writer, node: Node) -> None:
    w.add("LayerNormalization", _names(node), node.outputs[0].name, axis=node.attrs.axis, epsilon=node.attrs.epsilon)


def _reshape(w: _Writer, node: Node) -> None:
    shape = w.constant(np.array(node.outputs[0].shape, np.int64))
    w.add("Reshape", [node.inputs[0].name, shape], node.outputs[0].name)


def _reduce(kind: str) -> Callable[[_Writer, Node], None]:
    def write(w: _Writer, node: Node) -> None:
        axes = node.attrs.axis or range(len(node.inputs[0].shape))
        # Before opset 18 all but ReduceSum had their axes as an attribute; since then all take an input.
        inputs = [node.inputs[0].name, w.constant(np.array(list(axes), np.int64))]
        w.add(kind, inputs, node.outputs[0].name, keepdims=int(node.attrs.keepdims))

    return write


def _split(w: _Writer, node: Node) -> None:
    sizes = w.constant(np.array([value.shape[node.attrs.axis] for value in node.outputs], np.int64))
    outputs = [value.name for value in node.outputs]
    w.nodes.append(helper.make_node("Split", [node.inputs[0].name, sizes], outputs, axis=node.attrs.axis))


def _clip(w: _Writer, node: Node) -> None:
    bounds = [w.constant(np.array(bound, np.float32)) for bound in (node.attrs.a_min, node.attrs.a_max)]
    w.add("Clip", [node.inputs[0].name, *bounds], node.outputs[0].name)


def _quantize(kind: str) -> Callable[[_Writer, Node], None]:
    def write(w: _Writer, node: Node) -> None:
        x, scale, zero_point = node.inputs
        assert scale.array is not None and zero_point.array is not None
        dtype = (x if kind == "DequantizeLinear" else node.outputs[0]).dtype
        zeros = np.broadcast_to(zero_point.array, scale.shape).astype(dtype)
        # Without scales along it the axis is none.
        axis = {"axis": node.attrs.axis} if scale.shape else {}
        w.add(kind, [x.name, scale.name, w.constant(zeros)], node.outputs[0].name, **axis)

    return write


def _names(node: Node) -> list[str]:
    return [value.name for value in node.inputs]


def _plain(kind: str, *attributes: str) -> Callable[[_Writer, Node], None]:
    """Returns an operator of the same meaning, some of whose attributes are the same."""

    def write(w: _Writer, node: Node) -> None:
        w.add(kind, _names(node), node.outputs[0].name, **{name: node.attrs[name] for name in attributes})

    return write


WRITERS: dict[str, Callable[[_Writer, Node], None]] = {
    "nn.conv2d": _conv2d,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": _pool("MaxPool"),
    "nn.avg_pool2d": _pool("AveragePool"),
    "nn.global_avg_pool2d": lambda w, n: _of_image(w, n, n.attrs.layout, "GlobalAveragePool"),
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
    "nn.bias_add": _bias_add,
    "nn.batch_norm": _batch_norm,
    "qnn.quantize": _quantize("QuantizeLinear"),
    "qnn.dequantize": _quantize("DequantizeLinear"),
    "nn.layer_norm": _layer_norm,
    "nn.relu": _plain("Relu"),
    "nn.softmax": _plain("Softmax", "axis"),
    "nn.batch_flatten": _plain("Flatten"),
    "add": _plain("Add"),
    "subtract": _plain("Sub"),
    "multiply": _plain("Mul"),
    "divide": _plain("Div"),
    "power": _plain("Pow"),
    "maximum": _plain("Max"),
    "minimum": _plain("Min"),
    "clip": _clip,
    "negative": _plain("Neg"),
    "exp": _plain("Exp"),
    "log": _plain("Log"),
    "sqrt": _plain("Sqrt"),
    "tanh": _plain("Tanh"),
    "sigmoid": _plain("Sigmoid"),
    "erf": _plain("Erf"),
    "less": _plain("Less"),
    "where": _plain("Where"),
    "sum": _reduce("ReduceSum"),
    "mean": _reduce("ReduceMean"),
    "max": _reduce("ReduceMax"),
    "reshape": _reshape,
    "transpose": lambda w, n: w.nodes.append(
        helper.make_node("Transpose", _names(n), [n.outputs[0].name], perm=list(n.attrs.axes))
    ),
    "take": _plain("Gather", "axis"),
    "concatenate": _plain("Concat", "axis"),
    "split": _split,
}
"""By Relay's name."""
