"""Converts ONNX operators that draw random numbers, by Relay's generator and the node's seed.

    RandomNormal(shape=[2,3], seed=1.0)   →   random.normal(key, 0.0, 1.0, out_shape=[2, 3]).1

A compiled function returns the same for equal inputs, and so the same numbers in each call; another seed draws others. The distribution is
ONNX', the numbers are not those of another runtime. A node without a seed is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.relay.operators.misc.random import key_of_seed
from ..node import Node
from ..protos import element_dtype
from ..registry import operator

if TYPE_CHECKING:
    from ...common.open_sizes import Extent


def _key(node: Node) -> SSAValue:
    """Returns the state of a generator that the node's seed determines."""
    seed = node.attr("seed")
    if seed is None:
        raise node.refuse(
            "it draws numbers at random, and has no seed",
            "a compiled function returns the same for equal inputs: give the node the attribute seed, or pass the numbers as an input",
        )
    bits = int(np.float32(seed).view(np.uint32))
    return node.builder.array_constant(key_of_seed(bits))


def _drawn(node: Node, name: str, first: float, second: float, shape: Sequence[Extent], dtype: str) -> SSAValue:
    """Returns numbers of a distribution; those of narrow floats are drawn in float32."""
    b = node.builder
    sizes = [size for size in shape if isinstance(size, int)]
    key = _key(node)
    if len(sizes) < len(shape):
        raise node.refuse("the number of random numbers must be known: a size of the result is open")
    wide = dtype if dtype in ("float32", "float64") else "float32"
    bounds = (b.constant(each, wide) for each in (first, second))
    found = b.field(b.call(f"random.{name}", key, *bounds, out_shape=sizes, out_dtype=wide), 1)
    return found if wide == dtype else b.call("cast", found, dtype=dtype)


def _dtype(node: Node, default: str) -> str:
    number = int(node.attr("dtype", 0) or 0)
    found = element_dtype(number) if number else default
    if found is None:
        raise node.refuse(f"dtype is {number}, which tensors cannot have")
    return found


@operator("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def random(node: Node) -> SSAValue:
    """Converts `RandomNormal` and `RandomUniform`, of a shape or like a tensor."""
    is_like = node.op_type.endswith("Like")
    shape: Sequence[Extent] = node.builder.extents(node[0]) if is_like else node.ints("shape") or []
    dtype = _dtype(node, node.dtype(0) if is_like else "float32")
    if "Normal" in node.op_type:
        return _drawn(node, "normal", float(node.attr("mean", 0.0)), float(node.attr("scale", 1.0)), shape, dtype)
    return _drawn(node, "uniform", float(node.attr("low", 0.0)), float(node.attr("high", 1.0)), shape, dtype)


@operator("Bernoulli")
def bernoulli(node: Node) -> SSAValue:
    """Converts `Bernoulli`: 1 where a number drawn from [0, 1) is below the probability."""
    b, x = node.builder, node[0]
    wide = node.dtype(0) if node.dtype(0) == "float64" else "float32"
    drawn = _drawn(node, "uniform", 0.0, 1.0, b.extents(x), wide)
    return b.call("cast", b.call("less", drawn, b.call("cast", x, dtype=wide)), dtype=_dtype(node, node.dtype(0)))


@operator("Multinomial")
def multinomial(node: Node) -> SSAValue:
    """Converts `Multinomial`: indices drawn by the logarithms of probabilities."""
    b, key = node.builder, _key(node)
    weights = b.call("nn.softmax", b.call("cast", node[0], dtype="float32"), axis=-1)
    if b.static_shape(weights) is None:
        raise node.refuse("the number of random numbers must be known: a size of the result is open")
    found = b.field(b.call("random.multinomial", key, weights, num_samples=int(node.attr("sample_size", 1))), 1)
    return b.call("cast", found, dtype=_dtype(node, "int32"))
