"""Writes a library as a module of WebAssembly, with the JavaScript that loads it.

    const net = await load();              net.wasm beside net.mjs, or load(bytes)
    net.run({x: new Float32Array(64)})     { out0: Float32Array(10) }

The module imports its memory, an allocator, and C's mathematics, all of which the JavaScript brings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod

from ....support.diagnostics import Diagnostic, MirError
from ..program import DYNAMIC
from .c_interface import Field
from .library_ir import Library
from .wasm_module import WasmModule, module_of_object

ARRAYS: Mapping[str, str] = {
    "float32": "Float32Array", "float64": "Float64Array", "int8": "Int8Array", "uint8": "Uint8Array", "bool": "Uint8Array",
    "int16": "Int16Array", "uint16": "Uint16Array", "int32": "Int32Array", "uint32": "Uint32Array", "int64": "BigInt64Array",
    "uint64": "BigUint64Array", "float16": "Uint16Array", "bfloat16": "Uint16Array",
}  # fmt: skip
"""JavaScript's arrays of elements; of dtypes that it has none for, that of their bits."""

STACK = 1 << 20
"""Bytes of the stack, above the data."""

PROVIDED = frozenset(("aligned_alloc", "free", "memset", "memcpy", "memmove"))
MATHEMATICS = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "floor",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "pow",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ]
)
"""C's functions that JavaScript has under the same names."""


def wasm_library(library: Library, data: bytes) -> tuple[bytes, str]:
    """Returns the module and its JavaScript, from the library's object file.

    Raises MirError where the program calls a function that JavaScript does not have.
    """
    names = [f"{library.name}_{each}" for each in ("run", "status")]
    if library.interface.has_open_results:
        names.append(f"{library.name}_sizes")
    module = module_of_object(data, names)
    missing = [name for name in module.imports if name not in PROVIDED and name.removesuffix("f") not in MATHEMATICS]
    if missing:
        raise MirError(
            Diagnostic(f"the program calls {', '.join(missing)}, which JavaScript does not have").with_note(
                "write the function as one of TIR, or leave the operator to the page"
            )
        )
    return module.data, _javascript(library, module)


def _javascript(library: Library, module: WasmModule) -> str:
    interface = library.interface
    facts = {
        "NAME": library.name,
        "ENTRY": interface.entry,
        "INPUTS": json.dumps([_described(field) for field in interface.inputs]),
        "OUTPUTS": json.dumps([_described(field) for field in interface.outputs]),
        "STACK_END": str(-(-module.end // 16) * 16 + STACK),
        "SIZES": "true" if interface.has_open_results else "false",
    }
    text = _TEXT
    for name, value in facts.items():
        text = text.replace(f"${name}$", value)
    return text


def _described(field: Field) -> dict[str, object]:
    return {
        "name": field.name,
        "array": ARRAYS.get(field.tensor.dtype, "Uint8Array"),
        "shape": [-1 if extent == DYNAMIC else extent for extent in field.tensor.shape],
        "offset": field.offset,
        "open": list(field.open),
        "count": prod(field.fixed),
    }


_TEXT = """// @$ENTRY$, compiled by mirstack. `load` returns an object whose `run` takes typed arrays by name and returns those of results.

const INPUTS = $INPUTS$;
const OUTPUTS = $OUTPUTS$;
const STACK_END = $STACK_END$;
const PAGE = 65536;

async function bytesOf(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const url = source ?? new URL("./$NAME$.wasm", import.meta.url);
  if (String(url).startsWith("file:")) {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

/** Loads the module: from beside this file, from a URL, or from its bytes. */
export async function load(source) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(STACK_END / PAGE) });
  let end = STACK_END;
  const free = new Map();
  const sizes = new Map();
  function allocate(bytes) {
    const size = Math.max(64, Math.ceil(bytes / 64) * 64);
    const known = free.get(size);
    if (known !== undefined && known.length) return known.pop();
    const address = Math.ceil(end / 64) * 64;
    const missing = address + size - memory.buffer.byteLength;
    if (missing > 0) {
      try {
        memory.grow(Math.ceil(missing / PAGE));
      } catch {
        return 0;
      }
    }
    end = address + size;
    sizes.set(address, size);
    return address;
  }
  function release(address) {
    if (address === 0) return;
    const size = sizes.get(address);
    const known = free.get(size);
    if (known === undefined) free.set(size, [address]);
    else known.push(address);
  }
  const given = {
    __linear_memory: memory,
    __stack_pointer: new WebAssembly.Global({ value: "i32", mutable: true }, STACK_END),
    aligned_alloc: (alignment, bytes) => allocate(Number(bytes)),
    free: release,
    memset: (to, value, count) => (new Uint8Array(memory.buffer, to, Number(count)).fill(value), to),
    memcpy: (to, from, count) => (new Uint8Array(memory.buffer).copyWithin(to, from, from + Number(count)), to),
    memmove: (to, from, count) => (new Uint8Array(memory.buffer).copyWithin(to, from, from + Number(count)), to),
  };
  const module = await WebAssembly.compile(await bytesOf(source));
  for (const { kind, name } of WebAssembly.Module.imports(module)) {
    if (name in given) continue;
    if (kind === "table") given[name] = new WebAssembly.Table({ element: "anyfunc", initial: 1024 });
    if (kind === "function") given[name] = Math[name] ?? ((...values) => Math.fround(Math[name.slice(0, -1)](...values)));
  }
  const { exports } = await WebAssembly.instantiate(module, { env: given });
  const slots = (fields) => Math.max(1, fields.reduce((most, field) => Math.max(most, field.offset / 8 + 1 + field.open.length), 0));
  const inputs = allocate(8 * slots(INPUTS));
  const outputs = allocate(8 * slots(OUTPUTS));

  function text(status) {
    const start = exports.$NAME$_status(status);
    const bytes = new Uint8Array(memory.buffer);
    return new TextDecoder().decode(bytes.slice(start, bytes.indexOf(0, start)));
  }
  function check(status) {
    if (status !== 0) throw new Error(text(status));
  }
  const kinds = { Float32Array, Float64Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array };
  const size = (place, value) => new DataView(memory.buffer).setBigInt64(place, BigInt(value), true);
  const read = (place) => Number(new DataView(memory.buffer).getBigInt64(place, true));

  /** Runs the program on typed arrays by name; of a parameter with open dimensions an array with `shape`: `{data, shape}`. */
  function run(values) {
    const taken = [];
    try {
      for (const field of INPUTS) {
        const value = values[field.name];
        if (value === undefined) throw new TypeError(`${field.name} is missing: an array of shape [${field.shape}]`);
        const data = value.data ?? value;
        const shape = value.shape ?? (field.open.length === 0 ? field.shape : undefined);
        const kind = kinds[field.array];
        if (!(data instanceof kind)) throw new TypeError(`${field.name} must be a ${field.array}`);
        if (shape === undefined || shape.length !== field.shape.length || field.shape.some((extent, axis) => extent >= 0 && extent !== shape[axis]))
          throw new TypeError(`${field.name} must have shape [${field.shape.map((extent) => (extent < 0 ? "?" : extent))}]`);
        const count = shape.reduce((all, extent) => all * extent, 1);
        if (data.length !== count) throw new TypeError(`${field.name} must have ${count} elements, not ${data.length}`);
        const address = allocate(data.byteLength);
        if (address === 0) throw new RangeError("out of memory");
        taken.push(address);
        new kind(memory.buffer, address, count).set(data);
        size(inputs + field.offset, address);
        for (const [axis, place] of field.open) size(inputs + place, shape[axis]);
      }
      if ($SIZES$) {
        for (const field of OUTPUTS) size(outputs + field.offset, 0);
        check(exports.$NAME$_sizes(inputs, outputs));
      }
      const results = OUTPUTS.map((field) => {
        const shape = [...field.shape];
        for (const [axis, place] of field.open) shape[axis] = read(outputs + place);
        const count = shape.reduce((all, extent) => all * extent, 1);
        const address = allocate(count * kinds[field.array].BYTES_PER_ELEMENT);
        if (address === 0) throw new RangeError("out of memory");
        taken.push(address);
        size(outputs + field.offset, address);
        return { field, shape, count, address };
      });
      check(exports.$NAME$_run(inputs, outputs));
      const found = {};
      for (const { field, shape, count, address } of results) {
        const array = new kinds[field.array](memory.buffer, address, count).slice();
        array.shape = shape;
        found[field.name] = array;
      }
      return found;
    } finally {
      taken.forEach(release);
    }
  }
  return { run, inputs: INPUTS, outputs: OUTPUTS };
}
"""
