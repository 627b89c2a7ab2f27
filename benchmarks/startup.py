"""Times `mir-opt` on a ten-line file against `xdsl-opt` on one as long; whole processes, interleaved."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .timing import report, side_by_side

MIR = """#[version = "0.0.5"]
def @main(%x: Tensor[(10, 10), float32], %y: Tensor[(10, 10), float32]) -> Tensor[(10, 10), float32] {
  %0 = add(%x, %y);
  %1 = multiply(%0, %y);
  %2 = exp(%1);
  %3 = add(%2, %x);
  %4 = tanh(%3);
  %5 = subtract(%4, %y);
  maximum(%5, %x)
}
"""

MLIR = """func.func @main(%x: f32, %y: f32) -> f32 {
  %0 = arith.addf %x, %y : f32
  %1 = arith.mulf %0, %y : f32
  %2 = math.exp %1 : f32
  %3 = arith.addf %2, %x : f32
  %4 = math.tanh %3 : f32
  %5 = arith.subf %4, %y : f32
  %6 = arith.maximumf %5, %x : f32
  func.return %6 : f32
}
"""


def main() -> None:
    folder = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as temporary:
        ours, theirs = Path(temporary) / "ten.mir", Path(temporary) / "ten.mlir"
        ours.write_text(MIR)
        theirs.write_text(MLIR)

        def run(tool: str, file: Path) -> None:
            subprocess.run([folder / tool, file], check=True, capture_output=True)

        report(side_by_side({"mir-opt": lambda: run("mir-opt", ours), "xdsl-opt": lambda: run("xdsl-opt", theirs)}))


if __name__ == "__main__":
    main()
