"""Memory of tensors of dynamic shape: used again once nothing reads them, and never before."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable

SIZES = (7, 1, 300, 64, 0, 7)


def compiled(text: str) -> RelayExecutable:
    """Returns the program; softmax ends a kernel, so that each is one of its own."""
    net = mirstack.compile(mirstack.parse(text), specialize=False)
    assert isinstance(net, RelayExecutable)
    return net


def chain(count: int) -> str:
    steps = "\n".join(f"  let %x{k + 1} = nn.softmax(%x{k});" for k in range(count))
    return f"def @main(%x0: Tensor[(?, 512), float32]) {{\n{steps}\n  %x{count}\n}}"


def test_a_chain_takes_the_memory_of_a_few_tensors():
    net, x = compiled(chain(12)), np.zeros((256, 512), np.float32)
    net(x)
    np.testing.assert_allclose(net(x), np.full(x.shape, 1 / 512), rtol=1e-6)
    # The result, what is read and what is written; what the code keeps between calls is at most twice what it used.
    assert 0 < net._take_context().arena <= 2 * 3 * x.nbytes + (1 << 17)


USED_LATER = """
def @main(%x: Tensor[(?, 8), float32], %flag: bool) {
  let %a = nn.softmax(%x);
  let %b = nn.softmax(%a);
  let %pair = (%b, nn.softmax(%b));
  let %c = nn.softmax(%pair.1);
  let %narrow = nn.softmax(strided_slice(%c, begin=[0, 0], end=[2147483647, 2], axes=[0, 1]));
  let %wide = concatenate((%c, %c, %narrow), axis=1);
  let %d = if (%flag) { nn.softmax(%b) } else { %a };
  let %e = nn.softmax(%wide);
  let %f = nn.softmax(reshape(%e, newshape=[-1, 9]));
  (%d, %f, add(%a, %pair.0), nn.softmax(%d))
}
"""


@pytest.mark.parametrize("flag", [False, True])
def test_what_is_read_later_is_kept(flag: bool):
    net = compiled(USED_LATER)
    interpreted = mirstack.compile(mirstack.parse(USED_LATER), target="interp")
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=(size, 8)).astype(np.float32)
        for got, wanted in zip(net(x, np.bool_(flag)), interpreted(x, np.bool_(flag)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-7)


RECURSIVE = """
def @steps(%n: int32, %x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
  if (less_equal(%n, 0)) { %x } else {
    let %a = nn.softmax(%x);
    let %b = @steps(subtract(%n, 1), %a);
    let %c = nn.softmax(%b);
    add(nn.softmax(%c), %a)
  }
}
def @main(%x: Tensor[(?, 4), float32]) { @steps(5, nn.softmax(%x)) }
"""


def test_calls_may_hold_on_to_their_arguments():
    net = compiled(RECURSIVE)
    interpreted = mirstack.compile(mirstack.parse(RECURSIVE), target="interp")
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=(size, 4)).astype(np.float32)
        np.testing.assert_allclose(net(x), interpreted(x), rtol=1e-5, atol=1e-7)
