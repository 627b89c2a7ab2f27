"""Emits the recording of a kernel's time around its call, for programs that are profiled.

    call @dense(%x, %w)    →    %start = call @mirstack_profile_now()
                                call @dense(%x, %w)
                                call @mirstack_profile_record(site, %start, sizes, number of sizes)

The kernel itself is the same, and so is its place in the cache. A site is a number; the module's attribute `SITES` lists the sites'
kernels, places in the source and names of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....support.locations import places_of
from .calling_convention import NOW, RECORD, WORD
from .emitter import PTR, RelayEmitter

SITES = "mirstack.profile_sites"
"""Module attribute: of each call site in order the kernel, the places of its operators, and the names of its sizes."""


@dataclass
class ProfileHooks:
    """The call sites of a program that is profiled."""

    sites: list[Attribute] = field(default_factory=list[Attribute])

    def around(
        self,
        emit: RelayEmitter,
        kernel: str,
        where: Operation,
        sizes: Sequence[tuple[str, SSAValue]],
        call: Callable[[], Operation],
    ) -> Operation:
        """Emits a call of a kernel as `call` does, and its recording.

        `sizes` are those that the kernel takes, by name.
        """
        site = len(self.sites)
        names = [StringAttr(name) for name, _ in sizes]
        places = [StringAttr(place) for place in places_of(where.location)]
        self.sites.append(ArrayAttr([StringAttr(kernel), ArrayAttr(places), ArrayAttr(names)]))
        table = emit.slot(max(1, len(sizes)))
        for place, (_, size) in enumerate(sizes):
            emit.store(size, table, WORD * place)
        start = emit.call(NOW, (), i64).results[0]
        made = call()
        emit.call(RECORD, (emit.int(site), start, table, emit.int(len(sizes))), None)
        return made

    def add_to(self, module: ModuleOp) -> None:
        """Declares the functions that record, and lists the call sites."""
        external = llvm.LinkageAttr("external")
        module.body.block.add_ops(
            [
                llvm.FuncOp(NOW, llvm.LLVMFunctionType([], i64), external),
                llvm.FuncOp(RECORD, llvm.LLVMFunctionType([i64, i64, PTR, i64]), external),
            ]
        )
        module.attributes[SITES] = ArrayAttr(self.sites)
