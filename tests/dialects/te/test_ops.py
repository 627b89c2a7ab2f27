"""The verifiers of te's ops: each message, from the op's generic form."""

from __future__ import annotations

import pytest
from mirstack.dialects.te import TE
from mirstack.dialects.tir import TIR
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

FUNC = '"te.func"() <{sym_name = "f"}> ({'
A = '%A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[4 : i32], f32>'
K = '%0 = "tir.const"() <{value = 0 : i32}> : () -> i32\n%4 = "tir.const"() <{value = 4 : i32}> : () -> i32\n%k = "te.reduce_axis"(%0, %4) <{var_name = "k"}> : (i32, i32) -> i32'
N = '%n = "tir.var"() <{var_name = "n"}> : () -> i32'
SEG = "operandSegmentSizes = array<i32: 0, 0>"


def compute(body: str, result: str = "!te.tensor<[4 : i32], f32>", args: str = "%i: i32", names: str = '"i"') -> str:
    return f'%B = "te.compute"() <{{compute_name = "B", iter_names = [{names}], {SEG}}}> ({{\n^bb0({args}):\n{body}\n}}) : () -> {result}'


READ = '%x = "te.read"(%A, %i) : (!te.tensor<[4 : i32], f32>, i32) -> f32'
YIELD = '"tir.yield"(%x) : (f32) -> ()'
REDUCE = (
    '%s = "te.reduce"(%x, %k) <{kind = "sum", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (f32, i32) -> f32'
)
READ_K = '%x = "te.read"(%A, %k) : (!te.tensor<[4 : i32], f32>, i32) -> f32'


def reduce(kind: str, operands: str, segments: str, types: str, result: str = "f32") -> str:
    return compute(
        f'{READ_K}\n%c = "tir.const"() <{{value = true}}> : () -> i1\n'
        f'%s = "te.reduce"({operands}) <{{kind = "{kind}", operandSegmentSizes = array<i32: {segments}>}}> : ({types}) -> {result}\n'
        '"tir.yield"(%s) : (f32) -> ()'
    )


REDUCER = """%r = "te.comm_reducer"() <{reducer_name = "r"}> ({
^bb0(%a: i32, %b: i32):
  "tir.yield"(%a) : (i32) -> ()
}, {
  %z = "tir.const"() <{value = 0 : i32}> : () -> i32
  "tir.yield"(%z) : (i32) -> ()
}) : () -> !tir.reducer"""
STATE = '%S = "te.placeholder"() <{var_name = "S"}> : () -> !te.tensor<[4 : i32], f32>'
UPDATE = compute(
    '%1 = "tir.const"() <{value = 1 : i32}> : () -> i32\n%p = "tir.sub"(%i, %1) : (i32, i32) -> i32\n'
    '%x = "te.read"(%S, %p) : (!te.tensor<[4 : i32], f32>, i32) -> f32\n' + YIELD
)
T4 = "!te.tensor<[4 : i32], f32>"


def scan(operands: str, segments: str = "1, 1, 1, 0", types: str = f"{T4}, {T4}, {T4}", result: str = T4) -> str:
    return f'%Y = "te.scan"({operands}) <{{scan_name = "Y", operandSegmentSizes = array<i32: {segments}>}}> : ({types}) -> {result}'


WRONG = {
    "must end with te.return of its parameters": [A, compute(READ + "\n" + YIELD)],
    "a function returns tensors and te.var scalars; this value is an expression": [K, '"te.return"(%0) : (i32) -> ()'],
    "'A' is returned twice; each parameter is listed once": [A, f'"te.return"(%A, %A) : ({T4}, {T4}) -> ()'],
    "tensor 'A' has 1 symbolic extent, but 0 values for them": [
        '%A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[none], f32>', "RET"],
    "an extent of tensor 'A' has dtype float32; an extent is an int32 or int64": [
        '%f = "tir.const"() <{value = 1.0 : f32}> : () -> f32',
        '%A = "te.placeholder"(%f) <{var_name = "A"}> : (f32) -> !te.tensor<[none], f32>', "RET"],
    "axis 'k' runs from int32 over int64; both are int32 or int64": [
        K, '%5 = "tir.const"() <{value = 4 : i64}> : () -> i64',
        '%l = "te.reduce_axis"(%0, %5) <{var_name = "k"}> : (i32, i64) -> i64', A, "RET"],
    "tensor 'A' has 1 dimension, but is read with 2 indices": [
        A, compute(f'%x = "te.read"(%A, %i, %i) : ({T4}, i32, i32) -> f32\n{YIELD}'), "RET"],
    "index 0 of 'A' has dtype float32; an index is an integer": [
        A, compute(f'{READ}\n%y = "te.read"(%A, %x) : ({T4}, f32) -> f32\n{YIELD}'), "RET"],
    "'A' holds float32, but the read gives int32": [
        A, compute(f'%x = "te.read"(%A, %i) : ({T4}, i32) -> i32\n"tir.yield"(%x) : (i32) -> ()', "!te.tensor<[4 : i32], i32>"), "RET"],
    "compute 'B' makes no tensor": [A, f'"te.compute"() <{{compute_name = "B", iter_names = [], {SEG}}}> ({{\n"tir.yield"() : () -> ()\n}}) : () -> ()', "RET"],
    "the tensors of compute 'B' have different shapes": [
        A, f'%B, %C = "te.compute"() <{{compute_name = "B", iter_names = ["i"], {SEG}}}> ({{\n^bb0(%i: i32):\n{READ}\n"tir.yield"(%x, %x) : (f32, f32) -> ()\n}}) : () -> ({T4}, !te.tensor<[5 : i32], f32>)', "RET"],
    "compute 'B' has 1 dimension, but 2 axes and 1 name for them": [A, compute(f"{READ}\n{YIELD}", args="%i: i32, %j: i32"), "RET"],
    "axis 'i' of compute 'B' has dtype int64, but its extent is int32": [
        A, compute(f'%x = "te.read"(%A, %i) : ({T4}, i64) -> f32\n{YIELD}', args="%i: i64"), "RET"],
    "the body of compute 'B' must yield 1 value, one for each tensor": [A, compute('"tir.yield"() : () -> ()'), "RET"],
    "compute 'B' makes a tensor of int32, but its body yields float32": [A, compute(f"{READ}\n{YIELD}", "!te.tensor<[4 : i32], i32>"), "RET"],
    "a reduction must be the whole value of compute 'B'": [
        A, K, compute(f'{READ_K}\n{REDUCE}\n%y = "tir.add"(%s, %s) : (f32, f32) -> f32\n"tir.yield"(%y) : (f32) -> ()'), "RET"],
    "'tir.var' is not an expression, so it cannot stand in the body of compute 'B'": [A, compute(f"{N}\n{READ}\n{YIELD}"), "RET"],
    "axis 'k' is used in compute 'B', which does not reduce over it": [A, K, compute(f"{READ_K}\n{YIELD}"), "RET"],
    "unknown reduction 'mean'; a reduction is sum, prod, min, max, all, any, custom": [A, K, reduce("mean", "%x, %k", "1, 1, 0, 0, 0", "f32, i32"), "RET"],
    "a custom reduction takes a te.comm_reducer": [A, K, reduce("custom", "%x, %k", "1, 1, 0, 0, 0", "f32, i32"), "RET"],
    "a sum reduction takes no te.comm_reducer": [A, K, REDUCER, reduce("sum", "%x, %k, %r", "1, 1, 0, 0, 1", "f32, i32, !tir.reducer"), "RET"],
    "te.sum reduces one value, not 2": [A, K, reduce("sum", "%x, %x, %k", "2, 1, 0, 0, 0", "f32, f32, i32", "f32"), "RET"],
    "te.all reduces bool, not float32": [A, K, reduce("all", "%x, %k", "1, 1, 0, 0, 0", "f32, i32"), "RET"],
    "reducer 'r' is for (int32), but reduces (float32)": [A, K, REDUCER, reduce("custom", "%x, %k, %r", "1, 1, 0, 0, 1", "f32, i32, !tir.reducer"), "RET"],
    "the reduction of (float32) gives (int32)": [A, K, reduce("sum", "%x, %k", "1, 1, 0, 0, 0", "f32, i32", "i32").replace("(%s) : (f32)", "(%s) : (i32)"), "RET"],
    "the reduction of (float32) begins with (bool)": [A, K, reduce("sum", "%x, %k, %c", "1, 1, 0, 1, 0", "f32, i32, i1"), "RET"],
    "the 'where' of a reduction must be bool, not float32": [A, K, reduce("sum", "%x, %k, %x", "1, 1, 1, 0, 0", "f32, i32, f32"), "RET"],
    "a reduction needs an axis to reduce over": [A, K, reduce("sum", "%x", "1, 0, 0, 0, 0", "f32"), "RET"],
    "a reduction is over values of te.reduce_axis": [A, K, reduce("sum", "%x, %4", "1, 1, 0, 0, 0", "f32, i32"), "RET"],
    "a reduction is given an axis twice": [A, K, reduce("sum", "%x, %k, %k", "1, 2, 0, 0, 0", "f32, i32, i32"), "RET"],
    "reducer 'r' has identities of (int32), so it must combine two such tuples into one": [A, REDUCER.replace("%b: i32", "%b: f32"), "RET"],
    "scan 'Y' has 1 init, 2 update and 1 state tensors and 1 results; they go together": [
        A, STATE, UPDATE, scan("%A, %B, %B, %S", "1, 2, 1, 0", f"{T4}, {T4}, {T4}, {T4}"), "RET"],
    "the state 'B' of scan 'Y' must be a te.placeholder": [A, STATE, UPDATE, scan("%A, %B, %B"), "RET"],
    "the update of the state 'S' of scan 'Y' must be a te.compute": [A, STATE, scan("%A, %A, %S"), "RET"],
    "the state 'S' of scan 'Y' has another type than the result": [A, STATE, UPDATE, scan("%A, %B, %S", result="!te.tensor<[5 : i32], f32>"), "RET"],
    "the state 'S' of scan 'Y' and its update 'B' differ in shape or dtype": [
        A, STATE.replace("4 : i32", "5 : i32"), UPDATE.replace("(%S, %p) : (!te.tensor<[4", "(%S, %p) : (!te.tensor<[5"),
        scan("%A, %B, %S", types=f"{T4}, {T4}, !te.tensor<[5 : i32], f32>", result="!te.tensor<[5 : i32], f32>"), "RET"],
    "the state 'S' of scan 'Y' and its init 'I' differ in dtype or in a dimension after the first": [
        A, '%I = "te.placeholder"() <{var_name = "I"}> : () -> !te.tensor<[1 : i32], i32>', STATE, UPDATE,
        scan("%I, %B, %S", types=f"!te.tensor<[1 : i32], i32>, {T4}, {T4}"), "RET"],
    "may read its state 'S' only at earlier steps, as in S[i - 1, …]": [A, STATE, UPDATE.replace("(%S, %p)", "(%S, %i)"), scan("%A, %B, %S"), "RET"],
    "'B' is computed step by step in scan 'Y', so it cannot be used outside of it": [
        A, STATE, UPDATE, scan("%A, %B, %S"), f'"te.return"(%A, %B) : ({T4}, {T4}) -> ()'],
    "extern 'E' makes no tensor": [A, f'"te.extern"() <{{extern_name = "E", {SEG}}}> ({{\n^bb0:\n}}) : () -> ()', "RET"],
    "the results of extern 'E' have 1 symbolic extent, but 0 values for them": [
        A, f'%E = "te.extern"() <{{extern_name = "E", {SEG}}}> ({{\n^bb0(%b: !tir.buffer<[none], f32, "global">):\n}}) : () -> !te.tensor<[none], f32>', "RET"],
    "the body of extern 'E' takes one buffer for each input and result, of its shape and dtype": [
        A, f'%E = "te.extern"() <{{extern_name = "E", {SEG}}}> ({{\n^bb0:\n}}) : () -> {T4}', "RET"],
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_verifier(message: str) -> None:
    lines = [line if line != "RET" else f'"te.return"(%A) : ({T4}) -> ()' for line in WRONG[message]]
    if '"te.placeholder"(%f)' in "".join(lines) or "[none], f32>" in lines[0]:
        lines[-1] = '"te.return"(%A) : (!te.tensor<[none], f32>) -> ()'
    context = Context()
    for dialect in (Builtin, TE, TIR):
        context.load_dialect(dialect)
    module = Parser(context, FUNC + "\n" + "\n".join(lines) + "\n}) : () -> ()").parse_module()
    errors = [d.message for d in find_errors(module)]
    assert any(message in error for error in errors), errors


def test_extent_of_a_type() -> None:
    context = Context()
    for dialect in (Builtin, TE, TIR):
        context.load_dialect(dialect)
    with pytest.raises(Exception, match="an extent of a tensor is an i32 or i64 that is not negative, or none"):
        Parser(context, '"te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[-4 : i32], f32>').parse_module()
