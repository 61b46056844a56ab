"""From a jaxpr to StableHLO, compile options and cached executables."""

import sys as _sys

from functorch_like import public_names as _public_names

_public_names.attach(_sys.modules[__name__])  # PyTorch's users look for `torch.compiler` here
