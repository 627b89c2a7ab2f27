"""Times the language server on texts of 2,000 lines: each change until its findings are there.

python -m benchmarks.editor    # needs the extra lsp
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

LINES = 2_000
CHANGES = 20


def relay_functions() -> str:
    """Returns functions of Relay of 20 lines each."""
    chain = "\n".join(f"  %{k} = {'nn.relu' if k % 2 else 'tanh'}(%{k - 1});" for k in range(1, 17))
    return "".join(
        f"def @f{n}(%x: Tensor[(8, 16), float32], %w: Tensor[(16, 16), float32]) {{\n  %0 = nn.dense(%x, %w);\n{chain}\n  %16\n}}\n"
        for n in range(LINES // 20)
    )


def relay_function() -> str:
    """Returns one function of Relay, a chain of additions."""
    lines = "\n".join(f"  %{k} = add(%{k - 1}, %x);" for k in range(1, LINES - 3))
    return f"def @main(%x: Tensor[(4), float32]) {{\n  %0 = nn.relu(%x);\n{lines}\n  %{LINES - 4}\n}}\n"


def scheduled_functions() -> str:
    """Returns prim_funcs of two loop nests, each with its schedule, of 20 lines together."""
    nest = '    for i, j in T.grid(64, 100):\n        with T.block("{0}"):\n            vi, vj = T.axis.remap("SS", [i, j])\n            {0}[vi, vj] = {1}[vi, vj] * T.float32(2)\n'
    shape = 'T.Buffer((64, 100), "float32")'
    schedule = '    b = sch.get_block("B")\n    i, j = sch.get_loops(b)\n    j_0, j_1 = sch.split(j, factors=[None, 20])\n    sch.vectorize(j_1)\n    sch.parallel(i)\n'
    return "".join(
        f"@T.prim_func\ndef k{n}(A: {shape}, B: {shape}, C: {shape}):\n{nest.format('B', 'A')}{nest.format('C', 'B')}\n"
        f"@T.schedule(k{n})\ndef s{n}(sch):\n{schedule}\n\n"
        for n in range(LINES // 20)
    )


def prim_func() -> str:
    """Returns one prim_func of many loop nests."""
    nest = '    for i, j in T.grid(64, 100):\n        with T.block("B{0}"):\n            vi, vj = T.axis.remap("SS", [i, j])\n            B[vi, vj] = A[vi, vj] * T.float32({0})\n'
    shape = 'T.Buffer((64, 100), "float32")'
    head = f"@T.prim_func\ndef f(A: {shape}, B: {shape}):\n    C = T.alloc_buffer((64, 100))\n"
    return head + "".join(nest.format(n) for n in range(LINES // 4))


class Server:
    """A server that is talked to over its standard input and output."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "mirstack.editor.mir_lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method: str, params: dict[str, Any], **more: int) -> None:
        """Sends a message."""
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Returns the next message of the server."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return json.loads(self.process.stdout.read(length))

    def ask(self, method: str, params: dict[str, Any]) -> float:
        """Returns the milliseconds from a request to its answer."""
        self.number += 1
        start = time.perf_counter()
        self.send(method, params, id=self.number)
        while self.receive().get("id") != self.number:
            pass
        return (time.perf_counter() - start) * 1e3

    def tell(self, method: str, params: dict[str, Any]) -> float:
        """Returns the milliseconds from a message about a text to its findings."""
        start = time.perf_counter()
        self.send(method, params)
        while self.receive().get("method") != "textDocument/publishDiagnostics":
            pass
        return (time.perf_counter() - start) * 1e3


def measure(server: Server, name: str, text: str, line: int | None = None) -> None:
    """Prints the times of one text: opened, changed in a line, its middle by default, and asked about."""
    uri = f"file:///nowhere/{name.replace(' ', '-')}.mir"
    document = {"uri": uri}
    opened = server.tell(
        "textDocument/didOpen", {"textDocument": {**document, "languageId": "mir", "version": 1, "text": text}}
    )
    lines = text.split("\n")
    middle = len(lines) // 2 if line is None else line
    changes: list[float] = []
    for number in range(CHANGES):
        lines[middle] = lines[middle].rstrip() + " " * (number % 7 + 1)
        version = {**document, "version": number + 2}
        params = {"textDocument": version, "contentChanges": [{"text": "\n".join(lines)}]}
        changes.append(server.tell("textDocument/didChange", params))
    place = {"textDocument": document, "position": {"line": middle, "character": len(lines[middle].rstrip()) - 2}}
    asked = {
        "hover": server.ask("textDocument/hover", place),
        "completion": server.ask("textDocument/completion", place),
        "definition": server.ask("textDocument/definition", place),
        "colors": server.ask("textDocument/semanticTokens/full", {"textDocument": document}),
    }
    answers = ", ".join(f"{what} {taken:.0f}" for what, taken in asked.items())
    print(
        f"{name}, {len(lines)} lines: opened {opened:.0f} ms; a change {min(changes):.0f} ms at least, "
        f"{statistics.median(changes):.0f} in the median; {answers} ms",
        flush=True,
    )


def main() -> None:
    """Prints a line for each text."""
    server = Server()
    started = server.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    server.send("initialized", {})
    print(f"started in {started:.0f} ms")
    measure(server, "functions of Relay", relay_functions())
    measure(server, "one function of Relay", relay_function())
    measure(server, "prim_funcs with schedules", scheduled_functions())
    measure(server, "one prim_func", prim_func())
    measure(server, "the buffer of one prim_func", prim_func(), 2)
    server.ask("shutdown", {})
    server.send("exit", {})
    server.process.wait(60)


if __name__ == "__main__":
    main()
