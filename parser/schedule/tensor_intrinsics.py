"""Reads tensor intrinsics of two functions: `TensorIntrin.register("dot", dot_desc, dot_impl)`."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import DictionaryAttr, StringAttr

from ...dialects import tir
from ...support.diagnostics import error_at
from ...support.text import did_you_mean
from ..items import Item, ParseContext
from ..source import Source

_CALL = re.compile(
    r"\s*[\w.]+\s*\(\s*(?P<quote>[\"'])(?P<name>[\w.-]+)(?P=quote)\s*,\s*(?P<desc>\w+)\s*,\s*(?P<impl>\w+)\s*"
    r"(?:,\s*override\s*=\s*(?:True|False)\s*)?,?\s*\)\s*"
)


def declare_intrinsic(item: Item, context: ParseContext) -> None:
    """Marks the two functions. Raises MirError for another form, and for functions that the file has not.

    def dot_desc(…): …    →    def dot_desc(…): T.func_attr({"tensor_intrin": "dot", "role": "desc"}) …
    """
    source = Source(item)
    call = _CALL.fullmatch(item.text)
    if call is None:
        raise error_at(
            source.location(len(item.text) - len(item.text.lstrip())),
            "this declares no tensor intrinsic",
            'it is written as in Python: TensorIntrin.register("dot", dot_desc, dot_impl)',
        )
    for role in ("desc", "impl"):
        name, place = call[role], source.location(call.start(role))
        function = context.symbols.get(name)
        if function is None and name in context.failed:
            continue
        if not isinstance(function, tir.PrimFuncOp):
            functions = [key for key, op in context.symbols.items() if isinstance(op, tir.PrimFuncOp)]
            raise error_at(
                place,
                f"there is no function '{name}'{did_you_mean(name, functions)}",
                "an intrinsic is two functions with @T.prim_func: what it computes, and what takes its place",
            )
        if "tensor_intrin" in function.attrs.data:
            raise error_at(
                place, f"'{name}' is half of a tensor intrinsic already", "write a copy of it under another name"
            )
        marks = {"tensor_intrin": StringAttr(call["name"]), "role": StringAttr(role)}
        function.properties["attrs"] = DictionaryAttr({**function.attrs.data, **marks})
