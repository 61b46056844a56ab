"""Files of results, with the date of the measurement and the versions of the packages."""

import datetime
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from pathlib import Path


def save(path: str, packages: Iterable[str], **figures: object) -> None:
    """Write figures as JSON, after the date and the versions of Python, the package, jaxlib, NumPy and others."""
    versions = {p: importlib.metadata.version(p) for p in ("functorch_like", "jaxlib", "numpy", *packages)}
    about = {"date": datetime.date.today().isoformat(), "python": platform.python_version(), "versions": versions}
    Path(path).write_text(json.dumps({**about, **figures}, indent=1))
