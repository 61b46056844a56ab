"""Installing the alias: `import jax` gives this package, missing names raise when used, nothing else changes."""

import os
import subprocess
import sys

import pytest

INSTALL = "import functorch_like.jax_alias as alias; alias.install()\n"


def test_modules_of_jax_are_this_package(run):
    text = """
    import jax, jax.numpy as jnp, functorch_like as ft
    from jax import lax, random, tree_util
    from jax.scipy import stats
    from jaxlib.version import __version__ as built
    assert jax.__version__ == ".".join(built.split(".")[:3])
    assert jax.__version_info__ == tuple(map(int, jax.__version__.split(".")))
    assert jax.__backend__ == "functorch_like" and "functorch_like" in repr(jax.numpy)
    assert jnp.sin is ft.numpy.sin and jax.hessian is ft.hessian and lax.cond is ft.lax.cond
    assert jnp.newaxis is None and "stack" in dir(jnp) and "numpy" in dir(jax)
    print(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x))))(jnp.zeros(2)).tolist(), stats.norm.pdf(0.0).item())
    """
    assert run(text).startswith("[1.0, 1.0] 0.3989")


def test_internals_are_not_mapped(run):
    text = """
    import jax
    for name in ("avals", "caches", "transforms.jit", "calling", "ir.jaxpr", "core.state", "numpy.promotion"):
        value = jax
        try:
            for part in name.split("."):
                value = getattr(value, part)
        except AttributeError as error:
            continue
        print(name)
    """
    assert run(text) == ""


def test_a_real_jax_beside_is_neither_imported_nor_touched(run, tmp_path):
    (tmp_path / "site" / "jax").mkdir(parents=True)
    (tmp_path / "site" / "jax" / "__init__.py").write_text("print('the real jax')")
    text = "import jax, jax.numpy, importlib.util; print(jax.__backend__, jax.numpy.ones(2)[0])"
    assert run(text, paths=[tmp_path / "site"]) == "functorch_like 1.0"
    both = "import jax\n" + INSTALL
    assert "jax is already imported" in run(both, alias=False, paths=[tmp_path / "site"], fails=True)
    second = "import functorch_like\nimport jax"
    assert "jax cannot be imported after" in run(second, alias=False, paths=[tmp_path / "site"], fails=True)


def test_without_the_alias_nothing_changes(run):
    text = """
    import sys, functorch_like as ft, functorch_like.numpy as fnp
    y = ft.jit(fnp.sin)(fnp.ones(3))
    print([n for n in sys.modules if n == "jax" or n.startswith("jax.")])
    print([n for n in sys.modules if "jax_alias" in n])
    """
    assert run(text, alias=False) == "[]\n[]"


def test_cpp_finds_the_alias_s_modules(run):
    """C++ imports modules of jax for arrays that it wraps; those of the alias stay in place."""
    text = """
    import sys, jax, jax.numpy as jnp
    before = {n: m for n, m in sys.modules.items() if n.startswith("jax")}
    x = jax.jit(lambda x: (x + 1, x * 2))(jnp.ones(3))[1]
    y = jax.device_put(x, jax.devices()[0])
    print(x.unsafe_buffer_pointer() > 0, y.tolist(), jnp.asarray(x).block_until_ready().shape)
    assert all(sys.modules[n] is m for n, m in before.items())
    assert isinstance(sys.modules["jax"], type(sys.modules["jax.numpy"]))
    """
    assert run(text) == "True [2.0, 2.0, 2.0] (3,)"


def test_the_distribution_of_jax_has_the_version_of_the_alias(run):
    text = """
    import jax
    from importlib import metadata
    assert metadata.version("jax") == jax.__version__ and metadata.metadata("jax")["Name"] == "jax"
    assert metadata.version("numpy") and not metadata.files("jax")
    print(sum(found.name == "jaxlib" for found in metadata.distributions()))
    try:
        metadata.version("jaxx")
    except metadata.PackageNotFoundError:
        print("none")
    """
    assert run(text) == "1\nnone"


def test_installing_twice_is_installing_once(run):
    text = (
        INSTALL * 2
        + "import sys; print(sum(type(f).__name__ == 'AliasFinder' for f in sys.meta_path), alias.is_installed())"
    )
    assert run(text, alias=False) == "1 True"


# ------------------------------------------------------------------------------------------------------- missing names
def test_a_missing_name_is_inert_on_import_and_raises_on_use(run, library):
    folder = library("""
        import jax
        from jax import absent_function
        from jax.absent_module import thing
        import jax.another_absent.one as one

        @jax.absent_decorator
        def decorated(x): ...
        @jax.absent_maker(2)
        def made(x): ...
        class Child(jax.absent_class): ...
        def annotated(x: jax.absent_type[int] | None): return isinstance(x, jax.Array)
        def late(): return jax.absent_late
        def calls(): return absent_function(1)
    """)
    text = """
    import library
    from functorch_like.jax_alias import MissingNameError
    print(library.annotated(1))
    late = (lambda: library.decorated(1), lambda: library.made(1), lambda: library.thing())
    for use in (library.calls, library.late, *late):
        try:
            use()
        except MissingNameError as error:
            print(str(error).splitlines()[0])
    """
    lines = run(text, paths=[folder]).splitlines()
    assert lines[0] == "False" and len(lines) == 6
    assert "functorch_like has no jax.absent_function" in lines[1] and "library.py:" in lines[1]
    assert "functorch_like has no jax.absent_late" in lines[2]
    assert (
        "jax.absent_decorator" in lines[3] and "jax.absent_maker" in lines[4] and "jax.absent_module.thing" in lines[5]
    )


def test_a_library_that_tests_for_a_name_gets_the_answer(run, library):
    folder = library("""
        import contextlib
        import jax
        found = []
        try:
            from jax import absent
        except ImportError:
            found.append("from")
        try:
            jax.absent
        except AttributeError:
            found.append("attribute")
        try:
            import jax.absent
        except ImportError:
            found.append("module")
        try:
            jax.absent
        except:
            found.append("bare")
        if not hasattr(jax, "absent"):
            found.append("hasattr")
        found.append(getattr(jax, "absent", "getattr"))
        with contextlib.nullcontext():
            inert = jax.absent
    """)
    text = "import library, jax; print(*library.found, hasattr(jax, 'absent'), library.inert)"
    found = run(text, paths=[folder])
    assert found == "from attribute module bare hasattr getattr False <missing jax.absent>"


def test_the_error_of_an_import_says_what_is_missing(run):
    error = run("def f():\n    from jax import absent\nf()", fails=True)
    assert "ImportError: functorch_like has no jax.absent" in error and "--missing" in error


# ------------------------------------------------------------------------------------------------------- command line
@pytest.fixture
def command(tmp_path):
    def command(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "functorch_like.as_jax", *map(str, arguments)],
            capture_output=True, text=True, cwd=tmp_path, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return command


def test_programs_run_with_their_arguments(command, tmp_path):
    text = "import sys, jax, beside; print(__name__, sys.argv[1:], jax.__backend__, beside.x)"
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "beside.py").write_text("x = 3")
    wanted = "__main__ ['a', '--b'] functorch_like 3\n"
    assert command("script.py", "a", "--b") == (0, wanted, "")
    assert command("-m", "script", "a", "--b") == (0, wanted, "")
    assert command("-c", text, "a", "--b") == (0, wanted, "")
    status, _, error = command("-c", "import sys; sys.exit(3)")
    assert (status, error) == (3, "")


def test_what_a_program_lacks_is_listed_and_nothing_is_run(command, tmp_path):
    (tmp_path / "script.py").write_text("""
import jax, jax.numpy as jnp, beside
from jax.experimental import absent_module as gone
raise SystemExit("it ran")
jnp.sin(jnp.absent_function), jax.lax.scan, gone.function, jax.Array.sum
""")
    (tmp_path / "beside.py").write_text("from jax.numpy import absent_too, cos\nimport jax.absent_three")
    status, out, _ = command("--missing", "script.py")
    names = [line for line in out.splitlines() if not line.startswith(" ")]
    assert status == 1 and names == [
        "jax.absent_three", "jax.experimental.absent_module", "jax.experimental.absent_module.function",
        "jax.numpy.absent_function", "jax.numpy.absent_too", "5 names of JAX are missing",
    ]  # fmt: skip
    assert "script.py:5" in out and "beside.py:1" in out
    (tmp_path / "fine.py").write_text("import jax\njax.jit")
    assert command("--missing", "fine.py")[:2] == (0, "no name of JAX is missing\n")


def test_pytest_runs_tests_written_for_jax(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax")
    (tmp_path / "test_it.py").write_text("import jax\ndef test(): assert jax.__backend__ == 'functorch_like'")
    command = [sys.executable, "-m", "pytest", "-q", "--as-jax", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_says_what_to_do_where_a_plugin_imports_jax_before(tmp_path):
    (tmp_path / "jax.py").write_text("")  # in place of JAX
    (tmp_path / "early.py").write_text("import jax")
    (tmp_path / "test_it.py").write_text("import jax\ndef test(): assert jax.__backend__ == 'functorch_like'")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = ["-m", "pytest", "-q", "-p", "early", "-p", "no:cacheprovider", str(tmp_path)]
    alias = ["-m", "functorch_like.as_jax"]
    for words in ([*command, "--as-jax"], [*alias, *command], [*alias, *command, "--as-jax"]):
        done = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
        )
        said = done.stdout + done.stderr
        assert ("1 passed" if words[1] == alias[1] else "python -m functorch_like.as_jax -m pytest") in said, said
