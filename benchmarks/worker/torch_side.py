"""Cases of PyTorch, eager or by torch.compile, where a comparison makes sense: the import, calls, and the workloads."""

import platform
from collections.abc import Callable

import inputs
import numpy as np
import shapes
import torch
import torch.nn.functional as F
import torch_functions
import torch_nets
from clock import now, repeated
from startup import IMPORT, in_new_process

Sampler = Callable[[], float]
ABOUT = {"torch": torch.__version__, "python": platform.python_version(), "threads": str(torch.get_num_threads())}


def leaves(arrays: list) -> list[torch.Tensor]:
    """Return tensors that require gradients."""
    return [torch.from_numpy(array).requires_grad_() for array in arrays]


def import_() -> Sampler:
    """`import torch`."""
    return lambda: in_new_process("-c", IMPORT.format(imports="import torch", clock=now.__name__))


def eager_add() -> Sampler:
    """A sum by the operator."""
    x, y = torch.arange(8.0), torch.ones(8)
    return repeated(lambda: x + y)


def eager_index() -> Sampler:
    """One element of a vector."""
    v = torch.arange(8.0)
    return repeated(lambda: v[0])


def eager_reshape() -> Sampler:
    """A new shape for the same elements."""
    v = torch.arange(8.0)
    return repeated(lambda: v.reshape(2, 4))


def run_mlp() -> Sampler:
    """One step of gradient descent on cross-entropy, three dense layers."""
    x, labels, *weights = shapes.mlp()
    x, labels, params = torch.from_numpy(x), torch.from_numpy(labels), leaves(weights)

    def step() -> list:
        w1, w2, w3 = params
        logits = torch.relu(torch.relu(x @ w1) @ w2) @ w3
        loss = -(labels * F.log_softmax(logits, -1)).sum(-1).mean()
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            return [p - 0.1 * g for p, g in zip(params, grads, strict=True)]

    return repeated(step)


def conv_loss(params: list, x: torch.Tensor) -> torch.Tensor:
    """Two convolutions, the second with stride, and a dense layer. XLA's SAME pads a stride of 2 at the end only."""
    w1, w2, w3 = params
    hidden = torch.relu(F.conv2d(x, w1, padding=1))
    hidden = torch.relu(F.conv2d(F.pad(hidden, (0, 1, 0, 1)), w2, stride=2))
    return ((hidden.reshape(len(x), -1) @ w3) ** 2).mean()


def run_conv_forward() -> Sampler:
    """The loss of the convolutional net."""
    x, *weights = shapes.conv()
    params, images = [torch.from_numpy(w) for w in weights], torch.from_numpy(x)
    return repeated(lambda: conv_loss(params, images))


def run_conv_grad() -> Sampler:
    """The gradient of the loss of the convolutional net."""
    x, *weights = shapes.conv()
    params, images = leaves(weights), torch.from_numpy(x)
    return repeated(lambda: torch.autograd.grad(conv_loss(params, images), params))


def run_attention() -> Sampler:
    """The gradient of softmax attention with respect to all three inputs, written out as on the other sides."""
    qkv = leaves(shapes.attention())

    def step() -> tuple:
        q, k, v = qkv
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
        loss = (torch.einsum("bhqk,bhkd->bhqd", torch.softmax(scores, -1), v) ** 2).sum()
        return torch.autograd.grad(loss, qkv)

    return repeated(step)


def program(name: str, make: Callable, compile: Callable = lambda function: function) -> Callable[[], Sampler]:
    """Return a case: the program on its inputs. Indices are 64 bits wide, as PyTorch requires."""

    def case() -> Sampler:
        tensors = [torch.from_numpy(np.asarray(a)) for a in inputs.INPUTS[name]()]
        return repeated(make(compile, *(t.long() if t.dtype == torch.int32 else t for t in tensors)))

    return case


PROGRAMS = torch_nets.PROGRAMS | torch_functions.PROGRAMS
CASES = {
    "import": import_,
    **{
        case.__name__: case
        for case in (eager_add, eager_index, eager_reshape, run_mlp, run_conv_forward, run_conv_grad, run_attention)
    },
    **{f"run_{name}": program(name, make) for name, make in PROGRAMS.items()},
}
COMPILED_CASES = {
    f"run_{name}": program(name, make, torch.compile)
    for name, make in PROGRAMS.items()
    if name not in torch_functions.EAGER_ONLY
}
