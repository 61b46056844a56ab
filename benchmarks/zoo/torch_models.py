"""The models in PyTorch: parameters and batches are the same arrays as on the other sides."""

# pyright: reportMissingImports=false
from importlib import import_module
from types import SimpleNamespace

import numpy
import torch

from benchmarks.zoo import torch_fields, torch_images, torch_sequences

RATE, STEPS = 1e-3, 3
GPU = torch.cuda.is_available()  # the other sides take it, too, where there is one
if GPU:
    torch.set_default_device("cuda")
    torch.backends.cudnn.allow_tf32 = False  # products are exact by default
FILES = (torch_fields, torch_images, torch_sequences)


def shapes(name):
    """Return sizes, parameters and batches of a model; they need neither package."""
    import sys

    sys.modules["benchmarks.zoo.side"] = SimpleNamespace(
        ft=None, lax=None, nn=None, np=SimpleNamespace(tanh=None, linspace=numpy.linspace)
    )
    return import_module(f"benchmarks.zoo.models.{name}")


def load(name):
    """Return the function `(params, *batch) -> (output, loss)` of a model. Without gradients the loss may be None."""
    return next(getattr(file, name) for file in FILES if hasattr(file, name))


def _tensors(node, leaves):
    if isinstance(node, dict):
        return {k: _tensors(v, leaves) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_tensors(v, leaves) for v in node]
    leaves.append(torch.tensor(node))
    return leaves[-1]


def runs(model, params, batch, side):
    """Return runs as `worker.array_runs` does: eager, or by torch.compile on the side "compiled"."""
    leaves = []
    tree, batch = _tensors(params, leaves), _tensors(batch, [])
    start = [leaf.clone() for leaf in leaves]
    call = torch.compile(model) if side == "compiled" else model

    def forward():
        with torch.no_grad():
            return call(tree, *batch)[0]

    def step():
        loss = call(tree, *batch)[1]
        slopes = torch.autograd.grad(loss, leaves, allow_unused=True)
        with torch.no_grad():
            torch._foreach_add_(
                [p for p, g in zip(leaves, slopes, strict=True) if g is not None],
                [g for g in slopes if g is not None],
                alpha=-RATE,
            )
        return loss

    def losses():
        with torch.no_grad():
            for leaf, value in zip(leaves, start, strict=True):
                leaf.copy_(value)
        for _ in range(STEPS):
            loss = step()
        return float(loss.detach())

    for leaf in leaves:
        leaf.requires_grad_()
    return forward, step, lambda last: GPU and torch.cuda.synchronize(), losses, lambda: None
