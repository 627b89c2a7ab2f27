"""A recorded session of every feature: the bytes of an editor are sent again, and the answers compared.

`session.json` holds the messages in order; `python tests/editor/test_mir_lsp_session.py` records the answers again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("session.json")
URI = "file:///nowhere/session.mir"
FEATURES = {
    "textDocument/publishDiagnostics", "textDocument/hover", "textDocument/completion", "completionItem/resolve",
    "textDocument/definition", "textDocument/references", "textDocument/prepareRename", "textDocument/rename",
    "textDocument/codeAction", "textDocument/foldingRange", "textDocument/semanticTokens/full",
}  # fmt: skip


class Editor:
    """The editor's side: JSON messages over a server's standard input and output."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "mirstack.editor.mir_lsp"]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.server.stdin is not None
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.server.stdout is not None
        length = 0
        while (line := self.server.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server has ended"
        return json.loads(self.server.stdout.read(length))

    def answer(self, step: dict[str, Any]) -> Any:
        """Sends a step's message; returns the result of a request, the findings after a notice that changes a text."""
        method = step["method"]
        if "answer" not in step and method not in ("initialize", "shutdown"):
            self.send({"method": method, "params": step["params"]})
            return None
        if method in ("textDocument/didOpen", "textDocument/didChange"):
            self.send({"method": method, "params": step["params"]})
            while (message := self.receive()).get("method") != "textDocument/publishDiagnostics":
                assert message.get("method") != "window/logMessage", message
            return message["params"]["diagnostics"]
        self.number += 1
        self.send({"id": self.number, "method": method, "params": step["params"]})
        while (message := self.receive()).get("id") != self.number:
            assert message.get("method") != "window/logMessage", message
        return message["error"]["message"] if "error" in message else message["result"]

    def end(self) -> int:
        self.send({"method": "exit"})
        assert self.server.stdin is not None and self.server.stdout is not None
        code = self.server.wait(60)
        self.server.stdin.close()
        self.server.stdout.close()
        return code


def shortened(method: str, answer: Any) -> Any:
    """Leaves out what other versions of pygls may say otherwise, and all but a few of many completions."""
    if method == "initialize":
        return {"serverInfo": answer["serverInfo"]["name"]}
    if method == "textDocument/completion":
        return {"count": len(answer["items"]), "first": answer["items"][:3], "last": answer["items"][-2:]}
    return answer


def replay() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
    editor = Editor()
    try:
        replayed: list[dict[str, Any]] = []
        for step in steps:
            answer = editor.answer(step)
            now = {key: value for key, value in step.items() if key != "answer"}
            if "answer" in step:
                now["answer"] = shortened(step["method"], answer)
            replayed.append(now)
        assert editor.end() == 0
        return replayed
    finally:
        editor.server.kill()


if __name__ == "__main__":
    RECORD.write_text(json.dumps(replay(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
else:
    import pytest
    from extras import library

    pytestmark = pytest.mark.extra
    library("pygls", "lsp")

    def test_the_session_is_as_recorded() -> None:
        steps = json.loads(RECORD.read_text(encoding="utf-8"))
        for before, now in zip(steps, replay(), strict=True):
            assert now == before, before["method"]

    def test_the_session_has_every_feature() -> None:
        from mirstack.editor.server import make_server

        methods = {step["method"] for step in json.loads(RECORD.read_text(encoding="utf-8"))}
        features = {name for name in make_server().protocol.fm.features if name in FEATURES}
        assert FEATURES - {"textDocument/publishDiagnostics"} == features
        assert features <= methods
