"""Defines how C calls a library: its structs, its statuses, and the header that declares them.

struct net_inputs { const float *x; int64_t x_dim0; };      x: Tensor[(?, 64), float32]
struct net_outputs { float *out0; int64_t out0_dim0; };
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod

from ....dialects.array_box import numpy_dtype
from ..loading.arguments import Arguments, flatten_tree
from ..program import DYNAMIC, RelayProgram, Tensor

WORD = 8

C_TYPES: Mapping[str, str] = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t",
    **{f"{kind}{bits}": f"{kind}{bits}_t" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""C's types of elements; of dtypes that C has no type for, that of their bits."""

C_WORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "class",
        "delete",
        "namespace",
        "new",
        "operator",
        "private",
        "protected",
        "public",
        "template",
        "this",
        "throw",
        "try",
        "using",
        "virtual",
    ]
)
"""Names that no field may have, in C or in C++."""


class Status(IntEnum):
    """The statuses of a library; those of the program itself are positive."""

    DONE = 0
    NULL = -1
    MEMORY = -2
    PROCESSOR = -3
    SIZE = -4
    WEIGHTS = -5
    RESULT = -6

    @property
    def text(self) -> str:
        """Returns the message of the status."""
        return TEXTS[self]


TEXTS: Mapping[Status, str] = {
    Status.DONE: "success",
    Status.NULL: "a pointer is null",
    Status.MEMORY: "out of memory",
    Status.PROCESSOR: "this processor has none of the instruction sets that the library was built for",
    Status.SIZE: "a size is negative, or above 2147483647",
    Status.WEIGHTS: "the weights are not loaded: the file is missing, or is not the one that was written with the library",
    Status.RESULT: "the sizes or the memory of a result are not those that net_sizes stored",
}


@dataclass(frozen=True)
class Field:
    """A tensor in a struct: a pointer at `offset`, and after it the sizes of its open axes.

    `open` has the number of each of these axes and the offset of its size; offsets are in bytes.
    """

    name: str
    tensor: Tensor
    offset: int
    open: tuple[tuple[int, int], ...]

    @property
    def item(self) -> int:
        """Returns the bytes of an element."""
        return numpy_dtype(self.tensor.dtype).itemsize

    @property
    def fixed(self) -> list[int]:
        """Returns the extents that are known."""
        return [extent for extent in self.tensor.shape if extent != DYNAMIC]

    @property
    def bytes(self) -> int:
        """Returns the bytes of a tensor without open axes."""
        return self.item * prod(self.tensor.shape)

    def declaration(self, *, written: bool) -> list[str]:
        """Returns the lines of the struct, with shape and dtype as a comment."""
        shape = "".join(f"[{'?' if extent == DYNAMIC else extent}]" for extent in self.tensor.shape)
        kind = C_TYPES.get(self.tensor.dtype, f"{'u' if self.tensor.dtype.startswith('u') else ''}int8_t")
        constant = "" if written else "const "
        lines = [f"  {constant}{kind} *{self.name}; /* {self.tensor.dtype}{shape} */"]
        return lines + [f"  int64_t {self.name}_dim{axis};" for axis, _ in self.open]


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs of a library, and the messages of the program's own statuses."""

    name: str
    entry: str
    inputs: Sequence[Field]
    outputs: Sequence[Field]
    messages: Mapping[int, str]

    @staticmethod
    def of(name: str, program: RelayProgram, address: int = WORD) -> Interface:
        """Returns the interface of a program, for addresses of so many bytes."""
        arguments = Arguments(program.entry, program.params).tensors
        inputs = [Tensor(tuple(DYNAMIC if e == "?" else int(e) for e in p.shape), p.dtype) for p in arguments]
        outputs = flatten_tree(program.result)
        results = program.result_names or tuple(f"out{number}" for number in range(len(outputs)))
        messages = {code: text.replace("{size}", "(a size)") for code, text in program.messages.items()}
        return Interface(
            name,
            comment_name(program.entry),
            _fields([param.name for param in arguments], inputs, address),
            _fields(results, outputs, address),
            messages,
        )

    @property
    def has_open_results(self) -> bool:
        """Returns whether the sizes of some result are known only at run time."""
        return any(field.open for field in self.outputs)

    def header(self, *, parallel: bool, external: bool, most_threads: int) -> str:
        """Returns the C header."""
        name = self.name
        guard = f"{name.upper()}_H"
        lines = [
            f"/* @{self.entry}, compiled by mirstack. Pointers are to row-major elements; shapes stand beside them. */",
            f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "",
            "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
            *self._struct("inputs", self.inputs, written=False), "",
            *self._struct("outputs", self.outputs, written=True), "",
        ]  # fmt: skip
        if external:
            lines += ["/* Maps the file of weights, before anything else is called. Returns 0, or a status. */"]
            lines += [f"int {name}_load(const char *path);", ""]
        if self.has_open_results:
            lines += [
                "/* Stores the sizes of the results for these inputs, by running the program. Returns a status. */"
            ]
            lines += [f"int {name}_sizes(const struct {name}_inputs *, struct {name}_outputs *);", ""]
        lines += ["/* Runs the program; several threads may do so at once. Returns 0, or a status. */"]
        lines += [f"int {name}_run(const struct {name}_inputs *, struct {name}_outputs *);", ""]
        if parallel:
            lines += [
                f"/* Bounds the threads of a run, the calling one among them; {most_threads} at most. Returns a status. */"
            ]
            lines += [f"int {name}_threads(int count);", ""]
        lines += [
            "/* Returns what a status means, as a constant text. */",
            f"const char *{name}_status(int status);",
            "",
        ]
        lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
        return "\n".join(lines)

    def _struct(self, kind: str, fields: Sequence[Field], *, written: bool) -> list[str]:
        lines = [line for field in fields for line in field.declaration(written=written)]
        return [f"struct {self.name}_{kind} {{", *(lines or ["  int none; /* it has none */"]), "};"]


def comment_name(name: str) -> str:
    """Returns a name as comments show it, which MLIR's names could end."""
    return re.sub(r"[^\w.$-]", "_", name)


def identifier(name: str) -> str:
    """Returns a name that C takes, near to the one given: `t.0` is `t_0`, `int` is `int_`."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    made = f"_{made}" if made[0].isdigit() else made
    return f"{made}_" if made in C_WORDS or keyword.iskeyword(made) else made


def _fields(names: Sequence[str], tensors: Sequence[Tensor], address: int) -> list[Field]:
    fields: list[Field] = []
    taken: set[str] = set()
    offset = 0
    for name, tensor in zip(names, tensors, strict=True):
        chosen = identifier(name)
        while chosen in taken:
            chosen += "_"
        open = [axis for axis, extent in enumerate(tensor.shape) if extent == DYNAMIC]
        taken |= {chosen, *(f"{chosen}_dim{axis}" for axis in open)}
        fields.append(Field(chosen, tensor, offset, ()))
        offset += address
        if open:
            # Sizes begin at multiples of their own size.
            first = -(-offset // WORD) * WORD
            places = tuple((axis, first + WORD * number) for number, axis in enumerate(open))
            fields[-1] = replace(fields[-1], open=places)
            offset = first + WORD * len(open)
    return fields
