"""The `#[metadata]` section: TVM's JSON graph of the nodes that the text refers to as `meta[KEY][i]`.

Nodes are read when they are referred to; every index into the graph is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ...dialects.relay.operator import AttrValue
from ...support.json_values import as_dict, as_list
from .ndarray import decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NODE = "node"
"""In an attribute that is a dictionary: the name of the node that it was, `VirtualDevice` in `VirtualDevice(device_type=1)`."""

# Fields of attribute nodes that refer to another node; all others hold their value as text.
_REFERENCES = frozenset(
    ["shape", "axes", "axis", "begin", "end", "strides", "padding", "newshape", "target", "memory_scope", "size"]
)


class Metadata:
    """The nodes of one metadata section.

    Every method raises ValueError if the section does not hold the node or field that is asked for.
    """

    def __init__(self, text: str = ""):
        """Reads the JSON; an empty text has no nodes.

        Raises ValueError (JSONDecodeError for text that is not JSON).
        """
        self.is_broken = False
        self._nodes: list[dict[str, object]] = []
        self._blobs: list[object] = []
        self._arrays: dict[int, NDArray[np.generic]] = {}
        self._lists: dict[str, list[object]] = {}
        self.given: Mapping[str, Sequence[object]] = {}
        """Arrays, and the fields of attribute nodes, that the caller names by kind and number; the section's own are first."""
        if text:
            self._read(text)

    def _read(self, text: str) -> None:
        try:
            data = as_dict(json.loads(text))
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        nodes = None if data is None else as_list(data.get("nodes"))
        found = [] if nodes is None else [as_dict(node) for node in nodes]
        if data is None or nodes is None or None in found:
            raise ValueError('a metadata section is a JSON object with a list "nodes"')
        self._nodes = [node for node in found if node is not None]
        self._blobs = as_list(data.get("b64ndarrays")) or []
        root = self._node(data.get("root", 0))
        keys, values = as_list(root.get("keys", [])), as_list(root.get("data", []))
        if keys is None or values is None or len(keys) != len(values):
            raise ValueError("the root node is not a map from kinds of nodes to lists of them")
        for key, value in zip(keys, values, strict=True):
            entries = as_list(self._node(value).get("data", []))
            if isinstance(key, str) and entries is not None:
                self._lists[key] = entries

    def _node(self, index: object) -> dict[str, object]:
        if isinstance(index, str) and index.isdecimal() and len(index) < 12:
            index = int(index)
        if not isinstance(index, int) or not 0 <= index < len(self._nodes):
            raise ValueError(f"there is no node {index!r} in the metadata section")
        return self._nodes[index]

    def _entry(self, key: str, index: int) -> dict[str, object]:
        """The node that `meta[key][index]` means."""
        entries = self._lists.get(key, [])
        if not self._nodes:
            raise ValueError("there is no #[metadata] section")
        if not entries:
            raise ValueError(f"the #[metadata] section has no '{key}'; it has {', '.join(self._lists) or 'nothing'}")
        if not 0 <= index < len(entries):
            raise ValueError(f"the #[metadata] section has {len(entries)} of '{key}', numbered from 0")
        return self._node(entries[index])

    def count(self, key: str) -> int:
        """Returns the number of nodes of `meta[key]`."""
        return len(self._lists.get(key, self.given.get(key, [])))

    def _is_given(self, key: str, index: int) -> bool:
        return key not in self._lists and 0 <= index < len(self.given.get(key, []))

    def constant(self, index: int) -> NDArray[np.generic]:
        """The array of `meta[relay.Constant][index]`."""
        if self._is_given("relay.Constant", index):
            return cast("NDArray[np.generic]", self.given["relay.Constant"][index])
        blob = self._field(self._entry("relay.Constant", index), "data")
        place = int(blob) if blob.isdecimal() and len(blob) < 12 else -1
        if not 0 <= place < len(self._blobs):
            raise ValueError(f"there is no array {blob!r} in the metadata section")
        found = self._arrays.get(place)
        if found is None:
            found = self._arrays[place] = decode(self._blobs[place])
        return found

    def dimension(self, key: str, index: int) -> int:
        """The dimension `meta[key][index]`: a number, or DYNAMIC_INDEX for an expression over symbolic sizes."""
        node = self._entry(key, index)
        return self._integer(node) if node.get("type_key") == "IntImm" else DYNAMIC_INDEX

    def attributes(self, key: str, index: int) -> dict[str, AttrValue]:
        """The fields of an attribute node, `meta[relay.attrs.InitOpAttrs][0]`, or of a VirtualDevice, by name."""
        if self._is_given(key, index):
            return dict(cast("Mapping[str, AttrValue]", self.given[key][index]))
        return self._fields(self._entry(key, index), 0)

    def _fields(self, node: dict[str, object], depth: int) -> dict[str, AttrValue]:
        fields = as_dict(node.get("attrs", {}))
        if fields is None or depth > 8:
            raise ValueError("a node's attributes are no map")
        result: dict[str, AttrValue] = {}
        for name, value in fields.items():
            if not isinstance(value, str):
                raise ValueError(f"the attribute '{name}' of a node is not a string")
            if name == "device_type_int":
                name = "device_type"
            if name not in _REFERENCES:
                result[name] = _plain(value)
            elif value != "0":
                result[name] = self._value(self._node(value), depth + 1)
        return {name: value for name, value in result.items() if value != ""}

    def _value(self, node: dict[str, object], depth: int) -> AttrValue:
        match node.get("type_key"):
            case "Array":
                entries = as_list(node.get("data", []))
                if entries is None or depth > 8:
                    raise ValueError("an Array node's data are no list")
                return [self._value(self._node(entry), depth + 1) for entry in entries]
            case "IntImm":
                return self._integer(node)
            case "FloatImm":
                return float(self._field(node, "value"))
            case "runtime.String":
                return str(node.get("repr_str", ""))
            case "Target":
                kind = self._node(self._field(node, "kind"))
                return self._value(self._node(self._field(kind, "name")), depth + 1)
            case other:
                raise ValueError(f"a node of kind {other!r} cannot stand in an attribute")

    def _integer(self, node: dict[str, object]) -> int:
        return _to_int(self._field(node, "value"))

    def _field(self, node: dict[str, object], name: str) -> str:
        fields = as_dict(node.get("attrs"))
        value = None if fields is None else fields.get(name)
        if not isinstance(value, str):
            raise ValueError(f"a node of kind {node.get('type_key')!r} has no field '{name}'")
        return value


def _to_int(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"{text[:20]}… is no 64-bit integer")
    return int(text)


def _plain(text: str) -> AttrValue:
    """An attribute's value from TVM's text of it."""
    for read in (_to_int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
