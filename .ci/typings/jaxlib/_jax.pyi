"""jaxlib's C++ module ships no stubs that fit every version we support; backends/xla is where its shapes are known."""

from typing import Any

def __getattr__(name: str) -> Any: ...
