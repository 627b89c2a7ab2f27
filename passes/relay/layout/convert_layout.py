"""`convert-layout`: brings operators into desired layouts, as TVM's ConvertLayout.

    nn.conv2d(%x, %w)  ->  layout_transform(nn.conv2d(layout_transform(%x, "NCHW", "NHWC"), %w', data_layout="NHWC"), "NHWC", "NCHW")

`convert-layout{layouts="nn.conv2d:NHWC,default;nn.max_pool2d:NHWC"}`: for each operator the layout of its data, and for one
with a kernel that of the kernel, `default` being the usual one for the data's. The layouts run on through the following
operators (see `layout_propagation.py`). An operator whose sizes the blocks of a layout do not divide is left as it is. What an
operator accepts is not stated here: its entry has the attributes' defaults (`data_layout`, `kernel_layout`) and a layout rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.layouts import layout_rule_of
from ....dialects.relay.operator import AttrValue, Operator, OperatorOp, get_operator
from ....dialects.relay.operators.common.layout_strings import Layout, parse_layout
from ....support.diagnostics import MirError, error_at
from .layout_propagation import Change, LayoutRewriter

DEFAULT = "default"


@dataclass(frozen=True)
class ConvertLayout(ModulePass):
    """Bring operators into desired layouts; transforms stand only where a chain of them begins and ends."""

    name = "convert-layout"

    layouts: str
    """The desired layouts: `operator:data,kernel` (or `operator:layout`), joined by `;`."""

    skip_layers: tuple[int, ...] = ()
    """Which of these operators stay as they are, counted from 0 in the order of the program."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(number < 0 for number in self.skip_layers):
            raise error_at(op, "convert-layout: skip-layers are counted from 0")
        _Converter(_read(op, self.layouts), frozenset(self.skip_layers)).run(op)


class _Converter(LayoutRewriter):
    def __init__(self, desired: dict[str, tuple[Layout, str]], skipped: frozenset[int]):
        super().__init__()
        self.desired, self.skipped = desired, skipped
        self.met = 0
        """How many operators with a desired layout came before."""

    def change(self, op: OperatorOp) -> Change | None:
        found = self.desired.get(op.OPERATOR.name)
        if found is None:
            return None
        self.met += 1
        if self.met - 1 in self.skipped:
            return None
        data, kernel = found
        attrs = op.attrs()
        if "layout" in attrs:
            return Change({"layout": data.text}) if attrs.layout != data.text else None
        if kernel == DEFAULT:
            kernel = default_kernel_layout(op.OPERATOR, data, is_depthwise(op, self.type_of(kernel_of(op))))
        new = {"data_layout": data.text, "kernel_layout": kernel}
        return Change(dict[str, AttrValue](new)) if any(attrs[name] != value for name, value in new.items()) else None


def default_kernel_layout(operator: Operator, data: Layout, depthwise: bool) -> str:
    """Returns the usual layout of a convolution's kernel for a layout of its data.

    OIHW for NCHW, HWIO for NHWC, HWOI for depthwise ones, OIHW4i4o for NCHW4c.
    """
    first = str(operator.specs["kernel_layout"].default)
    spatial = "".join(axis for axis in first if axis not in "OI")
    channels = "".join(axis for axis in first if axis in "OI")
    block = data.block("C")
    if block != 1:
        return f"{first}{block}o" if depthwise else f"{first}{block}i{block}o"
    if data.axes.index("C") < data.axes.index(spatial[0]):
        return first
    if channels == "I":  # dilation: one plane for each channel
        return f"{spatial}I"
    return f"{spatial}{'OI' if depthwise or channels == 'IO' or data.axes.endswith('NC') else 'IO'}"


def kernel_of(op: OperatorOp) -> SSAValue:
    """A convolution's kernel."""
    return op.args[op.OPERATOR.arguments.index("weight")]


def is_depthwise(op: OperatorOp, kernel: object) -> bool:
    """Returns whether each channel of a convolution's data has kernels of its own."""
    attrs = op.attrs()
    layout = parse_layout(attrs.kernel_layout)
    groups = attrs.get("groups", 1)
    if groups == 1 or layout is None or not isinstance(kernel, TensorType):
        return False
    sizes = layout.logical(kernel.get_shape())
    return sizes.get("I") == 1 and sizes.get("O", 0) % groups == 0


def _read(module: ModuleOp, text: str) -> dict[str, tuple[Layout, str]]:
    """The desired layouts by operator."""
    desired: dict[str, tuple[Layout, str]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, rest = (piece.strip() for piece in part.partition(":"))
        if not colon:
            raise _error(module, f"'{part}' names no layout")
        operator = get_operator(name)
        if operator is None:
            raise _error(module, f"there is no operator '{name}'")
        has_kernel = "kernel_layout" in operator.specs
        spec = operator.specs.get("data_layout" if has_kernel else "layout")
        if spec is None or layout_rule_of(operator) is None:
            raise _error(module, f"{name} computes in one layout only")
        given = [piece.strip() for piece in rest.split(",")]
        if len(given) != 1 + has_kernel:
            wanted = "two layouts, of its data and its kernel" if has_kernel else "one layout"
            raise _error(module, f"{name} takes {wanted}, not {len(given)}")
        data = _layout(module, name, given[0], str(spec.default))
        kernel = given[1] if has_kernel else DEFAULT
        if kernel != DEFAULT:
            _layout(module, name, kernel, str(operator.specs["kernel_layout"].default))
        desired[name] = data, kernel
    return desired


def _layout(module: ModuleOp, name: str, text: str, like: str) -> Layout:
    found = parse_layout(text)
    if found is None or sorted(found.axes) != sorted(like):
        raise _error(
            module, f"'{text}' is not a layout for {name}", f"it needs the axes {', '.join(like)}, as in {like}"
        )
    return found


def _error(module: ModuleOp, message: str, *notes: str) -> MirError:
    form = 'layouts are written as layouts="nn.conv2d:NHWC,default;nn.max_pool2d:NHWC"'
    return error_at(module, f"convert-layout: {message}", *notes, form)
