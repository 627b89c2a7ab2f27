"""Attributes as nodes: `DictAttrs`, and those of operators by TVM's names of their classes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any, cast

from ...dialects.relay.operator import AttrSpec, AttrValue, attr, get_operator
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.text import did_you_mean
from .node import ContentNode


class Attrs(ContentNode, Mapping[str, Any]):
    """Attributes by name: `attrs.axis`, `attrs["axis"]`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]):
        self.span = None
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        if name in ("_values", "span"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"there is no attribute '{name}'{did_you_mean(name, self._values)}") from None

    def __getitem__(self, item: str) -> Any:
        return self._values[item]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> KeysView[str]:
        """Returns the names."""
        return self._values.keys()

    def items(self) -> ItemsView[str, Any]:
        """Returns names and values."""
        return self._values.items()

    def get_int(self, key: str) -> int:
        """Returns an attribute as an integer."""
        return int(self._plain(key))

    def get_str(self, key: str) -> str:
        """Returns an attribute as a text."""
        return str(self._plain(key))

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """Returns an attribute as integers."""
        return tuple(int(getattr(item, "value", item)) for item in self[key])

    def _plain(self, key: str) -> Any:
        return getattr(self[key], "value", self[key])

    def content(self) -> Sequence[object]:
        return [list(item) for item in sorted(self._values.items())]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


class DictAttrs(Attrs):
    """Attributes of any names."""

    __slots__ = ()


class OperatorAttrs(Attrs):
    """Attributes of an operator, `type_key` being TVM's name of their class."""

    __slots__ = ("type_key",)

    def __init__(self, type_key: str, values: Mapping[str, Any]):
        super().__init__(values)
        self.type_key = type_key


# TVM's own example of attributes, which its library has for tests of this interface.
_EXAMPLE = "attrs.TestAttrs"
_EXAMPLE_SPECS = (
    attr("axis", 10, "int"),
    attr("name", kind="str"),
    attr("padding", (0, 0), "ints"),
    attr("func", None, "any"),
)
_EXAMPLE_RANGE = range(1, 11)

# Where TVM's name of a class does not follow from the operator's.
_CLASSES = {
    "AvgPool2D": "nn.avg_pool2d",
    "BatchNorm": "nn.batch_norm",
    "BiasAdd": "nn.bias_add",
    "Conv1D": "nn.conv1d",
    "Conv2D": "nn.conv2d",
    "Conv2DTranspose": "nn.conv2d_transpose",
    "Conv3D": "nn.conv3d",
    "Dense": "nn.dense",
    "BatchMatmul": "nn.batch_matmul",
    "MaxPool2D": "nn.max_pool2d",
    "GlobalPool2D": "nn.global_avg_pool2d",
    "Softmax": "nn.softmax",
    "Pad": "nn.pad",
    "LayerNorm": "nn.layer_norm",
    "Reduce": "sum",
}


def _specs(type_key: str) -> tuple[AttrSpec, ...] | None:
    """Returns the attributes of a class by TVM's name; None where there is none."""
    if type_key == _EXAMPLE:
        return _EXAMPLE_SPECS
    word = type_key.removeprefix("relay.attrs.").removesuffix("Attrs")
    if word == type_key or not type_key.endswith("Attrs"):
        return None
    snake = "".join(
        f"_{letter.lower()}" if letter.isupper() and at else letter.lower() for at, letter in enumerate(word)
    )
    operator = get_operator(_CLASSES.get(word, snake))
    return None if operator is None else operator.attributes


def make_attrs(type_key: str, given: Mapping[str, Any]) -> Attrs:
    """Returns attributes of a class by TVM's name: any for `DictAttrs`, an operator's for the others.

    Raises MirValueError for a name that there is not, AttributeError for attributes that do not fit.
    """
    from ..runtime.container import convert

    if type_key == "DictAttrs":
        return DictAttrs({name: convert(value) for name, value in given.items()})
    specs = _specs(type_key)
    if specs is None:
        note = "there are DictAttrs and relay.attrs.…Attrs of operators, relay.attrs.Conv2DAttrs"
        raise MirValueError(Diagnostic(f"there is no node '{type_key}' to make by name").with_note(note))
    known = {spec.name: spec for spec in specs}
    for name in given:
        if name not in known:
            raise AttributeError(f"{type_key} has no attribute '{name}'{did_you_mean(name, known)}")
    values: dict[str, Any] = {}
    for name, spec in known.items():
        if name not in given and spec.is_required:
            raise AttributeError(f"{type_key}: the attribute '{name}' must be given")
        value = spec.convert(cast("AttrValue", given[name])) if name in given else spec.otherwise
        if not spec.accepts(value) or (type_key == _EXAMPLE and name == "axis" and value not in _EXAMPLE_RANGE):
            raise AttributeError(f"{type_key}: the attribute '{name}' is {spec.values}, not {value!r}")
        values[name] = convert(value) if isinstance(value, tuple) else value
    return OperatorAttrs(type_key, values)
