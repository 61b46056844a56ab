"""The whole story, in order: train a network on handwritten digits, look into it, train many, and count the costs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
from functorch_like import status_line, tree
from functorch_like.examples import data, welcome
from functorch_like.examples.costs import Costs
from functorch_like.examples.curvature import curvatures, power_step, random_direction
from functorch_like.examples.data import Digits
from functorch_like.examples.ensemble import ensemble_predictions, ensemble_step, fit_all, start_all, vote
from functorch_like.examples.models import MODELS, Model, Params
from functorch_like.examples.persample import gradient_norms
from functorch_like.examples.progress import Progress, is_terminal
from functorch_like.examples.report import Report, duration
from functorch_like.examples.training import (
    BATCH,
    accuracy,
    compiled_step,
    fit,
    loss_of_batch,
    predictions,
    start,
    steps_per_epoch,
)

#: Passes over the images until a network learns no more, and with `--quick`.
EPOCHS = {"conv": 12, "mlp": 40}
QUICK_EPOCHS = {"conv": 6, "mlp": 15}


Predict = Callable[..., Any]
#: Products with the Hessian until its largest eigenvalue is known to a percent.
PRODUCTS = 14


class Options(NamedTuple):
    """Options of the command line."""

    model: str = "conv"
    epochs: int = EPOCHS["conv"]
    members: int = 5
    seed: int = 0


class Outcome(NamedTuple):
    """Results, for callers of `run` in Python."""

    accuracy: float
    ensemble_accuracy: float
    member_accuracies: list[float]
    norms: np.ndarray
    curvatures: list[float]
    costs: Costs


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with the welcome."""

    def format_help(self) -> str:
        return f"{welcome.welcome()}\n{super().format_help()}"


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The options of a command line."""
    default = Options()
    parser = _Parser(
        prog="python -m functorch_like",
        description="Train a network that reads handwritten digits, then look into it with grad, vmap, jvp and jit.",
        epilog=welcome.READ_ON,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", choices=tuple(MODELS), default=default.model, help="a conv net or a dense net (default: conv)"
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        help=f"passes over the images (default: {EPOCHS['conv']}, of the mlp {EPOCHS['mlp']})",
    )
    parser.add_argument("--members", type=positive, help=f"networks in the ensemble (default: {default.members})")
    parser.add_argument(
        "--seed", type=natural, default=default.seed, help="of the split, the parameters and the shuffling (default: 0)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a shorter run: fewer epochs and members, unless these are given, too"
    )
    parsed = parser.parse_args(arguments)
    epochs = (QUICK_EPOCHS if parsed.quick else EPOCHS)[parsed.model]
    members = 2 if parsed.quick else default.members
    return Options(parsed.model, parsed.epochs or epochs, parsed.members or members, parsed.seed)


def natural(text: str) -> int:
    """A number from 0 to 2147483647, from a command line."""
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {2**31 - 1}, got {text!r}")
    return value


def positive(text: str) -> int:
    """A number from 1 on, from a command line."""
    value = natural(text)
    if not value:
        raise argparse.ArgumentTypeError("expected at least 1, got 0")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with the options of a command line, and return the exit status."""
    options = parse(arguments)
    report = Report()
    try:
        if data.is_available():
            announce(report, options)
        with status_line.stage("reading", "the images, with scikit-learn", after=0.5):
            digits = data.load(options.seed)
        run(options, digits, report)
    except data.MissingScikitLearn as e:
        print(e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. What was compiled is kept on disk: the next run is faster.", file=sys.stderr)
        return 130
    return 0


def announce(report: Report, options: Options) -> None:
    """Print the plan of the run and its time."""
    name = MODELS[options.model].name
    report.line(f"{report.strong('functorch_like')} {ft.__version__} on {ft.devices()[0].platform}: handwritten digits")
    report.say(
        f"First a {name} learns to read digits, in {options.epochs} passes over the images. Then a tour of four stops: "
        f"the hardest images, the curvature of the loss, {options.members} networks trained as one, and what it all "
        "cost. It takes about 20 s of processor time where XLA has to compile the programs, 8 s where they are on "
        "disk from an earlier run; --quick takes less. Ctrl-C ends it."
    )
    report.line()


def run(options: Options, digits: Digits, report: Report | None = None) -> Outcome:
    """Run the whole tour, and report on it."""
    started = time.perf_counter()
    report = report or Report()
    model, costs = MODELS[options.model], Costs()
    describe_data(report, options, model, digits)
    params, score, predict = train(report, costs, options, model, digits)
    report.say(f"That was the result, after {time.perf_counter() - started:.0f} s. The rest is the tour.")
    norms = look_at_samples(report, costs, model, params, digits, predict)
    values = look_at_curvature(report, costs, options, model, params, digits)
    together, alone = train_ensemble(report, costs, options, model, digits)
    report_costs(report, costs)
    report.line()
    report.line(
        f"test accuracy {report.strong(f'{score:.2%}')}, of the ensemble {report.strong(f'{together:.2%}')}; "
        f"{time.perf_counter() - started:.0f} s in all"
    )
    report.line("python -m functorch_like --help says where to read on")
    return Outcome(score, together, alone, norms, values, costs)


def compiled(report: Report, costs: Costs, name: str, jitted: Any, *args: Any) -> Callable[..., Any]:
    """Compile a function, with a line that counts the seconds on terminals, and a line with the time."""
    if not is_terminal(report.stream):
        report.line(f"compiling: {name} ...")
    with status_line.stage("compiling", name, after=0.0):
        timed = costs.compile(name, jitted, *args)
    cost = costs[-1]
    origin = "loaded from disk" if cost.from_disk else "compiled"
    report.line(report.faint(f"{origin}: {name}, {cost.operations} operations, in {duration(cost.compile)}"))
    return timed


# ------------------------------------------------------------------------------------------------------ the chapters
def describe_data(report: Report, options: Options, model: Model, digits: Digits) -> None:
    """Print the network and the images it is trained on."""
    shapes = ft.eval_shape(lambda: start(model, options.seed).params)
    count = sum(int(np.prod(leaf.shape)) for leaf in tree.leaves(shapes))
    report.say(
        f"{len(digits.train_labels)} images of 8x8 pixels to train on, {len(digits.test_labels)} held out; "
        f"a {model.name} of {count:,} parameters; seed {options.seed}"
    )


def train(
    report: Report, costs: Costs, options: Options, model: Model, digits: Digits
) -> tuple[Params, float, Predict]:
    """One network: a loss of one image, mapped over a batch, differentiated, compiled."""
    report.title("Training", "jit(value_and_grad(mean(vmap(loss))))")
    count = len(digits.train_labels)
    step = compiled(report, costs, "training step", compiled_step(model), *step_arguments(model, options.seed, digits))
    params = start(model, options.seed).params
    predict = compiled(report, costs, "prediction", ft.jit(predictions(model)), params, digits.test_images)

    with Progress(model.name, options.epochs * steps_per_epoch(count), report.stream) as bar:

        def after_step(done: int, loss: float, score: float | None) -> None:
            bar.update(done, f"loss {loss:6.4f}" + ("" if score is None else f"  test accuracy {score:6.2%}"))

        params, history = fit(
            model,
            digits,
            seed=options.seed,
            epochs=options.epochs,
            step=step,
            predict=predict,
            after_step=after_step,
        )
    score = history.accuracies[-1]
    right = round(score * len(digits.test_labels))
    report.line(report.strong(f"{right} of {len(digits.test_labels)} held-out digits are read right: {score:.2%}"))
    show_readings(report, np.exp(np.asarray(predict(params, digits.test_images))), digits)
    return params, score, predict


def show_readings(report: Report, chances: np.ndarray, digits: Digits) -> None:
    """Draw a few held-out digits, wrong ones first, with the network's answers."""
    read = chances.argmax(-1)
    wrong = read != digits.test_labels
    first = np.argsort(~wrong, kind="stable")[: min(max(int(wrong.sum()), 1), 4)]
    captions = [(f"a {digits.test_labels[i]}, read as {read[i]}", f"{chances[i].max():.0%} sure") for i in first]
    report.line("Wrong, for example:" if wrong.any() else "For example:")
    report.line()
    report.images(digits.test_images[first], captions)
    report.line()


def look_at_samples(
    report: Report, costs: Costs, model: Model, params: Params, digits: Digits, predict: Predict
) -> np.ndarray:
    """Show the images with the largest gradients: one gradient for each image, from one program."""
    report.title("Per-sample gradients", "vmap(grad(loss), in_axes=(None, 0, 0))")
    images, labels = digits.train_images, digits.train_labels
    compute = compiled(report, costs, "per-sample gradients", ft.jit(gradient_norms(model)), params, images, labels)
    norms = np.asarray(compute(params, images, labels))
    report.say("The norm of each training image's own gradient, and how many images have it:")
    report.histogram(norms)
    share = np.sort(norms)[::-1][: len(norms) // 100].sum() / norms.sum()
    report.say(f"The hardest 1% of the images make {share:.0%} of the sum. The hardest of all:")
    report.line()
    # As many as there are held-out images, for which `predict` is compiled.
    hardest = np.argsort(-norms, kind="stable")[: len(digits.test_labels)]
    sure = np.exp(np.asarray(predict(params, images[hardest])))[:4]
    hardest = hardest[:4]
    captions = [
        (f"a {labels[i]}, p = {p[labels[i]]:.3f}", f"norm {norms[i]:.2g}") for i, p in zip(hardest, sure, strict=True)
    ]
    report.images(images[hardest], captions)
    return norms


def look_at_curvature(
    report: Report, costs: Costs, options: Options, model: Model, params: Params, digits: Digits
) -> list[float]:
    """The sharpest direction of the loss, without its Hessian."""
    report.title("Curvature", "jvp(grad(loss))")
    arguments = (digits.train_images, digits.train_labels)
    direction = ft.eval_shape(lambda: random_direction(params, options.seed))
    step = compiled(
        report, costs, "Hessian times vector", ft.jit(power_step(loss_of_batch(model))), params, direction, *arguments
    )
    values: list[float] = []
    with Progress("power iteration", PRODUCTS, report.stream) as bar:
        for value in curvatures(step, params, *arguments, steps=PRODUCTS, seed=options.seed):
            values.append(value)
            bar.update(len(values), f"{value:.4g}")
    size = sum(leaf.size for leaf in tree.leaves(params))
    shown = " ".join(f"{v:.4g}" for v in values[:: max(1, len(values) // 6)])
    report.say(
        f"The Hessian of the training loss has {size:,}^2 entries. {len(values)} products with a vector find its "
        f"largest eigenvalue: {shown} ... {values[-1]:.4g}. Plain gradient descent with a rate above "
        f"{2 / values[-1]:.2g} would leave this minimum."
    )
    return values


def train_ensemble(
    report: Report, costs: Costs, options: Options, model: Model, digits: Digits
) -> tuple[float, list[float]]:
    """Several networks as one program, from seeds."""
    report.title("Ensemble", "vmap(training step)")
    seeds = np.arange(options.seed, options.seed + options.members, dtype=np.int64).astype(np.int32)
    states = ft.eval_shape(lambda: start_all(model, seeds))
    one = step_arguments(model, options.seed, digits)
    rows = np.zeros((options.members, BATCH), np.int32)
    step = compiled(report, costs, "ensemble step", ensemble_step(model), states, *one[1:3], rows, one[4])
    label, steps = f"{options.members} x {model.name}", options.epochs * steps_per_epoch(len(digits.train_labels))
    with Progress(label, steps, report.stream) as bar:
        params = fit_all(
            model,
            digits,
            seeds,
            epochs=options.epochs,
            step=step,
            after_step=lambda done, losses: bar.update(done, f"mean loss {losses.mean():6.4f}"),
        )
    votes = ft.jit(ensemble_predictions(model))(params, digits.test_images)
    alone = [accuracy(member, digits.test_labels) for member in np.asarray(votes)]
    together = accuracy(vote(votes), digits.test_labels)
    report.say(f"alone: {', '.join(f'{a:.2%}' for a in alone)}")
    report.say(f"together: {together:.2%}, by the mean of their probabilities")
    return together, alone


def report_costs(report: Report, costs: Costs) -> None:
    """Print the costs of each transformation."""
    report.title("Costs", "jit(f).trace(x).lower().compile()")
    rows = [
        (
            c.name,
            f"{c.operations}",
            duration(c.trace),
            duration(c.lower),
            duration(c.compile) + (" *" if c.from_disk else "  "),
            duration(c.run),
            f"{len(c.runs)}",
        )
        for c in costs
    ]
    report.table(("", "operations", "trace", "lower", "compile  ", "one run", "runs"), rows)
    cached = sum(c.from_disk for c in costs)
    report.say(
        f"* loaded from the cache on disk: {cached} of {len(costs)}"
        if cached
        else "Compiled by XLA, and kept on disk: run this again, and compiling takes next to nothing."
    )


def step_arguments(model: Model, seed: int, digits: Digits) -> tuple[Any, ...]:
    """Arguments as a training step takes them."""
    rows, rate = np.zeros(BATCH, np.int32), np.zeros((), np.float32)
    return start(model, seed), digits.train_images, digits.train_labels, rows, rate
