"""Parses a decorated Python function or class: its source, and the variables around it."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ...dialects.tir.stmt import PrimFuncOp
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirError, Sources
from ...support.verify import verify
from ..ir.module import IRModule
from ..ir.prim_func import CLASS, CLASS_NAME, PrimFunc

if TYPE_CHECKING:
    from ...parser.tvmscript.macro import Macro

Read = TypeVar("Read")


class PrimFuncOrDecorator(PrimFunc):
    """Types `T.prim_func(…)` for checkers: a PrimFunc, or a decorator that returns one.

    Overloads would say which, but pyright reports parameters without types, as those of scripts are, for overloaded decorators.
    """

    def __call__(self, func: Callable[..., object], /) -> PrimFunc: ...


def prim_func(
    func: Callable[..., object] | None = None, *, private: bool = False, check_well_formed: bool = True
) -> PrimFuncOrDecorator:
    """Decorates `@T.prim_func`: returns the function's source as a `tir.PrimFunc`.

    Inside of a class `@I.ir_module` reads it. `private` repeats the decorator's argument. Raises MirError for an error in the
    text, located in the file.
    """
    frame = inspect.currentframe()

    def decorated(function: Callable[..., object]) -> PrimFunc | FunctionType:
        return _prim_func(function, frame)

    return cast("PrimFuncOrDecorator", decorated if func is None else decorated(func))


def _prim_func(function: Callable[..., object], frame: FrameType | None) -> PrimFunc | FunctionType:
    if not inspect.isfunction(function):
        raise TypeError(f"@T.prim_func decorates a function, not {function!r}")
    if _is_in_ir_module(function, frame):
        return function
    text, file, line = _source(function)
    return PrimFunc(_only_function(_read(text, file, line, _around(function, frame)), function.__name__))


def undecorated_prim_func(function: FunctionType) -> PrimFunc:
    """Returns the source of a function without a decorator as a `tir.PrimFunc`."""
    text, file, line = _source(function)
    indent = text[: len(text) - len(text.lstrip(" "))]
    text = f"{indent}@T.prim_func\n{text}"
    known = _around(function, None)
    return PrimFunc(_only_function(_read(text, file, line - 1, known), function.__name__))


@overload
def macro(func: Callable[..., object], /) -> Macro: ...
@overload
def macro(*, hygienic: bool = True) -> Callable[[Callable[..., object]], Macro]: ...
def macro(func: Callable[..., object] | None = None, *, hygienic: bool = True) -> Any:
    """Decorates `@T.macro`: returns statements that replace calls of the macro, `clear(A, i)`.

    Arguments are expressions, buffers, Python values; a parameter is replaced by its argument at each use. Other names are
    those around the macro; with `hygienic=False` those around its call. Raises MirError for an error in the text.
    """
    frame = inspect.currentframe()

    def decorated(function: Callable[..., object]) -> Macro:
        return _macro(function, hygienic, frame)

    return decorated if func is None else decorated(func)


def _macro(function: Callable[..., object], hygienic: bool, frame: FrameType | None) -> Macro:
    from ...parser.tvmscript.closure_variables import BUILTINS
    from ...parser.tvmscript.macro import read_macro

    if not inspect.isfunction(function):
        raise TypeError(f"@T.macro decorates a function, not {function!r}")
    text, file, line = _source(function)
    signature, known = inspect.signature(function), {**BUILTINS, **_around(function, frame)}

    def read(text: str, indent: int) -> Macro:
        return read_macro(text, file, line, indent, signature, known, hygienic)

    return _with_sources(text, file, line, read)


@overload
def ir_module(mod: type, /) -> IRModule: ...
@overload
def ir_module(*, check_well_formed: bool = True) -> Callable[[type], IRModule]: ...
def ir_module(mod: type | None = None, /, *, check_well_formed: bool = True) -> Any:
    """Decorates `@I.ir_module`: returns a class's prim_funcs as an IRModule.

    What is not well-formed is always refused: `check_well_formed` is TVM's. Raises MirError.
    """
    frame = inspect.currentframe()

    def decorated(cls: type) -> IRModule:
        return _ir_module(cls, frame)

    return decorated if mod is None else decorated(mod)


def _ir_module(mod: type, frame: FrameType | None) -> IRModule:
    if not inspect.isclass(mod):
        raise TypeError(f"@I.ir_module decorates a class, not {mod!r}")
    text, file, line = _source(mod)
    captured: dict[str, object] = {}
    for member in vars(mod).values():
        if inspect.isfunction(member):
            captured |= _around(member, frame)
    return _module(_read(text, file, line, captured))


def from_source(program: str, extra_vars: Mapping[str, object] | None = None) -> IRModule | PrimFunc:
    """Parses a text to a module, or to a function if it is a single `@T.prim_func` outside of a class.

    `extra_vars` are captured variables. Raises MirError for an error in the text.
    """
    module = _read(textwrap.dedent(program).strip("\n"), "<script>", 1, extra_vars or {})
    ops = list(module.ops)
    if len(ops) == 1 and isinstance(ops[0], PrimFuncOp) and CLASS not in ops[0].attributes:
        return PrimFunc(ops[0])
    return _module(module)


def _module(module: ModuleOp) -> IRModule:
    for op in module.ops:
        if isinstance(op, PrimFuncOp):
            op.attributes[CLASS] = StringAttr(CLASS_NAME)
    return IRModule.of_op(module)


def _read(text: str, file: str, line: int, captured: Mapping[str, object]) -> ModuleOp:
    from ...dialects.tir.verify import check_module
    from ...parser import parse_mir
    from ...parser.tvmscript.closure_variables import BUILTINS

    def parsed(text: str, indent: int) -> ModuleOp:
        known = {**BUILTINS, **captured}
        module = parse_mir(text, file, first_line=line, indent=indent, captured=known)
        verify(module)
        check_module(module)
        return module

    return _with_sources(text, file, line, parsed)


def _with_sources(text: str, file: str, line: int, read: Callable[[str, int], Read]) -> Read:
    """Reads a text, without the indentation that it has in its file; errors show its lines."""
    sources = Sources()
    sources.add(file, text, line)
    indent = len(text) - len(text.lstrip(" "))
    with sources.reading():
        return in_deep_stack(lambda: read(textwrap.dedent(text), indent))


def _only_function(module: ModuleOp, name: str) -> PrimFuncOp:
    for op in module.ops:
        if isinstance(op, PrimFuncOp):
            return op
    raise MirError(Diagnostic(f"the source of '{name}' holds no prim_func"))


def _is_in_ir_module(function: FunctionType, frame: FrameType | None) -> bool:
    """Returns whether a function is defined directly in a class that `@I.ir_module` will read."""
    outer, _, _ = function.__qualname__.rpartition(".")
    if not outer or outer.endswith("<locals>"):
        return False
    cls = outer.rpartition(".")[2]
    while frame is not None and (frame.f_code.co_name != cls or frame.f_globals is not function.__globals__):
        frame = frame.f_back
    if frame is None:
        return False
    # The code of a class begins with its decorators.
    for line in linecache.getlines(frame.f_code.co_filename, frame.f_globals)[frame.f_code.co_firstlineno - 1 :]:
        if line.lstrip().startswith("class"):
            return False
        if line.lstrip().startswith("@") and "ir_module" in line:
            return True
    return False


def _source(what: FunctionType | type) -> tuple[str, str, int]:
    """Returns a definition's source with its decorators, its file, and the number of its first line.

    Raises MirError without a file to read it from.
    """
    try:
        file = inspect.getsourcefile(what) or inspect.getfile(what)
        if isinstance(what, FunctionType):
            lines, first = inspect.getsourcelines(what)
        else:
            lines, first = _class_lines(what)
    except (OSError, TypeError):
        raise MirError(
            Diagnostic(f"the source of '{what.__name__}' cannot be read").with_note(
                "a script is read from its file: put it in one, or give the text to mirstack.script.from_source"
            )
        ) from None
    return "".join(lines), file, first


def _class_lines(cls: type) -> tuple[list[str], int]:
    """Returns the lines of a class, found by its first function: classes of a file may share a name."""
    inside = next((member for member in vars(cls).values() if inspect.isfunction(member)), None)
    if inside is None:
        return inspect.getsourcelines(cls)
    lines, _ = inspect.findsource(inside)
    place = inside.__code__.co_firstlineno
    best: ast.ClassDef | None = None
    for node in ast.walk(ast.parse("".join(lines))):
        # Of nested classes the innermost comes last.
        if isinstance(node, ast.ClassDef) and node.lineno <= place <= (node.end_lineno or node.lineno):
            best = node
    if best is None:
        raise OSError
    first = min([best.lineno, *(decorator.lineno for decorator in best.decorator_list)])
    return lines[first - 1 : best.end_lineno], first


def _around(function: FunctionType, frame: FrameType | None) -> dict[str, object]:
    """Returns the variables visible to a function: its module's, the enclosing functions', its closure's."""
    outer: list[Mapping[str, object]] = []
    while frame is not None:
        if frame.f_globals is function.__globals__:
            outer.append(frame.f_locals)
        frame = frame.f_back
    found: dict[str, object] = dict(function.__globals__)
    for variables in reversed(outer):
        found |= variables
    closed = dict(_closed(function))
    return {**found, **closed}


def _closed(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The variables of functions around `function`; those that have no value yet are left out."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            yield name, cell.cell_contents


__all__ = ["from_source", "ir_module", "macro", "prim_func"]
