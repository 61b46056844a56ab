"""The floors of the repository, and a checker that walks the syntax tree of every file to enforce them.

A file imports from lower floors, or from its own room, and no imports form a cycle. Imports inside functions and
`import_module("...")` with a constant name count. Imports under `if TYPE_CHECKING:` do not, nor do those in a block of
`lazy_imports`, which run when a user first accesses their names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Bottom to top. Each line is one floor, each name on it a room: a file or a folder. A file's room is the longest
# matching name, so a new file in a folder needs no line. Rooms on the same floor do not import each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("functorch_like/markup",),
    (
        "functorch_like/errors.py",
        "functorch_like/frames.py",
        "functorch_like/interrupts.py",
        "functorch_like/status_line.py",
    ),
    ("functorch_like/on_import.py",),
    ("functorch_like/avals.py", "functorch_like/foreign"),
    ("functorch_like/public_names.py",),
    ("functorch_like/foreign/modules.py",),
    ("backends/xla",),
    ("backends",),
    ("functorch_like/caches.py", "functorch_like/dtypes.py", "functorch_like/source_info.py", "functorch_like/tree.py"),
    ("functorch_like/masked.py", "functorch_like/foreign/values.py", "functorch_like/explicit_axes"),
    ("functorch_like/core.py",),
    ("functorch_like/exporting/dimensions.py", "functorch_like/exporting/template.py"),
    ("functorch_like/exporting/shapes.py",),
    # First-order primitives.
    ("primitives/families.py",),
    ("primitives/base",),
    ("primitives/formulas",),
    ("primitives/elementwise",),
    ("primitives/structural",),
    ("primitives/effects",),
    ("primitives/random",),
    ("primitives/indexing",),
    ("primitives/reductions",),
    ("primitives/ordering",),
    ("primitives/updates",),
    ("primitives/contractions",),
    ("primitives/collectives",),
    ("primitives/linalg", "primitives/windows"),
    # Jaxprs, their interpreters and their compiler.
    ("functorch_like/ir",),
    ("functorch_like/compiler",),
    ("functorch_like/interpreters",),
    # Higher-order primitives: their rules use the interpreters.
    ("primitives/higher_order",),
    ("primitives/__init__.py",),
    ("primitives/__main__.py",),
    # What users call.
    ("functorch_like/calling",),
    ("functorch_like/ref", "functorch_like/ad.py"),
    ("functorch_like/sharding",),
    ("functorch_like/transforms",),
    ("functorch_like/lax",),
    ("functorch_like/arrays",),
    ("functorch_like/numpy",),
    ("functorch_like/random",),
    ("functorch_like/exporting",),
    ("functorch_like",),  # modules under JAX's names: export, extend, ffi, image, ops, ...
    ("functorch_like/amp",),
    ("functorch_like/experimental",),
    ("functorch_like/parallel",),
    ("functorch_like/nn",),  # its initializers use functorch_like/random
    ("functorch_like/scipy",),
    ("functorch_like/checkify",),
    ("functorch_like/debug", "functorch_like/adapters.py"),
    ("functorch_like/experimental/pallas",),  # its kernels print and check
    ("functorch_like/array_methods.py", "functorch_like/custom_batching.py", "functorch_like/inspect.py"),
    ("functorch_like/distributed",),
    ("functorch_like/multihost_utils.py",),
    ("functorch_like/data", "functorch_like/io"),
    ("functorch_like/__init__.py",),
    ("functorch_like/testing",),
    ("functorch_like/jax_alias",),  # the package under JAX's names
    ("functorch_like/as_jax.py", "functorch_like/minify.py"),
    ("functorch_like/examples",),  # written as a user would
    ("functorch_like/testing/aot.py",),  # it compiles the examples
    ("functorch_like/__main__.py",),
)

# The import name of each top-level folder in the installed package.
PACKAGES = {
    "functorch_like": "functorch_like",
    "backends": "functorch_like.backends",
    "primitives": "functorch_like.primitives",
}


BEGIN, END = "<!-- floors -->\n", "<!-- end of floors -->"


def markdown(root: Path) -> str:
    """Return the floors as a Markdown table, bottom to top, each room with the first paragraph of its docstring."""
    lines = ["| floor | contents |", "|---|---|"]
    for rooms in FLOORS:
        lines += [f"| `{room}` | {_summary(root / room)} |" for room in rooms]
    return "\n".join(lines) + "\n"


def _summary(path: Path) -> str:
    text = ast.get_docstring(ast.parse((path / "__init__.py" if path.is_dir() else path).read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def write(page: Path, root: Path) -> None:
    """Update the table of floors in a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + BEGIN + markdown(root) + END + rest.partition(END)[2])


class Import(NamedTuple):
    """One imported name: `from a.b import c` gives module "a.b" and name "c"; `import a.b` has no name."""

    module: str
    name: str | None
    line: int
    typing_only: bool


def violations(root: Path) -> list[str]:
    """Return all violations of the rules under `root`, as "file:line: what is wrong"."""
    files = {path.relative_to(root).as_posix(): path for top in PACKAGES for path in sorted((root / top).rglob("*.py"))}
    by_module = {module_name(file): file for file in files}
    found: list[str] = []
    graph: dict[str, set[str]] = {file: set() for file in files}
    for file, path in files.items():
        if place(file) is None:
            found.append(f"{file}: has no floor; give it a line in tests/support/floors.py")
        for imp in imports(path, file):
            where = f"{file}:{imp.line}"
            found += [f"{where}: {complaint}" for complaint in forbidden(file, imp)]
            target = resolve(imp, by_module)
            if target is None or imp.typing_only or target == file:
                continue
            graph[file].add(target)
            if not may_import(file, target):
                found.append(f"{where}: imports {target}, which is not on a lower floor")
    found += [f"{' -> '.join(cycle)}: imports form a cycle" for cycle in cycles(graph)]
    return list(dict.fromkeys(found))  # `from x import a, b` is one violation, not two


def module_name(file: str) -> str:
    """Return the dotted name under which a file of the repository is imported."""
    top, *rest = file.removesuffix(".py").split("/")
    return ".".join([PACKAGES[top], *rest]).removesuffix(".__init__")


def place(file: str) -> tuple[int, str] | None:
    """Return a file's floor and room, or None if the table has no room for it."""
    fits = [
        (len(room), floor, room)
        for floor, rooms in enumerate(FLOORS)
        for room in rooms
        if file == room or file.startswith(room + "/")
    ]
    return max(fits)[1:] if fits else None


def may_import(file: str, target: str) -> bool:
    """Return True if `target` is on a lower floor than `file`, or in the same room."""
    here, there = place(file), place(target)
    return here is None or there is None or there[0] < here[0] or there == here


def forbidden(file: str, imp: Import) -> Iterator[str]:
    """Yield complaints about imports that are wrong on every floor."""
    top = imp.module.partition(".")[0]
    if top == "jax":
        yield "imports jax; this package stands on jaxlib alone"
    if top == "jaxlib" and not file.startswith("backends/xla/"):
        yield "imports jaxlib; only backends/xla may"
    if top in ("backends", "primitives"):
        yield f"imports a bare `{top}`; write functorch_like.{top}"


def imports(path: Path, file: str) -> Iterator[Import]:
    """Yield every import in a file, including those inside functions and constant `import_module` calls.

    Relative imports are made absolute.
    """
    package = module_name(file)
    if path.name != "__init__.py":
        package = package.rpartition(".")[0]
    tree = ast.parse(path.read_text(), file)
    guarded = {
        inner
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"))
        or (isinstance(node, ast.With) and "lazy_imports.block" in ast.unparse(node.items[0]))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, None, node.lineno, node in guarded)
            case ast.ImportFrom(module=module, names=names, level=level):
                if level:
                    parents = package.split(".")[: len(package.split(".")) - level + 1]
                    module = ".".join(parents + ([module] if module else []))
                for alias in names:
                    yield Import(module or "", alias.name, node.lineno, node in guarded)
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if is_import_call(func):
                yield Import(name, None, node.lineno, node in guarded)


def is_import_call(func: ast.expr) -> bool:
    """Return True if a called expression is `importlib.import_module`, `import_module` or `__import__`."""
    return ast.unparse(func).rpartition(".")[2] in ("import_module", "__import__")


def resolve(imp: Import, by_module: dict[str, str]) -> str | None:
    """Return the repository file that an import refers to, or None for modules from outside the repository.

    A package's `__file__` gives its location and none of its contents, so any file may import it.
    """
    if imp.name == "__file__":
        return None
    if imp.name is not None and f"{imp.module}.{imp.name}" in by_module:
        return by_module[f"{imp.module}.{imp.name}"]
    return by_module.get(imp.module)


def cycles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield one cycle for each file at which a depth-first walk meets its own path again."""
    done: set[str] = set()

    def walk(file: str, path: list[str]) -> Iterator[list[str]]:
        if file in path:
            yield [*path[path.index(file) :], file]
        elif file not in done:
            for target in sorted(graph[file]):
                yield from walk(target, [*path, file])
            done.add(file)

    for file in sorted(graph):
        yield from walk(file, [])


if __name__ == "__main__":
    top = Path(__file__).parents[2]
    write(top / "docs/architecture.md", top)
