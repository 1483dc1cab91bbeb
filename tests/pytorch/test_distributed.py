"""Data-parallel training of compiled modules: two processes on this machine, by gloo.

Input: a module, compiled inside ``DistributedDataParallel`` or around it.
Output: the gradients and parameters of eager data-parallel training, in both processes.
Why: gradients have to reach the hooks by which processes add them up.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no processes")

PROGRAM = """
import copy, sys, torch, tcompile
from torch import nn
from torch.nn.parallel import DistributedDataParallel as Parallel

rank, file, way = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return self.body(x)


def train(compiled):
    torch.manual_seed(0)
    net = Net()
    unused = way == "unused"
    if not unused:
        del net.unused
    inner = tcompile.compile(net) if compiled and way != "around" else net
    model = Parallel(inner, find_unused_parameters=unused, bucket_cap_mb=0.01)
    call = tcompile.compile(lambda model, x: model(x)) if compiled and way == "around" else lambda model, x: model(x)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        torch.manual_seed(10 * step + rank)
        x = torch.randn(8, 6)
        if way == "no_sync" and step % 2 == 0:
            with model.no_sync():
                (call(model, x) ** 2).mean().backward()
            continue
        (call(model, x) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.detach().clone() for p in net.parameters()]


for ours, theirs in zip(train(True), train(False), strict=True):
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
torch.distributed.destroy_process_group()
print("equal")
"""


@pytest.mark.parametrize("way", ["inside", "around", "no_sync", "unused"])
def test_parallel_training(tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meeting"), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert out == "equal\n"
