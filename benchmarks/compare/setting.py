"""The settings at which engines are compared: number of threads, and processor to compile for."""

from __future__ import annotations

import os
from dataclasses import dataclass

NATIVE = ""
"""The processor at hand."""

HELD: dict[str, dict[str, str]] = {
    "haswell": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    }
}
"""Processors by LLVM's names, and what the environment holds libraries to their instructions with: oneDNN (torch, OpenVINO), torch's
own kernels, MKL, XLA. TVM, IREE and mirstack compile for the name. MLAS reads no such variable: onnxruntime, and OpenVINO's dense
layers, run with all that the processor has."""

NOT_HELD = frozenset({"onnxruntime"})
"""Engines that run with all that the processor has at every setting."""


@dataclass(frozen=True)
class Setting:
    """Results of one setting are kept, and shown, apart from those of others."""

    threads: int = 1
    cpu: str = NATIVE
    """LLVM's name of one that is in `HELD`."""

    @property
    def key(self) -> str:
        """Returns the setting's name in files: `1`, `haswell-2`."""
        return f"{self.cpu}-{self.threads}" if self.cpu else str(self.threads)

    @property
    def target(self) -> str | None:
        """The name that compilers get; None for the processor at hand."""
        return self.cpu or None

    def unequal(self, engine: str) -> bool:
        """Tells whether an engine uses more instructions than the others may at this setting."""
        return bool(self.cpu) and engine in NOT_HELD

    def restrict(self) -> None:
        """Restricts this process to the setting's processors and libraries to its threads and instructions.

        Libraries read the environment once, when they are imported: call this before.
        """
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(available[-self.threads :]))
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS"):
            os.environ[name] = str(self.threads)
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        held = dict(HELD.get(self.cpu, {}))
        flags = [held.pop("XLA_FLAGS", "")] + (["--xla_cpu_multi_thread_eigen=false"] if self.threads == 1 else [])
        os.environ.update(held, XLA_FLAGS=" ".join(filter(None, flags)))


SETTINGS = tuple(Setting(threads, cpu) for cpu in (NATIVE, *HELD) for threads in (1, 2))
"""All, in the order of the tables."""
