"""TVMScript in Python's syntax: the words that it does not have, and the tree of an item."""

from __future__ import annotations

from ..items import Item
from ..python.builder import parse_tree
from ..python.lexer import Language
from ..python.tree import Function, Module

TVMSCRIPT = Language(
    "TVMScript",
    {
        "import": "imports stand at the top of the file",
        "from": "imports stand at the top of the file",
        "try": "a program cannot catch errors",
        "except": "a program cannot catch errors",
        "finally": "a program cannot catch errors",
        "raise": 'write assert condition, "message"',
        "break": "leave a loop by its condition: write a while loop",
        "continue": "put the rest of the body under an if",
        "yield": "a prim_func returns at most one scalar, with return",
        "del": "a buffer lives until the end of its block",
        "is": "write '==' to compare",
        "global": "write a buffer to share a value",
        "nonlocal": "write a buffer to share a value",
        "async": 'write T.attr(0, "async_scope", 1)',
        "await": 'write T.attr(0, "async_wait_queue_scope", 0)',
    },
    "T.float16(2)",
    conditional=(
        "TVMScript has no 'a if condition else b'",
        "write T.if_then_else(condition, a, b), which evaluates only the side chosen, or T.Select(condition, a, b)",
    ),
    mistakes=(
        (
            "a function is not defined inside another one here",
            "define it beside this one, in the same class, and call it as Module.name(…)",
            (
                "@T.prim_func\ndef f(a):\n    def g():\n        pass\n",
                "@T.prim_func\ndef f(a):\n    @T.prim_func\n    def g():\n        pass\n",
            ),
        ),
        (
            "a function in a module needs a decorator",
            "write @T.prim_func above 'def'",
            ("@I.ir_module\nclass M:\n    def f():\n        pass\n",),
        ),
    ),
)


def parse_item(item: Item) -> Function | Module:
    """The tree of a decorated function or class. Raises MirError for a syntax error."""
    return parse_tree(item, TVMSCRIPT)
