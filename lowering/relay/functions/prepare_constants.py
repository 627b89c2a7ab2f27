"""Computes what depends on constants alone once, in `mirstack_prepare`, when the code has been loaded.

    %0 = call_tir(@pack, %weight)                   %0 = relay.prepared 0
    %1 = call_tir(@dense, (%x, %0))          →      %1 = call_tir(@dense, (%x, %0))

Calls of kernels whose arguments are constants, or come from such calls, are moved to that function. Its results are in memory that
the executable owns, in whose table (`heap.PREPARED`) the other functions find them: `relay.prepared` represents one such result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from ....dialects.relay import ir as relay
from ....passes.tir.buffers.param_strides import Strides, strides_from
from ....support.edit import erase_op, insert_op_before
from ....support.walk import all_ops
from ...tir.signature import BufferParam, KernelSignature, known_strides
from ..kernels.constant_arguments import Constants
from .flat_values import TensorLeaf, leaves_of

PREPARED = "mirstack.prepared"
"""Module attribute: the bytes of each tensor in the table of what is prepared; absent where there is nothing to prepare."""

PREPARE_ONLY = "mirstack.prepare_only"
"""Module attribute: how many of the constants, at the end of their list, only `mirstack_prepare` reads."""

PREPARE_BODY = "mirstack_prepare_body"
"""The function that `PREPARE` calls."""

KERNEL = "mirstack.kernel"
"""The attribute of a declared function that is a kernel compiled elsewhere: a dictionary that says what its body would."""

PURE, FAILS = "pure", "fails"
"""Entries of `KERNEL`: that the kernel does nothing but compute; that it may return another status than 0."""

STRIDES = "strides"
"""Entry of `KERNEL`: the strides of its parameters' tensors, where not all are compact."""

HARMLESS = frozenset(("mirstack_parallel_for", "aligned_alloc", "malloc", "free"))
"""The functions of other libraries that a kernel may call and still do nothing but compute."""

KERNELS_ONLY = relay.LetOp | relay.TupleOp | relay.TupleGetItemOp | relay.ConstantOp | relay.CallTirOp


@irdl_op_definition
class PreparedOp(IRDLOperation):
    """The leaves of a prepared value, from number `index` on of the table; only while lowering."""

    name = "relay.prepared"
    index = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, index: int, type: Attribute):
        super().__init__(properties={"index": IntegerAttr(index, 64)}, result_types=[type])


def strides_of(kernel: llvm.FuncOp) -> Strides:
    """Returns the strides of a kernel's parameters; none where all are compact."""
    declared, signature = kernel.attributes.get(KERNEL), KernelSignature.of(kernel)
    if signature is None:
        return strides_from(declared.data.get(STRIDES)) if isinstance(declared, DictionaryAttr) else ()
    strides = tuple(known_strides(param) if isinstance(param, BufferParam) else () for param in signature.params)
    return strides if any(strides) else ()


class Preparation:
    """Collects what is prepared from one function after the other; `function` then computes it.

    `may_prepare` returns whether the kernel of a name does nothing but compute.
    """

    def __init__(self, may_prepare: Callable[[str], bool]):
        self._may_prepare = may_prepare
        self._block = Block()
        self._copies: dict[Hashable, SSAValue] = {}
        self._indices: dict[SSAValue, int] = {}
        self._results: list[SSAValue] = []
        self.sizes: list[int] = []
        """Bytes of each tensor that is prepared."""

    def take_from(self, function: relay.FuncOp) -> None:
        """Replaces the calls of the function that can be made once, and erases constants that become unused."""
        constants = Constants()
        chosen: dict[SSAValue, SSAValue] = {}
        ops = [op for op in all_ops(function) if isinstance(op, KERNELS_ONLY)]
        for op in ops:
            if isinstance(op, relay.CallTirOp) and constants(op.result) and self._can_run(op):
                chosen[op.result] = self._copy(op.result)
        for value, copy in chosen.items():
            if _is_used(value, chosen):
                assert isinstance(value.owner, relay.CallTirOp)
                prepared = PreparedOp(self._index(copy), value.type)
                prepared.location = value.owner.location
                insert_op_before(prepared, value.owner)
                value.replace_all_uses_with(prepared.result)
        for op in reversed(ops):
            if not op.result.uses and (op.result in chosen or not isinstance(op, relay.CallTirOp)):
                erase_op(op)

    def _can_run(self, op: relay.CallTirOp) -> bool:
        """Returns whether a call, and all calls that it depends on, may be made before the program runs."""
        pending: list[Operation] = [op]
        seen: set[Operation] = set()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            if isinstance(current, relay.CallTirOp):
                leaves = leaves_of(current.result.type, current.result)
                if not all(isinstance(leaf, TensorLeaf) for leaf in leaves):
                    return False
                if not self._may_prepare(current.callee.root_reference.data):
                    return False
            pending += [operand.owner for operand in current.operands if isinstance(operand.owner, Operation)]
        return True

    def _copy(self, value: SSAValue) -> SSAValue:
        """Copies the value to the new function, where equal computations are shared."""
        made: dict[SSAValue, SSAValue] = {}
        pending = [value]
        while pending:
            current = pending[-1]
            op = current.owner
            assert isinstance(op, KERNELS_ONLY)
            missing = [operand for operand in op.operands if operand not in made]
            if current in made:
                pending.pop()
            elif missing:
                pending += missing
            else:
                operands = tuple(made[operand] for operand in op.operands)
                key = (op.name, operands, tuple(op.properties.items()), current.type)
                known = self._copies.get(key)
                if known is None:
                    copy = op.clone(made)
                    self._block.add_op(copy)
                    known = self._copies[key] = copy.results[0]
                made[current] = known
        return made[value]

    def _index(self, copy: SSAValue) -> int:
        known = self._indices.get(copy)
        if known is None:
            known = self._indices[copy] = len(self.sizes)
            self._results.append(copy)
            self.sizes += [leaf.bytes for leaf in leaves_of(copy.type, copy) if isinstance(leaf, TensorLeaf)]
        return known

    def function(self) -> relay.FuncOp | None:
        """Returns the function without parameters that computes a tuple of all, or None for nothing."""
        if not self._results:
            return None
        every = relay.TupleOp(self._results)
        self._block.add_ops([every, relay.ReturnOp(every.result)])
        return relay.FuncOp(PREPARE_BODY, [], [], ret_type=every.result.type, body=Region(self._block))


def _is_used(value: SSAValue, chosen: dict[SSAValue, SSAValue]) -> bool:
    """Returns whether anything but calls that are moved away uses the value."""
    pending = [value]
    seen: set[SSAValue] = set()
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, relay.LetOp | relay.TupleOp | relay.TupleGetItemOp):
                if op.result not in seen:
                    seen.add(op.result)
                    pending.append(op.result)
            elif not isinstance(op, relay.CallTirOp) or op.result not in chosen:
                return True
    return False


def pure_kernels(module: ModuleOp) -> set[str]:
    """Returns the LLVM functions of the module that call nothing but each other, and what is harmless."""
    callers: dict[str, list[str]] = {}
    impure: list[str] = []
    names: set[str] = set()
    for function in module.ops:
        if isinstance(function, llvm.FuncOp):
            name = function.sym_name.data
            names.add(name)
            kernel = function.attributes.get(KERNEL)
            known = name in HARMLESS or name.startswith("llvm.")
            if (
                not function.body.blocks
                and not known
                and not (isinstance(kernel, DictionaryAttr) and PURE in kernel.data)
            ):
                impure.append(name)
            for op in all_ops(function):
                if type(op) is not llvm.CallOp and type(op) is not llvm.AddressOfOp:
                    continue
                for attr in op.properties.values():
                    if isinstance(attr, SymbolRefAttr):
                        callers.setdefault(attr.root_reference.data, []).append(name)
                if type(op) is llvm.CallOp and op.callee is None:
                    impure.append(name)
    found: set[str] = set()
    while impure:
        name = impure.pop()
        if name not in found:
            found.add(name)
            impure += callers.get(name, ())
    return names - found


def prepared_attr(sizes: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    """Returns the bytes of what is prepared as the module's attribute."""
    return ArrayAttr([IntegerAttr(size, 64) for size in sizes])
