"""Constants and attribute values as Relay text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from ...dialects.array import ArrayBox, ArrayValueAttr
from ...dialects.relay import ir
from ...dialects.relay.operator import AttrValue, from_attribute
from ...support.text import quoted
from .constants import CONSTANTS_FILE, ConstantError, Constants
from .lexer import tokenize
from .metadata import NODE, Metadata
from .ndarray import encode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

_SUFFIXES = {
    "int32": "", "bool": "", "float32": "f", "bfloat16": "bf16",
    **{f"float{b}": f"f{b}" for b in (16, 64)}, **{f"int{b}": f"i{b}" for b in (8, 16, 64)},
    **{f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)},
}  # fmt: skip
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


class ConstantTexts:
    """Chooses the text of each constant of a module.

    It is a literal, a reference to a side file, or one to the metadata section.
    """

    def __init__(self, module: ModuleOp, types: bool):
        self._types = types
        self._stored: dict[int, int] = {}
        self._arrays: list[ArrayValueAttr] = []
        self._literals: dict[ArrayValueAttr, str | None] = {}
        self._origins: Counter[str] = Counter()
        self._reader = Constants(Metadata(), None)
        attribute = module.attributes.get(CONSTANTS_FILE)
        self.side_file: str | None = attribute.data if isinstance(attribute, StringAttr) else None

    def count(self, op: ir.ConstantOp) -> None:
        """Notes which side file a constant comes from. To be called for all before any is met."""
        origin = op.value.data.origin
        if origin is not None:
            self._origins[origin[0]] += 1

    def choose_side_file(self) -> None:
        """Settles which side file the text refers to: the module's, or that of most constants."""
        if self.side_file is None and self._origins:
            self.side_file = self._origins.most_common(1)[0][0]

    def meet(self, op: ir.ConstantOp) -> None:
        """Gives the constant its place in the metadata section, if that is where it goes."""
        value = op.value
        if self._is_in_side_file(value) or self._literal(value) is not None:
            return
        key = id(value.data)
        if key not in self._stored:
            self._stored[key] = len(self._arrays)
            self._arrays.append(value)

    def text(self, op: ir.ConstantOp) -> str:
        """The constant as an expression."""
        value = op.value
        if self._is_in_side_file(value):
            return f"meta[relay.Constant][{self._key(value)}]"
        literal = self._literal(value)
        return literal if literal is not None else f"meta[relay.Constant][{self._stored[id(value.data)]}]"

    def _is_in_side_file(self, value: ArrayValueAttr) -> bool:
        origin = value.data.origin
        return origin is not None and origin[0] == self.side_file

    def _key(self, value: ArrayValueAttr) -> str:
        _, name = value.data.origin or ("", "")
        if _PLAIN_KEY.fullmatch(name):
            return name
        is_number = name.isdecimal() and name.isascii() and len(name) < 10 and str(int(name)) == name
        # A number that the metadata section uses would mean its array.
        return name if is_number and int(name) >= len(self._arrays) else quoted(name)

    def _literal(self, value: ArrayValueAttr) -> str | None:
        if value.data.shape:
            return None
        if value not in self._literals:
            self._literals[value] = self._make_literal(value.data)
        return self._literals[value]

    def _make_literal(self, box: ArrayBox) -> str | None:
        """The scalar as a literal that reads back to the same bits, or None when no literal does."""
        dtype = box.dtype
        if dtype not in _SUFFIXES:
            return None
        if not dtype.startswith(("float", "bfloat")):
            return str(box.item()) + _SUFFIXES[dtype]
        value = float(box.item())
        for digits in range(6, 18):
            text = f"{value:.{digits}g}" + _SUFFIXES[dtype]
            if tokenize(f"({text}").kinds[1:] != ["NUMBER"]:
                return None
            try:
                if self._reader.literal(text)[0].data.beginning() == box.beginning():
                    return text
            except ConstantError:
                return None
        return None

    @property
    def has_metadata(self) -> bool:
        """Returns whether some constant needs the metadata section."""
        return bool(self._arrays)

    def metadata(self) -> str:
        """The metadata section, or nothing when no constant needs it."""
        if not self._arrays:
            return ""
        return metadata_text([value.array for value in self._arrays], types=self._types)


def metadata_text(arrays: Sequence[NDArray[np.generic]], *, types: bool) -> str:
    """Prints a `#[metadata]` section of constants as TVM's JSON writer does, with their types if `types`."""
    nodes = [
        '"type_key": ""',
        '"type_key": "Map", \n      "keys": [\n        "relay.Constant"\n      ], \n      "data": [2]',
        "",
    ]
    places: list[int] = []
    device = 4  # All constants share one node of no device, which follows the first constant.
    for number, array in enumerate(arrays):
        places.append(len(nodes))
        type_place = len(nodes) + (1 if number else 3) if types else 0
        fields = {"_checked_type_": type_place, "data": number, "span": 0, "virtual_device_": device}
        nodes.append(_node("relay.Constant", fields))
        if number == 0:
            none = {"device_type_int": -1, "memory_scope": device + 1, "target": 0, "virtual_device_id": -1}
            nodes += [_node("VirtualDevice", none), '"type_key": "runtime.String"']
        if types:
            nodes += _type_nodes(array, type_place)
    nodes[2] = _list_node(places)
    listed = ", \n".join(f"    {{\n      {node}\n    }}" for node in nodes)
    blobs = ", \n".join(f'    "{encode(array)}"' for array in arrays)
    return (
        f'#[metadata]\n{{\n  "root": 1, \n  "nodes": [\n{listed}\n  ], \n  "b64ndarrays": [\n{blobs}\n  ], \n'
        '  "attrs": {"tvm_version": "0.16.0"}\n}'
    )


def _type_nodes(array: NDArray[np.generic], place: int) -> list[str]:
    """The nodes of an array's type, which begin at `place`."""
    dims = [_node("IntImm", {"dtype": "int32", "span": 0, "value": dim}) for dim in array.shape]
    type = _node("relay.TensorType", {"dtype": array.dtype.name, "shape": place + 1, "span": 0})
    return [type, _list_node(range(place + 2, place + 2 + len(dims))), *dims]


def _list_node(places: Sequence[int]) -> str:
    return f'"type_key": "Array", \n      "data": [{", ".join(map(str, places))}]' if places else '"type_key": "Array"'


def _node(kind: str, fields: Mapping[str, object]) -> str:
    inner = ", \n".join(f'        "{name}": "{value}"' for name, value in fields.items())
    return f'"type_key": "{kind}", \n      "attrs": {{\n{inner}\n      }}'


def attribute_text(attribute: Attribute) -> str:
    """An operator's or function's attribute as a value in the text."""
    value = from_attribute(attribute)
    # An attribute that is not a plain value is unchanged.
    return quoted(str(attribute)) if isinstance(value, Attribute) else value_text(value)


def value_text(value: AttrValue) -> str:
    """A Python value as a value in the text."""
    match value:
        case None | bool() | int():
            return str(value)
        case float():
            short = f"{value:g}"
            return (short if float(short) == value or value != value else repr(value)) + "f"
        case str():
            return quoted(value)
        case Mapping():
            return _mapping_text(value)
        case Sequence():
            return f"[{', '.join(value_text(v) for v in value)}]"


def _mapping_text(value: Mapping[str, AttrValue]) -> str:
    node = value.get(NODE)
    if isinstance(node, str) and _PLAIN_KEY.fullmatch(node):
        fields = [f"{name}={value_text(v)}" for name, v in value.items() if name != NODE]
        return f"{node}({', '.join(fields)})"
    return f"{{{', '.join(f'{quoted(name)}: {value_text(v)}' for name, v in value.items())}}}"
