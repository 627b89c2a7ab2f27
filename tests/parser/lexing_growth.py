"""Times the readers of every text format on long runs of one piece of text, followed by a stray character.

`python lexing_growth.py 10000` takes runs of 10,000 characters, prints a line for each case whose time grows faster than the text, and ends with "checked N".
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from mirstack.dialects.relay.operators.common.layout_strings import parse_layout
from mirstack.driver.expected import read_expectations
from mirstack.driver.mlir_frontend import parse_mlir
from mirstack.driver.pipeline import read_pipeline
from mirstack.driver.sources import Source
from mirstack.lowering.driver.source import _SIDE_FILE
from mirstack.parser.items import split_items
from mirstack.parser.python import lexer as python
from mirstack.parser.relay import lexer as relay
from mirstack.parser.relay.reading import _DIRECTIVE
from mirstack.parser.rules import lexer as rules
from mirstack.parser.te.syntax import TE
from mirstack.parser.tvmscript.syntax import TVMSCRIPT
from xdsl.context import Context

PIECES = [
    *(" ", "\t", "\n", "\r\n", "\f", '"', "'", '"""', "'''", '\\"', '"\\', "\\", "\\\n", "\\ ", 'r"', "b'"),
    *(
        "/*",
        "*/",
        "/**/",
        "/* ",
        "/* *",
        "* /",
        "//",
        "//\n",
        "#",
        "#\n",
        "# \n",
        "#[",
        "#[a",
        "(",
        ")",
        "( ",
        ")#",
        "() ",
    ),
    *("[", "]", "{", "}", "<", ">", "1", "1.", "1e", "1_", "0x", ".", "..", ".1", "_", "a", "a.", "a ", "a=", "a \t"),
    *(
        "%",
        "%0",
        "%0 ",
        "@",
        "@a\n",
        "@a(",
        "=",
        "= ",
        "-",
        "- ",
        "->",
        ":",
        ";",
        ",",
        " ,",
        ", ",
        "a,",
        "{,",
        "$",
        "é",
        "\0",
    ),
    *(
        "Tensor[(",
        "Tensor[(()",
        "Tensor[((),",
        "(let ",
        "match",
        "from ",
        "import a\n",
        "def ",
        "@T.prim_func\n",
        'T.block("',
    ),
    *(
        "expected-error",
        "expected-error {{",
        "// expected-error@+1",
        "expected-note 1 ",
        "{{",
        "}}",
        'constants = "',
        "constants ",
    ),
]
STRAY = ["$", "", "\nx"]

PYTHON = ["", "f(A=", '"', "'''"]
READERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "relay": (relay.tokenize, ["", "%a = ", '"', "/*"]),
    "te": (lambda text: python.tokenize(text, TE), PYTHON),
    "tvmscript": (lambda text: python.tokenize(text, TVMSCRIPT), PYTHON),
    "rules": (rules.tokenize, ["", '"', "/*"]),
    "items": (
        lambda text: split_items(text, "f.mir", 1, lambda error: None),
        ["", "def @f() {", "@T.prim_func\ndef f():\n  ", "#[version", "%a = ", '"', "/*"],
    ),
    "directive": (_DIRECTIVE.match, ["#[version", '#[version = "']),
    "expectations": (lambda text: read_expectations(text, "f.mir"), ["// expected-error", "// "]),
    "parts": (lambda text: list(Source("f.mir", text, Path()).chunks(True)), ["", "// -----"]),
    "pipeline": (lambda text: read_pipeline(text, {}), ["", "fuse-ops{a="]),
    "side files": (_SIDE_FILE.findall, ["", "constants"]),
    "layout": (parse_layout, [""]),
    "mlir": (lambda text: parse_mlir(Context(), text, "f.mlir"), ["", '"', '"a.b"() {x = "', "%a = "]),
}
"""What reads each format, and what stands before the run of pieces."""
SLOW = 0.2
"""Seconds from which on a case is looked at more closely; linear ones take a hundredth."""
GROWTH = 9.0
"""How many times as long a text four times as long may take: sixteen times is quadratic."""


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time to read or refuse the text."""
    start = time.process_time()
    with suppress(Exception):
        read(text)
    return time.process_time() - start


def slow_cases(size: int) -> Iterator[str]:
    """The cases whose time grows faster than the text."""
    for name, (read, heads) in READERS.items():
        for head in heads:
            for piece in PIECES:
                for stray in STRAY if len(piece) < 8 else STRAY[:1]:
                    count = size // len(piece)
                    if seconds(read, head + piece * count + stray) < SLOW:
                        continue
                    short = min(seconds(read, head + piece * (count // 4) + stray) for _ in range(3))
                    long = min(seconds(read, head + piece * count + stray) for _ in range(3))
                    if long > SLOW and long > GROWTH * short:
                        yield f"{name}: {head!r} {piece!r} × {count} {stray!r}: {short:.3f} s → {long:.3f} s"


if __name__ == "__main__":
    gc.disable()
    for case in slow_cases(int(sys.argv[1])):
        print(case, flush=True)
    print(f"checked {sum(len(heads) for _, heads in READERS.values()) * len(PIECES)}")
