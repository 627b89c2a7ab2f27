"""Times modules of WebAssembly in node against onnxruntime-web.

    npm install onnxruntime-web
    python -m mirstack.benchmarks.web [--node-modules node_modules] [--calls 25]

builds MobileNet and ResNet-18 as modules and as ONNX files, calls them alternately on one thread, and prints for each

    program       code kB    theirs ms    ours ms    ratio    difference

the code of the module, the medians of both, our time over theirs, and the largest difference of outputs over the largest value.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import mirstack
from mirstack.examples.models.registry import build

from .compare.graph import graph_of
from .compare.to_onnx import model_of

MODELS = ("mobilenet", "resnet18")
SCRIPT = """
import * as ort from 'onnxruntime-web/wasm';
import { readFileSync } from 'node:fs';
import { load } from './NAME.mjs';
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';
const session = await ort.InferenceSession.create(readFileSync('NAME.onnx'), { executionProviders: ['wasm'] });
const net = await load();
const { name, shape } = net.inputs[0];
const x = new Float32Array(shape.reduce((a, b) => a * b)).map(() => Math.random() - 0.5);
const feeds = { [session.inputNames[0]]: new ort.Tensor('float32', x, shape) };
const theirs = [], ours = [];
let wanted, found;
for (let call = 0; call < CALLS; call++) {
  let start = performance.now();
  wanted = await session.run(feeds);
  theirs.push(performance.now() - start);
  start = performance.now();
  found = net.run({ [name]: x });
  ours.push(performance.now() - start);
}
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
const want = wanted[session.outputNames[0]].data, got = found[net.outputs[0].name];
const largest = want.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
const apart = want.reduce((most, each, at) => Math.max(most, Math.abs(each - got[at])), 0) / largest;
console.log(JSON.stringify([median(theirs), median(ours), apart]));
"""


def measure(name: str, folder: Path, node: str, calls: int) -> str:
    """Measures a model; returns its line of the table."""
    import onnx

    file = build(name, 0).write(folder, name)
    onnx.save(model_of(graph_of(mirstack.load(file))), folder / f"{name}.onnx")  # pyright: ignore[reportUnknownMemberType]
    exe = mirstack.compile(file, threads=1)
    module, _ = exe.export(folder / f"{name}.wasm")
    (folder / "run.mjs").write_text(SCRIPT.replace("NAME", name).replace("CALLS", str(calls)))
    done = subprocess.run([node, "run.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    theirs, ours, apart = json.loads(done.stdout.splitlines()[-1])
    exe.export(folder / f"{name}.ll", weights=folder / "weights.bin")
    code = module.stat().st_size - (folder / "weights.bin").stat().st_size
    return f"{name:<12}{code / 1e3:>10.0f}{theirs:>13.2f}{ours:>11.2f}{ours / theirs:>9.2f}{apart:>14.1e}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.web", description=__doc__)
    parser.add_argument("--node-modules", type=Path, default=Path("node_modules"), metavar="DIR")
    parser.add_argument("--calls", type=int, default=25)
    args = parser.parse_args(arguments)
    node = shutil.which("node")
    if node is None:
        parser.error("node is not installed")
    if not (args.node_modules / "onnxruntime-web").is_dir():
        parser.error(f"{args.node_modules} has no onnxruntime-web: npm install onnxruntime-web")
    print(f"{'program':<12}{'code kB':>10}{'theirs ms':>13}{'ours ms':>11}{'ratio':>9}{'difference':>14}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "node_modules").symlink_to(args.node_modules.resolve())
        for name in MODELS:
            print(measure(name, Path(folder), node, args.calls), flush=True)


if __name__ == "__main__":
    main()
