"""Relay programs of any size, on which together every Relay pass has something to do.

Each function takes the number of ops that its program must have, about.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_CHAIN = (
    "{v} = exp({p});", "{v} = add({p}, 1f);", "{v} = multiply({p}, %c);", "{v} = reshape({p}, newshape=[2, 2]);",
    "{v} = reshape({p}, newshape=[4]);", '{v} = cast({p}, dtype="float64");', '{v} = cast({p}, dtype="float32");',
    "{v} = divide({p}, 2f);", "{v} = add({p}, {p});", "let {v} = tanh({p});",
)  # fmt: skip
_WIDE = (
    "%{k} = exp(%x);", "%{k} = add(%x, {k}f);", "%{k} = nn.dense(%m, %w, units=2);", "%{k} = multiply(%x, %c);",
    "%{k} = nn.batch_matmul(%b, %b, transpose_b=True);", "%{k} = nn.conv2d(%i, %f, channels=2, kernel_size=[1, 1]);",
    '%{k} = cast(%x, dtype="float64");', "%{k} = nn.softmax(%x);",
)  # fmt: skip


_LETTERS = 26


def repeating(part: str, inputs: str, ops: int, more: str = "") -> Callable[[int], str]:
    """Returns programs of repeated parts of `ops` ops, each on the result of the one before.

    The first reads `%x`. In a part `%P` is the result of the previous copy, `%V` that of this one, other capitals are values of the copy's own
    (`let %nA` of a name of its own), `#` is its number.
    """
    letters = sorted(set(re.findall(r"%n?([A-Z])\b", part)) - {"P"})

    def name(letter: str, k: int) -> str:
        return f"%{k * _LETTERS + ord(letter) - ord('A')}"

    def program(count: int) -> str:
        lines: list[str] = []
        before = "%x"
        for k in range(max(2, count // ops)):
            text = part.replace("%P", before)
            for letter in letters:
                text = re.sub(rf"%{letter}\b", name(letter, k), text).replace(f"%n{letter}", f"%n{letter}{k}")
            lines.append(text.replace("#", str(k)))
            before = name("V", k)
        return f"{more}def @main({inputs}) {{\n{chr(10).join(lines)}\n{before}\n}}\n"

    return program


def chain(count: int) -> str:
    """Returns a program in which every op uses the one before; rules apply to some."""
    lines: list[str] = []
    before = "%x"
    for k in range(count):
        name = f"%v{k}" if k % len(_CHAIN) == len(_CHAIN) - 1 else f"%{k}"
        lines.append(_CHAIN[k % len(_CHAIN)].format(v=name, p=before))
        before = name
    return f"def @main(%x: Tensor[(4), float32], %c: float32) {{\n{chr(10).join(lines)}\n{before}\n}}\n"


def wide(count: int) -> str:
    """Returns a program in which every op uses inputs; a tuple takes them all."""
    lines = "\n".join(_WIDE[k % len(_WIDE)].format(k=k) for k in range(count))
    inputs = (
        "%x: Tensor[(4), float32], %c: float32, %m: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32], "
        "%b: Tensor[(1, 2, 2), float32], %i: Tensor[(1, 2, 2, 2), float32], %f: Tensor[(2, 2, 1, 1), float32]"
    )
    return f"def @main({inputs}) {{\n{lines}\n({', '.join(f'%{k}' for k in range(count))})\n}}\n"


def unpacked(count: int) -> str:
    """Returns a program of the fields of one tuple of many, one by one, then joined."""
    n = count // 4
    given = [f"%a{k}" if k % 2 else f"%{3 * k}" for k in range(n)]
    made = "\n".join(f"let {v} = exp(%x);" if k % 2 else f"{v} = add(%x, {k}f);" for k, v in enumerate(given))
    used = "\n".join(f"%{3 * k + 1} = %{3 * n}.{k};\n%{3 * k + 2} = negative(%{3 * k + 1});" for k in range(n))
    joined = ", ".join(f"%{3 * k + 2}" for k in range(n))
    body = f"{made}\n%{3 * n} = ({', '.join(given)});\n{used}\nconcatenate(({joined}), axis=0)"
    return f"def @main(%x: Tensor[(4), float32]) {{\n{body}\n}}\n"


def functions(count: int) -> str:
    """Returns global functions that each call the one before, and local ones that capture its result."""
    x = "%x: Tensor[(2), float32]"
    count = max(2, count // 10)
    first = f"def @f0({x}, Inline=1) -> Tensor[(2), float32] {{ exp(%x) }}\n"
    rest = (f"def @f{k}({x}, Inline=1) -> Tensor[(2), float32] {{ exp(@f{k - 1}(%x)) }}\n" for k in range(1, count))
    local = "\n".join(
        f"let %g{k} = fn (%y: Tensor[(2), float32]) {{ add(%y, %v{k - 1}) }}; let %v{k} = %g{k}(%v{k - 1});"
        for k in range(1, count)
    )
    return first + "".join(rest) + f"def @main({x}) {{ let %v0 = @f{count - 1}(%x);\n{local}\n%v{count - 1} }}\n"


closures = repeating(
    "%A = fn (%y: float32) -> float32 { add(%y, %P) };\n%B = @apply(%A, %P);\n"
    "%D = @apply(@double, %B);\n%E = @wrap(Some, %D);\n"
    "%V = match (@same(%E)) { Some(%nQ) => { %nQ }, None => { %P } };",
    "%x: float32",
    12,
    "type Option[A] { Some(A), None, }\n"
    "def @double(%x: float32) -> float32 { add(%x, %x) }\n"
    "def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }\n"
    "def @wrap(%f: fn (float32) -> Option[float32], %x: float32) -> Option[float32] { %f(%x) }\n"
    "def @same[A](%x: A) -> A { %x }\n",
)
"""Closures, global functions, constructors and generic functions, passed to a caller."""

branches = repeating(
    "%A = exp(%P);\nlet %nR = ref(%A);\n"
    "%B = if (%c) { let %nI = add(%A, %P); multiply(%nI, %A) } else { ref_read(%nR) };\n"
    "%V = add(%B, %A);",
    "%x: Tensor[(4), float32], %c: bool",
    10,
)
"""Branches that use the values before them, and references."""

_CONV = "channels=4, kernel_size=[1, 1]"
layers = repeating(
    "%S = multiply(%P, %scale);\n"
    f"%A = nn.conv2d(%S, %w, {_CONV});\n"
    f"%B = nn.conv2d(%A, %w, {_CONV});\n%D = nn.conv2d(%A, %w, {_CONV});\n"
    f"%E = nn.conv2d(%A, %w, {_CONV});\n"
    "%F = nn.bias_add(add(add(%B, %D), %E), %bias);\n"
    "%G = nn.conv2d(nn.pad(%F, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %v, padding=[0, 0, 0, 0], "
    "channels=4, kernel_size=[3, 3]);\n%H = multiply(%G, %scale);\n"
    "%N = nn.batch_norm(%H, %bias, %bias, %bias, %bias);\n%O = %N.0;\n"
    "%Q = nn.space_to_batch_nd(transpose(%O, axes=[0, 2, 3, 1]), block_shape=[2, 2], paddings=[[2, 2], [2, 2]]);\n"
    "%T = nn.conv2d(%Q, %h, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3], "
    'data_layout="NHWC", kernel_layout="HWIO");\n'
    "%U = nn.batch_to_space_nd(%T, block_shape=[2, 2], crops=[[0, 0], [0, 0]]);\n"
    '%Y = cast(%U, dtype="float64");\n'
    '%Z = add(cast(exp(%Y), dtype="float32"), cast(tanh(%Y), dtype="float32"));\n'
    "%L = annotation.stop_fusion(nn.dropout(%Z).0);\n"
    "%M = nn.max_pool2d(multiply(transpose(%L, axes=[0, 3, 1, 2]), %scale), pool_size=[1, 1]);\n"
    '%R = nn.conv2d_transpose(%M, %w, channels=4, kernel_size=[1, 1], kernel_layout="OIHW");\n'
    "%X = nn.conv2d_transpose(%R, %u, channels=4, kernel_size=[2, 2], strides=[2, 2]);\n"
    "%V = nn.max_pool2d(%X, pool_size=[2, 2], strides=[2, 2]);",
    "%x: Tensor[(1, 4, 4, 4), float32], %w: Tensor[(4, 4, 1, 1), float32], %v: Tensor[(4, 4, 3, 3), float32], "
    "%h: Tensor[(3, 3, 4, 4), float32], %u: Tensor[(4, 4, 2, 2), float32], %bias: Tensor[(4), float32], %scale: Tensor[(4, 1, 1), float32]",
    28,
)
"""Layers of a network: scales and biases around convolutions, parallel branches, padding, norms."""

quantized = repeating(
    "%A = qnn.dense(%P, %w, 1, 2, 0.5f, 0.25f, units=4);\n"
    '%B = qnn.requantize(%A, 0.125f, 0, 0.5f, 1, out_dtype="int8");\n'
    "%D = qnn.add(%B, %P, 0.5f, 1, 0.5f, 1, 0.5f, 1);\n"
    "%E = nn.dense(qnn.dequantize(%D, 0.5f, 1), qnn.dequantize(%w, 0.25f, 2), units=4);\n"
    '%V = qnn.quantize(nn.relu(%E), 0.5f, 1, out_dtype="int8");',
    "%x: Tensor[(4, 4), int8], %w: Tensor[(4, 4), int8]",
    28,
)
"""Operators on quantized numbers, and regions between dequantization and quantization."""

constants = repeating(
    '%A = multiply(add(#f, 2f), 3f);\n%S = shape_of(%P, dtype="int32");\n'
    "%D = dyn.reshape(%P, %S, newshape=[]);\n%E = add(%D, %A);\n"
    "%F = fn (%p0: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] { exp(negative(%p0)) };\n"
    "%G = %F(%E);\n"
    "%V = multiply(%G, %G);",
    "%x: Tensor[(4), float32]",
    14,
)
"""Constants computed from each other, shapes that are computed, and kernels made before."""

attention = repeating(
    "%A = nn.batch_matmul(%P, %w, transpose_b=True);\n%B = multiply(%A, 0.25f);\n%D = nn.softmax(%B);\n"
    "%V = nn.batch_matmul(%D, %w, transpose_b=False);",
    "%x: Tensor[(2, 16, 16), float32], %w: Tensor[(2, 16, 16), float32]",
    5,
)
"""Softmaxes between two products."""

shared = repeating(
    "%A = repeat(%w, repeats=2, axis=0);\n%B = nn.batch_matmul(%P, %A, transpose_b=True);\n%V = multiply(%B, 0.25f);",
    "%x: Tensor[(2, 16, 16), float32], %w: Tensor[(1, 16, 16), float32]",
    4,
)
"""Products of two matrices with one, which is repeated for them."""

PROGRAMS: dict[str, Callable[[int], str]] = {
    "chain": chain,
    "wide": wide,
    "unpacked": unpacked,
    "functions": functions,
    "closures": closures,
    "branches": branches,
    "layers": layers,
    "quantized": quantized,
    "constants": constants,
    "attention": attention,
    "shared": shared,
}
"""By name."""
