"""Times ONNX files of real models against onnxruntime, their sizes open as the files have them.

    python -m mirstack.benchmarks.onnx_files [FILE…] [--threads 1] [--seconds 3] [--starts 3] [--shape x=1,3,48,320] [--json]

measures files that packages on the index contain, those that are installed (rapidocr-onnxruntime, silero-vad, magika), or the ones given. A line says

    file            error     ort ms    open     own   fixed   cold ms  warm ms  session ms

the largest difference from onnxruntime's outputs over the largest value; onnxruntime's time of a call; our time over it with the code for
all sizes, with the code that a size gets when it is met often, and with the sizes fixed (`shapes=`); then the time to a program that is
ready in a fresh process with an empty cache and with a full one, and to onnxruntime's session. Calls of all four are interleaved in one
process. The last line has the geometric means of the ratios.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import mirstack
import numpy as np
from numpy.typing import NDArray

from ..driver.arguments import add_shape
from ..lowering.driver.cache.programs import wait_for_writing
from ..lowering.driver.loading.relay_executable import RelayExecutable
from ..lowering.driver.specialize import WORTH_CALLS
from .compare.measure import Here, interleaved
from .compare.results import geometric_mean
from .compare.start import ORT, measured

Shapes = Mapping[str, tuple[int, ...]]
Inputs = dict[str, NDArray[Any]]

SPEECH = {"input": (1, 576), "state": (2, 1, 128)}
FILES: Mapping[str, tuple[str, str, Shapes]] = {
    "ocr-det": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 480, 640)}),
    "ocr-rec": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "ocr-cls": ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    "magika": ("magika", "models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
    "silero": ("silero_vad", "data/silero_vad.onnx", SPEECH),
    "silero-op15": ("silero_vad", "data/silero_vad_16k_op15.onnx", SPEECH),
    "silero-half": ("silero_vad", "data/silero_vad_half.onnx", SPEECH),
    "silero-ifless": ("silero_vad", "data/silero_vad_op18_ifless.onnx", SPEECH),
    "silero-openvino": ("silero_vad", "data/silero_vad_openvino_16k.onnx", SPEECH),
    "silero-sequence": ("silero_vad", "data/silero_vad_16k_sequence.onnx", {"input": (10, 576)}),
}
"""Files in packages: the package, the path in it, and the shapes that the package calls the model with."""

RATIOS = ("open", "own", "fixed")


@dataclass(frozen=True)
class Row:
    """Holds what was measured of a file: seconds, and ratios to onnxruntime's time of a call."""

    error: float
    ort: float
    ratios: dict[str, float]
    cold: float
    warm: float
    session: float

    def line(self, name: str) -> str:
        """Returns a line of the table."""
        ratios = "".join(f"{self.ratios[each]:>8.2f}" for each in RATIOS)
        times = "".join(f"{1e3 * each:>10.0f}" for each in (self.cold, self.warm, self.session))
        return f"{name:<18}{self.error:>9.1e}{1e3 * self.ort:>10.3f}{ratios}{times}"


COLUMNS = ("error", "ort ms", *RATIOS, "cold ms", "warm ms", "session")
WIDTHS = (9, 10, 8, 8, 8, 10, 10, 10)
HEADER = f"{'file':<18}" + "".join(f"{each:>{width}}" for each, width in zip(COLUMNS, WIDTHS, strict=True))


def installed() -> dict[str, tuple[Path, Shapes]]:
    """Returns the files of `FILES` whose packages are installed."""
    found: dict[str, tuple[Path, Shapes]] = {}
    for name, (package, path, shapes) in FILES.items():
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            if (Path(folder) / path).exists():
                found[name] = Path(folder) / path, shapes
    return found


def session_of(file: Path, threads: int) -> Any:
    """Returns onnxruntime's session of a file, with all its optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def drawn(session: Any, shapes: Shapes) -> Inputs:
    """Returns random inputs of a session.

    Floats are around 0, integers those of bytes, a scalar is a sampling rate of 16 kHz.

    Dimensions that neither the file nor `shapes` fixes are 1.
    """
    random = np.random.default_rng(0)
    inputs: Inputs = {}
    for each in session.get_inputs():
        shape = cast("Sequence[object]", shapes.get(each.name, each.shape))
        sizes = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
        dtype = each.type.removeprefix("tensor(").removesuffix(")")
        if dtype in ("float", "double", "float16"):
            kind = {"float": "float32", "double": "float64"}.get(dtype, dtype)
            inputs[each.name] = random.uniform(-1, 1, sizes).astype(kind)
        elif not sizes:
            inputs[each.name] = np.array(16000, dtype)
        else:
            inputs[each.name] = random.integers(0, 2 if dtype == "bool" else 256, sizes).astype(dtype)
    return inputs


def ready(net: RelayExecutable, inputs: Sequence[NDArray[Any]]) -> None:
    """Calls a program until it has code for these sizes, which a process beside compiles."""
    if net.variants is None:
        return
    # A thread that writes to the cache would keep the process from being forked.
    wait_for_writing()
    for _ in range(WORTH_CALLS):
        net(*inputs)
        net.variants.wait()
        if net.variants.find(net.variants.sizes_of(inputs) or ()) is not None:
            return


def difference(got: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Returns the largest difference of outputs over the largest value of each."""
    largest = 0.0
    for ours, theirs in zip(got, wanted, strict=True):
        theirs = np.asarray(theirs, "float64")
        if theirs.size:
            apart = float(np.max(np.abs(np.asarray(ours, "float64") - theirs)))
            largest = max(largest, apart / (float(np.max(np.abs(theirs))) or 1.0))
    return largest


def measure(file: Path, shapes: Shapes, threads: int, seconds: float, starts: int) -> Row:
    """Measures a file in about so many seconds, and that many starts."""
    session = session_of(file, threads)
    inputs = drawn(session, shapes)
    arguments = list(inputs.values())
    fixed = {name: array.shape for name, array in inputs.items()}
    programs: dict[str, RelayExecutable] = {}
    for name in RATIOS:
        net = mirstack.compile(
            file, threads=threads, specialize=name == "own", shapes=fixed if name == "fixed" else None
        )
        assert isinstance(net, RelayExecutable)
        programs[name] = net
    wanted = session.run(None, inputs)
    ready(programs["own"], arguments)
    error = max(difference(_outputs(net(*arguments)), wanted) for net in programs.values())
    calls: dict[str, Callable[[], object]] = {ORT: partial(session.run, None, inputs)}
    calls |= {name: partial(net, *arguments) for name, net in programs.items()}
    found = interleaved({name: Here(run) for name, run in calls.items()}, seconds)
    began = measured(file, file, threads, starts)
    ratios = {name: found[name] / found[ORT] for name in RATIOS}
    return Row(error, found[ORT], ratios, began.cold, began.warm, began.session)


def _outputs(result: Any) -> list[Any]:
    """Returns the outputs of a call, of which several are a tuple."""
    return list(result) if isinstance(result, tuple | list) else [result]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.onnx_files", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="an .onnx file, or a name of the table")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="of measuring calls, for each file")
    parser.add_argument("--starts", type=int, default=3, help="fresh processes of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    add_shape(parser)
    args = parser.parse_args(arguments)
    known = installed()
    files = {each: known.get(each) or (Path(each), args.shape) for each in args.files} or known
    if not files:
        parser.error("none of the packages is installed: rapidocr-onnxruntime, silero-vad, magika")
    if not args.json:
        print(HEADER)
    rows: dict[str, Row] = {}
    for name, (file, shapes) in files.items():
        rows[name] = measure(file, shapes, args.threads, args.seconds, args.starts)
        if not args.json:
            print(rows[name].line(Path(name).stem), flush=True)
    if args.json:
        print(json.dumps({name: asdict(row) for name, row in rows.items()}))
        return
    means = "".join(f"{geometric_mean([row.ratios[each] for row in rows.values()]):>8.2f}" for each in RATIOS)
    print(f"{'geometric mean':<37}{means}")


if __name__ == "__main__":
    main()
