"""ResNet-18 and the BERT layer at full size against implementations in torch that share nothing but the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.examples.models.registry import build

torch = library("torch", "torch")
pytestmark = pytest.mark.extra


class BasicBlock(torch.nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    def __init__(self, inputs: int, channels: int, stride: int):
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.projects = stride != 1 or inputs != channels
        if self.projects:
            self.sc = nn.Conv2d(inputs, channels, 1, stride=stride, bias=False)
            self.sc_bn = nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.sc_bn(self.sc(x)) if self.projects else x))


class ResNet18(torch.nn.Module):
    """The layers are named as the weights are, with dots for underlines."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.conv0 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn0 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for stage, channels in enumerate((64, 128, 256, 512), start=1):
            for unit in (1, 2):
                stride = 2 if stage > 1 and unit == 1 else 1
                self.add_module(f"stage{stage}_unit{unit}", BasicBlock(inputs, channels, stride))
                inputs = channels
        self.fc1 = nn.Linear(512, 1000)

    def forward(self, x: Any) -> Any:
        x = self.pool(torch.relu(self.bn0(self.conv0(x))))
        for name, unit in self.named_children():
            if name.startswith("stage"):
                x = unit(x)
        return torch.softmax(self.fc1(x.mean(dim=(2, 3))), dim=1)


def load_by_name(module: Any, weights: dict[str, np.ndarray]) -> None:
    """Gives a torch module the weights, each of which must find its place."""
    of_norms = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_var"}
    unused = set(weights)
    for path, value in module.state_dict().items():
        owner, _, ending = path.rpartition(".")
        if ending == "num_batches_tracked":
            continue
        is_norm = isinstance(module.get_submodule(owner), torch.nn.BatchNorm2d)
        name = f"{owner.replace('.', '_')}_{of_norms[ending] if is_norm else ending}"
        value.copy_(torch.from_numpy(weights[name]))
        unused.remove(name)
    assert not unused


def test_resnet18(tmp_path: Path):
    model = build("resnet18", seed=1)
    reference = ResNet18().eval()
    load_by_name(reference, model.weights)
    x = np.random.default_rng(2).standard_normal((1, 3, 224, 224), dtype=np.float32)
    with torch.inference_mode():
        expected = reference(torch.from_numpy(x)).numpy()
    found = mirstack.compile(model.write(tmp_path, "resnet18"))(x)
    assert expected.std() > 1e-4
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def bert_layer(x: Any, weights: dict[str, Any], heads: int) -> Any:
    """BERT's encoder layer, attention by torch's own function."""
    functional = torch.nn.functional

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, weights[f"layer0_{name}_weight"], weights[f"layer0_{name}_bias"])

    def norm(x: Any, name: str) -> Any:
        gamma, beta = weights[f"layer0_{name}_gamma"], weights[f"layer0_{name}_beta"]
        return functional.layer_norm(x, (x.shape[-1],), gamma, beta, eps=1e-12)

    def by_heads(name: str) -> Any:
        return linear(x, f"attention_{name}").unflatten(-1, (heads, -1)).transpose(1, 2)

    y = functional.scaled_dot_product_attention(by_heads("query"), by_heads("key"), by_heads("value"))
    x = norm(x + linear(y.transpose(1, 2).flatten(2), "attention_output"), "attention_norm")
    y = linear(functional.gelu(linear(x, "intermediate")), "output")
    return norm(x + y, "output_norm")


def test_bert_layer(tmp_path: Path):
    model = build("bert", seed=1)
    x = np.random.default_rng(2).standard_normal((1, 128, 768), dtype=np.float32)
    weights = {name: torch.from_numpy(array) for name, array in model.weights.items()}
    with torch.inference_mode():
        expected = bert_layer(torch.from_numpy(x), weights, 12).numpy()
    found = mirstack.compile(model.write(tmp_path, "bert"))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
