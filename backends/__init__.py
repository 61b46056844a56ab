"""Settings in the manner of torch.backends, and the interface to XLA (`backends.xla`).

`describe()` shows all settings; each can be assigned, be overridden in a `with` block, and be given by an environment
variable. `python -m functorch_like.backends` prints the facts that a bug report needs.

>>> from functorch_like import backends
>>> backends.cpu.fast_lowerings
True
>>> with backends.flags({"cpu.fast_lowerings": False}):
...     backends.cpu.fast_lowerings
False
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
import typing as _typing
from typing import Any as _Any

from functorch_like import public_names as _public_names
from functorch_like.backends import cache as cache
from functorch_like.backends import compilation as compilation
from functorch_like.backends import cpu as cpu
from functorch_like.backends import cuda as cuda
from functorch_like.backends import cudnn as cudnn
from functorch_like.backends import external_settings as _external_settings  # noqa: F401  (shown by `describe`)
from functorch_like.backends import mha as mha
from functorch_like.backends import mkldnn as mkldnn
from functorch_like.backends import opt_einsum as opt_einsum
from functorch_like.backends import promotion as promotion
from functorch_like.backends import random as random
from functorch_like.backends import xla as xla
from functorch_like.backends import xla_settings as _xla_settings  # noqa: F401  (attributes of `xla`)
from functorch_like.backends import xnnpack as xnnpack
from functorch_like.backends import ynn as ynn
from functorch_like.backends.determinism import Determinism as _Determinism
from functorch_like.backends.determinism import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from functorch_like.backends.determinism import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from functorch_like.backends.determinism import use_deterministic_algorithms as use_deterministic_algorithms
from functorch_like.backends.flag_blocks import adopt as _adopt
from functorch_like.backends.flag_blocks import flags as flags
from functorch_like.backends.precision import Precision as _Precision
from functorch_like.frames import without_frames as _without_frames

if _typing.TYPE_CHECKING:
    from functorch_like.backends import cusparselt as cusparselt
    from functorch_like.backends import mkl as mkl
    from functorch_like.backends import mps as mps
    from functorch_like.backends import openmp as openmp
    from functorch_like.backends import plugins as plugins
    from functorch_like.backends import rocm as rocm

#: Submodules imported at first use; they have no settings, which would have to be declared at import.
_LATE = ("cusparselt", "mkl", "mps", "openmp", "plugins", "rocm")

fp32_precision: str
default_matmul_precision: str | None
deterministic_algorithms: str


class _Root(_Precision, _Determinism):
    """Settings that are attributes of `backends` itself."""


_adopt(__name__, _Root)


if not _typing.TYPE_CHECKING:  # a type checker would accept any attribute of the module

    @_without_frames
    def __getattr__(name: str) -> _Any:
        if name not in _LATE:
            raise _public_names.missing(_sys.modules[__name__], name)
        module = _importlib.import_module(f"{__name__}.{name}")
        _public_names.attach(module)
        return module


def __dir__() -> list[str]:
    return [*globals(), *_LATE]


def describe(name: str = "") -> _Any:
    """Describe settings: value, origin of the value, and whether it has an effect on the present platform.

    Args:
        name: the name of one setting, to show all its facts; or a prefix of several names ("cuda.matmul").

    Returns:
        An object that prints as text, and that notebooks show as a table.

    Raises:
        SettingError: where no setting has that name, naming the nearest.

    >>> from functorch_like import backends
    >>> print(backends.describe("xla.fast_math"))  # doctest: +ELLIPSIS
    xla.fast_math
      Liberties the compiler may take with floating-point arithmetic: none, all (True), or some by name.
      ...
      value: () (from: default)
      takes: True (all), False (none), or some of 'reassociation', ...
      default: ()
      environment: FT_XLA_FAST_MATH
      changes: compile options xla_cpu_enable_fast_math, ...
    """
    from functorch_like.backends import report  # not needed at import

    return report.Description(name)
