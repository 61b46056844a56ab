"""Habits no linter setting can hold by itself."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the tests run without the source tree")
SOURCES = ("functorch_like", "backends", "primitives", "tests", "benchmarks", "notebooks")


def test_a_shadowed_test_is_never_excused():
    """F811 finds a test that a later one of the same name replaces; silenced, that test never runs again."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    ignored = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    assert "F" in lint["select"]
    assert not [rule for rule in ignored if "F811".startswith(rule)]
    excused = re.compile(r"noqa:[^#\n]*F811|noqa\s*$", re.MULTILINE)
    others = [path for path in files(SOURCES) if path != Path(__file__)]
    assert [path for path in others if excused.search(path.read_text())] == []


PACKAGE = ("functorch_like", "backends", "primitives")
#: A first line is a noun phrase or an imperative, never a clause without a head ("What it returns", "Whether it is").
HEADLESS = re.compile(r"(What|Whether|How|Where|Who|Whom|Whose|Why|When|Which|That)\b")


def files(tops: Iterable[str] = PACKAGE) -> list[Path]:
    return [path for top in tops for path in sorted((ROOT / top).rglob("*.py"))]


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield f"{path.relative_to(ROOT)}:{node.body[0].lineno}", text


def test_docstrings_begin_with_a_noun_phrase_or_an_imperative():
    every = [pair for path in files(SOURCES) for pair in docstrings(path)]
    assert [f"{where}: {text.splitlines()[0]}" for where, text in every if HEADLESS.match(text)] == []


#: Names that the code had for the field's terms (docs/glossary.md): of classes and functions, wherever they stand.
OLD_WORDS = {
    "No": "NotDefined", "Lin": "UndefinedPrimal", "Axis": "BatchAxis", "Sample": "SampleInput", "Told": "StaticValue",
    "Call": "FlatCall", "Body": "TracedFunction", "Perturbed": "TangentTracer", "Linear": "LinearMap",
    "Way": "Candidate", "Halves": "PartialEval", "align2": "promote_and_broadcast2", "with_tangents": "jvp_jaxpr",
    "written_out": "instantiate", "close_over": "argnums_partial", "said": "unwrap_static",
    "for_dispatch": "wrap_static", "infer": "abstract_eval", "shape_rule": "abstract_eval", "prune": "dce",
    "seal": "wrap_public_functions", "polish": "finalize_error", "trim": "filter_traceback",
    "resolve": "resolve_argnums", "in_turn": "sequential_vmap",
}  # fmt: skip


def test_old_words_stay_out():
    defined = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}; say {OLD_WORDS[word]}"
        for path in files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (word := node.name.lstrip("_")) in OLD_WORDS
    ]
    assert defined == []


#: Words of persons: code is not told anything, and an agent has a name (the user, jit, XLA, the package).
PERSONAL = ("told", "ours", "whoever", "somebody")
#: Public names that have one of them.
PUBLIC = {
    ("functorch_like/testing/accuracy.py", "ours"): "field of a public result, beside `theirs`",
    ("tests/libraries/suites.py", "ours"): "argument of the command",
}


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each name that a file defines or reads."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield node.lineno, name.strip("_").lower()
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name.strip("_").lower()
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield node.lineno, name.strip("_").lower()
            case _:
                pass


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each comment and docstring of a file."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node, False)):
            yield from enumerate(text.lower().splitlines(), node.body[0].lineno)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lower()


def personal(path: Path, within: Path = ROOT, read: Iterable[Callable] = (names, texts)) -> list[str]:
    where = path.relative_to(within).as_posix()
    if not any(word in path.read_text(encoding="utf-8").lower() for word in PERSONAL):
        return []
    allowed = {word for file, word in PUBLIC if file == where}
    word = re.compile(rf"\b({'|'.join(PERSONAL)})\b")
    hits = {(line, hit) for each in read for line, text in each(path) for hit in word.findall(text)}
    return [f"{where}:{line}: {hit}" for line, hit in sorted(hits) if hit not in allowed]


def test_code_is_not_a_person():
    assert [hit for path in files() for hit in personal(path)] == []
    tests = [path for path in files(["tests"]) if path != Path(__file__)]
    assert [hit for path in tests for hit in personal(path, read=[texts])] == []


def test_names_of_tests_keep_to_the_words_too():
    """Primitives have rules, not columns; code is not told anything and wants nothing."""
    name = re.compile(r"def (test_\w*_(?:told|wants|nobody|whoever|somebody)(?:_\w*)?|test_\w*_every_column\w*)\(")
    assert [hit for path in (ROOT / "tests").rglob("test_*.py") for hit in name.findall(path.read_text())] == []


def test_persons_are_found_in_names_comments_and_docstrings(tmp_path: Path):
    (tmp_path / "a.py").write_text('"""For whoever reads."""\n\n\ndef f(told=1):  # ours\n    return f"{_told}"\n')
    assert personal(tmp_path / "a.py", tmp_path) == ["a.py:1: whoever", "a.py:4: ours", "a.py:4: told", "a.py:5: told"]


#: A comparison of a primitive's name.
BY_NAME = re.compile(r"prim\.name (==|!=|in|not in) |\.get\((\w+\.)*prim\.name\b")
BY_NAME_OF = (
    "functorch_like/ir/passes.py",  # of a primitive of a higher floor
    "functorch_like/ir/jaxpr_graph.py",  # likewise
    "functorch_like/jax_alias/",  # names of JAX's primitives
    "functorch_like/testing/",  # names of mpmath's functions
)


def test_primitives_are_compared_by_themselves():
    sources = [p for p in files() if BY_NAME.search(p.read_text(encoding="utf-8"))]
    assert [w for p in sources if not (w := p.relative_to(ROOT).as_posix()).startswith(BY_NAME_OF)] == []


ENGINE = ("ir", "interpreters", "compiler", "calling", "transforms", "checkify", "experimental/sparse/sparsify")
#: Files in which "rev" is a mode.
OPEN = ("sparse_jacobian.py",)


def test_the_engine_knows_primitives_by_what_they_say_of_themselves():
    """A primitive's `kind`, `linear`, `fusible`, `exact` and `repeated` stand with it, not in tables of names."""
    names = (
        "sin", "cos", "exp", "tanh", "mul", "sub", "eq", "reshape", "rev", "reduce_sum", "select_n", "concatenate",
        "dot_general", "conv_general_dilated", "threefry2x32", "ffi_call", "gather",
        "optimization_barrier",
    )  # fmt: skip
    quoted = re.compile(rf'["\']({"|".join(names)})["\']')
    engine = [p for p in files() if any(f"functorch_like/{top}" in p.as_posix() for top in ENGINE)]
    assert [
        str(p) for p in engine if not {p.parent.name, p.name} & {*OPEN} and quoted.search(p.read_text(encoding="utf-8"))
    ] == []
