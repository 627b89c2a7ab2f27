"""Passes one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.passes import ModulePass as XdslPass

from ...passes.instruments import Instrument
from ...passes.pass_info import PassInfo
from ...support.arguments import check, integer, items
from .instrument import PassInstrument
from .module import IRModule
from .named_passes import make_pass
from .transform import NamedPass, Pass, PassContext, as_pass


class Sequential(Pass):
    """Passes one after the other, those that the context enables; what a pass requires runs before it.

    Passes of xDSL and of one's own, classes or objects, are taken as they are.
    """

    def __init__(
        self,
        passes: Sequence[Pass | XdslPass | type[XdslPass]] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ):
        self.passes = [as_pass(each) for each in items(passes, "a Sequential", "passes", Pass, XdslPass, type)]
        check(name, "name", "the name of the Sequential", str)
        names = tuple(items(required, "required", "names of passes", str))
        self.info = PassInfo(integer(opt_level, "opt_level", 0), name, names)

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        for part in self.passes:
            if not context.enables(part.info):
                continue
            for required in part.info.required:
                new = make_pass(required).run(mod, owned=owned)
                owned, mod = owned or new is not mod, new
            new = part.run(mod, owned=owned and isinstance(part, NamedPass | Sequential))
            # A function of the user may keep what it returns.
            owned = (owned and new is mod) or (new is not mod and isinstance(part, NamedPass))
            mod = new
        return mod

    def _is_shown_to(self, instrument: PassInstrument | Instrument) -> bool:
        # Its parts are what printing, dumping and checking are about.
        return isinstance(instrument, PassInstrument)
