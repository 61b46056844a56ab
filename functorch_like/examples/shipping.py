"""Ship the classifier of digits: export it once, and run it by another engine for StableHLO, without this package.

`python -m functorch_like.examples.shipping FOLDER` writes `digits.ft` (the exported program), `digits.vmfb` (the same
compiled by IREE), `images.f32` and `expected.f32` (raw numbers), and compares what IREE computes. docs/shipping.md runs
the compiled file from a C program. IREE's wheels are the extra `functorch_like[iree]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like import export
from functorch_like.examples import data
from functorch_like.examples.models import MODELS, Model, Params
from functorch_like.examples.training import accuracy, fit, predictions

#: Images of one call of the program.
BATCH = 8


class MissingIree(ImportError):
    """IREE's compiler and runtime are not installed."""

    def __init__(self) -> None:
        super().__init__(
            "IREE's wheels are not installed here. Install them with\n\n"
            "    python -m pip install iree-base-compiler iree-base-runtime\n\n"
            "or together with functorch_like as the extra functorch_like[iree], and run this again."
        )


def classifier(model: Model, params: Params, batch: int = BATCH) -> export.Exported:
    """The model with its parameters inside, as a program from images to log-probabilities."""

    def digits(images: Any) -> Any:
        return predictions(model)(params, images)

    return export.export(ft.jit(digits))(ft.ShapeDtypeStruct((batch, 8, 8, 1), "float32"))


def compiled_by_iree(program: export.Exported) -> bytes:
    """A program compiled by IREE for this machine's processor: the contents of a `.vmfb` file.

    Raises:
        MissingIree: where IREE's compiler is not installed.
    """
    return _iree("iree.compiler").compile_str(
        program.portable_artifact("cpu"),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )


def run_by_iree(compiled: bytes, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of the function that a compiled module has.

    Args:
        compiled: the contents of a `.vmfb` file.
        name: of the module, which is that of the exported function.
        arrays: the leaves of the arguments, in the order of `Exported.in_avals`.

    Raises:
        MissingIree: where IREE's runtime is not installed.
    """
    runtime = _iree("iree.runtime")
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, compiled))
    results = context.modules[name]["main"](*arrays)
    return [np.asarray(x) for x in (results if isinstance(results, (tuple, list)) else (results,))]


def _iree(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "iree":
            raise
        raise MissingIree from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, export, compile and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m functorch_like.examples.shipping", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the files that are written")
    parser.add_argument("--epochs", type=int, default=15, help="passes over the images (default: 15)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        digits = data.load()
        params = fit(MODELS["mlp"], digits, epochs=options.epochs)[0]
        program = classifier(MODELS["mlp"], params)
        compiled = compiled_by_iree(program)
        images, labels = digits.test_images[:BATCH], digits.test_labels[:BATCH]
        (result,) = run_by_iree(compiled, program.fun_name, images)
    except (MissingIree, data.MissingScikitLearn) as error:
        print(error, file=sys.stderr)
        return 1
    expected = np.asarray(program.call(images))
    for name, contents in (
        ("digits.ft", program.serialize()),
        ("digits.vmfb", compiled),
        ("images.f32", images.tobytes()),
        ("expected.f32", expected.tobytes()),
    ):
        (options.folder / name).write_bytes(contents)
        print(f"{options.folder / name}: {len(contents)} bytes")
    print(f"largest difference: {np.abs(result - expected).max():.1e}; accuracy: {accuracy(result, labels):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
