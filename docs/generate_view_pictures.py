"""Takes the pictures of docs/mir-view.md: `python docs/generate_view_pictures.py`; it needs Chromium.

What they show of times is that of the machine on which this runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from chromium import Browser  # noqa: E402

WIDTH, HEIGHT = 1280, 720


def main() -> None:
    """Writes docs/pictures."""
    pictures = HERE / "pictures"
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, "-m", "mirstack.examples.models", "resnet18", "--out", ".")
        run(folder, "-m", "mirstack.driver.mir_view", "resnet18.mir", "--run", "50", "-o", "resnet18.html")
        (folder / "matmul.mir").write_text(file_in_page("matmul.mir"), encoding="utf-8")
        run(folder, "-m", "mirstack.driver.mir_view", "matmul.mir", "-o", "matmul.html")
        with Browser(folder / "profile", WIDTH, HEIGHT) as browser:
            browser.open(folder / "resnet18.html", "#roofline")
            browser.click("tbody tr", 0)
            browser.picture(pictures / "mir-view-roofline.png")
            browser.click("[data-tab=graph]")
            number = browser.evaluate("data.graphs[0].edges.findIndex((edge) => edge.reasons.length)")
            browser.click(f".grip[data-edge='{number}']")
            browser.picture(pictures / "mir-view-graph.png")
            browser.click("[data-tab=memory]")
            browser.click("#memory .box", 0)
            browser.picture(pictures / "mir-view-memory.png")
        with Browser(folder / "dark", WIDTH, HEIGHT, dark=True) as browser:
            browser.open(folder / "matmul.html", "#steps/sch.reorder")
            browser.click(".source .row", 7)
            browser.picture(pictures / "mir-view-schedule.png")


def run(folder: Path, *command: str) -> None:
    """Runs Python in a folder."""
    subprocess.run([sys.executable, *command], cwd=folder, check=True)


def file_in_page(name: str) -> str:
    """Returns the text of a file that docs/mir-view.md shows."""
    page = (HERE / "mir-view.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- file: {re.escape(name)} -->\n```\S*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/mir-view.md shows no file {name}"
    return found[1]


if __name__ == "__main__":
    main()
