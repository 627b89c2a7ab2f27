"""Writes the LLVM IR of a library: the program's code, its weights, and the functions that C calls.

    net_run(inputs, outputs)   chooses the code for this processor, prepares weights once, finds memory for the call, calls the program

It calls libc alone. What it keeps between calls are weights, and the memory of calls that have ended, for the next ones (`@idle`); a lock
guards both, and is held while a call begins and ends.
A program is what `build_text` makes; its functions are renamed, so that there may be several in one module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import accumulate

import numpy as np

from ....dialects.array_box import ArrayBox
from ....support.memory import LARGE_PAGE
from ....support.target import Target, least_cpu
from ...relay.functions.calling_convention import (
    CONSTANTS,
    CONTEXT_BYTES,
    DEPTH,
    END,
    ENTRY,
    FINISH,
    GROWN,
    PREPARE,
    PREPARED,
    STACK_LIMIT,
    TOP,
    WORD,
)
from ...relay.memory.alignment import ALIGNMENT, align
from ...runtime import SPINS, runtime_ir
from ..program import RelayProgram
from ..segments import PAGE
from .c_interface import Interface, Status
from .narrow_words import pointer_bytes, with_narrow_words
from .prepack import reachable_text
from .processor_check import check_ir
from .stripe_checksum import STRIPE, WORDS, checksum_ir, own_function, stripe_sums

METADATA = 1_000_000
"""Nodes of metadata of a program, fewer than these."""
MADV_HUGEPAGE = 14
"""Linux' number of the advice to use large pages."""
STACK = 512 << 10
"""Bytes of the stack that a recursive program may use below the call."""
MOST_ARENA = 1 << 30
"""Bytes of a context that is kept, at most."""

ARENA = CONTEXT_BYTES
"""The place in a context of the bytes of its arena, which only the library reads."""
NEXT = ARENA + WORD
"""The place in a context of the next idle one."""
TABLE = align(NEXT + WORD)
"""The place in a context of the table of addresses."""


@dataclass(frozen=True)
class LibraryLevel:
    """The program for one processor: its description, and the LLVM IR of all its functions."""

    target: Target
    program: RelayProgram
    text: str


@dataclass(frozen=True)
class Weights:
    """The bytes of all arrays that a library reads, each at a multiple of the alignment."""

    data: bytes
    places: dict[bytes, int]
    """By the array's digest."""

    @staticmethod
    def of(programs: Iterable[RelayProgram]) -> Weights:
        """Returns the weights of programs, as their code reads them; those that several have are there once."""
        boxes: dict[bytes, ArrayBox] = {
            box.digest: box for program in programs for box in (*program.constants, *program.contents)
        }
        parts = [box.array.tobytes() for box in boxes.values()]
        starts = accumulate((align(len(part)) for part in parts), initial=0)
        data = b"".join(part + b"\0" * (align(len(part)) - len(part)) for part in parts)
        # A file of nothing could not be mapped, and one of whole stripes has a checksum.
        return Weights(data + b"\0" * (-len(data) % STRIPE if data else STRIPE), dict(zip(boxes, starts, strict=False)))

    def checksums(self) -> bytes:
        """Returns the checksum of all weights: 64 sums."""
        return stripe_sums(memoryview(self.data), own_function())


@dataclass(frozen=True)
class Library:
    """A library `name` of a program for some processors, the best first."""

    name: str
    interface: Interface
    levels: Sequence[LibraryLevel]
    weights: Weights
    triple: str
    threads: int = 1
    external: bool = False
    """Whether the weights are in a file that `net_load` maps."""

    @property
    def is_wasm(self) -> bool:
        """Returns whether the library is a module of WebAssembly, which one thread runs."""
        return self.triple.startswith("wasm32")

    @property
    def entry_type(self) -> str:
        """Returns the type of an entry of a table of addresses, of which each has 8 bytes."""
        return "{ ptr, i32 }" if pointer_bytes(self.triple) == 4 else "ptr"

    def _entry(self, address: str) -> str:
        return f"{{ ptr, i32 }} {{ ptr {address}, i32 0 }}" if pointer_bytes(self.triple) == 4 else f"ptr {address}"

    @cached_property
    def is_parallel(self) -> bool:
        """Returns whether the code shares loops out to threads."""
        return any("@mirstack_parallel_for" in level.text for level in self.levels)

    def modules(self) -> list[str]:
        """Returns the code of each level, then the functions that C calls; of one level all in one module.

        LLVM ends the process over modules that mix functions for vectors of 64 bytes and for shorter ones.
        """
        codes = [_renamed(_needed(level), number) for number, level in enumerate(self.levels)]
        if len(codes) == 1:
            whole = _joined([re.sub(r"^define hidden ", "define internal ", codes[0], flags=re.M), *self._doors()])
            return [self._with_words(whole)]
        texts = (*codes, _joined([*self._declared(), *self._doors()]))
        # Their names meet in the object file: those of another library must differ.
        return [self._with_words(re.sub(r'@("?)(L\d+\.)', rf"@\1{self.name}.\2", text)) for text in texts]

    def _declared(self) -> list[str]:
        """Writes the declarations of the levels' functions that are called."""
        names = (ENTRY, PREPARE, FINISH)
        return [f"declare hidden i32 @L{k}.{name}(ptr)" for k in range(len(self.levels)) for name in names]

    def _with_words(self, text: str) -> str:
        """Returns a text that calls the C library with the words of the processor."""
        return with_narrow_words(text, self.triple) if pointer_bytes(self.triple) == 4 and not self.is_wasm else text

    def _doors(self) -> list[str]:
        """Returns the functions around the program.

        They are for the least processor of its kind, since they run before the processor is known.
        """
        parts: list[str] = []
        if self.is_parallel:
            arch, system = self.levels[0].target.arch, "linux" if "linux" in self.triple else ""
            parts.append(re.sub(r"^define (?!internal)", "define internal ", runtime_ir(arch, system), flags=re.M))
        parts += [check_ir(level.target, f"suits.{number}") for number, level in enumerate(self.levels)]
        parts += [self._weights(), self._choice(), self._contexts(), self._preparation(), self._run(), self._status()]
        if self.interface.has_open_results:
            parts.append(self._sizes())
        if self.is_parallel:
            parts.append(self._threads())
        if self.is_wasm:
            return [re.sub(r"^.*@pthread_mutex_.*$", "", part, flags=re.M) for part in parts]
        arch = self.levels[0].target.arch
        attributes = for_processor(arch, *least_cpu(arch))
        least = re.compile(r'^(define (?!.*"target-cpu").*\)) ?([^(){]*)\{$', re.M)
        return [least.sub(rf"\1 {attributes} \2{{", part) for part in parts]

    # Weights

    def _weights(self) -> str:
        lines: list[str] = []
        tables: list[tuple[str, Sequence[ArrayBox]]] = []
        for number, level in enumerate(self.levels):
            tables.append((f"constants.{number}", level.program.constants))
            if level.program.contents:
                tables.append((f"prepared.{number}", level.program.contents))
        if self.external:
            length = len(self.weights.data)
            text = _text("load_weights.ll").replace("NAME", self.name).replace("LENGTH", str(length))
            lines.append(text.replace("STRIPES", str(length // STRIPE)).replace("WORDS", str(WORDS)))
            lines.append(f"@checksum = internal constant {_bytes(self.weights.checksums())}, align {ALIGNMENT}")
            lines.append(checksum_ir(_GENERIC).replace("define void", "define internal void"))
            lines.append("define internal void @place(ptr %memory) nounwind {")
            lines += [f"  call void @place.{name}(ptr %memory)" for name, _ in tables]
            lines += ["  ret void", "}"]
        else:
            lines.append(f"@weights = internal constant {_bytes(self.weights.data)}, align {PAGE}")
        for name, boxes in tables:
            places = [self.weights.places[box.digest] for box in boxes]
            if self.external:
                listed = ", ".join(f"i64 {place}" for place in places)
                lines.append(f"@places.{name} = internal constant [{len(places)} x i64] [{listed}]")
                lines.append(f"@{name} = internal global [{max(len(places), 1)} x {self.entry_type}] zeroinitializer")
                lines.append(_text("place_weights.ll").replace("TABLE", name).replace("COUNT", str(len(places))))
            else:
                listed = ", ".join(self._entry(f"getelementptr (i8, ptr @weights, i64 {place})") for place in places)
                kind = f"[{max(len(places), 1)} x {self.entry_type}]"
                lines.append(f"@{name} = internal constant {kind} {f'[{listed}]' if places else 'zeroinitializer'}")
        return "\n".join(lines)

    # The code for this processor

    def _choice(self) -> str:
        """Writes `@level`, which returns the number of the first level that suits, or -1."""
        lines = ["@chosen = internal global i32 -1", "define internal i32 @level() nounwind {", "  br label %try.0"]
        for number in range(len(self.levels)):
            lines += [f"try.{number}:", f"  %fits.{number} = call i1 @suits.{number}()"]
            lines += [f"  br i1 %fits.{number}, label %use.{number}, label %try.{number + 1}"]
            lines += [f"use.{number}:", f"  ret i32 {number}"]
        lines += [f"try.{len(self.levels)}:", "  ret i32 -1", "}"]
        return "\n".join(lines)

    def _select(self, result: str, kind: str, values: Sequence[str], level: str = "%level") -> list[str]:
        """Returns lines that set `result` to the value of the chosen level."""
        lines: list[str] = []
        found = values[-1]
        for number in reversed(range(len(values) - 1)):
            name = result if number == 0 else f"{result}.{number}"
            lines.append(f"  {name}.is = icmp eq i32 {level}, {number}")
            lines.append(f"  {name} = select i1 {name}.is, {kind} {values[number]}, {kind} {found}")
            found = name
        if len(values) == 1:
            # A name for what is known: LLVM folds it.
            convert = f"getelementptr i8, ptr {found}, i64 0" if kind == "ptr" else f"add {kind} {found}, 0"
            lines.append(f"  {result} = {convert}")
        return lines

    # Memory of calls

    def _contexts(self) -> str:
        words = 1 + len(self.interface.inputs) + len(self.interface.outputs)
        most = max(words, *(1 + len(level.program.prepared) for level in self.levels))
        start = align(TABLE + WORD * most)
        lines = self._select("%constants", "ptr", [f"@constants.{k}" for k in range(len(self.levels))])
        text = _text("contexts.ll").replace("START", str(start)).replace("TABLE", str(TABLE))
        for name, place in _PLACES.items():
            text = text.replace(f"<{name}>", str(place))
        arenas = self._select("%arena", "i64", [str(level.program.arena) for level in self.levels])
        return text.replace("  SELECT_CONSTANTS", "\n".join(lines)).replace("  SELECT_ARENA", "\n".join(arenas))

    # What is computed of weights once

    def _preparation(self) -> str:
        levels = range(len(self.levels))
        lines = ["define internal ptr @prepared_of(i32 %level) nounwind {"]
        lines += [*self._select("%prepared", "ptr", [f"@prepared.{k}" for k in levels]), "  ret ptr %prepared", "}"]
        for number, level in enumerate(self.levels):
            prepared = level.program.prepared
            if level.program.contents:
                lines += [f"define internal i32 @prepare.{number}() nounwind {{", "  ret i32 0", "}"]
                continue
            starts = list(accumulate(map(align, prepared), initial=0))
            lines.append(
                f"@prepared.{number} = internal global [{max(len(prepared), 1)} x {self.entry_type}] zeroinitializer"
            )
            lines.append(f"define internal i32 @prepare.{number}() nounwind {{")
            if not prepared:
                lines += ["  ret i32 0", "}"]
                continue
            lines += [
                *self._large_memory(starts[-1]),
                "  %none = icmp eq ptr %memory, null",
                "  br i1 %none, label %out, label %go",
                "out:",
                f"  ret i32 {Status.MEMORY.value}",
                "go:",
                *self._advice(starts[-1]),
                f"  %context = call ptr @new_context(i32 {number}, i64 0)",
                "  %failed = icmp eq ptr %context, null",
                "  br i1 %failed, label %out, label %fill",
                "fill:",
                f"  %table = getelementptr i8, ptr %context, i64 {TABLE}",
            ]
            for place, begin in enumerate(starts[:-1]):
                lines += [
                    f"  %tensor.{place} = getelementptr i8, ptr %memory, i64 {begin}",
                    f"  %slot.{place} = getelementptr i8, ptr %table, i64 {WORD * (1 + place)}",
                    f"  store ptr %tensor.{place}, ptr %slot.{place}",
                    f"  %known.{place} = getelementptr i8, ptr @prepared.{number}, i64 {WORD * place}",
                    f"  store ptr %tensor.{place}, ptr %known.{place}",
                ]
            lines += [
                f"  %status = call i32 @L{number}.{PREPARE}(ptr %table)",
                "  call void @free(ptr %context)",
                "  ret i32 %status",
                "}",
            ]
        calls: list[str] = []
        for number in levels:
            following = f"next.{number}" if number + 1 < len(self.levels) else "unknown"
            calls += [f"  %is.{number} = icmp eq i32 %level, {number}"]
            calls += [f"  br i1 %is.{number}, label %do.{number}, label %{following}", f"do.{number}:"]
            calls += [f"  %made.{number} = call i32 @prepare.{number}()", "  br label %keep", f"{following}:"]
        calls.append("  br label %keep")
        made = "".join(f"[ %made.{number}, %do.{number} ], " for number in levels)
        begin = ""
        if self.is_parallel:
            begin = f"  call void @mirstack_reset()\n  call void @mirstack_set_spins(i32 {SPINS})\n"
        ready = (
            _text("preparation.ll")
            .replace("  BEGIN\n", begin)
            .replace("  CALLS", "\n".join(calls))
            .replace("MADE", made)
        )
        ready = ready.replace("PROCESSOR", str(Status.PROCESSOR.value)).replace("MEMORY", str(Status.MEMORY.value))
        return "\n".join(lines) + ready.replace("  CHECK\n", _LOADED if self.external else "")

    def _has_large_pages(self, bytes: int) -> bool:
        return "linux" in self.triple and pointer_bytes(self.triple) == 8 and bytes >= 2 * LARGE_PAGE

    def _large_memory(self, bytes: int) -> list[str]:
        """Writes `%memory`, at the start of a large page where it has several."""
        unit = LARGE_PAGE if self._has_large_pages(bytes) else ALIGNMENT
        return [f"  %memory = call ptr @aligned_alloc(i64 {unit}, i64 {-(-bytes // unit) * unit})"]

    def _advice(self, bytes: int) -> list[str]:
        """Writes what asks Linux for large pages: with small ones a large model takes longer."""
        if not self._has_large_pages(bytes):
            return []
        return [
            f"  %advised = call i32 @madvise(ptr %memory, i64 {-(-bytes // LARGE_PAGE) * LARGE_PAGE}, i32 {MADV_HUGEPAGE})"
        ]

    # A call

    def _run(self) -> str:
        return self._call("run", copies=True)

    def _sizes(self) -> str:
        return self._call("sizes", copies=False)

    def _call(self, name: str, *, copies: bool) -> str:
        """Writes `net_run`, or `net_sizes`, which stores the sizes of results alone."""
        interface = self.interface
        w = Writer()
        w.add(f"define i32 @{self.name}_{name}(ptr %inputs, ptr %outputs) {_GENERIC} {{")
        w.add("  %no.inputs = icmp eq ptr %inputs, null", "  %no.outputs = icmp eq ptr %outputs, null")
        w.add("  %no = or i1 %no.inputs, %no.outputs")
        w.unless("%no", str(Status.NULL.value))
        values: list[str] = []
        for number, each in enumerate(interface.inputs):
            values.append(w.load("%inputs", each.offset, "ptr"))
            w.refuse_null(values[-1])
            sizes = [w.load("%inputs", place, "i64") for _, place in each.open]
            for size in sizes:
                # As an unsigned number, a negative one is large.
                large = w.value(f"icmp ugt i64 {size}, {(1 << 31) - 1}")
                w.unless(large, str(Status.SIZE.value))
            if each.open:
                box = w.value(f"alloca [{1 + len(sizes)} x i64], align 8", f"%box.{number}")
                w.add(f"  store ptr {values[-1]}, ptr {box}")
                for place, size in enumerate(sizes, 1):
                    w.store("i64", size, box, WORD * place)
                values[-1] = box
        slots: list[str] = []
        for number, each in enumerate(interface.outputs):
            if each.open:
                slots.append(w.value("alloca ptr, align 8", f"%result.{number}"))
            elif copies:
                slots.append(w.load("%outputs", each.offset, "ptr"))
                w.refuse_null(slots[-1])
            else:
                slots.append("")
        w.add("  %begun = call { i32, i32, ptr } @begin()", "  %ready = extractvalue { i32, i32, ptr } %begun, 0")
        w.add("  %unready = icmp ne i32 %ready, 0")
        w.unless("%unready", "%ready")
        w.add("  %level = extractvalue { i32, i32, ptr } %begun, 1")
        w.add("  %context = extractvalue { i32, i32, ptr } %begun, 2")
        w.add(f"  %table = getelementptr i8, ptr %context, i64 {TABLE}")
        scratch: list[str] = []
        for number, each in enumerate(interface.outputs):
            if slots[number] == "":
                slots[number] = w.value(
                    f"call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {max(align(each.bytes), ALIGNMENT)})"
                )
                scratch.append(slots[number])
        if scratch:
            missing = [w.value(f"icmp eq ptr {each}, null") for each in scratch]
            some = missing[0]
            for each in missing[1:]:
                some = w.value(f"or i1 {some}, {each}")
            w.add(f"  br i1 {some}, label %no.scratch, label %scratch")
            w.add("no.scratch:", *(f"  call void @free(ptr {each})" for each in scratch))
            w.add("  call void @end(ptr %context, i32 %level)", f"  ret i32 {Status.MEMORY.value}", "scratch:")
        for place, value in enumerate((*values, *slots), 1):
            w.store("ptr", value, "%table", WORD * place)
        if any("llvm.frameaddress" in level.text for level in self.levels):
            w.add("  %frame = call ptr @llvm.frameaddress.p0(i32 0)", "  %here = ptrtoint ptr %frame to i64")
            w.store("i64", w.value(f"sub i64 %here, {STACK}"), "%context", STACK_LIMIT)
        w.add(*self._select("%code", "ptr", [f"@L{k}.{ENTRY}" for k in range(len(self.levels))]))
        w.add("  %status = call i32 %code(ptr %table)", "  %failed = icmp ne i32 %status, 0")
        w.add("  br i1 %failed, label %failure, label %success", "failure:")
        w.store("i64", "0", "%context", DEPTH)
        w.add("  br label %end", "success:")
        verdict = self._read_results(w, slots, copies=copies)
        w.add("end:", f"  %verdict = phi i32 [ %status, %failure ], {verdict}")
        if interface.has_open_results:
            w.add(*self._select("%finish", "ptr", [f"@L{k}.{FINISH}" for k in range(len(self.levels))]))
            w.add("  call i32 %finish(ptr %context)")
        w.add(*(f"  call void @free(ptr {each})" for each in scratch))
        w.add("  call void @end(ptr %context, i32 %level)", "  ret i32 %verdict", "}")
        return w.text()

    def _read_results(self, w: Writer, slots: Sequence[str], *, copies: bool) -> str:
        """Copies results of open sizes, or stores their sizes; returns the entries of the phi of the status."""
        differs: list[str] = []
        for number, each in enumerate(self.interface.outputs):
            if not each.open:
                continue
            box = w.value(f"load ptr, ptr {slots[number]}")
            bytes = str(each.item)
            for extent in each.fixed:
                bytes = w.value(f"mul i64 {bytes}, {extent}")
            for place, (_, offset) in enumerate(each.open, 1):
                size = w.load(box, WORD * place, "i64")
                bytes = w.value(f"mul i64 {bytes}, {size}")
                if copies:
                    there = w.load("%outputs", offset, "i64")
                    other = w.value(f"icmp ne i64 {there}, {size}")
                    following = w.label()
                    differs.append(w.block)
                    w.add(f"  br i1 {other}, label %differs, label %{following}")
                    w.begin(following)
                else:
                    w.store("i64", size, "%outputs", offset)
            if copies:
                target = w.load("%outputs", each.offset, "ptr")
                empty = w.value(f"icmp eq i64 {bytes}, 0")
                absent = w.value(f"icmp eq ptr {target}, null")
                wrong, copy, following = w.label(), w.label(), w.label()
                w.add(f"  br i1 {empty}, label %{following}, label %{wrong}")
                w.begin(wrong)
                differs.append(w.block)
                w.add(f"  br i1 {absent}, label %differs, label %{copy}")
                w.begin(copy)
                data = w.value(f"load ptr, ptr {box}")
                w.add(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {data}, i64 {bytes}, i1 false)")
                w.add(f"  br label %{following}")
                w.begin(following)
        last = w.block
        w.add("  br label %end")
        if not differs:
            return f"[ 0, %{last} ]"
        w.add("differs:", "  br label %end")
        return f"[ 0, %{last} ], [ {Status.RESULT.value}, %differs ]"

    # What statuses mean, threads

    def _status(self) -> str:
        messages = {**{code.value: code.text for code in Status}, **self.interface.messages}
        globals = [f"@message.{k} = internal constant {_string(text)}" for k, text in enumerate(messages.values())]
        globals.append(f"@message.other = internal constant {_string('the program failed')}")
        cases = " ".join(f"i32 {code}, label %case.{k}" for k, code in enumerate(messages))
        lines = [f"define ptr @{self.name}_status(i32 %status) {_GENERIC} {{"]
        lines += [f"  switch i32 %status, label %other [ {cases} ]"]
        for number in range(len(messages)):
            lines += [f"case.{number}:", f"  ret ptr @message.{number}"]
        return "\n".join([*globals, *lines, "other:", "  ret ptr @message.other", "}"])

    def _threads(self) -> str:
        return (
            _text("threads.ll")
            .replace("NAME", self.name)
            .replace("MOST", str(self.threads))
            .replace("READY_CHECK", _THREADS_READY)
            .replace("GENERIC", _GENERIC)
        )


_GENERIC = "nounwind"


def for_processor(arch: str, cpu: str, features: str) -> str:
    """Returns LLVM's attributes of the functions of a library for a processor.

    With them come the tables by which debuggers and profilers find who called a function. Those of Arm's 32 bits need a library.
    """
    tables = "" if arch in ("arm", "wasm32") else "uwtable "
    return f'{tables}"target-cpu"="{cpu}" "target-features"="{features}"'


class Writer:
    """Lines of one function, and the block that they are in."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "0"
        self._count = 0

    def add(self, *lines: str) -> None:
        """Adds lines; labels among them begin blocks."""
        for line in lines:
            if line.endswith(":") and not line.startswith(" "):
                self.block = line[:-1]
            self.lines.append(line)

    def begin(self, label: str) -> None:
        """Begins a block."""
        self.add(f"{label}:")

    def label(self) -> str:
        """Returns a new label."""
        self._count += 1
        return f"b{self._count}"

    def value(self, text: str, name: str | None = None) -> str:
        """Adds an instruction; returns the name of its value."""
        if name is None:
            self._count += 1
            name = f"%v{self._count}"
        self.add(f"  {name} = {text}")
        return name

    def load(self, base: str, offset: int, kind: str) -> str:
        """Adds a load from so many bytes after an address."""
        return self.value(f"load {kind}, ptr {self.value(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def store(self, kind: str, value: str, base: str, offset: int) -> None:
        """Adds a store to so many bytes after an address."""
        self.add(f"  store {kind} {value}, ptr {self.value(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def unless(self, condition: str, status: str) -> None:
        """Returns from the function with a status where a condition holds."""
        bad, good = self.label(), self.label()
        self.add(f"  br i1 {condition}, label %{bad}, label %{good}", f"{bad}:", f"  ret i32 {status}", f"{good}:")

    def refuse_null(self, pointer: str) -> None:
        """Returns from the function where a pointer is null."""
        self.unless(self.value(f"icmp eq ptr {pointer}, null"), str(Status.NULL.value))

    def text(self) -> str:
        """Returns the lines."""
        return "\n".join(self.lines)


_PLACES = {
    "TOP": TOP, "END": END, "CONSTANTS": CONSTANTS, "PREPARED": PREPARED, "GROWN": GROWN, "ARENA": ARENA, "NEXT": NEXT,
    "MOST_ARENA": MOST_ARENA, "ALIGNMENT": ALIGNMENT,
}  # fmt: skip


_LOADED = """  %loaded = load i1, ptr @loaded
  br i1 %loaded, label %whole, label %unloaded
unloaded:
  ret i32 -5
whole:
"""


_THREADS_READY = """call i32 @pthread_mutex_lock(ptr @lock)
  %ready = call i32 @ready()
  call i32 @pthread_mutex_unlock(ptr @lock)
  %bad = icmp ne i32 %ready, 0
  br i1 %bad, label %failed, label %set
failed:
  ret i32 %ready
set:
  call void @mirstack_set_threads(i32 %few)
  ret i32 0"""


# Texts


def _text(name: str) -> str:
    """Returns a text of LLVM IR beside this file."""
    return f"\n{files(__package__ or '').joinpath(name).read_text(encoding='utf-8')}"


def _needed(level: LibraryLevel) -> str:
    """Returns a program's text, without the functions that pack weights if they are packed."""
    return reachable_text(level.text, (ENTRY, FINISH)) if level.program.contents else level.text


def _renamed(text: str, number: int) -> str:
    """Returns a program's text with `L0.` before the names that it defines.

    Nodes of metadata get numbers that no other program has.
    """
    defined = set(re.findall(r'^define [^@]*@("[^"]*"|[\w.$-]+)\(', text, re.M))
    defined |= set(re.findall(r'^@("[^"]*"|[\w.$-]+) =', text, re.M))
    text = re.sub(
        r'@("[^"]*"|[\w.$-]+)',
        lambda found: f"@{prefixed(found[1], number)}" if found[1] in defined else found[0],
        text,
    )
    text = re.sub(r"!(\d+)\b", lambda found: f"!{number * METADATA + int(found[1])}", text)
    return re.sub(r"^define (?!internal)", "define hidden ", text, flags=re.M)


def prefixed(name: str, number: int) -> str:
    """Returns the name of a function of a level among those of all levels."""
    return f'"L{number}.{name[1:]}' if name.startswith('"') else f"L{number}.{name}"


_DECLARATIONS = {
    "aligned_alloc": "declare ptr @aligned_alloc(i64, i64)",
    "free": "declare void @free(ptr)",
    "pthread_mutex_lock": "declare i32 @pthread_mutex_lock(ptr)",
    "pthread_mutex_unlock": "declare i32 @pthread_mutex_unlock(ptr)",
    "madvise": "declare i32 @madvise(ptr, i64, i32)",
    "getauxval": "declare i64 @getauxval(i64)",
    "open": "declare i32 @open(ptr, i32, ...)",
    "lseek": "declare i64 @lseek(i32, i64, i32)",
    "mmap": "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)",
    "munmap": "declare i32 @munmap(ptr, i64)",
    "close": "declare i32 @close(i32)",
    "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "llvm.frameaddress.p0": "declare ptr @llvm.frameaddress.p0(i32)",
    "llvm.smin.i32": "declare i32 @llvm.smin.i32(i32, i32)",
}


def _joined(parts: Sequence[str]) -> str:
    """Returns texts as one module, in which each function is declared once, if it is used and not defined."""
    text = "\n".join(parts)
    defined = set(re.findall(r'^define [^@]*@("[^"]*"|[\w.$-]+)\(', text, re.M))
    seen: set[str] = set()
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("declare "):
            found = re.search(r'@("[^"]*"|[\w.$-]+)\(', line)
            assert found is not None
            if found[1] in seen or found[1] in defined or text.count(f"@{found[1]}") == 1:
                continue
            seen.add(found[1])
        lines.append(line)
    lines += [line for name, line in _DECLARATIONS.items() if name not in seen | defined and f"@{name}(" in text]
    return "\n".join(lines) + "\n"


_HEX = np.array([b"\\%02X" % byte for byte in range(256)], "S3")


def _bytes(data: bytes) -> str:
    """Returns the type and the text of an array of bytes."""
    if not data:
        return "[1 x i8] zeroinitializer"
    return f'[{len(data)} x i8] c"{_HEX[np.frombuffer(data, np.uint8)].tobytes().decode()}"'


def _string(text: str) -> str:
    return _bytes(text.encode() + b"\0")
