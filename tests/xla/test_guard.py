"""jax and this package cannot be imported in one process, and C++ does not import jax."""

import pytest

from functorch_like.backends.xla import guard

DOOR = "from functorch_like.backends import xla\n"


@pytest.fixture
def fake_jax(tmp_path):
    """Make a folder with a fake `jax`; each of its modules prints a line when it is imported."""
    folder = tmp_path / "site"
    (folder / "jax" / "_src").mkdir(parents=True)
    for file in ("__init__", "core", "_src/__init__", "_src/sharding_impls", "_src/named_sharding", "_src/literals"):
        (folder / "jax" / f"{file}.py").write_text(f"print('jax {file} was imported')\n")
    return folder


def test_refuses_to_come_second(run, fake_jax):
    error = run("import jax\n" + DOOR, paths=[fake_jax], fails=True)
    assert "ImportError: functorch_like cannot be imported: jax is already imported" in error
    assert "separate processes" in error


def test_refuses_jax_afterwards(run, fake_jax):
    error = run(DOOR + "import jax.numpy", paths=[fake_jax], fails=True)
    assert "ImportError: jax cannot be imported after functorch_like" in error
    assert "separate processes" in error


def test_jax_that_is_not_there_is_missing_as_ever(run):
    text = """
    import sys
    from functorch_like.backends import xla
    sys.path = [p for p in sys.path if 'site-packages' not in p]
    sys.path_importer_cache.clear()
    try:
        import jax
    except ModuleNotFoundError as error:
        print(error)
    """
    assert run(text) == "No module named 'jax'"


def test_probing_for_jax_does_not_raise(run, fake_jax):
    text = DOOR + "import importlib.util; print(importlib.util.find_spec('jax') is not None)"
    assert run(text, paths=[fake_jax]) == "True"


def test_other_names_are_left_alone(run, tmp_path):
    (tmp_path / "jaxtyping_like.py").write_text("print('fine')")
    assert run(DOOR + "import jaxtyping_like", paths=[tmp_path]) == "fine"


def test_hidden_imports_of_jax_do_not_happen(run, fake_jax):
    """Operations for which C++ looks up jax do not import it, even if one is installed."""
    text = """
    import sys, ml_dtypes, numpy as np
    from functorch_like.avals import ShapedArray
    from functorch_like.backends import xla
    for dtype in (np.float32, ml_dtypes.bfloat16, ml_dtypes.int4):
        x = xla.device_put(np.ones(3, dtype))
        assert xla.to_numpy(x).dtype == np.asarray(x).dtype == dtype
    x.unsafe_buffer_pointer()
    aval = ShapedArray((8,), np.float32)
    program = xla.compile(xla.build("f", [aval], lambda e, a: [a]), out_avals=[aval])
    f = xla.function("f", None, lambda a: (program.execute([a])[0], program.fastpath(xla.leaf_structure), False))
    x = np.ones(8, np.float32)
    assert f(f(x)).aval is aval
    made = program._inner.execute_sharded([xla.device_put(x)]).disassemble_into_single_device_arrays()
    assert type(made[0][0].aval) is ShapedArray
    print([name for name in sys.modules if name.partition(".")[0] == "jax"])
    """
    assert run(text, paths=[fake_jax]) == "[]"


@pytest.mark.parametrize("version", ["0.10.1", "0.9.9", "0.13.0", "1.0"])
def test_untested_jaxlib_is_refused(monkeypatch, version):
    monkeypatch.setattr(guard, "jaxlib_version", lambda: version)
    with pytest.raises(ImportError, match=rf"found jaxlib {version}.*pip install 'jaxlib>=0.10.2,<0.13'"):
        guard.check_jaxlib()


@pytest.mark.parametrize("version", ["0.10.2", "0.11.2", "0.12.0.1", "0.12.3.dev20270101"])
def test_tested_jaxlib_is_taken(monkeypatch, version):
    monkeypatch.setattr(guard, "jaxlib_version", lambda: version)
    assert guard.check_jaxlib() >= guard.OLDEST


def test_importing_starts_neither_client_nor_mlir(run):
    text = """
    import sys
    from functorch_like.backends.xla import client
    print(client._clients, "jaxlib.mlir.ir" in sys.modules, "scipy" in sys.modules)
    """
    assert run(text) == "{} False False"
