"""Times models of torchvision and transformers by the backend `mirstack` against eager and inductor.

    python -m mirstack.benchmarks.torch_models [MODEL…] [--threads 1] [--seconds 3] [--no-inductor] [--json]

prints for each model, with random weights, in inference mode and with `fullgraph=True`

    model           error  eager ms   eager  inductor    cold s  inductor

the largest difference from eager's output over its largest value; eager's time of a call; our time over eager's and over inductor's; then the
time of the first call, which compiles, with empty caches, and its ratio to that of inductor's. Calls are interleaved in one process. The last
line has the geometric means. Models whose package is not installed are left out; inductor needs a C++ compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..lowering.driver.cache.programs import wait_for_writing
from .compare.measure import Here, interleaved
from .compare.results import geometric_mean
from .onnx_files import difference

IMAGES = (
    "resnet50", "mobilenet_v3_small", "efficientnet_b0", "squeezenet1_1", "mnasnet1_0", "googlenet", "fcn_resnet50",
)  # fmt: skip
"""Models of torchvision, called with one image of 224 × 224."""

TOKENS = ("bert", "gpt2", "t5_encoder", "whisper_encoder", "clip_vision", "clip_text")
"""Models of transformers, of 4 layers of 256 to 512 units."""

PACKAGES: dict[str, str] = {**dict.fromkeys(IMAGES, "torchvision"), **dict.fromkeys(TOKENS, "transformers")}


def built(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Returns a model with random weights, whose result is one tensor, and what it is called with."""
    import torch

    torch.manual_seed(0)
    if name in IMAGES:
        return _image_model(name).eval(), (torch.randn(1, 3, 224, 224),)
    model, inputs = _token_model(name)
    return _First(model).eval(), inputs


def _First(model: Any) -> Any:
    """Returns a module that returns the first of a model's results."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs)[0]

    return First()


def _image_model(name: str) -> Any:
    import torchvision

    models: Any = torchvision.models
    if name == "fcn_resnet50":
        network = models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)
        import torch

        class Output(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, x: Any) -> Any:
                return self.network(x)["out"]

        return Output()
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    return getattr(models, name)(weights=None, **options)


def _token_model(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    t: Any = transformers
    tokens = torch.randint(0, 1000, (1, 64))
    layers = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    match name:
        case "bert":
            return t.BertModel(t.BertConfig(vocab_size=1000, **layers)), (tokens,)
        case "gpt2":
            config = t.GPT2Config(vocab_size=1000, n_embd=256, n_layer=4, n_head=4, use_cache=False)
            return t.GPT2Model(config), (tokens,)
        case "t5_encoder":
            config = t.T5Config(vocab_size=1000, d_model=256, d_kv=64, d_ff=1024, num_layers=4, num_heads=4)
            return t.T5EncoderModel(config), (tokens,)
        case "whisper_encoder":
            config = t.WhisperConfig(
                d_model=256,
                encoder_layers=4,
                decoder_layers=1,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=1024,
                max_source_positions=200,
            )
            return t.WhisperModel(config).get_encoder(), (torch.randn(1, 80, 400),)
        case "clip_vision":
            return t.CLIPVisionModel(t.CLIPVisionConfig(image_size=128, patch_size=16, **layers)), (
                torch.randn(1, 3, 128, 128),
            )
        case _:
            return t.CLIPTextModel(t.CLIPTextConfig(vocab_size=1000, eos_token_id=999, **layers)), (tokens,)


@dataclass(frozen=True)
class Row:
    """Holds what was measured of a model: seconds, and ratios of ours to others'."""

    error: float
    eager: float
    to_eager: float
    to_inductor: float | None
    cold: float
    cold_to_inductor: float | None

    def line(self, name: str) -> str:
        """Returns a line of the table."""
        inductor, cold = ("" if each is None else f"{each:.2f}" for each in (self.to_inductor, self.cold_to_inductor))
        return f"{name:<20}{self.error:>9.1e}{1e3 * self.eager:>10.3f}{self.to_eager:>8.2f}{inductor:>10}{self.cold:>9.2f}{cold:>10}"


HEADER = f"{'model':<20}{'error':>9}{'eager ms':>10}{'eager':>8}{'inductor':>10}{'cold s':>9}{'inductor':>10}"


@contextmanager
def empty_caches() -> Generator[None]:
    """Lets mirstack and inductor compile into empty folders."""
    names = ("MIRSTACK_CACHE", "TORCHINDUCTOR_CACHE_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            os.environ[name] = os.path.join(folder, name)
        try:
            yield
        finally:
            # Programs are written to the cache beside.
            wait_for_writing()
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def first_call(model: Any, inputs: Sequence[Any], backend: str, threads: int) -> tuple[Callable[..., Any], float]:
    """Returns a model that a backend compiled, and the seconds of its first call."""
    import torch

    torch.compiler.reset()
    options: Any = {"threads": threads} if backend == "mirstack" else None
    with empty_caches():
        compiled: Any = torch.compile(model, backend=backend, fullgraph=True, options=options)
        start = time.perf_counter()
        compiled(*inputs)
        return compiled, time.perf_counter() - start


def measure(name: str, threads: int, seconds: float, inductor: bool) -> Row:
    """Measures a model in about so many seconds, and one cold compilation by each backend."""
    import torch

    torch.set_num_threads(threads)
    backends = ("mirstack", "inductor") if inductor else ("mirstack",)
    with torch.inference_mode():
        warm = torch.nn.Linear(4, 4)
        for backend in backends:
            # Imports are not a part of compiling a model.
            first_call(warm, (torch.zeros(2, 4),), backend, threads)
        model, inputs = built(name)
        calls: dict[str, Callable[[], object]] = {"eager": partial(model, *inputs)}
        colds: dict[str, float] = {}
        for backend in backends:
            compiled, colds[backend] = first_call(model, inputs, backend, threads)
            calls[backend] = partial(compiled, *inputs)
        wanted: Any = model(*inputs)
        got: Any = calls["mirstack"]()
        error = difference([got.numpy()], [wanted.numpy()])
        found = interleaved({each: Here(run) for each, run in calls.items()}, seconds)
    ours = found["mirstack"]
    to_inductor = ours / found["inductor"] if inductor else None
    cold_to_inductor = colds["mirstack"] / colds["inductor"] if inductor else None
    return Row(error, found["eager"], ours / found["eager"], to_inductor, colds["mirstack"], cold_to_inductor)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.torch_models", description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*PACKAGES, []], metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="of measuring calls, for each model")
    parser.add_argument("--inductor", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    args = parser.parse_args(arguments)
    names = [each for each in args.models or PACKAGES if find_spec(PACKAGES[each]) is not None]
    if not names:
        parser.error("the packages of these models are not installed: torchvision, transformers")
    if not args.json:
        print(HEADER)
    rows: dict[str, Row] = {}
    for name in names:
        rows[name] = measure(name, args.threads, args.seconds, args.inductor)
        if not args.json:
            print(rows[name].line(name), flush=True)
    if args.json:
        print(json.dumps({name: asdict(row) for name, row in rows.items()}))
        return
    columns = [(each.to_eager, each.to_inductor or 0.0, each.cold_to_inductor or 0.0) for each in rows.values()]
    eager, *others = (geometric_mean(list(each)) if all(each) else 0.0 for each in zip(*columns, strict=True))
    inductor, cold = (f"{each:.2f}" if each else "" for each in others)
    print(f"{'geometric mean':<39}{eager:>8.2f}{inductor:>10}{'':>9}{cold:>10}".rstrip())


if __name__ == "__main__":
    main()
