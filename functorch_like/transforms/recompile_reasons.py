"""Reasons why a call was traced or compiled again: how its signature differs from the nearest earlier one."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.settings import SETTINGS, Values
from functorch_like.caches import known
from functorch_like.calling.call_signature import argument_path, kinds_of

#: Code of functions that were traced, so that a function made anew is recognised.
_CODES: weakref.WeakSet[types.CodeType] = known(weakref.WeakSet())


def remember(fun: Callable[..., Any]) -> None:
    """Note that a function was traced."""
    code = getattr(fun, "__code__", None)
    if code is not None:
        _CODES.add(code)


def first_time(fun: Callable[..., Any]) -> str:
    """Return the reason why a function without earlier traces is traced."""
    if getattr(fun, "__code__", None) in _CODES:
        return (
            "a function of the same source was traced before, but this is another function object: "
            "define it once, outside of the loop or function that calls jit"
        )
    return "first call"


def difference(key: Any, earlier: Iterable[Any]) -> str:
    """Describe how a signature (`FlatCall.key`) differs from the nearest of others."""
    others = list(earlier)
    if not others:
        return ""
    alike = [other for other in others if other[0] == key[0]]  # of another structure only where there is no other
    return "; ".join(min((_differences(other, key) for other in alike or others), key=_count))


def _count(differences: Sequence[str]) -> int:
    """Count the differences: an argument may differ in shape, dtype and more."""
    return sum(text.count(" before, ") for text in differences)


def _differences(old: Any, new: Any) -> list[str]:
    old_tree, old_statics, old_kinds, old_avals, old_settings, old_axes = old
    tree, statics, kinds, avals, settings, axes = new
    result: list[str] = []
    if tree != old_tree:
        result.append(f"the structure of the arguments: {old_tree} before, {tree} now")
    else:
        pairs = enumerate(zip(old_avals, avals, strict=True))
        result += [_of_avals(argument_path(tree, i), before, now) for i, (before, now) in pairs if before is not now]
    result += _of_statics(old_statics, statics, old_kinds, kinds)
    result += _of_settings(old_settings, settings)
    if axes != old_axes:
        result.append(f"named axes in scope: {dict(old_axes)} before, {dict(axes)} now")
    return result or ["donation or options of jit"]


def _of_avals(path: str, old: ShapedArray, new: ShapedArray) -> str:
    parts: list[str] = []
    if old.shape != new.shape:
        parts.append(f"shape {old.shape} before, {new.shape} now")
    if old.dtype != new.dtype:
        parts.append(f"dtype {old.dtype.name} before, {new.dtype.name} now")
    if old.weak_type != new.weak_type:
        was, now = ("weakly typed (a Python number)" if a.weak_type else "an array's" for a in (old, new))
        parts.append(f"type {was} before, {now} now")
    return f"{path}: {', '.join(parts)}"


def _of_statics(old: Any, new: Any, old_kinds: Any, new_kinds: Any) -> list[str]:
    if old == new and old_kinds == new_kinds:
        return []
    before, now = ({k: v for part in statics for k, v in part} for statics in (old, new))
    return [
        f"static argument {k!r}: {before.get(k, 'not given')!r} before, {now.get(k, 'not given')!r} now"
        for k in {**before, **now}
        if k not in before or k not in now or before[k] != now[k] or kinds_of(before[k]) != kinds_of(now[k])
    ]


def _of_settings(old: Sequence[Any], new: Sequence[Any]) -> list[str]:
    reasons: list[str] = []
    for name, before, now in zip(xla.setting_names(), old, new, strict=False):
        if before is now or before == now:
            continue
        if isinstance(before, Values) and isinstance(now, Values):
            reasons += [
                f"setting {k}: {_value(before, k)} before, {_value(now, k)} now"
                for k in sorted({**before.set, **now.set})
                if before.set.get(k) != now.set.get(k)
            ]
        else:
            reasons.append(f"setting {name}: {before!r} before, {now!r} now")
    return reasons


def _value(values: Values, name: str) -> str:
    """Return the value of a setting as text; one that is not set has its default."""
    default = SETTINGS[name].default if name in SETTINGS else None
    return repr(values.set.get(name, default))


def _of_place(old: Any, new: Any, tree: Any) -> str:
    """Return the difference of two devices, or meshes, or shardings of arguments on one mesh."""
    if hasattr(old, "ins") and hasattr(new, "ins") and old.mesh is new.mesh:
        if len(old.ins) == len(new.ins):
            for i, (before, now) in enumerate(zip(old.ins, new.ins, strict=True)):
                if before != now:
                    return f"{argument_path(tree, i)}: {_split(before)} before, {_split(now)} now"
        return "other shardings of the results"
    return f"another device: {old} before, {new} now"


def _split(where: Any) -> str:
    if where is None:
        return "bound to no device"
    kind = where._memory_kind
    how = f"split by {where.spec!r}" if tuple(where.spec) else "whole on each device"
    return how + (f" in {kind}" if kind not in (None, "device") else "")


def of_program(key: tuple[Any, tuple[type, ...], bool], earlier: Iterable[Any], tree: Any) -> str:
    """Return the reason why a trace is compiled again: another place, or other kinds of values for the same avals.

    It is compared with the last one that was compiled.
    """
    device, kinds, committed = key
    for old_device, old_kinds, old_committed in reversed(list(earlier)):
        if old_device != device:
            return _of_place(old_device, device, tree)
        for i, (old, new) in enumerate(zip(old_kinds, kinds, strict=True)):
            if old is not new:
                return f"{argument_path(tree, i)}: {old.__name__} before, {new.__name__} now"
        if old_committed != committed:
            return "arguments bound to a device by device_put" if committed else "arguments no longer bound to a device"
    return ""
