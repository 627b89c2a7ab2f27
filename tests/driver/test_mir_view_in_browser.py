"""Pages of `mir-view` in headless Chromium: they open without an error, and clicks show what they should."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from chromium import Browser
from test_mir_view import INJECTION, NET

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a program whose text tries to be HTML."""
    from mirstack.driver.mir_view import main

    folder = tmp_path_factory.mktemp("view")
    (folder / "net.mir").write_text(NET + f"// {INJECTION}\n")
    assert main([str(folder / "net.mir"), "-o", str(folder / "net.html")]) == 0
    return folder / "net.html"


@pytest.fixture
def browser(page: Path, tmp_path: Path) -> Generator[Browser]:
    """A browser that shows the page, and has nothing to complain of in the end."""
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        yield browser
        assert browser.problems == []
        assert browser.evaluate("typeof window.broken") == "undefined"


def chosen_rows(browser: Browser) -> str:
    """The program's lines that the page marks."""
    return browser.evaluate(
        "[...document.querySelectorAll('.wide .row.hit')].map((row) => row.textContent).join('\\n')"
    )


def test_click_on_a_source_line(browser: Browser):
    """A click on line 2, the convolution, marks it, and leads to its assembly."""
    assert browser.text("#step-name").endswith("input")
    browser.click(".source .row", 1)
    assert "nn.conv2d" in chosen_rows(browser) and "nn.max_pool2d" not in chosen_rows(browser)
    trail = browser.evaluate("[...document.querySelectorAll('.trail button')].map((each) => each.textContent)")
    steps = [each.partition(":")[0] for each in trail]
    assert steps[0] == "input" and steps[-2:] == ["LLVM IR", "assembly"]
    browser.click(".trail button", len(trail) - 1)
    assert browser.text("#step-name").endswith("assembly")
    assert chosen_rows(browser)


def test_slider_and_back(browser: Browser):
    """A line of the loops leads back to its line of the source."""
    steps = browser.evaluate(
        "[...document.querySelectorAll('.steps > *')].map((each) => [each.textContent, each.className])"
    )
    assert ["monomorphize", "same"] in steps
    browser.evaluate(
        "(s => { s.value = data.shown.findIndex((step) => step.name === 'lower-te-to-tir'); s.dispatchEvent(new Event('input')); })"
        "(document.getElementById('slider'))"
    )
    assert browser.text("#step-name").endswith("lower-te-to-tir")
    # The multiplication of the convolution.
    browser.evaluate("steps.program.to(steps.program.rows.findIndex((row) => row.text.includes('] * ')))")
    browser.settle()
    browser.wait("[...document.querySelectorAll('.wide .row')].some((row) => row.textContent.includes('] * '))")
    number = browser.evaluate(
        "[...document.querySelectorAll('.wide .row')].findIndex((row) => row.textContent.includes('] * '))"
    )
    browser.click(".wide .row", number)
    browser.wait("document.querySelectorAll('.source .row.hit').length >= 1")
    assert "net.mir:2" in browser.text("#details")


def test_three_clicks(browser: Browser):
    """Roofline; the first kernel, with its source line; the graph says why it is not one with the next (docs/mir-view.md)."""
    browser.click("[data-tab=roofline]")
    browser.click("tbody tr", 0)
    details = browser.text("#details")
    assert "fused_nn_conv2d_nn_relu" in details and "net.mir:2" in details
    assert "nn.relu is not fused with nn.max_pool2d: out-elemwise-fusable operators" in details
    browser.click("[data-tab=graph]")
    number = browser.evaluate("data.graphs[0].edges.findIndex((edge) => edge.reasons.length)")
    browser.click(f".grip[data-edge='{number}']")
    assert "Why they are two" in browser.text("#details")


def test_memory(browser: Browser):
    browser.click("[data-tab=memory]")
    browser.click("#memory .box", 0)
    assert "net.mir:" in browser.text("#details") and "bytes at" in browser.text("#details")


def test_search_and_theme(browser: Browser):
    browser.evaluate("document.getElementById('search').focus()")
    browser.write("max_pool2d")
    assert "lines with “max_pool2d”" in browser.text("#found")
    browser.click("#main li button", 0)
    assert "nn.max_pool2d" in chosen_rows(browser)
    color = "getComputedStyle(document.body).backgroundColor"
    light = browser.evaluate(color)
    browser.click("#theme")
    assert browser.evaluate(color) != light
    browser.click("#theme")
    assert browser.evaluate(color) == light


def test_dark_by_the_system(page: Path, tmp_path: Path):
    with Browser(tmp_path / "profile", dark=True) as browser:
        browser.open(page, "#graph")
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
        assert browser.evaluate("Boolean(document.getElementById('graph'))") and browser.problems == []
