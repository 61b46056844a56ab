"""Report shown by `backends.describe()` and `python -m functorch_like.backends`."""

from __future__ import annotations

import html
import os
import platform
import textwrap
from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.settings import SETTINGS, Setting, find
from functorch_like.backends.xla import processor
from functorch_like.errors import nearest

_HEAD = ("setting", "value", "from", "changes", "effect here")
#: Variables of others that change what XLA does.
_ENVIRONMENT = ("XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS")


def _effect(setting: Setting[Any], platform: str) -> str:
    why = setting.effect(platform)
    return f"no: {why}" if why else "yes"


class Description:
    """Settings as they are now: text when printed, a table in notebooks.

    Attributes:
        platform: "cpu", "gpu", ...: what "effect here" is about.
        rows: for each setting its name, value, where that came from, what it changes, and whether it has an effect.
    """

    def __init__(self, prefix: str = "") -> None:
        self.platform = xla.default_backend()
        chosen = {name: s for name, s in SETTINGS.items() if f"{name}.".startswith(f"{prefix}." if prefix else "")}
        if not chosen:
            chosen = {prefix: find(prefix)}  # raises, and names the nearest
        self.rows = [
            (name, repr(s.value), s.source, s.changes, _effect(s, self.platform)) for name, s in sorted(chosen.items())
        ]
        self._chosen = chosen

    def __str__(self) -> str:
        """The table, with columns as wide as what stands in them; of one setting, all there is to say."""
        if len(self._chosen) == 1:
            return self._whole(*self._chosen.values())
        lines = [_HEAD, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD) - 1)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _whole(self, setting: Setting[Any]) -> str:
        summary, _, more = (setting.__doc__ or "").partition("\n\n")
        wrap = lambda text: textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="  ")
        parts = {
            "value": f"{setting.value!r} (from: {setting.source})",
            "takes": setting.kind.allowed,
            "default": repr(setting.default),
            "environment": setting.env,
            "changes": setting.changes,
            "effect here": _effect(setting, self.platform),
            **{f"not on {platform}": why for platform, why in setting.elsewhere.items() if platform != self.platform},
        }
        told = [f"  {name}: {text}" for name, text in parts.items() if text]
        return "\n".join([setting.name, *wrap(summary), *wrap(more), *told])

    def _repr_html_(self) -> str:
        docs = {name: s.__doc__ or "" for name, s in self._chosen.items()}
        cell = lambda tag, text, title="": f'<{tag} style="text-align:left"{title}>{html.escape(text)}</{tag}>'
        head = "".join(cell("th", text) for text in _HEAD)
        body = "".join(
            f"<tr>{cell('td', row[0], f' title={chr(34)}{html.escape(docs[row[0]])}{chr(34)}')}"
            f"{''.join(cell('td', text) for text in row[1:])}</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bug_report() -> str:
    """Versions, machine, devices, settings and environment, as text to paste."""
    about = xla.about()
    sections: dict[str, dict[str, Any]] = {
        "versions": {
            **about["versions"],
            "Python": f"{platform.python_version()} ({platform.python_implementation()})",
            "system": platform.platform(),
        },
        "devices": {str(device): _device(device) for device in xla.devices()},
        "processor": {"model": processor.name(), "cores": _cores()},
        "compiled programs on disk": about["cache"],
        "environment": {
            name: value + _unknown(name)
            for name, value in sorted(os.environ.items())
            if name in _ENVIRONMENT or name.startswith("FT_")
        },
    }
    text = []
    for title, entries in sections.items():
        text += [title, *(f"  {name}: {value}" for name, value in entries.items() or {"none": ""}.items()), ""]
    return "\n".join([*text, "settings", *("  " + line for line in str(Description()).splitlines())])


def _unknown(variable: str) -> str:
    """A remark on a variable that nothing reads, most likely misspelt."""
    known = {s.env for s in SETTINGS.values() if s.env}
    if variable in _ENVIRONMENT or variable in known:
        return ""
    return f"  (no setting reads this{nearest(variable, known)})"


def _device(device: Any) -> str:
    return f"{device.device_kind}, platform {device.platform} {device.client.platform_version}".replace("\n", " ")


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable of {os.cpu_count()}"
