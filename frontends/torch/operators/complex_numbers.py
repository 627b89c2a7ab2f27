"""Operators on complex numbers, which are pairs of real tensors."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ...common.angles import angle
from ..complex_tensor import ComplexTensor, complex_operator
from ..node import FxNode


def parts(node: FxNode, value: Any) -> ComplexTensor:
    """Returns a tensor or number, real or complex, as a pair of the dtype of the result's parts."""
    dtype = node.dtype()
    if isinstance(value, ComplexTensor):
        return ComplexTensor(node.cast(value.real, dtype), node.cast(value.imaginary, dtype))
    if isinstance(value, SSAValue):
        real = node.cast(value, dtype)
        return ComplexTensor(real, node.call("zeros_like", real))
    number = complex(value)
    return ComplexTensor(node.builder.constant(number.real, dtype), node.builder.constant(number.imag, dtype))


def times(node: FxNode, x: ComplexTensor, y: ComplexTensor) -> ComplexTensor:
    """Returns the product by element."""

    def product(a: SSAValue, b: SSAValue) -> SSAValue:
        return node.call("multiply", a, b)

    return ComplexTensor(
        node.call("subtract", product(x.real, y.real), product(x.imaginary, y.imaginary)),
        node.call("add", product(x.real, y.imaginary), product(x.imaginary, y.real)),
    )


def magnitude(node: FxNode, x: ComplexTensor) -> SSAValue:
    """Returns the distance from 0 as m * sqrt(1 + (n / m)²) of the larger part m: no square overflows."""
    b = node.builder
    first, second = node.call("abs", x.real), node.call("abs", x.imaginary)
    most, least = node.call("maximum", first, second), node.call("minimum", first, second)
    one = b.constant(1, b.dtype(most))
    ratio = node.call("where", node.call("equal", most, least), one, node.call("divide", least, most))
    return node.call("multiply", most, node.call("sqrt", node.call("add", one, node.call("multiply", ratio, ratio))))


@complex_operator("view_as_real")
def view_as_real(node: FxNode, x: ComplexTensor) -> SSAValue:
    """Stacks the parts: (…) -> (…,2)."""
    return node.call("stack", node.builder.tuple([x.real, x.imaginary]), axis=node.rank(x.real))


@complex_operator("view_as_complex")
def view_as_complex(node: FxNode, x: SSAValue) -> ComplexTensor:
    """Takes the parts: (…,2) -> (…)."""
    axis = node.rank(x) - 1
    found = (node.call("strided_slice", x, begin=[k], end=[k + 1], strides=[1], axes=[axis]) for k in range(2))
    return ComplexTensor(*(node.call("squeeze", each, axis=[axis]) for each in found))


@complex_operator("complex")
def of_parts(_node: FxNode, real: SSAValue, imaginary: SSAValue) -> ComplexTensor:
    """Combines parts of one dtype and shape."""
    return ComplexTensor(real, imaginary)


@complex_operator("polar")
def polar(node: FxNode, size: SSAValue, angle: SSAValue) -> ComplexTensor:
    """Returns numbers by their magnitudes and angles."""
    return ComplexTensor(*(node.call("multiply", size, node.call(wave, angle)) for wave in ("cos", "sin")))


@complex_operator("_to_copy", "to", "convert_element_type")
def to_copy(node: FxNode, x: Any, *_: Any) -> ComplexTensor | SSAValue:
    """Converts to another dtype: of a complex number to a real one the real part counts."""
    if not node.is_complex():
        return node.cast(x.real, node.dtype())
    return parts(node, x)


@complex_operator("sym_size", "sym_numel")
def size(node: FxNode, x: ComplexTensor, *rest: Any) -> Any:
    """Returns a size, which is that of the parts."""
    return node.importer.convert_real(node, {str(k): each for k, each in enumerate((x.real, *rest))})


@complex_operator("real")
def real(_node: FxNode, x: ComplexTensor) -> SSAValue:
    """Returns the real part."""
    return x.real


@complex_operator("imag")
def imaginary(_node: FxNode, x: ComplexTensor) -> SSAValue:
    """Returns the imaginary part."""
    return x.imaginary


@complex_operator("_conj", "conj", "_conj_physical", "conj_physical")
def conjugate(node: FxNode, x: ComplexTensor) -> ComplexTensor:
    """Negates the imaginary part."""
    return ComplexTensor(x.real, node.call("negative", x.imaginary))


@complex_operator("abs")
def absolute(node: FxNode, x: ComplexTensor) -> SSAValue:
    """Returns magnitudes."""
    return magnitude(node, x)


@complex_operator("angle")
def angle_of(node: FxNode, x: ComplexTensor) -> SSAValue:
    """Returns angles."""
    return angle(node.builder, x.imaginary, x.real)


@complex_operator("sgn")
def sign(node: FxNode, x: ComplexTensor) -> ComplexTensor:
    """Divides numbers by their magnitudes; 0 stays 0."""
    size = magnitude(node, x)
    zero, one = (node.builder.constant(k, node.dtype()) for k in range(2))
    size = node.call("where", node.call("equal", size, zero), one, size)
    return ComplexTensor(*(node.call("divide", each, size) for each in (x.real, x.imaginary)))


@complex_operator("add", "sub")
def add(node: FxNode, x: Any, y: Any, alpha: Any = 1) -> ComplexTensor:
    """Adds or subtracts numbers, the second `alpha` times."""
    first, second = parts(node, x), parts(node, y)
    if alpha != 1:
        second = times(node, second, parts(node, alpha))
    name = "add" if node.name == "add" else "subtract"
    return ComplexTensor(node.call(name, first.real, second.real), node.call(name, first.imaginary, second.imaginary))


@complex_operator("div")
def div(node: FxNode, x: Any, y: Any) -> ComplexTensor:
    """Divides: x / y is x * conj(y) / |y|², with y divided by its larger part before."""
    first = parts(node, x)
    if not isinstance(y, ComplexTensor | complex):
        divisor = node.tensor(y, node.dtype())
        return ComplexTensor(*(node.call("divide", each, divisor) for each in (first.real, first.imaginary)))
    second = parts(node, y)
    most = node.call("maximum", node.call("abs", second.real), node.call("abs", second.imaginary))
    c, d = (node.call("divide", each, most) for each in (second.real, second.imaginary))
    square = node.call("add", node.call("multiply", c, c), node.call("multiply", d, d))
    found = times(node, first, ComplexTensor(c, node.call("negative", d)))
    divisor = node.call("multiply", square, most)
    return ComplexTensor(*(node.call("divide", each, divisor) for each in (found.real, found.imaginary)))


@complex_operator("reciprocal")
def reciprocal(node: FxNode, x: ComplexTensor) -> ComplexTensor:
    """Divides 1 by numbers."""
    return div(node, 1, x)


@complex_operator("exp")
def exp(node: FxNode, x: ComplexTensor) -> ComplexTensor:
    """Returns e to the power of numbers."""
    return polar(node, node.call("exp", x.real), x.imaginary)


@complex_operator("log")
def log(node: FxNode, x: ComplexTensor) -> ComplexTensor:
    """Returns natural logarithms."""
    return ComplexTensor(node.call("log", magnitude(node, x)), angle(node.builder, x.imaginary, x.real))


@complex_operator("pow")
def power(node: FxNode, x: Any, exponent: Any) -> ComplexTensor:
    """Returns small whole powers. Raises Refused for others."""
    if not isinstance(x, ComplexTensor) or exponent not in (1, 2, 3, 4):
        raise node.refuse("of complex tensors only the powers 1, 2, 3 and 4 can be computed here")
    found = x
    for _ in range(int(exponent) - 1):
        found = times(node, found, x)
    return found


@complex_operator("where")
def where(node: FxNode, condition: SSAValue, x: Any, y: Any) -> ComplexTensor:
    """Chooses by element."""
    first, second = parts(node, x), parts(node, y)
    return ComplexTensor(
        node.call("where", condition, first.real, second.real),
        node.call("where", condition, first.imaginary, second.imaginary),
    )


@complex_operator("constant_pad_nd")
def pad(node: FxNode, x: ComplexTensor, widths: Any, value: Any = 0) -> Any:
    """Pads with a real number: the imaginary parts with 0."""
    number = complex(value)
    return ComplexTensor(
        node.importer.convert_real(node, {"self": x.real, "pad": widths, "value": number.real}),
        node.importer.convert_real(node, {"self": x.imaginary, "pad": widths, "value": number.imag}),
    )
