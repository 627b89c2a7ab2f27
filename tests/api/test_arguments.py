"""What is passed in the place of an argument of another kind is told by the argument's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import mirstack
import pytest
from mirstack import relay, rules, te, transform
from mirstack.support.diagnostics import MirError

# Without their types: each call here is wrong.
m, r, u, f, t = cast("Any", mirstack), cast("Any", relay), cast("Any", rules), cast("Any", transform), cast("Any", te)
MODULE = mirstack.parse("def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }")
x: Any = rules.values("x")
ADD = rules.op.add(x, 1)


def compiled(**named: Any) -> object:
    return m.compile(MODULE, **named)


WRONG: dict[str, Callable[[], object]] = {
    "threads is an integer from 1 on, not '2'": lambda: compiled(threads="2"),
    "threads is an integer from 1 on, not True": lambda: compiled(threads=True),
    "threads is an integer from 1 on, not 1.5": lambda: compiled(threads=1.5),
    "opt_level is an integer from 0 to 3, not '3'": lambda: compiled(opt_level="3"),
    "opt_level is an integer from 0 to 3, not 2.0": lambda: compiled(opt_level=2.0),
    "entry is the name of a function, not 3": lambda: compiled(entry=3),
    "caches is a text of sizes, such as '32K,1M,16M', not 32": lambda: compiled(caches=32),
    "cpu is LLVM's name of a processor, such as 'haswell', not 3": lambda: compiled(cpu=3),
    "observers takes a list of functions of a pass and a module, not 3": lambda: compiled(observers=3),
    "observers holds functions of a pass and a module, not 'f'": lambda: compiled(observers=("f",)),
    "allow_extern takes a list of names of C functions, not 3": lambda: compiled(allow_extern=3),
    "strict_math is True or False, not 'no'": lambda: compiled(strict_math="no"),
    "cache is True or False, not 'off'": lambda: compiled(cache="off"),
    "specialize is True or False, not 1": lambda: compiled(specialize=1),
    "shape takes a list of sizes, not 'a'": lambda: m.nd.empty("a"),
    "a size of the shape is an integer from 0 on, not 1.5": lambda: m.nd.empty((2, 1.5)),
    "a size of the shape is an integer from 0 on, not None": lambda: m.nd.empty(None),
    "dtype is the name of a dtype, such as 'float32', not 3": lambda: m.nd.empty((2,), 3),
    "'flaot' is not a dtype, such as 'float32'": lambda: m.nd.empty((2,), "flaot"),
    "path is the path of a file, not 3": lambda: m.load(3),
    "name is the name of a file, for messages, not 3": lambda: m.parse("", 3),
    "directory is the path of a folder, not 3": lambda: m.parse("", directory=3),
    "functions is a dictionary of functions by name, not 3": lambda: m.IRModule(3),
    "function 'f' is a relay.Function or a tir.PrimFunc, not 4": lambda: m.IRModule({"f": 4}),
    "op is a module of xDSL, such as mirstack.parse returns, not 3": lambda: m.IRModule.of_op(3),
    "op_name is the name of an operator, such as 'nn.dense', not 3": lambda: m.ir.Op.get(3),
    "name_hint is the name of a variable, not 3": lambda: r.var(3),
    "name_hint is the name of a function, not None": lambda: r.GlobalVar(None),
    "params takes a list of variables, relay.Var, not 3": lambda: r.Function(3, r.const(1)),
    "params holds variables, relay.Var, not 3": lambda: r.Function([3], r.const(1)),
    "op is an operator, a function or a constructor, not 'add'": lambda: r.Call("add", []),
    "args takes a list of expressions, not 3": lambda: r.Call(m.ir.Op.get("add"), 3),
    "fields takes a list of expressions, not 3": lambda: r.Tuple(3),
    "index is an integer from 0 on, not '0'": lambda: r.TupleGetItem(r.Tuple([r.const(1)]), "0"),
    "variable is a relay.Var, not 'x'": lambda: r.Let("x", r.const(1), r.const(1)),
    "source is the text of an expression, not 3": lambda: r.parse_expr(3),
    "obj is an expression or an IRModule, not ModuleOp": lambda: r.astext(MODULE),
    "a Sequential takes a list of passes, not 3": lambda: f.Sequential(3),
    "required takes a list of names of passes, not 'FuseOps'": lambda: f.Sequential([], required="FuseOps"),
    "opt_level is an integer from 0 on, not 'a'": lambda: f.PassContext(opt_level="a"),
    "instruments holds pass instruments, not 3": lambda: f.PassContext(instruments=[3]),
    "config is a dictionary of settings by name, not 3": lambda: f.PassContext(config=3),
    "relay.FuseOps.max_depth is an integer from 0 on, not 'a'": lambda: f.PassContext(
        config={"relay.FuseOps.max_depth": "a"}
    ),
    "disabled_pass takes a list of names of passes, not 3": lambda: f.PassContext(disabled_pass=3),
    "FuseOps: the option fuse_opt_level is of type int, not 'a'": lambda: f.FuseOps(fuse_opt_level="a"),
    "FuseOps: got an unexpected keyword argument 'level'": lambda: f.FuseOps(level=2),
    "what becomes a pass is a function or a class, not 3": lambda: f.function_pass(3, opt_level=1),
    "lhs takes a list of patterns, or one pattern, not 3": lambda: u.rewrite("a", 3, 4),
    "name is the name of the rule, not 3": lambda: u.rewrite(3, ADD, x),
    "where takes a list of conditions, not 3": lambda: u.rewrite("a", ADD, x, where=3),
    "benefit is an integer from 0 on, not 'a'": lambda: u.rewrite("a", ADD, x, benefit="a"),
    "level is the name of a dialect, such as 'relay', not 3": lambda: u.rewrite("a", ADD, x, level=3),
    "names is names with blanks between them, such as 'x y', not 3": lambda: u.values(3),
    "each argument of one_of is the name of an op, not 3": lambda: u.one_of(3),
    "rules holds rules that rules.rewrite made, not 3": lambda: u.ruleset("a", [3]),
    "include takes a list of names of sets, not 'b'": lambda: u.ruleset("a", [], "b"),
    "module is an IRModule (of a module of xDSL: IRModule.of_op), not 3": lambda: u.apply(3, []),
    "rules holds rules and sets, not 3": lambda: u.apply(relay.parse("def @main() { 1 }"), [3]),
    "ops takes a list of tensors and te.var scalars, not 3": lambda: t.create_prim_func(3),
    "args takes a list of tensors and te.var scalars, not 3": lambda: m.lower(
        te.create_schedule(te.compute((4,), lambda i: i, name="C").op), 3
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_refused_by_the_name(message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        WRONG[message]()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: compiled(opt_level=4), "opt_level is an integer from 0 to 3, not 4"),
        (lambda: compiled(threads=0), "threads is an integer from 1 on, not 0"),
        (lambda: m.nd.empty((2, -1)), "a size of the shape is an integer from 0 on, not -1"),
        (lambda: f.PassContext(opt_level=-1), "opt_level is an integer from 0 on, not -1"),
        (lambda: f.PassContext(opt_level=-(10**5000)), "not an integer of 16610 bits"),
        (lambda: u.rewrite("a", [], x), "lhs has no pattern"),
    ],
)
def test_refused_by_the_value(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: t.placeholder((4,), name=3), "the name of a tensor is a string, not the number 3"),
        (lambda: t.size_var(3), "the name of a variable is a string, not the number 3"),
        (lambda: t.reduce_axis((0, 4), name=3), "the name of a reduce_axis is a string, not the number 3"),
    ],
)
def test_names_of_te(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(MirError, match=message):
        wrong()


def test_an_integer_of_numpy_is_one() -> None:
    import numpy as np

    assert (
        cast("Any", mirstack.compile(MODULE, "interp", opt_level=cast("int", np.int64(2))))(np.zeros(4, "f4"))[0] == 1
    )
