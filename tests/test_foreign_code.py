"""Tests are skipped for a processor that this machine cannot stand in for, and for no other reason."""

from __future__ import annotations

import pytest
from foreign_code import AVX2, NEEDS, cannot_run
from mirstack.support import target
from mirstack.support.diagnostics import MirError


def refused(cpu: str) -> str:
    return f"error: code for the processor '{cpu}' does not run here: this machine has no vectors of 64 bytes\nnote: …"


@pytest.mark.parametrize(
    ("message", "has", "machine", "skips"),
    [
        (refused("znver4"), AVX2, "x86_64", True),
        (refused("haswell"), frozenset(), "AMD64", True),
        (refused("haswell"), frozenset(), "arm64", True),
        (refused("x86-64"), frozenset(), "aarch64", True),
        # This machine has what it takes: the error is wrong.
        (refused("znver4"), NEEDS["znver4"], "x86_64", False),
        (refused("haswell"), AVX2, "x86_64", False),
        (refused("x86-64"), frozenset(), "x86_64", False),
        # No processor that tests name; this machine itself; another error.
        (refused("pentium"), frozenset(), "x86_64", False),
        (refused("native"), frozenset(), "aarch64", False),
        (refused("None"), frozenset(), "aarch64", False),
        ("error: nothing is known of a processor 'znver4'", frozenset(), "aarch64", False),
    ],
)
def test_which_errors_skip(message: str, has: frozenset[str], machine: str, skips: bool) -> None:
    assert cannot_run(message, has.__contains__, machine) == skips


def test_the_error_is_found_as_the_package_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that has nothing but what every x86 has."""
    monkeypatch.delenv("MIRSTACK_CPU", raising=False)
    monkeypatch.setattr(target, "_cpu_flags", frozenset)
    monkeypatch.setattr(target, "_arch", lambda: "x86_64")
    target._machine.cache_clear()
    try:
        for cpu in NEEDS.keys() - {"x86-64"}:
            with pytest.raises(MirError) as error:
                target.require_host(cpu)
            assert cannot_run(str(error.value), frozenset().__contains__, "x86_64")
    finally:
        target._machine.cache_clear()


@pytest.mark.parametrize("cpu", NEEDS)
def test_the_package_agrees_with_llvm(cpu: str) -> None:
    """Where it refuses, LLVM finds something missing, too: then this test is skipped, else it fails."""
    target.require_host(cpu)
