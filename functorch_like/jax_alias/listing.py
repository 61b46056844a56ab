"""Names of JAX that a program and the libraries it imports mention, and that are missing here.

Sources are parsed; no code of the program is run.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from functorch_like.jax_alias import missing
from functorch_like.jax_alias.finder import install


def report(scripts: list[str]) -> int:
    """Print the missing names that scripts mention, each with its places; return 1 if there are any."""
    install()
    sys.path[:0] = [str(Path(script).resolve().parent) for script in scripts]
    missing = missing_names([Path(script) for script in scripts])
    for name, places in sorted(missing.items()):
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        print(f"{name}\n    {', '.join(places[:3])}{more}")
    print(f"{len(missing)} names of JAX are missing" if missing else "no name of JAX is missing")
    return bool(missing)


def missing_names(files: list[Path]) -> dict[str, list[str]]:
    """Return the names of JAX that files and what they import mention and that are missing, with their places."""
    names: dict[str, list[str]] = {}
    seen: set[Path] = set()
    while files:
        file = files.pop()
        if file in seen:
            continue
        seen.add(file)
        try:
            tree = ast.parse(file.read_text(errors="replace"), str(file))
        except SyntaxError:  # a library's file for another Python
            continue
        for name, line in mentioned(tree):
            if lacks(name):
                names.setdefault(name, []).append(f"{_short(file)}:{line}")
        files += _imported(tree, file)
    return names


def mentioned(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Return the dotted names under `jax` in a module, each with its line."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "jax":
                    known[alias.asname or "jax"] = alias.name if alias.asname else "jax"
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "jax":
            for alias in node.names:
                if alias.name != "*":
                    known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    yield f"{node.module}.{alias.name}", node.lineno
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            inner.update(child for child in ast.walk(node.value) if isinstance(child, ast.Attribute))
            root, _, rest = ast.unparse(node).partition(".")
            if root in known and rest.replace(".", "").replace("_", "").isalnum():
                yield f"{known[root]}.{rest}", node.lineno


def lacks(name: str) -> bool:
    """Return True if a name is missing; attributes of objects other than modules are not checked."""
    path, *parts = name.split(".")
    value: object = importlib.import_module(path)
    for part in parts:
        if not isinstance(value, ModuleType):
            return False
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(path)
            except ImportError:
                return True
        if isinstance(value, missing.Missing):
            return True
    return False


def _imported(tree: ast.Module, file: Path) -> Iterator[Path]:
    """Return the files of the modules that a module imports, leaving out Python's own, JAX and this package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            parts = node.module.split(".")
            yield from _files(parts)
            for alias in node.names:
                yield from _files([*parts, alias.name])
        elif isinstance(node, ast.ImportFrom) and node.level:
            folder = file.parents[node.level - 1]
            for alias in node.names:
                yield from _below(folder, [*(node.module or "").split("."), alias.name])


def _files(parts: list[str]) -> Iterator[Path]:
    if parts[0] in sys.stdlib_module_names or parts[0] in ("jax", "jaxlib", "functorch_like", "numpy", "scipy"):
        return
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        return
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        yield from _below(origin.parent, parts[1:])
    else:
        yield origin


def _below(folder: Path, parts: list[str]) -> Iterator[Path]:
    path = folder
    for part in filter(None, ["", *parts]):
        yield from (p for p in (path / "__init__.py",) if p.is_file())
        path = path / part
    yield from (p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file())


def _short(file: Path) -> str:
    return "/".join(file.parts[-3:])
