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
#: Variables of other programs that change XLA's behaviour.
_ENVIRONMENT = ("XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS")


def _effect(setting: Setting[Any], platform: str) -> str:
    why = setting.effect(platform)
    return f"no: {why}" if why else "yes"


class Description(Display):
    """Settings as they are now: text when printed, a table in notebooks.

    Attributes:
        platform: "cpu", "gpu", ...: the platform of "effect here".
        rows: for each setting its name, value, origin, scope, and whether it has an effect.
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
        """Return the table, and below it the reasons why settings have no effect; of one setting, all its facts."""
        if len(self._chosen) == 1:
            return self._whole(*self._chosen.values())
        marks = self._marks()
        lines: list[tuple[str, ...]] = [tuple(paint(title, "head") for title in (*_HEAD[:3], _HEAD[4]))]
        for name, value, source, _, effect in self.rows:
            changed = "orange" if source != "default" else "blue"
            lines.append((name, paint(terminal.trimmed(value, 22), changed), source, marks.get(effect, effect)))
        shown = [*terminal.columns(lines), *([""] if marks else [])]
        for reason, mark in marks.items():
            shown += terminal.wrapped(reason.removeprefix("no: "), f"{mark:<8} ")
        return "\n".join(shown)

    def _whole(self, setting: Setting[Any]) -> str:
        wrap = lambda text: textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="  ")
        about = [line for text in (setting.__doc__ or "").split("\n\n", 1) for line in wrap(text)]
        facts = [f"{name}: {text}" for name, text in self._parts(setting) if text]
        lines = [line for text in facts for line in terminal.wrapped(text, "  ", "    ")]
        return "\n".join([setting.name, *about, *lines])

    def _parts(self, setting: Setting[Any]) -> list[tuple[str, str]]:
        """Name and text of each fact about a setting; some are empty."""
        elsewhere = ((f"not on {name}", why) for name, why in setting.elsewhere.items() if name != self.platform)
        return [
            ("value", f"{setting.value!r} (from: {setting.source})"),
            ("takes", setting.kind.allowed),
            ("default", repr(setting.default)),
            ("environment", setting.env),
            ("changes", setting.changes),
            ("effect here", _effect(setting, self.platform)),
            *elsewhere,
        ]

    def _marks(self) -> dict[str, str]:
        """Marks in the table, one for each reason why settings have no effect here."""
        reasons = dict.fromkeys(effect for *_, effect in self.rows if effect != "yes")
        return {reason: f"no ({number})" for number, reason in enumerate(reasons, 1)}

    def markup(self) -> elements.Markup:
        """The report as a table; explanations are shown on the settings' names."""
        if len(self._chosen) == 1:
            return self._whole_markup(*self._chosen.values())
        marks = self._marks()
        reasons = [(mark, reason.removeprefix("no: ")) for reason, mark in marks.items()]
        table = elements.table(_HEAD, [self._cells(row, marks) for row in self.rows])
        return elements.join([table, elements.facts(reasons) if reasons else None])

    def _whole_markup(self, setting: Setting[Any]) -> elements.Markup:
        name = elements.element("div", elements.element("code", setting.name, cls="head"))
        about = [elements.element("div", text) for text in (setting.__doc__ or "").split("\n\n")]
        return elements.join([name, *about, elements.facts(self._parts(setting))])

    def _cells(self, row: tuple[str, ...], marks: dict[str, str]) -> list[object]:
        name, value, source, changes, effect = row
        about = elements.element("code", elements.breakable(name), title=self._chosen[name].__doc__ or "")
        style = "blue" if source == "default" else "orange head"
        shown = elements.element("code", elements.breakable(terminal.trimmed(value, 80)), cls=style, title=value)
        works = effect if effect == "yes" else elements.element("span", marks[effect], cls="grey", title=effect[4:])
        return [about, shown, source, elements.breakable(changes), works]


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
