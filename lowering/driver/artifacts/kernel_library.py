"""Writes libraries of functions of TE and TIR: C brings all memory, and the sizes that shapes name.

def scale(A: T.Buffer((n, 4)), B: T.Buffer((n, 4)), k: T.float32)

struct scale_inputs { const float *A; /* float32[n][4] */ float k; int64_t n; };
struct scale_outputs { float *B; /* float32[n][4], written */ };
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....dialects.array_box import numpy_dtype
from ....dialects.extents import MOST_EXTENT
from ....support.diagnostics import MirError
from ...tir.signature import BufferParam, HandleParam, ScalarParam, Size
from ..loading.kernel_executable import param_of
from ..program import KernelProgram, RelayProgram, Tensor
from .c_interface import C_TYPES, WORD, Field, Interface, Status, comment_name, identifier
from .library_ir import Library, LibraryLevel, Writer, prefixed


@dataclass(frozen=True)
class KernelField(Field):
    """A parameter in a struct: a buffer, whose extents may be names, or a scalar."""

    extents: tuple[int | str, ...] = ()
    is_scalar: bool = False
    strides: tuple[int | str, ...] = ()
    place: int = 0
    """Which parameter of the function it is."""

    def declaration(self, *, written: bool) -> list[str]:
        """Returns the line of the struct, with shape and dtype as a comment."""
        kind = C_TYPES[self.tensor.dtype]
        if self.is_scalar:
            return [f"  {kind} {self.name}; /* {self.tensor.dtype} */"]
        shape = "".join(f"[{extent}]" for extent in self.extents)
        strides = f", strides {', '.join(map(str, self.strides))} in elements" if self.strides else ""
        constant, note = ("", ", written") if written else ("const ", "")
        return [f"  {constant}{kind} *{self.name}; /* {self.tensor.dtype}{shape}{strides}{note} */"]


@dataclass(frozen=True)
class KernelInterface(Interface):
    """The inputs and outputs of a function of TE or TIR; `symbols` are its sizes, also inputs."""

    parameters: int = 0
    symbols: Sequence[KernelField] = field(default=())

    def _struct(self, kind: str, fields: Sequence[Field], *, written: bool) -> list[str]:
        return super()._struct(kind, [*fields, *(() if written else self.symbols)], written=written)


def kernel_interface(
    name: str, program: KernelProgram, address: int, refuse: Callable[[str], MirError]
) -> KernelInterface:
    """Returns the interface of a function, for addresses of so many bytes.

    Raises what `refuse` returns for a parameter that C cannot pass.
    """
    taken: set[str] = set()
    ends = [0, 0]

    def place(struct: int, wanted: str, dtype: str, size: int) -> Field:
        chosen = identifier(wanted)
        while chosen in taken:
            chosen += "_"
        taken.add(chosen)
        start = -(-ends[struct] // size) * size
        ends[struct] = start + size
        return Field(chosen, Tensor((), dtype), start, ())

    inputs: list[KernelField] = []
    outputs: list[KernelField] = []
    known: set[str] = set()
    for number, param in enumerate(program.signature.params):
        if isinstance(param, HandleParam):
            raise refuse(f"'{param.name}' is a handle whose elements are not described")
        if param.dtype not in C_TYPES:
            raise refuse(f"'{param.name}' has the dtype {param.dtype}, which C has no type for")
        if isinstance(param, ScalarParam):
            known.add(param.name)
            made = place(0, param.name, param.dtype, numpy_dtype(param.dtype).itemsize)
            inputs.append(KernelField(**vars(made), is_scalar=True, place=number))
            continue
        made = place(1 if param.writes else 0, param.name, param.dtype, address)
        shown = param_of(param)
        strides = tuple(map(_shown, param.strides or ())) if shown.strides or shown.open_strides else ()
        found = KernelField(**vars(made), extents=shown.shape, strides=strides, place=number)
        (outputs if param.writes else inputs).append(found)
    symbols = [
        KernelField(**vars(place(0, symbol, "int64", WORD)), is_scalar=True) for symbol in program.signature.symbols
        if symbol not in known
    ]  # fmt: skip
    return KernelInterface(
        name,
        comment_name(program.entry),
        inputs,
        outputs,
        dict(program.messages),
        len(program.signature.params),
        symbols,
    )


def _shown(size: Size) -> int | str:
    return param_of(BufferParam("", "int8", (size,))).shape[0]


def as_level(level_program: KernelProgram) -> RelayProgram:
    """Returns what a library knows of a function: it has no weights, and needs no memory."""
    return RelayProgram(level_program.entry, (), (), level_program.messages, (), 0, 0, (), 0, ())


@dataclass(frozen=True)
class KernelLibrary(Library):
    """A library of a function of TE or TIR for some processors, the best first."""

    program: KernelProgram | None = None

    def _declared(self) -> list[str]:
        kinds = ", ".join(self._kinds())
        return [f"declare hidden i32 {self._code(level, k)}({kinds})" for k, level in enumerate(self.levels)]

    def _kinds(self) -> list[str]:
        """Returns the types of the function's arguments."""
        assert self.program is not None
        kinds = [_llvm_type(p.dtype) if isinstance(p, ScalarParam) else "ptr" for p in self.program.signature.params]
        return kinds + ["i64"] * len(self.program.signature.symbols)

    def _code(self, level: LibraryLevel, number: int) -> str:
        entry = re.escape(level.program.entry)
        found = re.search(rf'^define [^@\n]*@("{entry}"|{entry})\(', level.text, re.M)
        assert found is not None
        return f"@{prefixed(found[1], number)}"

    def _run(self) -> str:
        assert self.program is not None and isinstance(self.interface, KernelInterface)
        interface, signature = self.interface, self.program.signature
        w = Writer()
        w.add(f"define i32 @{self.name}_run(ptr %inputs, ptr %outputs) nounwind {{")
        for struct, fields in (("inputs", [*interface.inputs, *interface.symbols]), ("outputs", interface.outputs)):
            if fields:
                w.refuse_null(f"%{struct}")
        values: dict[int, str] = {}
        scalars: dict[str, str] = {}
        for struct, fields in (("%inputs", interface.inputs), ("%outputs", interface.outputs)):
            for each in fields:
                assert isinstance(each, KernelField)
                param = signature.params[each.place]
                if not each.is_scalar:
                    values[each.place] = w.load(struct, each.offset, "ptr")
                    w.refuse_null(values[each.place])
                    continue
                kind = _llvm_type(param.dtype) if isinstance(param, ScalarParam) else ""
                loaded = w.load(struct, each.offset, "i8" if kind == "i1" else kind)
                values[each.place] = w.value(f"icmp ne i8 {loaded}, 0") if kind == "i1" else loaded
                if kind in ("i8", "i16", "i32", "i64"):
                    scalars[param.name] = loaded if kind == "i64" else w.value(f"sext {kind} {loaded} to i64")
        opened = iter(interface.symbols)
        sizes: list[str] = []
        for symbol in signature.symbols:
            size = scalars[symbol] if symbol in scalars else w.load("%inputs", next(opened).offset, "i64")
            w.unless(w.value(f"icmp ugt i64 {size}, {MOST_EXTENT}"), str(Status.SIZE.value))
            sizes.append(size)
        w.add("  %begun = call { i32, i32, ptr } @begin()", "  %ready = extractvalue { i32, i32, ptr } %begun, 0")
        w.add("  %unready = icmp ne i32 %ready, 0")
        w.unless("%unready", "%ready")
        w.add("  %level = extractvalue { i32, i32, ptr } %begun, 1")
        w.add("  %context = extractvalue { i32, i32, ptr } %begun, 2")
        w.add(*self._select("%code", "ptr", [self._code(level, k) for k, level in enumerate(self.levels)]))
        passed = [*(values[number] for number in range(len(signature.params))), *sizes]
        arguments = ", ".join(f"{kind} {value}" for kind, value in zip(self._kinds(), passed, strict=True))
        w.add(f"  %status = call i32 %code({arguments})")
        w.add("  call void @end(ptr %context, i32 %level)", "  ret i32 %status", "}")
        return w.text()


def _llvm_type(dtype: str) -> str:
    """Returns LLVM's type of a scalar parameter."""
    floats = {"float16": "half", "float32": "float", "float64": "double", "bfloat16": "i16", "bool": "i1"}
    return floats.get(dtype) or f"i{re.sub('[^0-9]', '', dtype)}"
