"""A headless Chromium that tests look at pages with, over its DevTools protocol on a pipe: no driver, no network."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120
"""How long an answer is waited for: the machine may be busy."""


def installed() -> str:
    """Returns the path of Chromium; skips the test where there is none."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("Chromium is not installed (`apt-get install chromium`)")
    return path


class Browser:
    """One page of a browser."""

    def __init__(self, folder: Path, width: int = 1400, height: int = 800, dark: bool = False):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # The protocol is spoken on files 3 and 4, which bash opens.
        command = [
            installed(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            f"--user-data-dir={folder}", f"--window-size={width},{height}", *(["--force-dark-mode"] if dark else []), "about:blank",
        ]  # fmt: skip
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        """Errors and warnings on the console, exceptions, what the page's policy refused."""
        targets = self._ask("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[theme])

    def open(self, path: Path, fragment: str = "") -> float:
        """Opens a file and waits until its script has drawn it; returns the seconds that it took."""
        start = time.perf_counter()
        self._ask("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait("document.documentElement?.dataset.ready === 'yes'")
        return time.perf_counter() - start

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression in the page."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"still not: {condition}; {self.problems}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Waits until what was scrolled is drawn."""
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
        self.evaluate(f"{frames}.then(() => true)")

    def click(self, selector: str, number: int = 0) -> None:
        """Clicks with the mouse in the middle of an element, or of its beginning where it is wide."""
        at = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        assert self.evaluate(f"Boolean({at})"), f"no {selector}"
        x, y = self.evaluate(
            "((it) => { const inside = (b) => b.top >= 0 && b.bottom <= innerHeight;"
            " if (!inside(it.getBoundingClientRect())) it.scrollIntoView({block: 'center', inline: 'start'});"
            " const b = it.getBoundingClientRect(); return [b.x + Math.min(b.width / 2, 100), b.y + b.height / 2]; })"
            f"({at})"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Types a text into what has the focus."""
        self._ask("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        """Returns the text of an element."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def picture(self, path: Path) -> None:
        """Writes what is seen as PNG."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._session = None
        try:
            self._ask("Browser.close")
            self._process.wait(20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            assert select.select([self._in], [], [], SECONDS)[0], "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\0")
        message = json.loads(line)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.problems.append(json.dumps(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"]["text"])
            case _:
                pass
        return message
