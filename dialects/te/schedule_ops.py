"""Defines schedules of TE as ops on handles of axes, tensors and groups.

`te.schedule` holds the steps, each an op named `te.schedule.PRIMITIVE`.
The classes of the primitives' ops are created from their table, `dialects.schedule.signature_table`. Tensors and sizes of the program are named, not
captured: the schedule may stand apart from the function that it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    NoneType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from .. import tir
from ..tir.buffer import NO_ATTRS
from ..tir.types import I32, type_to_dtype

if TYPE_CHECKING:
    from ..schedule.signature_table import Parameter, Signature

THREAD_TAGS = (
    *(f"{kind}.{dim}" for kind in ("blockIdx", "threadIdx") for dim in "xyz"),
    "vthread", "vthread.x", "vthread.y", "vthread.z", "cthread",
)  # fmt: skip

HANDLES = ("axis", "stage", "tensor")
"""Kinds of arguments that a primitive takes as handles; `expr` is a scalar, the others are attributes."""


@irdl_attr_definition
class ScheduleHandleType(ParametrizedAttribute, TypeAttribute):
    """`!te.handle<"axis">`: an operand of a primitive: an axis, a tensor (or its stage), a stage group."""

    name = "te.handle"
    kind: StringAttr = param_def()

    def verify(self) -> None:
        if self.kind.data not in ("axis", "tensor", "group"):
            raise VerifyException(f"a handle is of an axis, a tensor or a group, not of '{self.kind.data}'")


AXIS, TENSOR, GROUP = (ScheduleHandleType(StringAttr(kind)) for kind in ("axis", "tensor", "group"))


class OptionalSymbol(SymbolOpInterface):
    """A schedule inside of its function has no name."""

    def is_optional_symbol(self, op: Operation) -> bool:
        return True


@irdl_op_definition
class ScheduleOp(IRDLOperation):
    """`@te.schedule(scale) def scale_tiled(s): …`, or a function's own schedule, without a name.

    `outputs` are the tensors passed to `te.create_schedule`; absent for the outputs of the function.
    """

    name = "te.schedule"
    assembly_format = "($sym_name^)? (`for` $target^)? attr-dict-with-keyword $body"
    sym_name = opt_prop_def(SymbolNameConstraint())
    target = opt_prop_def(SymbolRefAttr)
    outputs = opt_prop_def(ArrayAttr[StringAttr])
    # Without steps MLIR's text has no block.
    body = region_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), OptionalSymbol())

    def __init__(
        self, body: Region, name: str | None = None, target: str | None = None, outputs: Sequence[str] | None = None
    ):
        properties: dict[str, Attribute] = {}
        if name is not None:
            properties["sym_name"] = StringAttr(name)
        if target is not None:
            properties["target"] = SymbolRefAttr(target)
        if outputs is not None:
            properties["outputs"] = ArrayAttr([StringAttr(o) for o in outputs])
        super().__init__(properties=properties, regions=[body])

    @property
    def steps(self) -> Sequence[Operation]:
        """Returns the ops of the schedule, in order."""
        return list(self.body.block.ops) if self.body.blocks else []

    def verify_(self) -> None:
        from .ops import FuncOp

        if (self.target is None) != isinstance(self.parent_op(), FuncOp) or (self.target is None) != (
            self.sym_name is None
        ):
            raise VerifyException(
                "a schedule stands in its te.func, or has a name and names the function that it is for"
            )
        if len(self.body.blocks) > 1 or (self.body.blocks and self.body.block.args):
            raise VerifyException("a schedule is one block without arguments: handles come from its ops")


@irdl_op_definition
class TensorRefOp(IRDLOperation):
    """A tensor of the program by its name; `which` counts those of the same name."""

    name = "te.tensor_ref"
    assembly_format = "$tensor attr-dict `->` type($result)"
    tensor = prop_def(StringAttr)
    which = prop_def(IntegerAttr)
    result = result_def(ScheduleHandleType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, tensor: str, which: int = 0):
        super().__init__(
            properties={"tensor": StringAttr(tensor), "which": IntegerAttr(which, 64)}, result_types=[TENSOR]
        )


@irdl_op_definition
class VarRefOp(IRDLOperation):
    """A size (`te.var`) of the program by its name."""

    name = "te.var_ref"
    assembly_format = "$var_name attr-dict `->` type($result)"
    var_name = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, var_name: str, type: Attribute = I32):
        super().__init__(properties={"var_name": StringAttr(var_name)}, result_types=[type])


@irdl_op_definition
class AxisRefOp(IRDLOperation):
    """`s[B].op.axis[0]`, or of `reduce_axis` or `scan_axis`: an axis of a tensor's operation.

    Steps before it may have rewritten the operation.
    """

    name = "te.axis_ref"
    assembly_format = "$tensor $which attr-dict `:` type($tensor) `->` type($result)"
    tensor = operand_def(ScheduleHandleType)
    which = prop_def(StringAttr)
    place = prop_def(IntegerAttr)
    result = result_def(ScheduleHandleType)
    # Not pure: steps in between change the axes of the operation.
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def()

    def __init__(self, tensor: SSAValue, which: str, place: int):
        super().__init__(
            operands=[tensor],
            properties={"which": StringAttr(which), "place": IntegerAttr(place, 64)},
            result_types=[AXIS],
        )

    def verify_(self) -> None:
        if self.which.data not in ("axis", "reduce_axis", "scan_axis"):
            raise VerifyException(f"an operation has axis, reduce_axis or scan_axis, not '{self.which.data}'")
        if self.tensor.type != TENSOR or self.place.value.data < 0:
            raise VerifyException("an axis is taken of a tensor, by its place from 0")


@irdl_op_definition
class ThreadAxisOp(IRDLOperation):
    """`te.thread_axis("threadIdx.x")`: a thread; `extent` is the number of threads, -1 for the loop's."""

    name = "te.thread_axis"
    assembly_format = "$tag `,` $var_name attr-dict `->` type($result)"
    tag = prop_def(StringAttr)
    var_name = prop_def(StringAttr)
    extent = prop_def(IntegerAttr)
    result = result_def(ScheduleHandleType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def()

    def __init__(self, tag: str, name: str, extent: int = -1):
        super().__init__(
            properties={"tag": StringAttr(tag), "var_name": StringAttr(name), "extent": IntegerAttr(extent, 64)},
            result_types=[AXIS],
        )

    def verify_(self) -> None:
        if self.tag.data not in THREAD_TAGS:
            raise VerifyException(f"there is no thread '{self.tag.data}'")


@irdl_op_definition
class AxisValueOp(IRDLOperation):
    """The value of an axis, in an expression."""

    name = "te.axis_value"
    assembly_format = "$axis attr-dict `:` type($axis) `->` type($result)"
    axis = operand_def(ScheduleHandleType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, axis: SSAValue, type: Attribute = I32):
        super().__init__(operands=[axis], result_types=[type])


class StepOp(IRDLOperation):
    """A primitive.

    Operand k belongs to the parameter `names[k]` ("" for the stage that it is applied to); `literals` are the other
    arguments. Results are handles."""

    arguments = var_operand_def()
    names = prop_def(ArrayAttr[StringAttr])
    literals = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    handles = var_result_def(ScheduleHandleType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$arguments attr-dict `:` functional-type($arguments, $handles)"

    @classmethod
    def primitive(cls) -> str:
        """Returns the primitive's name."""
        return cls.name.removeprefix("te.schedule.")

    @property
    def signature(self) -> Signature:
        """Returns the primitive's entry in the table."""
        from ..schedule.signature_table import te_signatures

        return te_signatures()[self.primitive()]

    def of(self, name: str) -> list[SSAValue]:
        """Returns the operands of a parameter."""
        return [v for v, n in zip(self.arguments, self.names.data, strict=True) if n.data == name]

    def verify_(self) -> None:
        signature, primitive = self.signature, self.primitive()
        if len(self.arguments) != len(self.names.data):
            raise VerifyException(
                f"{primitive} has {counted(len(self.arguments), 'operand')}, but {counted(len(self.names.data), 'name')} for them"
            )
        stages = len(self.of(""))
        if stages != (signature.owner == "stage"):
            raise VerifyException(
                f"{primitive} is applied to {'one stage' if signature.owner == 'stage' else 'the schedule'}, not to {counted(stages, 'stage')}"
            )
        for value, name in zip(self.arguments, self.names.data, strict=True):
            kind = signature.by_name[name.data].element if name.data in signature.by_name else ""
            if name.data and kind not in (*HANDLES, "expr"):
                raise VerifyException(f"{primitive} takes no operand '{name.data}'")
            if not _fits(kind or "stage", value.type):
                raise VerifyException(f"'{name.data or 'the stage'}' of {primitive} is of kind {kind or 'stage'}")
        for parameter in signature.parameters:
            self._verify_given(parameter)
        kinds = [t.type for t in self.handles]
        results = [] if signature.result == "none" else signature.result.split(", ")
        wanted = [GROUP if k == "stage" else TENSOR if k == "tensor" else AXIS for k in results]
        if set(kinds) != {TENSOR} if signature.element else kinds != wanted:
            raise VerifyException(
                f"{primitive} gives {f'{signature.element}s' if signature.element else ', '.join(results) or 'nothing'}"
            )

    def _verify_given(self, parameter: Parameter) -> None:
        primitive, name = self.primitive(), parameter.name
        literal = self.literals.data.get(name)
        count = len(self.of(name))
        if parameter.element in (*HANDLES, "expr") and literal is not None and not isinstance(literal, NoneType):
            raise VerifyException(f"'{name}' of {primitive} is an operand")
        if not (parameter.is_list or parameter.variadic) and count > 1:
            raise VerifyException(f"'{name}' of {primitive} is given {count} times")
        if not count and literal is None and parameter.is_required and not parameter.variadic:
            raise VerifyException(f"'{name}' of {primitive} is not given")


def _fits(kind: str, type: Attribute) -> bool:
    match kind:
        case "axis":
            return type == AXIS
        case "stage":
            return type in (TENSOR, GROUP)
        case "tensor":
            return type == TENSOR
        case _:
            return not isinstance(type, ScheduleHandleType) and type_to_dtype(type) != ""


@cache
def step_ops() -> dict[str, type[StepOp]]:
    """Returns the class of each primitive's op, by the primitive's name."""
    from ..schedule.signature_table import te_signatures

    return {
        name: irdl_op_definition(
            type(
                f"{''.join(part.capitalize() for part in name.split('_'))}StepOp",
                (StepOp,),
                {
                    "name": f"te.schedule.{name}",
                    "__doc__": f"The primitive `{name}` of `dialects.schedule.signature_table`.",
                    "__module__": __name__,
                },
            )
        )
        for name in te_signatures()
    }


def make_step(
    name: str,
    arguments: Sequence[tuple[str, SSAValue]],
    literals: dict[str, Attribute],
    results: Sequence[ScheduleHandleType],
) -> StepOp:
    """Creates the op of a primitive."""
    return step_ops()[name](
        operands=[[value for _, value in arguments]],
        properties={
            "names": ArrayAttr([StringAttr(parameter) for parameter, _ in arguments]),
            "literals": DictionaryAttr(literals),
        },
        result_types=[list(results)],
    )


SCALARS = (*tir.BINARY_OPS, tir.ConstOp, tir.NotOp, tir.SelectOp, tir.CastOp)
"""The expressions in arguments."""
