"""Reads schedule rules: a pattern of Relay's operators with conditions, above a script.

rule for nn.dense(%x, %w) where %w.shape[0] % 16 == 0, $rows = min(%x.shape[0], 4)
@T.schedule
def dense_rows(sch, rows):
    …
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Block, Region

from ...dialects.schedule import RuleOp
from ...support.diagnostics import error_at
from ...support.text import did_you_mean
from ..items import Item, ParseContext
from ..python.builder import parse_tree
from ..python.tree import Function
from ..rules.build import build_kernel_rule
from ..rules.reader import read_item
from ..rules.tree import Bind, KernelRule
from ..source import Source
from .reader import SCHEDULE, ScriptReader


def read_rule(item: Item, context: ParseContext) -> RuleOp:
    """Returns the rule; errors in its statements are reported. Raises MirError for its pattern's."""
    at = item.text.index("\n@") + 1
    head = replace(item, text=item.text[:at])
    body = replace(item, text=item.text[at:], line=item.line + item.text.count("\n", 0, at))
    source = Source(head)
    kernels = read_item(source)
    assert isinstance(kernels, KernelRule)
    tree = parse_tree(body, SCHEDULE)
    reader = ScriptReader(body, context, of_rule=True)
    script = reader.script(tree)
    name = script.sym_name.data
    if script.target is not None:
        raise error_at(
            script.location,
            f"the schedule rule '{name}' names a function",
            "it is of each kernel that its pattern matches: write @T.schedule alone",
        )
    computed = [each.name for each in kernels.where if isinstance(each, Bind)]
    assert isinstance(tree, Function)
    for parameter in tree.parameters[1:]:
        if str(parameter.name) not in computed:
            raise error_at(
                reader.at(parameter.name),
                f"nothing computes '{parameter.name}': the conditions have no ${parameter.name}",
                f"write ${parameter.name} = … after where{did_you_mean(str(parameter.name), computed)}",
            )
    pattern = build_kernel_rule(source, kernels, name)
    block = Block()
    block.add_ops([pattern, script])
    op = RuleOp(name, Region(block), kernels.optional)
    op.location = source.location(kernels.at)
    return op
