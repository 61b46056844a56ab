"""Report shown by `backends.describe()` and `python -m functorch_like.backends`."""

from __future__ import annotations

import os
import platform
import textwrap
from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.settings import SETTINGS, Setting, find
from functorch_like.backends.xla import processor
from functorch_like.errors import nearest
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

_HEAD = ("setting", "value", "from", "changes", "effect here")
#: Variables of others that change what XLA does.
_ENVIRONMENT = ("XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS")


def _effect(setting: Setting[Any], platform: str) -> str:
    why = setting.effect(platform)
    return f"no: {why}" if why else "yes"


class Description(Display):
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

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """The table, and below it why settings have no effect here; of one setting, all there is to say."""
        if len(self._chosen) == 1:
            return self._whole(*self._chosen.values())
        reasons = list(dict.fromkeys(effect for *_, effect in self.rows if effect != "yes"))
        marks = {reason: f"no ({number})" for number, reason in enumerate(reasons, 1)}
        lines: list[tuple[str, ...]] = [tuple(paint(title, "head") for title in (*_HEAD[:3], _HEAD[4]))]
        for name, value, source, _, effect in self.rows:
            changed = "orange" if source != "default" else "blue"
            lines.append((name, paint(terminal.trimmed(value, 22), changed), source, marks.get(effect, effect)))
        found = [*terminal.columns(lines), *([""] if reasons else [])]
        for reason, mark in marks.items():
            found += terminal.wrapped(reason.removeprefix("no: "), f"{mark:<8} ")
        return "\n".join(found)

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
        lines = [line for text in told for line in terminal.wrapped(text[2:], "  ", "    ")]
        return "\n".join([setting.name, *wrap(summary), *wrap(more), *lines])

    def markup(self) -> elements.Markup:
        """The table, with the settings that have no effect here in grey; explanations are shown on their names."""
        return elements.table(_HEAD, [self._cells(row) for row in self.rows])

    def _cells(self, row: tuple[str, ...]) -> list[object]:
        name, value, source, changes, effect = row
        about = elements.element("code", name, title=self._chosen[name].__doc__ or "")
        shown = elements.element("code", value, cls="blue" if source == "default" else "orange head")
        return [about, shown, source, changes, effect if effect == "yes" else elements.span(effect, "grey")]


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
    changed = {name: s for name, s in sorted(SETTINGS.items()) if s.source != "default"}
    sections["settings that were changed"] = {name: f"{s.value!r} (from: {s.source})" for name, s in changed.items()}
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
