"""Each primitive is one record: few other files of the engine name it, and each is a table of rules or a formula.

Functions that users call are left out, because they apply primitives. `primitives/higher_order` is left out, too:
bodies in the samples there apply primitives.
"""

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "primitives").is_dir(), reason="the tests run without the source tree")
APPLY = (
    "functorch_like/numpy", "functorch_like/lax", "functorch_like/nn", "functorch_like/scipy", "functorch_like/random",
    "functorch_like/image.py", "functorch_like/jax_alias", "functorch_like/examples", "functorch_like/testing",
    "functorch_like/parallel", "functorch_like/data", "functorch_like/array_methods.py", "functorch_like/foreign/",
    "primitives/higher_order", "functorch_like/experimental/sparse/convolutions.py",
)  # fmt: skip
#: Lists that users choose from, and rules of interpreters that not every primitive has.
AUTOCAST = "functorch_like/amp/policy.py"
PRODUCTS, WHOLE = (f"functorch_like/explicit_axes/{name}.py" for name in ("products", "whole_dimensions"))
BUCKETS = "functorch_like/transforms/buckets/rules.py"
CHECKPOINT = "functorch_like/checkpoint_policies.py"
SPARSE = "functorch_like/experimental/sparse/sparsify_rules.py"
SERIES = "functorch_like/transforms/taylor/power_series.py"
#: Operations of StableHLO, some of which have the names of primitives.
STABLEHLO = "backends/xla/small_parts.py"
FORMULAS = "primitives/formulas/real.py", "primitives/formulas/complex.py"
FILES = {
    "sin": {
        "primitives/elementwise/transcendental.py",
        "primitives/elementwise/trigonometric_cpu.py",
        FORMULAS[1],
        SERIES,
    },
    "cosh": {"primitives/elementwise/transcendental.py", *FORMULAS, AUTOCAST, SERIES},
    "nextafter": {"primitives/elementwise/transcendental.py", FORMULAS[0]},
    "erf_inv": {"primitives/elementwise/erf_and_gamma.py", AUTOCAST},
    "is_finite": {"primitives/elementwise/comparison.py", STABLEHLO},
    "population_count": {"primitives/elementwise/bitwise.py"},
    "cumlogsumexp": {"primitives/reductions/cumlogsumexp.py", AUTOCAST, BUCKETS, WHOLE},
    "top_k": {"primitives/ordering/top_k.py", BUCKETS, WHOLE},
    "cholesky": {"primitives/linalg/cholesky_lu.py", BUCKETS, WHOLE},
    "conv_general_dilated": {"primitives/contractions/convolution.py", AUTOCAST, BUCKETS, CHECKPOINT, SPARSE, PRODUCTS},
}


def names(path: Path) -> set[str]:
    """Return the names and plain strings in a file's code; strings of the table of families are split into words."""
    result: set[str] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME:
            result.add(token.string)
        elif token.type == tokenize.STRING and token.string[0] in "\"'":
            text = ast.literal_eval(token.string)
            result.update(text.split() if path.name == "families.py" else [text])
    return result


def test_the_name_of_a_primitive_stands_in_few_files():
    files = {name: set() for name in FILES}
    for top in ("primitives", "backends", "functorch_like"):
        for path in (ROOT / top).rglob("*.py"):
            where = path.relative_to(ROOT).as_posix()
            if not where.startswith(APPLY):
                for name in FILES.keys() & names(path):
                    files[name].add(where)
    assert files == {name: {"primitives/families.py", *own} for name, own in FILES.items()}
