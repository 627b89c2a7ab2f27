"""`mirstack.preload` imports what compiling a usual model needs, before processes are forked and clocks start."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = '''
import sys
import mirstack
import numpy as np

mirstack.preload()
before = set(sys.modules)
model = mirstack.parse("""
def @main(%x: Tensor[(1, 8, 12, 12), float32], %w: Tensor[(16, 8, 3, 3), float32], %s: Tensor[(16), float32],
          %d: Tensor[(10, 16), float32]) {
  let %c = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=16);
  let %n = nn.batch_norm(%c, %s, %s, %s, %s);
  let %p = nn.max_pool2d(nn.relu(%n.0), pool_size=[2, 2], strides=[2, 2]);
  nn.softmax(nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%p)), %d))
}""")
compiled = mirstack.compile(model, threads=2)
compiled(*(np.ones(shape, np.float32) for shape in ((1, 8, 12, 12), (16, 8, 3, 3), (16,), (10, 16))))
print(*sorted(name for name in set(sys.modules) - before if name.startswith(("mirstack.", "multiprocessing."))))
'''


def test_nothing_is_left_to_import() -> None:
    environment = {**os.environ, "MIRSTACK_CACHE": "off", "MIRSTACK_WORKERS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert not done.stdout.split()
