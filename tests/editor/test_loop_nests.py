"""After any change of a prim_func the editor has what a new reading of the text finds, though it reads only the nests that changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import mirstack.editor.parts as parts_module
import pytest
from mirstack.editor.analysis import Analysis, Analyzer
from mirstack.editor.nests import split_nests
from mirstack.parser.items import Item
from mirstack.support.walk import walk_ops

HEAD = """\
@T.prim_func
def f(A: T.Buffer((64, 100), "float32"), B: T.Buffer((64, 100), "float32"), n: T.int32):
    C = T.alloc_buffer((64, 100), "float32")
    D = T.alloc_buffer((64,), "float32")
"""
NESTS = [
    """\
    for i, j in T.grid(64, 100):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
""",
    """\
    # the sum of a row
    for i, k in T.grid(64, 100):
        with T.block("D"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + C[vi, vk]
""",
    """\
    for i in T.thread_binding(64, thread="threadIdx.x"):
        for j in range(100):
            B[i, j] = C[i, j] + D[i]
""",
    """\
    for i in range(n):
        if i < 64:
            B[i, 0] = T.float32(1)
""",
    """\
    for i, j in T.grid(64, 90):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            vj = T.axis.spatial(100, j + 5)
            B[vi, vj] = C[vi, vj] - D[vi]
""",
]
TEXT = HEAD + "".join(NESTS)
REPLACEMENTS = [
    ("64", "65"), ("100", "90"), ("range(n)", "range(8)"), ('"SS"', '"SR"'), ("C[", "E["), ("A[", "C["), ("C[", "A["), (":", ""), ("(", ""), (")", ""),
    ("]", ""), ("    ", ""), ("\n", "\n\n"), ("\n", "  # note\n"), ("vi", "v"), ("=", "=="), ("for", "while"), ('"', ""), ("T.block", "T.blok"),
    ("D[vi]", "D[vi + 1]"), ("i, j", "i, i"), ("B[", "D["), ("float32", "int32"), ("with", "for"), ("+", "\\\n +"), ("n:", "m:"),
]  # fmt: skip


def edited(text: str, draw: random.Random) -> str:
    """Returns a text with one random change, as a person or an editor would make it."""
    kind = draw.randrange(10)
    lines = text.split("\n")
    line = draw.randrange(2, len(lines))
    if kind == 0:
        return text + draw.choice(NESTS)
    if kind == 1:
        return text.replace(draw.choice(NESTS), "", 1)
    if kind == 2:
        nest = draw.choice(NESTS)
        return text.replace(nest, nest + draw.choice(NESTS), 1)
    if kind == 3:
        del lines[line]
    elif kind == 4:
        lines.insert(line, draw.choice(lines))
    elif kind == 5:
        lines.insert(
            line,
            draw.choice(
                [
                    "",
                    "    # note",
                    "    return",
                    "    x = n + 1",
                    "    with T.block('x'):",
                    "        B[0, 0] = D[1]",
                    "    E = T.alloc_buffer((64, 100))",
                    "    C = T.alloc_buffer((64, 101))",
                    "    t = T.launch_thread('threadIdx.x', 64)",
                    "    n: T.int32 = 3",
                    "    B[0, 0] = A[0, 0]",
                    "    E = T.al",
                ]
            ),
        )
    else:
        old, new = draw.choice(REPLACEMENTS)
        places = [k for k in range(len(text)) if text.startswith(old, k)]
        if places:
            place = draw.choice(places)
            return text[:place] + new + text[place + len(old) :]
    return "\n".join(lines)


def described(analysis: Analysis) -> list[object]:
    assert not list(analysis.failures)
    return [(each.message, each.severity, each.start, each.end, each.notes) for each in analysis.findings]


def ops_of(analysis: Analysis) -> list[str]:
    return [
        f"{op.name} {op.location} {op.properties} {[a.location for r in op.regions for b in r.blocks for a in b.args]} {len(op.operands)}"
        for place in analysis.places
        for top in place.ops
        for op in walk_ops(top)
    ]


def printed(analysis: Analysis) -> list[str]:
    return [str(op) for place in analysis.places for op in place.ops]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that are read."""
    texts: list[str] = []
    parse = parts_module.parse_items

    def counted(items: list[Item], context: object) -> object:
        texts.extend(item.text for item in items)
        return parse(items, context)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(parts_module, "parse_items", counted)
    yield texts


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_are_found_as_in_a_new_reading(seed: int) -> None:
    draw = random.Random(seed)
    analyzer = Analyzer()
    text = good = TEXT
    for _ in range(50):
        got = analyzer.analyse(text)
        wanted = Analyzer().analyse(text)
        assert described(got) == described(wanted), text
        if any(finding.severity == "error" for finding in wanted.findings):
            if draw.random() < 0.6:
                text = good
        else:
            assert ops_of(got) == ops_of(wanted) and printed(got) == printed(wanted), text
            good = text
        text = edited(text, draw) if len(text) < 4_000 else TEXT


def test_only_the_changed_nest_is_read(read: list[str]) -> None:
    text = HEAD + "".join(NESTS[0].replace('"C"', f'"C{k}"') for k in range(20))
    analyzer = Analyzer()
    analyzer.analyse(text)
    read.clear()
    changed = text.replace('T.block("C7")', 'T.block("changed")')
    analysis = analyzer.analyse(changed)
    # Its own, the one after it, which shows where an unfinished one ends, and the function's last one.
    assert [each.count("T.grid") for each in read] == [3]
    assert printed(analysis) == printed(Analyzer().analyse(changed))


def test_an_allocated_buffer_needs_only_the_nests_that_name_it(read: list[str]) -> None:
    text = HEAD + "".join(NESTS[0].replace('"C"', f'"C{k}"') for k in range(20)) + NESTS[1]
    analyzer = Analyzer()
    analyzer.analyse(text)
    for old, new, nests in [
        ('    D = T.alloc_buffer((64,), "float32")\n', '    D = T.alloc_buffer((64,), "float32")\n    E = T.alloc_buffer((64,))\n', 2),
        ('    E = T.alloc_buffer((64,))\n', '    E = T.alloc_buffer((65,))\n', 2),
        ('    E = T.alloc_buffer((65,))\n', '', 2),
        ('    D = T.alloc_buffer((64,), "float32")', '    D = T.alloc_buffer((65,), "float32")', 2),
        ('    C = T.alloc_buffer((64, 100), "float32")', '    C = T.alloc_buffer((64, 101), "float32")', 21),
    ]:  # fmt: skip
        text = text.replace(old, new)
        read.clear()
        analysis = analyzer.analyse(text)
        assert [each.count("T.grid") for each in read] == [nests]
        assert described(analysis) == described(Analyzer().analyse(text))
        assert ops_of(analysis) == ops_of(other := Analyzer().analyse(text)) and printed(analysis) == printed(other)


def test_an_error_in_a_nest_leaves_the_others_as_they_were(read: list[str]) -> None:
    text = HEAD + "".join(NESTS[0].replace('"C"', f'"C{k}"') for k in range(20))
    analyzer = Analyzer()
    analyzer.analyse(text)
    wrong = text.replace("A[vi, vj]", "E[vi, vj]", 1)
    assert [finding.message.partition("\n")[0] for finding in analyzer.analyse(wrong).findings] == [
        "'E' is not defined"
    ]
    read.clear()
    assert analyzer.analyse(text.replace("float32(2)", "float32(3)", 1)).findings == []
    assert [each.count("T.grid") for each in read] == [3]


def test_an_allocated_buffer_that_a_nest_no_longer_writes_is_reported() -> None:
    analyzer = Analyzer()
    assert analyzer.analyse(TEXT).findings == []
    changed = TEXT.replace("C[vi, vj] = A[vi, vj]", "B[vi, vj] = A[vi, vj]")
    messages = [finding.message for finding in analyzer.analyse(changed).findings]
    assert any("buffer 'C' is read here, but nothing writes it" in message for message in messages)
    assert analyzer.analyse(TEXT).findings == []


def test_texts_whose_lines_do_not_show_their_statements_are_not_split() -> None:
    for wrong in ('"""a string"""', "\\\n", "\tpass"):
        assert split_nests(TEXT + wrong) is None
    assert split_nests("@T.prim_func\n") is None
    chunks = split_nests(TEXT)
    assert chunks is not None and [chunk.is_nest for chunk in chunks] == [False] * 3 + [True] * 5
    assert "\n".join(chunk.text for chunk in chunks) == TEXT
    assert all(TEXT.split("\n")[chunk.line - 1] == chunk.text.split("\n")[0] for chunk in chunks)
