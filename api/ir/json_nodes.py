"""`save_json` and `load_json`: nodes and modules as JSON of mirstack's own.

    {"mirstack": 1, "root": {"node": 2}, "nodes": [{"kind": "relay.Var", "fields": {"name_hint": "x", …}}, …]}

A node's fields are its slots; a node that is used twice is there once. Lists are `{"list": […]}`, tuples
`{"tuple": […]}`, mappings `{"map": [[key, value], …]}`, tensors their bytes. Places in sources and types that inference found are left out.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import ModuleType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import UNKNOWN_LOC

from ...dialects.array import ArrayBox, ArrayValueAttr, numpy_dtype
from ...dialects.relay.operator import Attrs as RelayAttrs
from ...support.arguments import check
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirValueError
from ..nd import NDArray, array
from .env_func import EnvFunc
from .module import IRModule
from .op import Op
from .prim_func import PrimFunc

VERSION = 1

_LEFT_OUT = {"location": UNKNOWN_LOC, "span": None, "known_type": None, "symbolic_type": None, "operator": None}
"""Slots that are not saved, with what they are in a node that is loaded."""


@cache
def node_classes() -> dict[str, type[Any]]:
    """The classes of nodes by name, `relay.Call`."""
    from ...dialects.tir.node import buffer, expr, operations, stmt
    from ..relay import adt, ty
    from ..relay import expr as relay_expr
    from . import affine_type, attrs, global_info, type_relation

    named: dict[str, Sequence[ModuleType]] = {
        "tir": (expr, operations, buffer, stmt),
        "relay": (relay_expr, ty, adt),
        "ir": (attrs, global_info, affine_type, type_relation),
    }
    found: dict[str, type[Any]] = {}
    for prefix, modules in named.items():
        for module in modules:
            for name, value in vars(module).items():
                if isinstance(value, type) and value.__module__ == module.__name__ and _slots(value):
                    found[f"{prefix}.{name}"] = value
    found["relay.Attrs"] = RelayAttrs
    return found


@cache
def _names() -> dict[type[Any], str]:
    return {value: name for name, value in node_classes().items()}


@cache
def _slots(kind: type[Any]) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    slots = (slot for base in kind.__mro__ for slot in base.__dict__.get("__slots__", ()))
    return tuple(slot for slot in slots if slot != "__weakref__")


def save_json(node: object) -> str:
    """Returns a node, a module, or a list or mapping of nodes as JSON, which `load_json` reads.

    Raises TypeError for a value that is not a part of a program.
    """
    writer = _Writer()
    root = in_deep_stack(lambda: writer.value(node))
    return json.dumps({"mirstack": VERSION, "root": root, "nodes": writer.nodes}, indent=1)


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        # Objects whose id is a key must outlive it.
        self._kept: list[object] = []

    def value(self, value: Any) -> Any:
        match value:
            case None | bool():
                return value
            case int():
                return int(value)
            case float():
                return float(value)
            case str():
                return str(value)
            case list():
                return {"list": [self.value(item) for item in cast("list[Any]", value)]}
            case tuple():
                return {"tuple": [self.value(item) for item in cast("tuple[Any, ...]", value)]}
            case np.generic() | np.ndarray() | NDArray():
                return _array(value)
            case dict():
                pairs = cast("dict[Any, Any]", value).items()
                return {"map": [[self.value(key), self.value(item)] for key, item in pairs]}
            case ArrayValueAttr():
                return {"constant": _array(value.data.array)["array"]}
            case _:
                return {"node": self._node(value)}

    def _node(self, node: Any) -> int:
        number = self._numbers.get(id(node))
        if number is None:
            number = self._numbers[id(node)] = len(self.nodes)
            self.nodes.append({})
            self._kept.append(node)
            self.nodes[number] = self._written(node)
        return number

    def _written(self, node: Any) -> dict[str, Any]:
        match node:
            case Op() | EnvFunc():
                return {"kind": type(node).__name__, "name": node.name}
            case IRModule():
                return {
                    "kind": "IRModule",
                    "functions": {var.name_hint: self.value(function) for var, function in node.functions.items()},
                    "types": [self.value(data) for data in node.type_definitions.values()],
                    "attrs": self.value(dict(node.attrs or {})),
                    "infos": self.value(dict(node.global_infos)),
                }
            case PrimFunc():
                parts = (list(node.params), node.body, node.ret_type, node.buffer_map, dict(node.attrs))
                return {"kind": "PrimFunc", "parts": [self.value(part) for part in parts]}
            case _:
                pass
        kind = cast("type[Any]", type(node))
        name = _names().get(kind)
        if name is None:
            raise TypeError(f"{type(node).__name__} is not a part of a program that is saved")
        slots = [slot for slot in _slots(kind) if slot not in _LEFT_OUT and hasattr(node, slot)]
        return {"kind": name, "fields": {slot: self.value(getattr(node, slot)) for slot in slots}}


def _array(value: Any) -> dict[str, Any]:
    data = value.storage if isinstance(value, NDArray) else np.asarray(value)
    text = base64.b64encode(np.ascontiguousarray(data).tobytes()).decode()
    return {"array": {"dtype": data.dtype.name, "shape": list(data.shape), "data": text}}


def load_json(json_str: str) -> Any:
    """Returns what `save_json` wrote. Raises MirValueError for a text that it did not write."""
    check(json_str, "json_str", "a text that save_json wrote", str)
    try:
        whole = json.loads(json_str)
        if whole["mirstack"] != VERSION:
            raise _wrong(f"its version is {whole['mirstack']!r}, not {VERSION}")
        return _Reader(whole["nodes"]).value(whole["root"])
    except (ValueError, LookupError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise error if isinstance(error, MirValueError) else _wrong(str(error)) from None


def _wrong(why: str) -> MirValueError:
    return MirValueError(
        Diagnostic(f"this is not JSON of a program: {why}").with_note("load_json reads what save_json wrote")
    )


class _Reader:
    """Makes nodes, then sets their fields, which may be nodes of higher numbers.

    Functions and modules are made last, of whole nodes.
    """

    def __init__(self, written: Sequence[Mapping[str, Any]]):
        self.nodes: list[Any] = [self._begun(node) for node in written]
        for made, node in zip(self.nodes, written, strict=True):
            if "fields" in node:
                self._fill(made, node["kind"], node["fields"])
        for number in reversed(range(len(written))):
            if self.nodes[number] is None:
                self.nodes[number] = self._whole(written[number])

    def value(self, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        ((kind, inner),) = cast("dict[str, Any]", written).items()
        match kind:
            case "node":
                return self.nodes[inner]
            case "list":
                return [self.value(item) for item in inner]
            case "tuple":
                return tuple(self.value(item) for item in inner)
            case "map":
                return {self.value(key): self.value(item) for key, item in inner}
            case "array":
                return array(_numbers(inner))
            case "constant":
                return ArrayValueAttr(ArrayBox(_numbers(inner)))
            case _:
                raise _wrong(f"'{kind}' is not a kind of value")

    def _begun(self, node: Mapping[str, Any]) -> Any:
        """Returns a node without its fields; None for what is made of whole nodes."""
        match node["kind"]:
            case "Op":
                return Op.get(node["name"])
            case "EnvFunc":
                return EnvFunc.get(node["name"])
            case "IRModule" | "PrimFunc":
                return None
            case name:
                kind = node_classes().get(name)
                if kind is None:
                    raise _wrong(f"there is no kind of node '{name}'")
                return object.__new__(kind)

    def _whole(self, node: Mapping[str, Any]) -> Any:
        match node["kind"]:
            case "IRModule":
                types = [self.value(data) for data in node["types"]]
                functions = {name: self.value(function) for name, function in node["functions"].items()}
                named = {data.header: data for data in types}
                return IRModule(functions, named, self.value(node["attrs"]), self.value(node["infos"]))
            case _:
                return PrimFunc(*(self.value(part) for part in node["parts"]))

    def _fill(self, made: Any, name: str, fields: Mapping[str, Any]) -> None:
        slots = _slots(node_classes()[name])
        for slot in slots:
            if slot in _LEFT_OUT:
                object.__setattr__(made, slot, _LEFT_OUT[slot])
        for slot, written in fields.items():
            if slot not in slots:
                raise _wrong(f"{name} has no field '{slot}'")
            object.__setattr__(made, slot, self.value(written))


def _numbers(written: Mapping[str, Any]) -> Any:
    data = np.frombuffer(base64.b64decode(written["data"], validate=True), numpy_dtype(written["dtype"]))
    return data.reshape(written["shape"]).copy()
