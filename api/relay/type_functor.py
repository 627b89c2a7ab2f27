"""Walks over types by a class of the user: `TypeVisitor` visits, `TypeMutator` rebuilds."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

from ...support.diagnostics import Diagnostic, MirTypeError
from ...support.public_names import public_names
from ..ir.node import Node
from . import ty
from .adt import Constructor, TypeData

R = TypeVar("R")


class TypeFunctor(Generic[R]):
    """Calls the method of a type's kind."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def visit(self, typ: Node) -> R:
        """The result for a type, or for a data type's declaration. Raises MirTypeError for anything else."""
        method = _METHODS.get(type(typ))
        if method is None:
            raise MirTypeError(Diagnostic(f"a type is wanted, not {typ!r}"))
        found: R = getattr(self, method)(typ)
        return found

    def visit_type_var(self, tv: ty.TypeVar) -> R:
        """A type parameter."""
        raise self._missing("visit_type_var")

    def visit_incomplete_type(self, it: ty.IncompleteType) -> R:
        """A type that is to be found."""
        raise self._missing("visit_incomplete_type")

    def visit_tensor_type(self, tt: ty.TensorType) -> R:
        """A tensor's type."""
        raise self._missing("visit_tensor_type")

    def visit_func_type(self, ft: ty.FuncType) -> R:
        """A function's type."""
        raise self._missing("visit_func_type")

    def visit_tuple_type(self, tt: ty.TupleType) -> R:
        """A tuple's type."""
        raise self._missing("visit_tuple_type")

    def visit_ref_type(self, rt: ty.RefType) -> R:
        """A cell's type."""
        raise self._missing("visit_ref_type")

    def visit_global_type_var(self, gtv: ty.GlobalTypeVar) -> R:
        """The name of a data type."""
        raise self._missing("visit_global_type_var")

    def visit_type_call(self, tc: ty.TypeCall) -> R:
        """A data type of arguments."""
        raise self._missing("visit_type_call")

    def visit_type_data(self, td: TypeData) -> R:
        """A data type's declaration."""
        raise self._missing("visit_type_data")

    def _missing(self, method: str) -> Exception:
        return TypeError(f"{type(self).__name__} says nothing of such types: it needs a method {method}")


_METHODS: dict[type[Node], str] = {
    ty.TypeVar: "visit_type_var",
    ty.IncompleteType: "visit_incomplete_type",
    ty.TensorType: "visit_tensor_type",
    ty.FuncType: "visit_func_type",
    ty.TupleType: "visit_tuple_type",
    ty.RefType: "visit_ref_type",
    ty.GlobalTypeVar: "visit_global_type_var",
    ty.TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}


class TypeVisitor(TypeFunctor[None]):
    """Visits every part of a type; override the methods of the kinds that matter."""

    def visit_type_var(self, tv: ty.TypeVar) -> None:
        pass

    def visit_incomplete_type(self, it: ty.IncompleteType) -> None:
        pass

    def visit_tensor_type(self, tt: ty.TensorType) -> None:
        pass

    def visit_func_type(self, ft: ty.FuncType) -> None:
        for part in (*ft.arg_types, ft.ret_type, *ft.type_params):
            self.visit(part)

    def visit_tuple_type(self, tt: ty.TupleType) -> None:
        for field in tt.fields:
            self.visit(field)

    def visit_ref_type(self, rt: ty.RefType) -> None:
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: ty.GlobalTypeVar) -> None:
        pass

    def visit_type_call(self, tc: ty.TypeCall) -> None:
        self.visit(tc.func)
        for arg in tc.args:
            self.visit(arg)

    def visit_type_data(self, td: TypeData) -> None:
        self.visit(td.header)
        for part in (*td.type_vars, *(field for constructor in td.constructors for field in constructor.inputs)):
            self.visit(part)


class TypeMutator(TypeFunctor[Any]):
    """Rebuilds a type from the methods' results."""

    def visit_type_var(self, tv: ty.TypeVar) -> Any:
        return tv

    def visit_incomplete_type(self, it: ty.IncompleteType) -> Any:
        return it

    def visit_tensor_type(self, tt: ty.TensorType) -> Any:
        return tt

    def visit_func_type(self, ft: ty.FuncType) -> Any:
        inputs = [cast("ty.Type", self.visit(arg)) for arg in ft.arg_types]
        params = [cast("ty.TypeVar", self.visit(param)) for param in ft.type_params]
        return ty.FuncType(inputs, self.visit(ft.ret_type), params, ft.type_constraints)

    def visit_tuple_type(self, tt: ty.TupleType) -> Any:
        return ty.TupleType([self.visit(field) for field in tt.fields])

    def visit_ref_type(self, rt: ty.RefType) -> Any:
        return ty.RefType(self.visit(rt.value))

    def visit_global_type_var(self, gtv: ty.GlobalTypeVar) -> Any:
        return gtv

    def visit_type_call(self, tc: ty.TypeCall) -> Any:
        return ty.TypeCall(self.visit(tc.func), [self.visit(arg) for arg in tc.args])

    def visit_type_data(self, td: TypeData) -> Any:
        header = self.visit(td.header)
        variables = [self.visit(variable) for variable in td.type_vars]
        constructors = [
            Constructor(each.name_hint, [self.visit(field) for field in each.inputs], header)
            for each in td.constructors
        ]
        return TypeData(header, variables, constructors)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]


__dir__ = public_names(__name__)
