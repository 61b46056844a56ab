"""Names of public modules: what `dir` lists, and what an AttributeError says of a name that is not there."""

from __future__ import annotations

import types
from typing import Any, TypeVar

from functorch_like.errors import nearest

#: What JAX, NumPy and torch.func call by a name that a module here does not have.
RENAMED: dict[str, dict[str, str]] = {
    "functorch_like": {
        **{f"tree_{name}": f"ft.tree.{name}" for name in (
            "all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten",
        )},
        "tree_multimap": "ft.tree.map",
        "config": "ft.backends",
        "enable_x64": "ft.set_default_dtype",
        "experimental_enable_x64": "ft.set_default_dtype",
        "ShapedArray": "ft.ShapeDtypeStruct",
        "DeviceArray": "ft.Array",
        "Tensor": "ft.Array",
        "tensor": "ft.numpy.asarray",
        "asarray": "ft.numpy.asarray",
        "array": "ft.numpy.array",
        "PRNGKey": "ft.random.key",
        "key": "ft.random.key",
        "xla_computation": "ft.jit(f).lower",
        "abstract_eval": "ft.eval_shape",
        "compile": "ft.jit",
        "func": "ft",
        "jnp": "ft.numpy",
        "no_grad": "ft.lax.stop_gradient",
        "detach": "ft.lax.stop_gradient",
        "make_functional": "ft.functional_call",
        "make_functional_with_buffers": "ft.functional_call",
        "combine_state_for_ensemble": "ft.stack_state",
        "stack_module_state": "ft.stack_state",
        "make_fx": "ft.make_jaxpr",
        "host_callback": "ft.io_callback",
        "save": "ft.io.save",
        "load": "ft.io.load",
        "manual_seed": "ft.random.key",
        "randn": "ft.random.normal",
        "rand": "ft.random.uniform",
        "from_numpy": "ft.numpy.asarray",
        "experimental_io_callback": "ft.io_callback",
    },
    "functorch_like.numpy": {
        "asnumpy": "np.asarray",
        "cat": "fnp.concatenate",
        "tensor": "fnp.asarray",
        "from_numpy": "fnp.asarray",
        "mm": "fnp.matmul",
        "bmm": "fnp.matmul",
        "product": "fnp.prod",
        "cumproduct": "fnp.cumprod",
        "alltrue": "fnp.all",
        "sometrue": "fnp.any",
        "round_": "fnp.round",
        "in1d": "fnp.isin",
        "trapz": "fnp.trapezoid",
        "row_stack": "fnp.vstack",
        "msort": "fnp.sort",
        "asfarray": "fnp.asarray",
        "ascontiguousarray": "fnp.asarray",
        "Inf": "fnp.inf",
        "Infinity": "fnp.inf",
        "NaN": "fnp.nan",
        "NAN": "fnp.nan",
        "random": "ft.random",
        "Array": "ft.Array",
        "DeviceArray": "ft.Array",
    },
    "functorch_like.extend": {
        "No": "extend.NotDefined",
        "Lin": "extend.UndefinedPrimal",
        "Axis": "extend.BatchAxis",
        "Sample": "extend.SampleInput",
        "running": "extend.set_current_trace",
        "tracing": "extend.new_trace",
    },
    "functorch_like.random": {
        "seed": "random.key",
        "new_key": "random.key",
        "default_rng": "random.key",
        "RandomState": "random.key",
        "Generator": "random.key",
        "randn": "random.normal",
        "standard_normal": "random.normal",
        "rand": "random.uniform",
        "random": "random.uniform",
        "integers": "random.randint",
        "shuffle": "random.permutation",
        "standard_t": "random.t",
    },
    "functorch_like.lax": {
        "tie_in": "lax.optimization_barrier",
        "for_loop": "lax.fori_loop",
        "while": "lax.while_loop",
        "matmul": "lax.dot",
        "sum": "lax.reduce_sum",
    },
    "functorch_like.nn": {
        "functional": "ft.nn",
        "gelu_tanh": "nn.gelu",
        "scaled_dot_product_attention": "nn.dot_product_attention",
        "logsigmoid": "nn.log_sigmoid",
        "hardtanh": "nn.hard_tanh",
        "hardswish": "nn.hard_swish",
        "hardsigmoid": "nn.hard_sigmoid",
    },
    "functorch_like.tree": {
        **{f"tree_{name}": f"tree.{name}" for name in (
            "all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten",
        )},
        "multimap": "tree.map",
    },
}  # fmt: skip

_LAYERS = "layers come from libraries such as equinox and flax, see docs/libraries.md; or write functions of parameters"
#: What PyTorch has under a name, and other libraries have for this package.
ELSEWHERE: dict[str, dict[str, str]] = {
    "functorch_like": {
        "optim": "optimisers come from optax, see docs/recipes/optimizers.md",
        "optimizers": "optimisers come from optax, see docs/recipes/optimizers.md",
        "utils": "batches and prefetching are in ft.data",
        "cuda": "ft.devices() lists the devices, and ft.device_put(x, device) moves an array",
    },
    "functorch_like.nn": dict.fromkeys(
        ("Module", "Linear", "Conv1d", "Conv2d", "Conv3d", "Sequential", "ModuleList", "Parameter", "Dropout", "ReLU",
         "LayerNorm", "BatchNorm1d", "BatchNorm2d", "Embedding", "LSTM", "GRU", "RNN", "Transformer",
         "MultiheadAttention", "Dense", "Conv"), _LAYERS),
}  # fmt: skip


def defined(module: types.ModuleType) -> set[str]:
    """The public names in a module's namespace: those of `__all__`, or what is not underscored and no tool."""
    namespace = vars(module)
    if "__all__" in namespace:
        return set(namespace["__all__"])
    is_package = "__path__" in namespace  # such as re-exports what its files define
    return {name for name, value in namespace.copy().items() if not name.startswith("_")
            and (_reexported(value) if is_package else _own(module, value))}  # fmt: skip


def _reexported(value: Any) -> bool:
    return not isinstance(value, types.ModuleType) and getattr(value, "__module__", "") not in _TOOLS


_TOOLS = ("__future__", "typing", "collections.abc")


def _own(module: types.ModuleType, value: Any) -> bool:
    return getattr(value, "__module__", None) == module.__name__ and not isinstance(value, TypeVar)


def missing(module: types.ModuleType, name: str) -> AttributeError:
    """Return the error for a name that a public module does not have."""
    text = f"module {module.__name__!r} has no attribute {name!r}"
    if not name.startswith("__"):
        renamed = RENAMED.get(module.__name__, {}).get(name)
        elsewhere = ELSEWHERE.get(module.__name__, {}).get(name)
        text += f"; use {renamed}" if renamed else f"; {elsewhere}" if elsewhere else nearest(name, dir(module))
    return AttributeError(text, name=name)  # without `obj`: Python would append a guess of its own


def attach(module: types.ModuleType) -> None:
    """Give a public module `__dir__` and `__getattr__`, by which `dir` and errors are as above."""
    namespace = vars(module)
    if "__getattr__" not in namespace:

        def get(name: str) -> Any:
            raise missing(module, name)

        namespace["__getattr__"] = get
    if "__dir__" not in namespace and type(module) is types.ModuleType:  # other classes of modules have their own
        namespace["__dir__"] = lambda: sorted(defined(module))
