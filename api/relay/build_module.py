"""`relay.build` and what it returns: a compiled `main`, by the names of `tvm.relay.build_module`.

    lib = relay.build(mod, target="llvm", params=params)
    runtime = lib["default"](mirstack.cpu())

Programs are compiled at the level of the current `transform.PassContext`; its list of disabled passes counts for passes that are run from
Python, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ...lowering.driver.loading.executable import Executable
from ...lowering.options import Options
from ...lowering.pipeline import graph_passes
from ...passes.relay.functional.infer_type import ensure_types
from ...support.arguments import check
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirError, MirValueError
from ...support.public_names import public_names
from ..compile import compile
from ..ir.module import IRModule
from ..ir.transform import PassContext
from ..nd import NDArray, array
from ..target.target import Target, TargetLike, chosen_target, native_options
from . import backend
from .executor import create_executor
from .expr import Function
from .graph_json import graph_json
from .graph_runtime import GraphRuntime, factory_of
from .program import bind_params_by_name


class GraphLibrary:
    """The code of a graph: `library["default"](device)` makes its runtime."""

    def __init__(self, executable: Executable, constants: Mapping[str, NDArray], graph: Callable[[], str]):
        self.executable = executable
        self._default = factory_of(executable, constants)
        self._graph = graph

    @property
    def graph_json(self) -> str:
        """The graph as JSON. Raises MirError for a program that is not one."""
        return self._graph()

    def __getitem__(self, name: str) -> Callable[..., GraphRuntime]:
        """Returns the maker of runtimes, "default". Raises MirValueError for another name."""
        if name != "default":
            raise MirValueError(Diagnostic(f"the library has no function '{name}'").with_note("it has default"))
        return self._default

    get_function = __getitem__

    def export_library(self, file_name: str | PathLike[str], *, cpus: Sequence[str] = ()) -> list[Path]:
        """Writes the program to a file, as `Executable.export_library` does."""
        return self.executable.export_library(file_name, cpus=cpus)

    save = export_library

    def __repr__(self) -> str:
        return f"GraphLibrary({self.executable!r})"


class GraphExecutorFactoryModule:
    """A built program: `lib["default"](device)` makes its runtime, `graph, code, params = lib` its parts."""

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        executor: backend.Executor,
        lib: GraphLibrary,
        libmod_name: str,
        params: Mapping[str, NDArray],
    ):
        self.ir_mod = ir_mod
        self.target = target
        self.executor = executor
        self.lib = lib
        self.libmod_name = libmod_name
        self.params = dict(params)

    @property
    def graph_json_str(self) -> str:
        """The graph as JSON, in the form of TVM's runtime. Raises MirError for a program that is not a graph."""
        return self.lib.graph_json

    graph_json = graph_json_str

    def get_graph_json(self) -> str:
        """Returns the graph as JSON, as `graph_json`."""
        return self.lib.graph_json

    get_executor_config = get_graph_json

    def get_params(self) -> dict[str, NDArray]:
        """Returns the parameters that are part of the code."""
        return self.params

    def get_lib(self) -> GraphLibrary:
        """Returns the code."""
        return self.lib

    @property
    def module(self) -> GraphLibrary:
        """The code."""
        return self.lib

    def __getitem__(self, item: str) -> Callable[..., GraphRuntime]:
        return self.lib[item]

    def export_library(self, file_name: str | PathLike[str], *, cpus: Sequence[str] = ()) -> list[Path]:
        """Writes the program to a file: `runtime.load_module` reads a .mirpkg or a .so."""
        return self.lib.export_library(file_name, cpus=cpus)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.get_graph_json(), self.lib, self.params))

    def __repr__(self) -> str:
        return f"GraphExecutorFactoryModule({self.libmod_name}, {self.lib!r})"


def build(
    ir_mod: IRModule | Function,
    target: TargetLike | Sequence[TargetLike] | None = None,
    target_host: TargetLike | None = None,
    executor: backend.Executor | None = None,
    runtime: backend.Runtime | None = None,
    workspace_memory_pools: None = None,
    constant_memory_pools: None = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> GraphExecutorFactoryModule:
    """Compiles the module's `main` to a program whose inputs are set by name.

    `params` become constants of it. `target` is by default the current one (`with Target(…)`), otherwise this processor. Executor
    and runtime name TVM's; programs run the same whichever they are. Raises MirError for a program that cannot be compiled.
    """
    if workspace_memory_pools is not None or constant_memory_pools is not None:
        raise MirValueError(Diagnostic("there are no pools of memory here").with_note("a program has one arena"))
    check(executor, "executor", "a relay.backend.Executor", backend.Executor, type(None))
    check(runtime, "runtime", "a relay.backend.Runtime", backend.Runtime, type(None))
    options = native_options(target)
    module = _with_constants(ir_mod, params)
    constants = {name: array(value) for name, value in (params or {}).items()}
    executable = compile(
        module,
        options.target,
        entry="main",
        threads=options.threads,
        opt_level=min(PassContext.current().opt_level, 3),
        cpu=options.cpu,
        caches=options.caches,
    )
    texts: list[str] = []

    def graph() -> str:
        if not texts:
            texts.append(graph_json(optimize(module, target)[0].op, mod_name))
        return texts[0]

    library = GraphLibrary(executable, constants, graph)
    return GraphExecutorFactoryModule(
        module, chosen_target(target), executor or backend.Executor("graph"), library, mod_name, constants
    )


def optimize(
    ir_mod: IRModule | Function,
    target: TargetLike | Sequence[TargetLike] | None = None,
    params: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the module after the passes on graphs, and the parameters that are left: none.

    Operators are grouped into functions with the attribute `Primitive`, one for each kernel.
    """
    options = native_options(target)
    op = _with_constants(ir_mod, params).copy_op()

    def run() -> None:
        from xdsl.context import Context

        ensure_types(op)
        for each in graph_passes(Options(opt_level=min(PassContext.current().opt_level, 3), cpu=options.cpu)):
            if each.name == "lower-relay-to-te":
                return
            each.apply(Context(), op)

    in_deep_stack(run)
    return IRModule.of_op(op), {}


def _with_constants(ir_mod: IRModule | Function, params: Mapping[str, Any] | None) -> IRModule:
    """Returns the module with `main`'s parameters of these names as constants."""
    check(ir_mod, "ir_mod", "an IRModule, or a function", IRModule, Function)
    check(params, "params", "a dictionary of arrays by name", Mapping, type(None))
    module = IRModule({"main": ir_mod}) if isinstance(ir_mod, Function) else ir_mod
    work = IRModule.of_op(module.copy_op(), module)
    if params:
        work["main"] = bind_params_by_name(work.relay_function("main"), params)
    return work


def build_config(
    opt_level: int = 2,
    required_pass: Sequence[str] | None = None,
    disabled_pass: Sequence[str] | None = None,
    trace: None = None,
) -> PassContext:
    """Returns a pass context, as TVM wrote it before `transform.PassContext`."""
    return PassContext(opt_level, required_pass, disabled_pass)


class BuildModule:
    """Builds one module, step by step: `build`, then its parts."""

    def __init__(self) -> None:
        self._built: GraphExecutorFactoryModule | None = None
        self._params: dict[str, Any] = {}

    def build(
        self,
        mod: IRModule | Function,
        target: TargetLike | None = None,
        target_host: TargetLike | None = None,
        executor: backend.Executor | None = None,
        runtime: backend.Runtime | None = None,
        workspace_memory_pools: None = None,
        constant_memory_pools: None = None,
        params: Mapping[str, Any] | None = None,
        mod_name: str | None = None,
    ) -> tuple[str | None, GraphLibrary, dict[str, NDArray]]:
        """Returns the graph (None for a program that is not one), the code, and its parameters."""
        given = {**self._params, **(params or {})}
        self._built = build(mod, target, target_host, executor, runtime, params=given, mod_name=mod_name or "default")
        try:
            graph = self._built.get_graph_json()
        except MirError:
            graph = None
        return graph, self._built.lib, self._built.params

    def optimize(
        self, mod: IRModule | Function, target: TargetLike | None = None, params: Mapping[str, Any] | None = None
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """Returns the module after the passes on graphs, as `relay.optimize`."""
        return optimize(mod, target, {**self._params, **(params or {})})

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Takes parameters for the next build."""
        self._params = dict(params)

    def get_graph_json(self) -> str:
        """Returns the graph of the last build."""
        return self._last().get_graph_json()

    get_json = get_graph_json

    def get_module(self) -> GraphLibrary:
        """Returns the code of the last build."""
        return self._last().lib

    def get_params(self) -> dict[str, NDArray]:
        """Returns the parameters of the last build."""
        return self._last().params

    def _last(self) -> GraphExecutorFactoryModule:
        if self._built is None:
            raise MirValueError(Diagnostic("nothing is built yet").with_note("call build first"))
        return self._built


__all__ = [
    "BuildModule", "GraphExecutorFactoryModule", "GraphLibrary", "bind_params_by_name", "build", "build_config", "create_executor", "optimize",
]  # fmt: skip


__dir__ = public_names(__name__)
