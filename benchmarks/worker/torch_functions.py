"""The programs of `kernels.py` and `algebra.py` for PyTorch: functions of tensors, or losses to differentiate."""

# ruff: noqa: D103  (described there)

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

LARGE = 1 << 20


def elementwise(x: Tensor, y: Tensor) -> Tensor:
    z = torch.tanh(x) * torch.exp(-y * y) + torch.sqrt(torch.abs(x * y))
    z = torch.where(z > 0.5, torch.log1p(z * z), z / (1 + torch.abs(y)))
    return torch.maximum(z, 0.01 * x) + torch.sigmoid(y)


def slices_and_pads(x: Tensor) -> Tensor:
    parts = [x[:, ::2, 1::2], x[:, 1::2, ::2].flip(1), F.pad(x[:, 2:-2:2, 2:-2:2], (1, 1, 1, 1))]
    return torch.cat(parts, 1) + 1


def ode(u: Tensor, h: float = 0.01) -> Tensor:
    def field(u):
        prey, hunters = u[0], u[1]
        return torch.stack([1.1 * prey - 0.4 * prey * hunters, 0.1 * prey * hunters - 0.4 * hunters])

    for _ in range(1000):
        k1 = field(u)
        k2 = field(u + h / 2 * k1)
        k3 = field(u + h / 2 * k2)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + field(u + h * k3))
    return u


def ode_adaptive(u: Tensor) -> Tensor:
    field = lambda u: torch.sin(3 * u) - 0.1 * u
    t, h = 0.0, 0.01
    while t < 5:
        k1 = field(u)
        k2 = field(u + h * k1)
        error = float((h / 2 * (k2 - k1)).abs().max())
        if error < 1e-4:
            t, u = t + h, u + h / 2 * (k1 + k2)
        h *= min(max(0.9 * (1e-4 / (error + 1e-12)) ** 0.5, 0.2), 2.0)
    return u


def nbody(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    for _ in range(10):
        apart = x[None] - x[:, None]
        near = (apart * apart).sum(-1) + 0.1
        v = v + 1e-3 * (apart * (near * near.sqrt())[..., None] ** -1).sum(1)
        x = x + 1e-3 * v
    return x, v


def heat(u: Tensor) -> Tensor:
    for _ in range(100):
        around = u.roll(-1, 0) + u.roll(1, 0) + u.roll(-1, 1) + u.roll(1, 1)
        u = u + 0.1 * (around - 4 * u)
    return u


def distinct(x: Tensor) -> Tensor:
    x = torch.sort(x)[0]
    return 1 + (x[1:] != x[:-1]).sum()


def histogram(x: Tensor) -> Tensor:
    return torch.bincount(x, minlength=256)


FUNCTIONS: dict[str, Callable] = {
    each.__name__: each for each in (elementwise, slices_and_pads, ode, ode_adaptive, nbody, heat, distinct, histogram)
} | {
    "softmax": lambda x: torch.softmax(x, -1),
    "trigonometric": lambda x: torch.sin(x) * torch.cos(3 * x) + torch.atan2(x, x + 2),
    "powers": lambda x: x**1.5 + x**-0.5 + x**3,
    "dropout": lambda x, _: F.dropout(x, 0.5),
    "sum_rows": lambda x: x.sum(2),
    "sum_middle": lambda x: x.sum(1),
    "sum_columns": lambda x: x.sum(0),
    "variance": lambda x: x.var(-1, correction=0),
    "argmax": lambda x: x.argmax(-1),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_columns": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "sort": lambda x: x.sort(-1)[0],
    "argsort": lambda x: torch.argsort(x, dim=-1, stable=True),
    "sort_long": lambda x: x.sort()[0],
    "top_k": lambda x: x.topk(16),
    "median": lambda x: x.median(-1)[0],
    "searchsorted": lambda edges, x: torch.searchsorted(edges, x),
    "segment_sum": lambda x, i: torch.zeros(256, x.shape[1]).index_add(0, i, x),
    "gather": lambda x, i: x[i] * 2,
    "transpose": lambda x: x.permute(2, 0, 1) + 1,
    "einsum": lambda x, y, z: torch.einsum("abc,cdb,de->ae", x, y, z),
    "matmul": lambda x, y: x @ y,
    "matmul_batched": lambda x, y: x @ y,
    "cholesky": torch.linalg.cholesky,
    "cholesky_batched": torch.linalg.cholesky,
    "solve": torch.linalg.solve,
    "solve_batched": torch.linalg.solve,
    "triangular_solve": lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
    "inverse": torch.linalg.inv,
    "eigh": torch.linalg.eigh,
    "eigh_batched": torch.linalg.eigh,
    "svd": torch.linalg.svd,
    "svd_batched": torch.linalg.svd,
    "qr": torch.linalg.qr,
    "fft": torch.fft.fft,
    "fft_long": torch.fft.rfft,
    "fft2": torch.fft.fft2,
    "normal": lambda _: torch.randn(LARGE),
    "uniform": lambda _: torch.rand(LARGE),
    "permutation": lambda _: torch.randperm(1 << 16),
}

#: Losses, of which the gradient with respect to all inputs is sampled.
LOSSES: dict[str, Callable] = {
    "layernorm_grad": lambda x, scale, shift: (F.layer_norm(x, x.shape[-1:], scale, shift) ** 3).sum(),
    "logsumexp_grad": lambda x: (torch.logsumexp(x, -1) ** 2).sum(),
    "max_pool_grad": lambda x: (F.max_pool2d(x, 3, 2) ** 2).sum(),
}


def forward(function: Callable) -> Callable:
    """Return a function `(compile, *tensors) -> a function without arguments`."""

    def make(compile: Callable, *tensors: Tensor) -> Callable[[], object]:
        compiled = compile(function)

        def run() -> object:
            with torch.no_grad():
                return compiled(*tensors)

        return run

    return make


def gradient(loss: Callable) -> Callable:
    """Return the case of a loss's gradient."""

    def make(compile: Callable, *tensors: Tensor) -> Callable[[], object]:
        leaves, compiled = [t.requires_grad_() for t in tensors], compile(loss)
        return lambda: torch.autograd.grad(compiled(*leaves), leaves)

    return make


#: torch.compile unrolls Python loops, which takes minutes, or does not compile them at all.
EAGER_ONLY = frozenset(("ode", "ode_adaptive", "heat"))
PROGRAMS = {name: forward(f) for name, f in FUNCTIONS.items()} | {name: gradient(f) for name, f in LOSSES.items()}
