"""Entries run by the interpreters: the meaning of the IR, slow and exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....dialects import te, tir
from ....dialects.array import numpy_dtype
from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import error_at
from ....support.walk import all_ops
from ...tir.signature import BufferParam, KernelSignature, ScalarParam
from ..entry import entry_kind, find_entry, name_of, places_of, relay_params, result_names
from ..program import tree_of
from .arguments import Arguments, flatten_tree
from .executable import Array, Executable, Param, as_array, as_scalar, check_array, wrong_count
from .kernel_executable import C_TYPES, bind_sizes, check_overlap, param_of, unpassed_scalar


class InterpretedExecutable(Executable):
    """An entry of any level, run by its interpreter over numpy."""

    _why_no_profile = "is interpreted, which runs no kernels; compile it with target='cpu' and profile=True"

    def __init__(self, module: ModuleOp, entry: Operation):
        self.name = name_of(entry)
        self.kind = entry_kind(entry)
        if self.kind == "func":
            raise error_at(
                entry,
                f"the interpreter does not run @{self.name}: it is a func.func, and it runs functions of Relay, TE and TIR",
                "run it as native code: --target cpu (mir-run), target='cpu' (mirstack.compile)",
            )
        for function in module.body.block.ops:
            if isinstance(function, tir.PrimFuncOp):
                from ....passes.tir.threads.thread_memory import check_exchanges

                check_exchanges(function)
        self._module, self._entry = module, entry
        self.result_names = result_names(entry)
        self._arguments = Arguments(self.name, relay_params(entry)) if self.kind == "relay" else None
        if self.kind == "relay":
            from ....dialects.relay.ir import FuncOp

            if isinstance(entry, FuncOp) and (tree := tree_of(entry.ret_type)) is not None:
                self.num_results = len(flatten_tree(tree))
        self._signature = kernel_signature(entry) if self._arguments is None else None
        if isinstance(entry, tir.PrimFuncOp):
            _refuse_early_returns(entry)
        for param in () if self._signature is None else self._signature.params:
            if isinstance(param, ScalarParam) and param.dtype not in C_TYPES:
                raise error_at(entry, *unpassed_scalar(self.name, param.dtype))
        self._places: dict[str, str] = {}
        if self._arguments is not None:
            self.params = self._arguments.tensors
        elif self._signature is not None:
            self.params = list(map(param_of, self._signature.params))
            self.returns = () if self._signature.returns is None else (self._signature.returns,)
            self._places = places_of(entry) if self._signature.symbols else {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            args = self._in_order(args, named)
        if self._arguments is not None:
            args = tuple(self._arguments.flat(args))
        if len(args) != len(self.params):
            raise wrong_count(self.name, [param.name for param in self.params], len(args))
        values: dict[str, Any] = {}
        for value, param in zip(args, self.params, strict=True):
            if param.is_scalar:
                value = as_scalar(value, param)
            else:
                value = as_array(value, param)
                check_array(value, param, writable=param.is_output)
            values[param.name] = value
        buffers = (
            {p.name for p in self._signature.params if isinstance(p, BufferParam)} if self._signature else set[str]()
        )
        arrays = {name: value for name, value in values.items() if name in buffers}
        check_overlap(self.params, arrays)
        if self._signature is not None and self._signature.symbols:
            scalars = {name: value for name, value in values.items() if isinstance(value, int)}
            bind_sizes(self._signature, arrays, scalars, self._places)
        return in_deep_stack(lambda: self._interpret(values))

    def _interpret(self, values: Mapping[str, Any]) -> Any:
        if self.kind == "relay":
            from ....dialects.relay.interpreter import interpret

            assert self._arguments is not None
            result = interpret(self._module, self.name, self._arguments.nested(list(values.values())))
            return _owned(result)
        if isinstance(self._entry, te.FuncOp):
            from ....dialects.te.interpreter import interpret_te_func

            results = interpret_te_func(self._entry, dict(values))
            for name, array in results.items():
                values[name][...] = array
            return None
        from ....dialects.tir.interpreter import interpret_prim_func

        assert isinstance(self._entry, tir.PrimFuncOp)
        return interpret_prim_func(self._entry, dict(values), self._module)


def _owned(result: Any) -> Any:
    """Returns the arrays of a result as the caller's own, because operators may return views of inputs."""
    if isinstance(result, tuple):
        return tuple(map(_owned, cast("tuple[Any, ...]", result)))
    return result.copy() if isinstance(result, np.ndarray) else result


def _refuse_early_returns(function: tir.PrimFuncOp) -> None:
    """Raises MirError for T.ret inside a branch or loop, which code that is compiled has no form for."""
    for op in all_ops(function):
        if isinstance(op, tir.CallOp) and op.intrinsic.data == "ret":
            around = op.parent_op()
            while isinstance(around, tir.BlockOp | tir.ScopeOp):
                around = around.parent_op()
            if around is not function:
                from ...tir.intrinsics import early_return

                raise early_return(op)


def kernel_signature(entry: Operation) -> KernelSignature:
    """Returns how the compiled form of a TIR or TE function is called."""
    from ...tir.lower_tir_to_scf import signature_of

    function = entry
    if isinstance(entry, te.FuncOp):
        from ...te.create_prim_func import create_prim_func

        function = create_prim_func(entry)
    assert isinstance(function, tir.PrimFuncOp)
    signature = signature_of(function)
    return signature.named(entry.param_names()) if isinstance(entry, te.FuncOp) else signature


def draw(params: Sequence[Param], seed: int) -> dict[str, Array]:
    """Returns random values for parameters of known shape, in parameter order: integers are below 10."""
    generator = np.random.default_rng(seed)
    values: dict[str, Array] = {}
    for param in params:
        shape = tuple(extent if isinstance(extent, int) else 4 for extent in param.shape)
        if param.dtype == "bool":
            values[param.name] = generator.integers(0, 2, shape).astype(bool)
        elif param.dtype.startswith(("int", "uint")):
            values[param.name] = np.asarray(generator.integers(0, 10, shape)).astype(param.dtype)
        else:
            values[param.name] = np.asarray(generator.standard_normal(shape)).astype(numpy_dtype(param.dtype))
    return values


def run_module(module: ModuleOp, seed: int) -> dict[str, Array]:
    """Returns the results of the module's entry by name, interpreted on inputs drawn from `seed`."""
    executable = InterpretedExecutable(module, find_entry(module))
    return executable.run(draw(executable.params, seed))
