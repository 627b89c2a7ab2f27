"""Functions of a module, compiled or interpreted, called with TVM's values.

A function whose parameters and result hold nothing but tensors is compiled; one that takes or returns functions, references or data types
is run by the interpreter, which alone has these as values of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dialects.relay import ir
from ...dialects.relay.interpreter import Interpreter, Value
from ...lowering.driver.loading.executable import Executable
from ...lowering.driver.program import tree_of
from ...lowering.driver.reachable import apply_ready_schedules
from ...passes.relay.functional.infer_type import ensure_types
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirTypeError, MirValueError
from ...support.text import counted
from ..compile import compile
from ..ir.module import IRModule
from ..ir.transform import PassContext
from ..target.target import NativeOptions
from .adt import Constructor
from .expr import Constant, Function, RelayExpr, bind
from .graph import free_vars
from .values import Form, argument, result

INTERPRETED = NativeOptions("interp", None, "", None)
"""Everything is run by the interpreter."""


class RelayProgram:
    """A module whose functions can be called. Each is compiled when it is first called."""

    def __init__(self, module: IRModule, options: NativeOptions, opt_level: int | None = None):
        """Takes the level of optimization of the pass context, unless one is given."""
        self.module = module
        self.options = options
        self.opt_level = min(PassContext.current().opt_level, 3) if opt_level is None else opt_level
        self._entries: dict[str, Callable[[Sequence[Value]], Value]] = {}
        self._executables: dict[str, Executable] = {}

    def call(self, name: str, args: Sequence[Any], form: Form = "debug") -> Any:
        """Returns the value of a call with values of Python."""
        return result(self.value(name, [self.argument(arg) for arg in args]), self._named, form)

    def argument(self, value: Any) -> Value:
        """Returns a value of Python as the interpreter has it. Raises MirTypeError for what is not a value."""
        return argument(value, self._evaluate, self._tagged)

    def value(self, name: str, args: Sequence[Value]) -> Value:
        """Returns the value of a call. Raises MirError where the arguments do not fit."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = in_deep_stack(lambda: self._entry(name))
        return in_deep_stack(lambda: entry(args))

    def executable(self, name: str) -> Executable | None:
        """Returns the compiled function; None for one that the interpreter runs."""
        if name not in self._entries:
            self._entries[name] = in_deep_stack(lambda: self._entry(name))
        return self._executables.get(name)

    def _entry(self, name: str) -> Callable[[Sequence[Value]], Value]:
        self.module.relay_function(name)
        op = self.module.copy_op()
        ensure_types(op)
        function = next(each for each in op.ops if isinstance(each, ir.FuncOp) and each.sym_name.data == name)
        types = [*(param.type for param in function.params), function.ret_type]
        options = self.options
        if (
            options.target == "cpu"
            and not function.type_params.data
            and all(tree_of(each) is not None for each in types)
        ):
            compiled = compile(
                op,
                entry=name,
                threads=options.threads,
                opt_level=self.opt_level,
                cpu=options.cpu,
                caches=options.caches,
            )
            self._executables[name] = compiled
            return lambda args: compiled(*args)
        apply_ready_schedules(op)
        interpreter = Interpreter(op)
        return lambda args: interpreter.call(name, args)

    def _evaluate(self, expr: RelayExpr) -> Value:
        """Returns the value of an expression that is an argument."""
        name, module = with_function(self.module, expression_function(expr))
        return RelayProgram(module, INTERPRETED, self.opt_level).value(name, [])

    def _named(self, type_name: str, name: str) -> Constructor:
        return next(
            each for each in self._constructors() if (each.belong_to.name_hint, each.name_hint) == (type_name, name)
        )

    def _tagged(self, tag: int) -> Constructor:
        for each in self._constructors():
            if each.tag == tag:
                return each
        raise MirValueError(Diagnostic(f"no constructor of the module has the tag {tag}"))

    def _constructors(self) -> list[Constructor]:
        return [each for data in self.module.type_definitions.values() for each in data.constructors]


def expression_function(expr: RelayExpr) -> Function:
    """Returns a function without parameters that computes an expression.

    Raises MirValueError for free variables.
    """
    if free := free_vars(expr):
        names = ", ".join(f"%{variable.name_hint}" for variable in free)
        raise MirValueError(
            Diagnostic(f"the expression has the free variables {names}").with_note(
                "give their values, evaluate(expr, binds={x: …}), or make it a function of them"
            )
        )
    return Function([], expr)


def with_function(module: IRModule, function: Function) -> tuple[str, IRModule]:
    """Returns a copy of the module that holds one more function, and that function's name."""
    work = IRModule.of_op(module.copy_op(), module)
    known = {variable.name_hint for variable in module.get_global_vars()}
    name = next(name for number in range(len(known) + 1) if (name := f"evaluated_{number}") not in known)
    work[name] = function.without_attr("global_symbol")
    return name, work


def in_order(function: Function, args: Sequence[Any], named: Mapping[str, Any], name: str) -> list[Any]:
    """Returns the arguments of a call in the order of the parameters.

    Raises MirTypeError for a name that is unknown, given twice or missing, and for another number of arguments.
    """
    names = [param.name_hint for param in function.params]
    problem = None
    if unknown := [each for each in named if each not in names]:
        problem = f"has no parameter '{unknown[0]}'; it has {', '.join(names) or 'none'}"
    elif twice := [each for each in named if each in names[: len(args)]]:
        problem = f"is given '{twice[0]}' twice, in its place and by its name"
    elif missing := [each for each in names[len(args) :] if each not in named]:
        problem = f"needs a value for {', '.join(missing)}"
    elif len(args) > len(names):
        problem = f"takes {counted(len(names), 'argument')} ({', '.join(names)}), not {len(args)}"
    if problem is not None:
        raise MirTypeError(Diagnostic(f"{name} {problem}"))
    return [*args, *(named[each] for each in names[len(args) :])]


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """Returns a function whose parameters of these names are constants; other names are ignored.

    Raises MirValueError where two parameters have a name that is given.
    """
    values: dict[Any, RelayExpr] = {}
    seen: set[str] = set()
    for param in func.params:
        if param.name_hint in params:
            if param.name_hint in seen:
                raise MirValueError(Diagnostic(f"several parameters are called {param.name_hint}"))
            seen.add(param.name_hint)
            values[param] = Constant(params[param.name_hint])
    return bind(func, values) if values else func  # type: ignore[return-value]


__all__ = ["INTERPRETED", "RelayProgram", "bind_params_by_name", "expression_function", "in_order", "with_function"]
