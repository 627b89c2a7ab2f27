"""Analyses of what nodes do with memory: its size, where buffers are used, whether a function is pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...dialects.tir.intrinsics import intrinsic_effect
from ...dialects.tir.node.buffer import Buffer, BufferField, BufferLoad, Let
from ...dialects.tir.node.expr import Call, Choice, Expr, IntImm, PointerType, Var, bits_of, lanes_of
from ...dialects.tir.node.functor import parts_of, post_order_visit
from ...dialects.tir.node.stmt import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
)
from ...dialects.tir.scalar_ops import Effect
from ...dialects.tir.stmt import PrimFuncOp
from ...support.arguments import check, integer
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..ir.module import IRModule
from ..ir.prim_func import PrimFunc


def verify_ssa(func: PrimFunc) -> bool:
    """Returns whether each variable is defined once; equal `Let` of one variable count as one."""
    check(func, "func", "a PrimFunc", PrimFunc)
    defined: dict[int, object] = {id(param): None for param in func.params}
    is_ssa = True

    def define(variable: Var, value: object) -> None:
        nonlocal is_ssa
        if id(variable) in defined and not (isinstance(value, Expr) and _is_same(defined[id(variable)], value)):
            is_ssa = False
        defined[id(variable)] = value

    def visit(part: object) -> None:
        match part:
            case For():
                define(part.loop_var, None)
            case Let():
                define(part.var, part.value)
            case LetStmt():
                define(part.var, None)
            case Allocate() | AllocateConst():
                define(part.buffer_var, None)
            case Block():
                for axis in part.iter_vars:
                    define(axis, None)
            case _:
                pass

    post_order_visit(func.body, visit)
    return is_ssa


def _is_same(a: object, b: object) -> bool:
    from ..ir.structural import structural_equal

    return a is not None and structural_equal(a, b)


def has_if_then_else(stmt: Stmt) -> bool:
    """Returns whether a statement holds a branch, or an expression that evaluates one of two."""
    found = False

    def visit(part: object) -> None:
        nonlocal found
        found = found or isinstance(part, IfThenElse | Choice)

    post_order_visit(stmt, visit)
    return found


# Sizes ---------------------------------------------------------------------------------------------------------------


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """Returns the number of bytes of a function's constants, each rounded up to the alignment."""
    check(func, "func", "a PrimFunc", PrimFunc)
    alignment = integer(constant_byte_alignment, "constant_byte_alignment", 1)
    total = 0

    def visit(part: object) -> None:
        nonlocal total
        if isinstance(part, AllocateConst):
            total += _rounded(_bytes(part), alignment)

    post_order_visit(func.body, visit)
    return total


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """Returns the most bytes that are allocated at once, each part rounded up to the alignment."""
    check(func, "func", "a PrimFunc", PrimFunc)
    alignment = integer(workspace_byte_alignment, "workspace_byte_alignment", 1)
    return max(_live_bytes(func.body, alignment).values(), default=0)


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """Returns the greatest number of bytes at once, by function and storage scope; a PrimFunc is `main`."""
    check(func_or_mod, "func_or_mod", "a PrimFunc or an IRModule", PrimFunc, IRModule)
    if isinstance(func_or_mod, PrimFunc):
        return {"main": _live_bytes(func_or_mod.body, 1)}
    functions = [PrimFunc(op) for op in func_or_mod.op.ops if isinstance(op, PrimFuncOp)]
    return {func.name: _live_bytes(func.body, 1) for func in functions}


def _bytes(part: Allocate | AllocateConst) -> int:
    """Returns the size of memory; 0 where it is not a number."""
    extents = [int(extent) if isinstance(extent, int | IntImm) else 0 for extent in part.extents]
    return prod(extents) * -(-bits_of(part.dtype) * lanes_of(part.dtype) // 8)


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _live_bytes(body: Stmt, alignment: int) -> dict[str, int]:
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    pending: list[tuple[object, bool]] = [(body, False)]
    while pending:
        node, is_done = pending.pop()
        if isinstance(node, Allocate):
            kind = node.buffer_var.type_annotation
            scope = (kind.storage_scope if isinstance(kind, PointerType) else "") or "global"
            size = _rounded(_bytes(node), alignment)
            now[scope] = now.get(scope, 0) + (-size if is_done else size)
            most[scope] = max(most.get(scope, 0), now[scope])
        if not is_done and isinstance(node, Stmt):
            pending.append((node, True))
            pending += [(part, False) for part in reversed(parts_of(node))]
    return most


# Uses of buffers -----------------------------------------------------------------------------------------------------


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, For | Block | None]:
    """Returns the innermost loop or block around all uses of each buffer; None for the function.

    What a block declares to read and write counts as a use within the block.
    """
    check(func, "func", "a PrimFunc", PrimFunc)
    found: dict[Buffer, list[For | Block]] = {}
    of_data = {id(buffer.data): buffer for buffer in func.buffer_map.values()}

    def use(buffer: Buffer, around: list[For | Block]) -> None:
        known = found.get(buffer)
        if known is None:
            found[buffer] = around
            return
        common = next((i for i, (a, b) in enumerate(zip(known, around, strict=False)) if a is not b), None)
        found[buffer] = known[: min(len(known), len(around)) if common is None else common]

    for node, around in _with_ancestors(func.body):
        match node:
            case Block():
                for buffer in node.alloc_buffers:
                    of_data[id(buffer.data)] = buffer
                for region in (*node.reads, *node.writes):
                    use(region.buffer, [*around, node])
                for match in node.match_buffers:
                    use(match.source.buffer, [*around, node])
            case BufferLoad() | BufferStore():
                use(node.buffer, around)
            case Var() if id(node) in of_data:
                use(of_data[id(node)], around)
            case _:
                pass
    return {buffer: around[-1] if around else None for buffer, around in found.items()}


def _with_ancestors(body: Stmt) -> Iterator[tuple[object, list[For | Block]]]:
    """Yields each node with the loops and blocks around it, outermost first."""
    pending: list[tuple[Stmt | Expr, list[For | Block]]] = [(body, [])]
    while pending:
        node, around = pending.pop()
        yield node, around
        inner = [*around, node] if isinstance(node, For | Block) else around
        pending += [(part, inner) for part in reversed(parts_of(node))]


def find_anchor_block(mod: IRModule) -> Block | None:
    """Returns the block with a reduction that does most operations; None without blocks.

    Without a reduction it is the last block.
    """
    check(mod, "mod", "an IRModule", IRModule)
    best: tuple[int, int, Block] | None = None
    functions = [PrimFunc(op) for op in mod.op.ops if isinstance(op, PrimFuncOp)]
    for func in functions:
        for position, (node, around) in enumerate(_with_ancestors(func.body)):
            if not isinstance(node, Block) or _holds_block(node):
                continue
            loops = [part.extent for part in around if isinstance(part, For)]
            work = prod(int(extent) if isinstance(extent, IntImm) else 1 for extent in loops)
            if node.init is None:
                work = 0
            if best is None or (work, position) > best[:2]:
                best = work, position, node
    return None if best is None else best[2]


def _holds_block(block: Block) -> bool:
    return any(isinstance(node, BlockRealize) for node, _ in _with_ancestors(block.body))


# Purity --------------------------------------------------------------------------------------------------------------


def is_pure_function(func: PrimFunc) -> bool:
    """Returns whether a function has no effect except the value that it returns."""
    check(func, "func", "a PrimFunc", PrimFunc)
    return _effect(func) is None


def assert_pure_function(func: PrimFunc) -> bool:
    """Returns True for a function without effects.

    Raises MirError (a ValueError) that names an effect otherwise.
    """
    check(func, "func", "a PrimFunc", PrimFunc)
    effect = _effect(func)
    if effect is not None:
        raise MirValueError(Diagnostic(f"@{func.name} is not pure: {effect}"))
    return True


def _effect(func: PrimFunc) -> str | None:
    own: set[int] = set()
    effects: list[str] = []

    def visit(part: object) -> None:
        match part:
            case Allocate() | AllocateConst():
                own.add(id(part.buffer_var))
            case Block():
                own.update(id(buffer.data) for buffer in part.alloc_buffers)
            case DeclBuffer() if isinstance(part.buffer.data, BufferField):
                # A declaration without an address allocates; those of parameters are not declared.
                own.add(id(part.buffer.data))
            case _:
                pass

    post_order_visit(func.body, visit)

    def check_effect(part: object) -> None:
        match part:
            case BufferStore() if id(part.buffer.data) not in own:
                effects.append(f"it stores to '{part.buffer.name}', which it did not allocate")
            case Call() if not _is_pure_call(part):
                effects.append(f"it calls T.{part.intrinsic}")
            case _:
                pass

    post_order_visit(func.body, check_effect)
    return effects[0] if effects else None


def _is_pure_call(call: Call) -> bool:
    if call.callee is not None:
        return False
    return call.intrinsic == "ret" or intrinsic_effect(call.intrinsic) in (Effect.PURE, Effect.READ)


__dir__ = public_names(__name__)
