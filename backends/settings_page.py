"""The page of the documentation on settings, made of their descriptions."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.settings import SETTINGS, Setting

_INTRODUCTION = """# Settings

<!-- Written by `python -m functorch_like.backends --markdown docs/settings.md`; a test compares. -->

Settings stand in `functorch_like.backends`, under the names of `torch.backends` where that has them.

```python
import functorch_like as ft

ft.backends.fp32_precision = "bf16"                            # for all threads, from now on
ft.backends.fp32_precision = "ieee"
with ft.backends.flags(fp32_precision="bf16", xla_fast_math=True):
    pass                                                       # in this thread, inside the block
faster = ft.backends.mkldnn.matmul.flags(fp32_precision="bf16")(lambda x: x @ x)   # in each call
print(ft.backends.describe())                                  # all values, their origins, their effect here
print(ft.backends.describe("cuda.matmul"))                     # of some; a notebook shows a table
```

Each has an environment variable. A wrong value, there or in code, is an error that names the allowed ones. A setting
that changes programs is part of the key of compiled programs: changing it compiles anew, changing it back does not.

## Precision of products

Products and convolutions of float32 are computed in full float32 on every platform, by default.
Other systems, by default:

| | functorch_like | JAX | PyTorch |
|---|---|---|---|
| products, NVIDIA GPUs | float32 | TF32 | float32 |
| convolutions, NVIDIA GPUs | float32 | TF32 | TF32 |
| CPUs | float32 | float32 | float32 |
| float16 and bfloat16: sums | float32 | float32 | may be of 16 bits |

The first of these that is set decides:

1. `precision=` of one call;
2. `default_matmul_precision`, by JAX's names; `ft.default_matmul_precision("high")` is a block;
3. the setting of platform and operation: `cuda.matmul.fp32_precision`, `cudnn.conv.fp32_precision`,
   `mkldnn.matmul.fp32_precision`; `allow_tf32` is another view of them, and `ft.set_float32_matmul_precision` sets
   them;
4. `fp32_precision`.

## All settings
"""


def markdown() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *(_entry(SETTINGS[name]) for name in sorted(SETTINGS))])


def _entry(setting: Setting[Any]) -> str:
    facts = {
        "takes": _plain(setting.kind.allowed),
        "default": f"`{setting.default!r}`",
        "environment": f"`{setting.env}`" if setting.env else "",
        "changes": _plain(setting.changes),
        **{f"no effect on {platform}": _plain(why) for platform, why in sorted(setting.elsewhere.items())},
    }
    listed = [f"- {name}: {text}" for name, text in facts.items() if text]
    return "\n".join([f"### {setting.name}", "", _plain(setting.__doc__ or ""), "", *listed, ""])


def _plain(text: str) -> str:
    """Text whose stars and underscores are not markup outside of code."""
    parts = text.split("`")
    return "`".join(
        part if k % 2 else part.replace("*", r"\*").replace("_", r"\_").replace("<", r"\<")
        for k, part in enumerate(parts)
    )
