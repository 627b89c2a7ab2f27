"""Functions: from the syntax tree to `tir.prim_func`."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.tir.buffer import MatchBufferOp
from ...dialects.tir.stmt import PrimFuncOp
from ...dialects.tir.types import HandleType
from ..python.tree import Assign, Call, Expr, Expression, Function, Index, Sequence, Stmt, Token, With, called
from .constructs import blocks, buffers, calls, control, types, values
from .constructs.blocks import contains_block, has_axes
from .constructs.buffers import BufferSpec, buffer_annotation, make_buffer
from .inline_matches import inline_simple_matches
from .literals import named_type
from .reader import KnownFunction, Reader, hint
from .statements import RESERVED, statements

# Importing them makes all constructs known.
_CONSTRUCTS = (blocks, buffers, calls, control, types, values)


def read_function(reader: Reader, tree: Function, callee: KnownFunction) -> PrimFuncOp:
    """The function; errors in it are reported."""
    reader.func_attrs = {}
    block = Block()
    reader.location = at = reader.at(tree.name)
    names: list[str] = []
    with reader.inside(block):
        declared: list[tuple[Token, BufferSpec]] = []
        read_parameters(reader, tree, block, names, declared)
        for name, _ in declared:
            hand_over(reader, name, block, names)
        names = [reader.fresh(n) for n in names]
        reader.shown.update(zip(block.args, names, strict=True))
        for name, spec in declared:
            handle = reader.names[name]
            assert isinstance(handle, SSAValue)
            reader.location = reader.at(name)
            reader.define(name, make_buffer(reader, MatchBufferOp, str(name), spec, handle))
        statements(reader, function_body(tree.body))
        reader.ops[0:0] = reader.prologue
    ret_type = NoneType() if callee.result is None else callee.result
    attrs = reader.func_attrs
    if attrs.get("global_symbol") == StringAttr(tree.name):
        del attrs["global_symbol"]
    private = is_private(reader, tree)
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(callee.symbol),
        "param_names": ArrayAttr([StringAttr(n) for n in names]),
        "attrs": DictionaryAttr(attrs),
        "ret_type": ret_type,
    }
    if private:
        properties["sym_visibility"] = StringAttr("private")
    op = PrimFuncOp.create(properties=properties, regions=[Region(block)], location=at)
    inline_simple_matches(op)
    return op


def is_private(reader: Reader, tree: Function) -> bool:
    """Returns whether the decorator says `private=True`."""
    for decorator in tree.decorators:
        if isinstance(decorator, Call):
            for keyword in decorator.keywords:
                if keyword.name == "private":
                    return keyword.value == "True"
                if keyword.name != "check_well_formed":
                    reader.context.error(
                        reader.at(keyword.name),
                        f"T.prim_func has no argument '{keyword.name}'",
                        "it has private=True",
                    )
    return False


def read_parameters(
    reader: Reader, tree: Function, block: Block, names: list[str], declared: list[tuple[Token, BufferSpec]]
) -> None:
    """Reads parameters into block arguments; a buffer that is not simple becomes a handle, matched later."""
    later: list[tuple[int, Token, Expr]] = []
    for parameter in tree.parameters:
        name, annotation = parameter.name, parameter.annotation
        with reader.recovering():
            if name in names or name in RESERVED:
                reader.fail(
                    name,
                    f"'{name}' cannot be a parameter" if name in RESERVED else f"two parameters are called '{name}'",
                )
            if annotation is None:
                reader.fail(
                    name,
                    f"parameter '{name}' has no type",
                    'write a: T.Buffer((8,), "float32"), n: T.int32 or a: T.handle',
                )
            type_ = named_type(reader, annotation)
            if type_ is None and not (
                isinstance(annotation, Index | Call)
                and str(annotation.base if isinstance(annotation, Index) else annotation.function)
                in ("T.Buffer", "T.match_buffer", "T.buffer_decl")
            ):
                reader.fail(
                    annotation,
                    f"parameter '{name}' has an unknown type",
                    "it is a T.Buffer, T.handle, or a dtype like T.int32",
                )
            arg = block.insert_arg(type_ or HandleType.get(), len(block.args))
            names.append(str(name))
            arg.name_hint = hint(name)
            arg.location = reader.at(name)
            reader.define(name, arg)
            if type_ is None:
                later.append((len(names) - 1, name, annotation))
    # Shapes may name any scalar parameter, those after the buffer too.
    for place, name, annotation in later:
        with reader.recovering(), reader.poisoning(str(name)):
            spec = buffer_annotation(reader, annotation)
            assert spec is not None
            if spec.simple():
                arg = Rewriter.replace_value_with_new_type(block.args[place], spec.type())
                assert isinstance(arg, BlockArgument)
                arg.name_hint = hint(name)
                arg.location = reader.at(name)
                reader.names[name] = arg
            else:
                declared.append((name, spec))


def hand_over(reader: Reader, name: Token, block: Block, names: list[str]) -> None:
    """Renames the handle of a buffer that is matched at the head of the function: `A` → `A_handle`."""
    place = names.index(str(name))
    handle = f"{name}_handle"
    while handle in names:
        handle += "_"
    names[place] = handle
    block.args[place].name_hint = hint(handle)


def function_body(body: list[Stmt]) -> list[Stmt]:
    """Returns a function's statements, without an explicit root block that the function itself implies."""
    last = body[-1] if body else None
    if not (isinstance(last, With) and len(last.items) == 1 and called(last.items[0][0]) == "T.block"):
        return body
    call = last.items[0][0]
    assert isinstance(call, Call)
    named_root = len(call.arguments) == 1 and call.arguments[0] in ('"root"', "'root'")
    if not named_root or has_axes(last.body):
        return body
    inner = [s for s in last.body if not _is_empty_regions(s)]
    heads = [called(s.value) for s in inner if isinstance(s, Expression)]
    if any(h in ("T.reads", "T.writes", "T.where", "T.block_attr") for h in heads):
        return body
    matched = any(isinstance(s, Assign) and called(s.value) == "T.match_buffer" for s in inner)
    if matched or any(isinstance(s, With) and called(s.items[0][0]) == "T.init" for s in inner):
        return body
    if any(isinstance(s, Assign) and called(s.value) == "T.alloc_buffer" for s in inner):
        return body[:-1] + inner
    single = inner[0] if len(inner) == 1 else None
    single_block = isinstance(single, With) and called(single.items[0][0]) == "T.block"
    if single_block:
        assert isinstance(single, With)
        return body[:-1] + inner if has_axes(single.body) else body
    return body[:-1] + inner if contains_block(inner) else body


def _is_empty_regions(statement: Stmt) -> bool:
    """`T.reads()` or `T.writes()`, naming nothing."""
    if not isinstance(statement, Expression) or called(statement.value) not in ("T.reads", "T.writes"):
        return False
    arguments = statement.value.arguments if isinstance(statement.value, Call) else []
    return all(isinstance(a, Sequence) and not a.items for a in arguments)
