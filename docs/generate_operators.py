"""Writes docs/operators.md, the list of Relay's operators, from the operator table.

python docs/generate_operators.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mirstack.dialects.relay.gradient import gradient_of
from mirstack.dialects.relay.operator import Operator, OpPattern, all_operators

PAGE = Path(__file__).with_name("operators.md")
COMMAND = "python docs/generate_operators.py"

INTRODUCTION = f"""\
<!-- Written by `{COMMAND}` from the operator table; edit the entries in dialects/relay/operators instead. -->
# Relay's operators

Each line is an entry of the operator table: how the operator is written, with its attributes' defaults (`axis=…` has to be
given; `*data` is a tuple of tensors), what it computes, and the document that defines it. *Fusion* is TVM's kind, by which
`fuse-ops` groups operators into kernels; operators that are not *native* run in the interpreter only; those with a *gradient*
can be differentiated.
[Adding an operator](add-an-operator.md) takes one entry.
"""

PREFIXES = {
    "nn": "Neural networks",
    "image": "Images",
    "vision": "Object detection",
    "qnn": "Quantized tensors",
    "random": "Random numbers",
    "dyn": "Shapes that are computed",
    "annotation": "Annotations",
    "memory": "Explicit memory",
}
"""The section of the operators that are named with a prefix."""

PATTERNS = {
    OpPattern.ELEMWISE: "Element by element",
    OpPattern.BROADCAST: "Broadcasting",
    OpPattern.COMM_REDUCE: "Reductions",
    OpPattern.INJECTIVE: "Moving elements",
}
"""The section of the others, by how they fuse."""

OTHERS = "Further operators on tensors"

FUSION = {
    OpPattern.ELEMWISE: "elemwise",
    OpPattern.BROADCAST: "broadcast",
    OpPattern.INJECTIVE: "injective",
    OpPattern.COMM_REDUCE: "comm-reduce",
    OpPattern.OUT_ELEMWISE_FUSABLE: "out-elemwise-fusable",
    OpPattern.TUPLE: "tuple",
    OpPattern.OPAQUE: "opaque",
}

PUBLISHERS = {
    "tvm.apache.org": "TVM",
    "numpy.org": "numpy",
    "onnx.ai": "ONNX",
    "en.cppreference.com": "C",
    "arxiv.org": "paper",
    "doi.org": "paper",
    "pytorch.org": "PyTorch",
    "www.tensorflow.org": "TensorFlow",
}
"""What a link to a host is called."""


def page(table: Mapping[str, Operator]) -> str:
    """The whole page, in Markdown."""
    sections: dict[str, list[Operator]] = {title: [] for title in (*PATTERNS.values(), OTHERS, *PREFIXES.values())}
    for name in sorted(table):
        sections[section_of(table[name])].append(table[name])
    parts = [INTRODUCTION, f"There are {len(table)} operators.\n"]
    parts += ["\n".join(section(title, operators)) for title, operators in sections.items() if operators]
    return "\n".join(parts)


def section_of(operator: Operator) -> str:
    """The title of the section that an operator belongs to."""
    prefix, dot, _ = operator.name.partition(".")
    if dot:
        return PREFIXES.get(prefix, OTHERS)
    return PREFIXES["annotation"] if operator.name == "on_device" else PATTERNS.get(operator.pattern, OTHERS)


def section(title: str, operators: list[Operator]) -> Iterator[str]:
    """A heading and a table."""
    yield f"## {title}\n"
    yield "| operator | meaning | fusion | native | gradient | source |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for operator in operators:
        host = urlsplit(operator.source).hostname or ""
        yield (
            "| "
            + " | ".join(
                (
                    f"`{operator.signature}`",
                    operator.doc.replace("|", "\\|"),
                    FUSION[operator.pattern],
                    "no" if operator.compute is None else "yes",
                    "no" if gradient_of(operator) is None else "yes",
                    f"[{PUBLISHERS.get(host, host)}]({operator.source})",
                )
            )
            + " |"
        )
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(all_operators()), encoding="utf-8")
