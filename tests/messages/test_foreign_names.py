"""Errors for methods of other libraries' arrays, and for traced values as keys, name an alternative."""

import importlib
import importlib.util
import os
import re

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, source_info
from functorch_like.experimental import sparse
from functorch_like.foreign import methods as foreign_methods
from functorch_like.foreign import names as foreign_names

X = fnp.ones(3)
#: Methods and attributes of NumPy arrays that write to an array or describe its storage.
OF_NUMPY = ("itemset", "fill", "put", "resize", "data", "flags", "strides", "tofile", "setflags", "partition",
            "dump", "base")  # fmt: skip


@pytest.mark.parametrize("name", foreign_methods.INSTEAD)
def test_a_method_of_other_libraries_names_its_like(name):
    assert not hasattr(np.ones(3), name) or name in OF_NUMPY
    assert not hasattr(X, name) and name not in dir(X)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use "):
        getattr(X, name)


def test_attributes_of_pytorch_are_not_assigned_in_silence():
    for x in (fnp.ones(2), fnp.ones(2, "bfloat16")):
        with pytest.raises(AttributeError, match=r"ft\.grad"):
            x.requires_grad = True
        with pytest.raises(AttributeError, match=r"ft\.grad"):
            x.grad = None


@pytest.mark.parametrize(
    ("module", "name", "remedy"),
    [
        (ft, "sin", "fnp.sin"),
        (ft, "relu", "ft.nn.relu"),
        (ft, "cond", "ft.lax.cond"),
        (ft, "normal", "ft.random.normal"),
        (ft, "float32", "'float32'"),
        (fnp, "softmax", "ft.nn.softmax"),
        (fnp, "norm", "fnp.linalg.norm"),
        (fnp, "loadtxt", "np.loadtxt"),
        (ft.nn, "cross_entropy", "log_softmax"),
        (ft.nn, "dropout", "bernoulli"),
        (ft.data, "DataLoader", "ft.data.batches"),
        (ft.lax, "where", "fnp.where"),
        (ft, "use_deterministic_algorithms", "ft.backends.use_deterministic_algorithms"),
        (ft.amp, "GradScaler", "ft.amp.scaled_value_and_grad"),
        (ft.distributed, "all_reduce", "ft.lax.psum"),
        (ft.distributed, "get_rank", "ft.process_index()"),
        (ft.parallel, "DistributedDataParallel", "ft.parallel.data_parallel"),
        (ft.scipy.linalg, "pinv", "fnp.linalg.pinv"),
        (ft.scipy.linalg, "eigvalsh", "fnp.linalg.eigvalsh"),
        (ft.scipy.linalg, "kron", "fnp.kron"),
        (ft.scipy.fft, "fft", "fnp.fft.fft"),
        (ft.scipy.stats, "lognorm", "scipy.stats.lognorm"),
        (ft.scipy.signal, "oaconvolve", "scipy.signal.oaconvolve"),
        (ft.random, "arange", "fnp.arange"),
        (ft.compiler, "disable", "ft.disable_jit()"),
        (ft.compiler, "set_stance", "ft.testing.count_compiles()"),
        (ft, "_dynamo", "ft.explain(f)(x)"),
        (ft, "library", "ft.pure_callback"),
        (ft, "set_num_threads", "ft.backends.cpu.num_threads"),
        (ft.distributed, "init_device_mesh", "ft.make_mesh"),
        (ft.distributed, "new_group", "axes of a mesh"),
        (ft.distributed, "fsdp", "ft.parallel.fsdp_shardings"),
        (ft.sharding, "DTensor", "ft.device_put"),
        (ft.parallel, "ColwiseParallel", "ft.sharding.NamedSharding"),
        (ft.io, "async_save", "ft.io.save_async"),
        (ft.export, "Dim", "ft.export.symbolic_shape"),
        (ft.checkpoint_policies, "CheckpointPolicy", "ft.checkpoint(f, policy=...)"),
        (ft.profiler, "record_function", "ft.profiler.TraceAnnotation"),
        (ft.extend, "custom_op", "ft.custom_vjp"),
        (ft.testing, "gradcheck", "ft.testing.check_grads"),
        (ft.nn, "clip_grad_norm_", "optimizers.md"),
        (ft.random, "manual_seed", "ft.random.key"),
        (ft.debug, "detect_anomaly", "ft.debug.nans()"),
        (ft.backends.compilation, "mark_dynamic", "buckets"),
    ],
)
def test_names_of_other_modules_say_where_they_are(module, name, remedy):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    says(str(caught.value), name, remedy)
    assert "did you mean" not in str(caught.value)


def test_from_imports_say_the_same():
    with pytest.raises(ImportError, match=r"'sin' from 'functorch_like'; use fnp\.sin"):
        from functorch_like import sin  # noqa: F401
    with pytest.raises(ImportError, match=r"see docs/recipes/layers_and_losses\.md"):
        from functorch_like.nn import Linear  # noqa: F401
    with pytest.raises(ImportError, match=r"use ft\.sharding\.NamedSharding"):
        from functorch_like import NamedSharding  # noqa: F401


@pytest.mark.parametrize(
    ("module", "name", "remedy"),
    [
        ("functorch_like.nn.functional", "functorch_like.nn.functional", "use ft.nn"),
        ("functorch_like.optim", "functorch_like.optim", "optax"),
        ("functorch_like.utils.data", "functorch_like.utils", "ft.data"),
        ("functorch_like.autograd", "functorch_like.autograd", "ft.grad(f)"),
        ("functorch_like._dynamo", "functorch_like._dynamo", "ft.log_compiles()"),
        ("functorch_like.distributed.device_mesh", "functorch_like.distributed.device_mesh", "ft.make_mesh"),
        ("functorch_like.distributed.checkpoint", "functorch_like.distributed.checkpoint", "ft.io.CheckpointManager"),
        ("functorch_like.nunpy", "functorch_like.nunpy", "'numpy'"),
        ("functorch_like.example_libraries.optimizers", "functorch_like.example_libraries", "optimizers.md"),
    ],
)
def test_imports_of_modules_say_the_same(module, name, remedy):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(module)
    says(str(caught.value), f"No module named {name!r}; ", remedy)
    assert caught.value.name == name
    assert name != module or importlib.util.find_spec(module) is None


def test_modules_unlike_all_others_get_no_guess():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'functorch_like\.horse'$"):
        importlib.import_module("functorch_like.horse")


def test_a_name_unlike_all_others_gets_no_guess():
    for module, name in ((ft, "horse"), (fnp, "busday_count"), (ft.nn, "horses")):
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert "did you mean" not in str(caught.value)


def test_the_remedies_name_what_there_is():
    rooms = {"ft": ft, "fnp": fnp, "lax": ft.lax, "nn": ft.nn, "random": ft.random, "tree": ft.tree, "np": np, "x": X}
    tables = (*foreign_names.RENAMED.values(), *foreign_names.ELSEWHERE.values(), foreign_methods.INSTEAD)
    texts = [text for table in tables for text in table.values()]
    paths = {
        path for text in texts for path in re.findall(r"(?<![\w./])(?:ft|fnp|lax|nn|np|x)(?:\.[a-zA-Z]\w*)+", text)
    }
    assert len(paths) > 80
    for path in paths:
        value, *names = path.split(".")
        value = rooms[value]
        for name in names:
            assert hasattr(value, name), path
            value = getattr(value, name)


def test_traced_values_say_the_same():
    def read(x):
        assert "detach" not in dir(x) and "sum" in dir(x)
        return x.detach()

    with pytest.raises(AttributeError, match="stop_gradient"):
        ft.eval_shape(read, X)


@pytest.mark.parametrize("use", [lambda i: {0: 1.0}[i], lambda i: {i}, hash])
def test_a_traced_value_is_no_key(use):
    message = refusal(lambda: ft.eval_shape(use, 1), errors.DtypeError, TypeError)
    says(message.head, "unhashable", "i32[]")
    says(message.remedy, "lax.switch")


def test_lines_of_libraries_are_not_the_users():
    def stacked(x):
        return np.stack([x, x]).sum()  # NumPy calls __array__ from one of its own files

    message = refusal(lambda: ft.grad(stacked)(X), errors.TracerArrayConversionError)
    says(message.at, "test_foreign_names.py", "stacked")
    says(message.remedy, "functorch_like.numpy")
    assert not source_info.is_users(os.path.join(os.path.dirname(np.__file__), "_core", "shape_base.py"))


def test_remedies_of_tables_and_sparse_matrices():
    pandas, matrices = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    for series in (pandas.Series([1.0]), pandas.DataFrame({"a": [1.0]})):
        for use in (fnp.sum, ft.jit(lambda x: x), ft.grad(fnp.sum), ft.vmap(lambda x: x)):
            says(refusal(lambda use=use, series=series: use(series), errors.DtypeError).remedy, "to_numpy")
    for matrix in (matrices.eye_array(3), matrices.csr_matrix(np.eye(3))):
        for use in (fnp.sum, fnp.asarray, ft.jit(lambda x: x), ft.grad(fnp.sum)):
            message = refusal(lambda use=use, matrix=matrix: use(matrix), errors.DtypeError)
            says(message.remedy, "toarray", "from_scipy_sparse")


def test_remedies_of_sparse_arrays():
    for m in (sparse.eye(3), sparse.BCSR.fromdense(np.eye(3))):
        says(refusal(lambda m=m: fnp.sin(m), errors.DtypeError).remedy, "todense", "sparsify")


def test_arguments_of_jit_may_be_static():
    says(refusal(lambda: ft.jit(lambda x, mode: x)(1.0, "train"), errors.DtypeError).remedy, "static_argn")
    says(refusal(lambda: ft.jit(lambda f: f(1.0))(fnp.sin), errors.DtypeError).remedy, "static_argn")
    says(refusal(lambda: ft.jit(lambda x: x)(object()), errors.DtypeError).remedy, "register_dataclass")
