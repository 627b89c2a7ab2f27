"""`tir.PrimFunc`: one function of loops and buffers, as a value of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, NoneType, StringAttr
from xdsl.ir import Attribute

from ...dialects.tir.attribute_values import attribute_of, value_of
from ...dialects.tir.node.buffer import Buffer
from ...dialects.tir.node.emit_expr import type_of
from ...dialects.tir.node.expr import Located, PointerType, PrimType, Var
from ...dialects.tir.node.ir_builder import BufferVar
from ...dialects.tir.node.stmt import Stmt
from ...dialects.tir.stmt import PrimFuncOp
from ...support.arguments import check
from ...support.deep_stack import in_deep_stack
from ...support.source_text import characters
from .script_options import ScriptOptions, with_options

if TYPE_CHECKING:
    from ..tir.restore import Restored

CLASS = "ir_module"
"""The attribute of a function that holds the class it is printed in."""

CLASS_NAME = "Module"
"""How the class of an IRModule's functions is called in text, as in TVM."""


class PrimFunc:
    """An immutable function of the `tir` dialect; `op` is the IR, which must not be changed either.

        PrimFunc([A, B], For(i, 0, 8, ForKind.SERIAL, BufferStore(B, A[i] + 1, [i])))

    `params`, `buffer_map` and `body` are its parts as nodes. An `IRModule` takes it under a name, `tir.Schedule` rewrites it,
    `mirstack.build` compiles it.
    """

    __slots__ = ("__weakref__", "_module", "_nodes", "op")

    def __init__(
        self,
        params: Sequence[Var | Buffer | BufferVar] | PrimFuncOp,
        body: Stmt | None = None,
        ret_type: object = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Mapping[str, Any] | None = None,
        span: Located | None = None,
    ):
        """Makes a function of its parameters and body, or copies an op into a module of its own.

        A parameter that is a buffer gets a variable for its address, which `buffer_map` maps to it; `ret_type` is None or the type of
        the value that it returns. A `global_symbol` among the attributes is its name. Raises MirError for nodes that are not a function.
        """
        self._nodes: Restored | None = None
        if isinstance(params, PrimFuncOp):
            self.op = in_deep_stack(params.clone)
        else:
            self.op = self._made(params, body, ret_type, buffer_map or {}, attrs or {})
        self.op.attributes.pop(CLASS, None)
        held = dict(self.op.attrs.data)
        if isinstance(symbol := held.pop("global_symbol", None), StringAttr):
            self.op.properties.update(sym_name=symbol, attrs=DictionaryAttr(held))
        self._module = ModuleOp([self.op])

    def _made(
        self,
        params: Sequence[Var | Buffer | BufferVar],
        body: Stmt | None,
        ret_type: object,
        buffer_map: Mapping[Var, Buffer],
        attrs: Mapping[str, Any],
    ) -> PrimFuncOp:
        """Returns the op of a function of nodes, which are kept."""
        from ..tir.export import attributes, export_function
        from ..tir.restore import Restored

        check(body, "body", "a statement", Stmt)
        assert body is not None
        variables: list[Var] = []
        buffers = dict(buffer_map)
        for param in params:
            if isinstance(param, BufferVar):
                param = param.asobject()
            if isinstance(param, Buffer):
                variables.append(Var(f"{param.name}_handle", "handle"))
                buffers[variables[-1]] = param
            else:
                check(param, "params", "variables and buffers", Var)
                variables.append(param)
        self._nodes = Restored(variables, buffers, body)
        returned = returned_type(ret_type)
        private = "global_symbol" not in attrs
        return export_function(
            "main", variables, buffers, body, ret_type=returned, attrs=attributes(attrs), private=private
        )

    @property
    def _parts(self) -> Restored:
        if self._nodes is None:
            from ..tir.restore import restore_function

            self._nodes = restore_function(self.op)
        return self._nodes

    @property
    def params(self) -> list[Var]:
        """Returns the parameters."""
        return self._parts.params

    @property
    def buffer_map(self) -> dict[Var, Buffer]:
        """Returns the buffers of the parameters that are addresses."""
        return self._parts.buffer_map

    @property
    def body(self) -> Stmt:
        """Returns the statement that it runs."""
        return self._parts.body

    @property
    def ret_type(self) -> PrimType | PointerType:
        """Returns the type of the value that it returns, `void` for none."""
        from ..tir.restore import type_of_variable

        held = self.op.ret_type
        kind = PrimType("void") if isinstance(held, NoneType) else type_of_variable(held)
        return PrimType(kind) if isinstance(kind, str) else kind

    def with_body(self, new_body: Stmt, span: Located | None = None) -> PrimFunc:
        """Returns the function with another body."""
        made = PrimFunc(self.params, new_body, self.ret_type, self.buffer_map, self.attrs)
        return made.renamed(self.name)

    def renamed(self, name: str) -> PrimFunc:
        """Returns the function with another symbol, of the same nodes."""
        if name == self.name:
            return self
        made = PrimFunc(self.op)
        made.op.properties["sym_name"] = StringAttr(name)
        made._nodes = self._nodes
        return made

    def specialize(self, param_map: Mapping[Var, object]) -> PrimFunc:
        """Binds parameters: an address to a buffer of known sizes, a scalar to a value.

        Raises MirError for a key that is not a parameter, and a buffer that does not match.
        """
        from ..tir.specialize import specialize

        parts = specialize(self.name, self._parts, param_map)
        return PrimFunc(parts.params, parts.body, self.ret_type, parts.buffer_map, self.attrs).renamed(self.name)

    @property
    def name(self) -> str:
        """The function's symbol."""
        return self.op.sym_name.data

    @property
    def attrs(self) -> dict[str, Any]:
        """The function's attributes; `global_symbol` is its name unless it is private."""
        named = {} if self.op.sym_visibility is not None else {"global_symbol": self.name}
        return {**named, **{key: value_of(attr) for key, attr in self.op.attrs.data.items()}}

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> PrimFunc:
        """Returns the function with one more attribute, or with those of a dictionary.

        `global_symbol` renames it. Raises TypeError for a value other than a number, a string, or a list or dictionary of such.
        """
        given: Mapping[str, Any] = (
            {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
        )
        result = PrimFunc(self.op)
        attrs: dict[str, Attribute] = dict(result.op.attrs.data)
        for key, value in given.items():
            if key == "global_symbol":
                result.op.properties["sym_name"] = StringAttr(characters(str(value)))
                result.op.properties.pop("sym_visibility", None)
            else:
                attrs[key] = attribute_of(value)
        result.op.properties["attrs"] = DictionaryAttr(attrs)
        return result

    def without_attr(self, attr_key: str) -> PrimFunc:
        """The function without an attribute."""
        result = PrimFunc(self.op)
        if attr_key == "global_symbol":
            result.op.properties["sym_visibility"] = StringAttr("private")
        attrs = {key: value for key, value in result.op.attrs.data.items() if key != attr_key}
        result.op.properties["attrs"] = DictionaryAttr(attrs)
        return result

    def in_module(self, name: str | None = None) -> PrimFuncOp:
        """A copy of the IR for a module, under `name`."""
        copy = in_deep_stack(self.op.clone)
        copy.attributes[CLASS] = StringAttr(CLASS_NAME)
        if name is not None:
            copy.properties["sym_name"] = StringAttr(name)
        return copy

    def script(self, **options: Unpack[ScriptOptions]) -> str:
        """Returns the function in TVMScript; `tir_prefix=`, `indent_spaces=` and their like are TVM's."""
        from ...parser import print_mir

        text = print_mir(self._module).rstrip("\n")
        return with_options(text, options) if options else text

    def show(
        self, style: str | None = None, black_format: bool | None = None, **options: Unpack[ScriptOptions]
    ) -> None:
        """Prints `script(…)`, without colors: `style` and `black_format` are TVM's."""
        print(self.script(**options))

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"PrimFunc({self.name})"


def returned_type(ret_type: object) -> Attribute | None:
    """Returns the type of what a function returns, None for nothing: of `PrimType("int32")` i32."""
    dtype = getattr(ret_type, "dtype", None)
    return type_of(dtype) if isinstance(dtype, str) and dtype != "void" else None


__all__ = ["PrimFunc"]
