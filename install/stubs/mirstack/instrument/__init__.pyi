"""Instruments, which watch passes.

    with transform.PassContext(instruments=[PassTimingInstrument()]): …

Those that mirstack provides are also options of `mir-opt`; a class of one's own derives from `PassInstrument`, or is
decorated with `pass_instrument`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.instrument import CheckEach as CheckEach
from mirstack.api.ir.instrument import PassInstrument as PassInstrument
from mirstack.api.ir.instrument import PassPrintingInstrument as PassPrintingInstrument
from mirstack.api.ir.instrument import PassTimingInstrument as PassTimingInstrument
from mirstack.api.ir.instrument import pass_instrument as pass_instrument
from mirstack.passes.instruments import VerifyEach as VerifyEach
from mirstack.passes.print_ir import DumpIR as DumpIR
from mirstack.passes.print_ir import PrintAfterAll as PrintAfterAll
from mirstack.passes.print_ir import PrintAfterChange as PrintAfterChange
from mirstack.passes.print_ir import PrintBeforeAll as PrintBeforeAll
