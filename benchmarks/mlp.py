"""Times an MLP 784-128-10 from text to first result against `jax.jit`; each in its own process.

Imports are not counted: both start with their package imported, for mirstack by `mirstack.preload()`. The third line is
mirstack without it, where what is imported on first use counts too.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 5

OURS = """
import time, numpy as np, mirstack
PRELOAD
text = '''
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 784), float32], %w0: Tensor[(128, 784), float32], %b0: Tensor[(128), float32],
          %w1: Tensor[(10, 128), float32], %b1: Tensor[(10), float32]) {
  %0 = nn.relu(nn.bias_add(nn.dense(%x, %w0, units=128), %b0));
  nn.softmax(nn.bias_add(nn.dense(%0, %w1, units=10), %b1))
}
'''
r = np.random.default_rng(0)
args = [r.standard_normal(s).astype('float32') for s in ((1, 784), (128, 784), (128,), (10, 128), (10,))]
start = time.perf_counter()
mirstack.compile(mirstack.parse(text))(*args)
print(time.perf_counter() - start)
"""

JAX = """
import time, numpy as np, jax, jax.numpy as jnp
def mlp(x, w0, b0, w1, b1):
    h = jnp.maximum(x @ w0.T + b0, 0)
    return jax.nn.softmax(h @ w1.T + b1)
r = np.random.default_rng(0)
args = [r.standard_normal(s).astype('float32') for s in ((1, 784), (128, 784), (128,), (10, 128), (10,))]
jnp.zeros(1).block_until_ready()
start = time.perf_counter()
jax.jit(mlp)(*args).block_until_ready()
print(time.perf_counter() - start)
"""


def seconds(program: str) -> float | None:
    """Runs a program in a fresh Python process; returns the number that it prints, or None when it fails."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def main() -> None:
    programs = {
        "mirstack": OURS.replace("PRELOAD", "mirstack.preload()"),
        "jax.jit": JAX,
        "mirstack, imports too": OURS.replace("PRELOAD", "mirstack.compile, mirstack.parse"),
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            took = seconds(program)
            if took is not None:
                times[name].append(took)
    for name, took in times.items():
        print(f"  {name:<24}{statistics.median(took) * 1e3:>9.1f} ms" if took else f"  {name}: does not run here")
    if all(times.values()):
        print(f"  ratio {statistics.median(times['mirstack']) / statistics.median(times['jax.jit']):.2f}")


if __name__ == "__main__":
    main()
