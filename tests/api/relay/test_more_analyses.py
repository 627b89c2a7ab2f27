"""Analyses by TVM's names: features, call graphs, basic blocks, matches, parts of programs."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack import MirError, relay
from mirstack.api.relay import analysis
from mirstack.api.relay.analysis import Feature, unmatched_cases

x = relay.var("x", shape=(2,))


def test_features() -> None:
    value = relay.exp(x)
    assert analysis.detect_feature(relay.Function([x], value)) == {
        Feature.fVar,
        Feature.fFunction,
        Feature.fOp,
        Feature.fCall,
    }
    assert Feature.fGraph in analysis.detect_feature(relay.add(value, value))
    loop = relay.var("loop")
    recursive = relay.Let(loop, relay.Function([], loop()), loop())
    assert {Feature.fLet, Feature.fLetRec} <= analysis.detect_feature(recursive)
    module = mirstack.IRModule()
    relay.Prelude(module)
    found = analysis.detect_feature(relay.const(1), module)
    assert {Feature.fConstant, Feature.fMatch, Feature.fConstructor, Feature.fIf} <= found
    assert not found & {Feature.fRefCreate, Feature.fRefRead, Feature.fRefWrite}


def test_call_graph() -> None:
    g0, g1, main = (relay.GlobalVar(name) for name in ("g0", "g1", "main"))
    y = relay.var("y", shape=(2,))
    module = mirstack.IRModule({g0: relay.Function([x], x + x)})
    module[g1] = relay.Function([y], relay.Call(g0, [y]))
    module[main] = relay.Function([y], relay.add(g0(y), g1(y)))
    graph = analysis.CallGraph(module)
    assert [graph.global_call_count(each) for each in (g0, g1, "main")] == [0, 1, 2]
    assert [graph.ref_count(each) for each in (g0, g1, main)] == [2, 1, 0]
    assert not graph.is_recursive(g0) and "#refs = 2" in graph.print_var("g0") and "g1" in str(graph)
    assert graph.module is module
    with pytest.raises(MirError, match="the module has no function @g2"):
        graph.ref_count("g2")


def test_basic_block_normal_form() -> None:
    shared = relay.exp(x)
    condition = relay.const(np.array(True))
    branches = relay.If(condition, relay.add(shared, x), relay.subtract(shared, x))
    assert not analysis.check_basic_block_normal_form(relay.Function([x], branches))
    assert analysis.check_basic_block_normal_form(relay.Function([x], relay.add(shared, shared)))
    module = mirstack.transform.ToBasicBlockNormalForm()(mirstack.IRModule.from_expr(relay.Function([x], branches)))
    assert analysis.check_basic_block_normal_form(module["main"])


def test_unmatched_cases() -> None:
    module = mirstack.IRModule()
    prelude = relay.Prelude(module)
    cons, nil, value = prelude.cons, prelude.nil, relay.var("l")
    rest = relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternConstructor(nil)])

    def missed(*patterns: relay.Pattern) -> list[str]:
        clauses = [relay.Clause(pattern, value) for pattern in patterns]
        return [repr(case) for case in unmatched_cases(relay.Match(value, clauses, complete=False), module)]

    assert missed(relay.PatternWildcard()) == []
    assert missed() == ["_"]
    assert missed(relay.PatternConstructor(nil)) == ["Cons(_, _)"]
    assert missed(relay.PatternConstructor(nil), relay.PatternConstructor(cons)) == []
    assert missed(rest) == ["Nil", "Cons(_, Cons(_, _))"]
    pair = relay.PatternTuple([relay.PatternConstructor(nil), relay.PatternWildcard()])
    assert missed(pair) == ["(Cons(_, _), _)"]


def test_parts_of_programs() -> None:
    w = relay.var("w", shape=(3, 2))
    data = relay.var("data", shape=(1, 2))
    function = relay.Function([data, w], relay.exp(relay.nn.relu(relay.nn.dense(relay.exp(data), w))))
    module = mirstack.IRModule.from_expr(function)
    (fused,) = [f for f in analysis.extract_fused_functions(module).values() if "nn.dense" in f.astext()]
    assert "nn.relu" in fused.astext() and fused.attrs["Primitive"] == 1
    part = analysis.extract_intermdeiate_expr(module, 1)
    assert analysis.list_op_freqs(part) == {"exp": 1, "nn.dense": 1}
    with pytest.raises(MirError, match="there are 4 calls, and none of number 4"):
        analysis.extract_intermdeiate_expr(function, 4)
