"""Memory and work of the gradients of a 24-layer MLP and a transformer under `ft.checkpoint` with a budget.

    python -m benchmarks.checkpointing

For each budget: the temporary memory of the compiled gradient, and its floating-point operations, both as parts of
those without `checkpoint`; the figures come from XLA's memory and cost analysis, not from a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp

LAYERS = 24


def mlp(weights: Any, x: Any) -> Any:
    """Return the mean square of the last layer."""
    for w in weights:
        x = fnp.tanh(x @ w)
    return fnp.mean(x * x)


def mlp_arguments(width: int = 256, batch: int = 4096) -> tuple[Any, Any]:
    """Weights and a batch."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
    return [draw(width, width) for _ in range(LAYERS)], draw(batch, width)


def normal(x: Any) -> Any:
    """Layer normalisation without parameters."""
    return (x - x.mean(-1, keepdims=True)) * ft.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attend(x: Any, w: Any, heads: int) -> Any:
    """Causal attention, with its scores written out."""
    batch, length, width = x.shape
    q, k, v = fnp.moveaxis((x @ w).reshape(batch, length, 3, heads, width // heads), 2, 0)
    scores = fnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
    causal = fnp.tril(fnp.ones((length, length), bool))
    weights = ft.nn.softmax(fnp.where(causal, scores, -1e9), axis=-1)
    return fnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)


def transformer(blocks: Any, x: Any) -> Any:
    """Return the mean square of the last block."""
    for block in blocks:
        x = x + attend(normal(x), block["qkv"], heads=4) @ block["out"]
        x = x + ft.nn.gelu(normal(x) @ block["up"]) @ block["down"]
    return fnp.mean(x * x)


def transformer_arguments(width: int = 128, length: int = 128, batch: int = 8) -> tuple[Any, Any]:
    """Weights by block, and embedded tokens."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.normal(size=shape) / np.sqrt(shape[-2])).astype(np.float32)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    return [{name: draw(*shape) for name, shape in shapes.items()} for _ in range(LAYERS)], draw(batch, length, width)


def measured(fun: Callable[..., Any], args: Any) -> tuple[int, float]:
    """Return the bytes of temporaries and the floating-point operations of the compiled gradient."""
    compiled = ft.jit(ft.grad(fun)).lower(*args).compile()
    return compiled.memory_analysis()["temp"], compiled.cost_analysis()["flops"]


def rows(fun: Callable[..., Any], args: Any, parts: tuple[float, ...]) -> list[tuple[str, float, float]]:
    """Return memory and work by policy, as fractions of those without `checkpoint`."""
    policies = ft.checkpoint_policies
    memory, work = measured(fun, args)
    budgets = {f"within {part:.0%}": policies.within(int(part * memory)) for part in parts}
    results: list[tuple[str, float, float]] = []
    for name, policy in {"nothing": None, "dots": policies.dots_saveable, **budgets}.items():
        bytes, flops = measured(ft.checkpoint(fun, policy=policy), args)
        results.append((name, bytes / memory, flops / work))
    return results


def main() -> None:
    """Print the table."""
    cases = {"mlp": (mlp, mlp_arguments()), "transformer": (transformer, transformer_arguments())}
    for name, (fun, args) in cases.items():
        print(f"{name}, {LAYERS} layers          memory   work")
        for policy, memory, work in rows(fun, args, (1.0, 0.7, 0.5, 0.3, 0.2, 0.0)):
            print(f"  {policy:<24} {memory:6.2f}  {work:6.2f}")


if __name__ == "__main__":
    main()
