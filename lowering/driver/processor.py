"""Finds the processor that a program is compiled for, where the program or an extension describes it."""

from __future__ import annotations

import re
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...passes.common.described_cpu import described_cpu
from ...support.target import description_of
from ..options import Options
from .source import ProgramSource, SourceText


def with_processor(options: Options, program: ProgramSource | ModuleOp) -> Options:
    """Returns the options with the description of the processor that they name, as it is compiled for."""
    cpu = options.cpu
    if not cpu:
        return options
    known = _described(cpu, program)
    if known == cpu and (description := description_of(cpu)) is not None:
        known = description.text
    return options if known == cpu else replace(options, cpu=known)


def _described(cpu: str, program: ProgramSource | ModuleOp) -> str:
    if isinstance(program, ModuleOp):
        return described_cpu(program.ops, cpu)
    # Of a text only this item is read: the cache may have all else.
    if not isinstance(program, SourceText) or not re.search(
        rf'^target[ \t]+"{re.escape(cpu)}"', program.text, re.MULTILINE
    ):
        return cpu
    from ...parser.items import split_items
    from ...parser.target import read_target

    for item in split_items(program.text, program.name, 1, lambda _: None):
        if item.kind == "target":
            op = read_target(item)
            if op.sym_name.data == cpu:
                return op.description.text
    return cpu
