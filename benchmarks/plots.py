"""Draw the results: `python -m benchmarks.plots` reads `benchmarks/results` and writes `docs/images`.

It needs matplotlib, and the files that `python -m benchmarks --json benchmarks/results/speed.json` and
`python -m benchmarks.scaling --json benchmarks/results/scaling.json` write.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.budgets import CASES
from benchmarks.report import middle, ratio
from benchmarks.worker.curves import CURVES, case

RESULTS, IMAGES = Path(__file__).parent / "results", Path(__file__).parents[1] / "docs" / "images"
COLOURS = {"ours": "#00796b", "jax": "#3f51b5", "torch": "#e65100"}
NAMES = {"ours": "functorch_like", "jax": "JAX", "torch": "PyTorch"}
#: Cases in the README: start-up and tracing, nets, and one program of each other kind.
CHOSEN = (
    "digits_step", "trace_grad", "lower_grad", "eager_add", "run_mlp", "run_conv_grad", "run_attention",
    "run_transformer_block", "run_resnet_block", "run_lstm", "run_per_sample_grads", "run_hessian", "run_elementwise",
    "run_dropout", "run_sort", "run_matmul", "run_svd", "run_fft", "run_nbody",
)  # fmt: skip


def draw_ratios(seconds: dict[str, Any], cases: Sequence[str], path: Path) -> None:
    """Draw the ratio of each peer's time to this package's, a line for each case."""
    figure, axes = pyplot.subplots(figsize=(8.5, 1.2 + 0.24 * len(cases)), layout="constrained")
    rows = range(len(cases))
    for side, shift, marker in (("jax", -0.12, "o"), ("torch", 0.12, "D")):
        ratios = [ratio(seconds[name], side, "ours", min) for name in cases]
        at = [row + shift for row, value in zip(rows, ratios, strict=True) if value]
        values = [value for value in ratios if value]
        axes.hlines(at, 1, values, color=COLOURS[side], linewidth=1.5, alpha=0.5)
        axes.plot(values, at, marker, color=COLOURS[side], markersize=5, label=f"{NAMES[side]} takes")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_yticks(rows, [CASES[name].what.strip() for name in cases])
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("times as long as functorch_like: right of the line, functorch_like is faster")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    for edge in ("top", "right", "left"):
        axes.spines[edge].set_visible(False)
    save(figure, path)


def draw_curve(axes: Axes, seconds: dict[str, Any], curve: str) -> None:
    """Draw one cost of both sides against its size."""
    what, grows, sizes = CURVES[curve]
    for side in ("jax", "ours"):
        points = [(size, middle(seconds[case(curve, size)], side)) for size in sizes]
        known = [(size, value) for size, value in points if value is not None]
        axes.plot(*zip(*known, strict=True), "o-", color=COLOURS[side], markersize=4, label=NAMES[side])
    axes.set_yscale("log")
    if grows != "depth":
        axes.set_xscale("log")
    axes.set_title(what, fontsize=10)
    axes.set_xlabel(grows, fontsize=9)
    axes.grid(alpha=0.3)


def draw_scaling(seconds: dict[str, Any], path: Path) -> None:
    """Draw all curves."""
    figure, grid = pyplot.subplots(3, 3, figsize=(9, 8), layout="constrained")
    for axes, curve in zip(grid.flat, CURVES, strict=True):
        draw_curve(axes, seconds, curve)
    for axes in grid[:, 0]:
        axes.set_ylabel("seconds of processor time", fontsize=9)
    grid[0, 0].legend()
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write an SVG that is reproducible, and legible on light and dark pages."""
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)
    print(path)


def main() -> None:
    """Draw each figure whose results are stored."""
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "functorch_like", "svg.fonttype": "none", "font.size": 9})
    speed, scaling = RESULTS / "speed.json", RESULTS / "scaling.json"
    if speed.exists():
        seconds = json.loads(speed.read_text())["seconds"]
        draw_ratios(seconds, [name for name in CHOSEN if name in seconds], IMAGES / "speed.svg")
        draw_ratios(seconds, [name for name in CASES if name in seconds], IMAGES / "speed_all.svg")
    if scaling.exists():
        draw_scaling(json.loads(scaling.read_text())["seconds"], IMAGES / "scaling.svg")


if __name__ == "__main__":
    main()
