"""The site of documents and of Python's reference is built without a warning, and holds every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from extras import library

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> Any:
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.extra
def test_reference_holds_public_names(site: Any) -> None:
    pages: dict[str, str] = site.pages()
    nn = pages["reference/mirstack.relay.nn.md"]
    assert "## dense\n" in nn and "dense(data: RelayExpr, weight: RelayExpr, units: int | None = None" in nn
    assert "- `units`: " in nn
    assert "## compile\n" in pages["reference/mirstack.md"]
    assert "| `export` | Compiles the program to a file" in pages["reference/mirstack.md"]
    assert "[`mirstack.relay.dataflow_pattern`](mirstack.relay.dataflow_pattern.md)" in pages["reference/index.md"]


@pytest.mark.extra
def test_site_is_built_without_warnings(site: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library("material", "docs")
    config = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    monkeypatch.setattr(site, "SOURCE", tmp_path / "site" / "source")
    site.write()
    own = tmp_path / "mkdocs.yml"
    own.write_text(re.sub(r"\.\./build/site/", "site/", config))
    assert site.build(own) == 0
    assert (tmp_path / "site" / "html" / "reference" / "mirstack.relay.nn" / "index.html").exists()
    assert (tmp_path / "site" / "html" / "docs" / "rules" / "index.html").exists()


@pytest.mark.extra
def test_a_warning_is_an_error(site: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library("material", "docs")
    config = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "site" / "source").mkdir(parents=True)
    (tmp_path / "site" / "source" / "index.md").write_text("# Page\n\n[nowhere](nowhere.md)\n")
    own = tmp_path / "mkdocs.yml"
    own.write_text(re.sub(r"\.\./build/site/", "site/", config))
    assert site.build(own) != 0
    assert "nowhere.md" in capfd.readouterr().err
