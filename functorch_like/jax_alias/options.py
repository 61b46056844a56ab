"""Parameters of JAX's functions that have no effect here, or another name.

The functions in these tables take them; all others stay as they are. `out_sharding` has an effect where a mesh is in
force: results are split as it says.
"""

from __future__ import annotations

import functools
import types
from ast import literal_eval
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from functorch_like.errors import ArgumentError

_PLACED = "bincount broadcast_to dot matmul matvec percentile ravel repeat reshape tensordot vdot vecdot vecmat"
_DRAWN = (
    "ball bernoulli beta binomial bits categorical cauchy chisquare dirichlet double_sided_maxwell exponential f gamma "
    "generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell multinomial multivariate_normal "
    "normal orthogonal pareto permutation poisson rademacher randint rayleigh t triangular truncated_normal uniform "
    "wald weibull_min"
)
_LAX_PLACED = (
    "broadcast broadcast_in_dim broadcasted_iota conv_general_dilated dot dot_general empty full full_like gather iota "
    "ragged_dot ragged_dot_general reduce reduce_sum reshape rng_bit_generator split"
)
_SPARSE_PLACED = (
    "bcoo_broadcast_in_dim bcoo_conv_general_dilated bcoo_dot_general bcoo_reshape bcsr_broadcast_in_dim "
    "bcsr_dot_general"
)
_ROUNDED = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh"
_CHECKED = (
    "cho_factor cho_solve cholesky det eigh hessenberg inv lu lu_factor lu_solve qr qr_multiply rsf2csf solve "
    "solve_triangular svd"
)

_UFUNCS = (
    "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum "
    "multiply negative subtract"
)

#: Module, its functions, and those parameters that have no effect on results.
IGNORED: tuple[tuple[str, str, str], ...] = (
    ("jax", "grad linear_transpose value_and_grad vjp", "reduce_axes"),
    ("jax", "pmap", "backend"),
    ("jax.debug", "callback log print", "partitioned"),
    ("jax.debug", "log print", "skip_format_check _use_logging"),
    ("jax.distributed", "initialize", "partition_index slice_index"),
    ("jax.export", "export", "disabled_checks"),
    ("jax.export", "register_pytree_node_serialization", "from_children"),
    ("jax.numpy", _PLACED, "out_sharding"),
    ("jax.numpy.linalg", "tensordot matmul", "out_sharding"),
    ("jax.lax", _LAX_PLACED, "out_sharding"),
    ("jax.lax", _ROUNDED, "accuracy"),
    ("jax.lax", "all_gather", "to"),
    ("jax.lax", "scan", "_split_transpose"),
    ("jax.lax", "gather", "mode_hint"),
    ("jax.lax", "reduce_max reduce_min", "out_sharding"),
    ("jax.lax", "top_k", "is_stable"),
    ("jax.lax.linalg", "eig", "enable_eigvec_derivs implementation use_magma"),
    ("jax.lax.linalg", "eigh", "implementation"),
    ("jax.lax.linalg", "qr", "use_magma"),
    ("jax.experimental.sparse", _SPARSE_PLACED, "out_sharding sharding"),
    ("jax.lax", "full full_like", "sharding"),
    ("jax.nn", "standardize", "algorithm"),
    ("jax.nn", "scaled_dot_general", "implementation"),
    ("jax.nn.initializers", "ones zeros", "out_sharding"),
    ("jax.profiler", "device_memory_profile save_device_memory_profile", "backend"),
    ("jax.profiler", "start_trace trace", "create_perfetto_link create_perfetto_trace profiler_options"),
    ("jax.ops", "segment_max segment_min segment_prod segment_sum", "out_sharding"),
    ("jax.random", _DRAWN, "out_sharding"),
    ("jax.ref", "swap", "_function_name"),
    ("jax.random", "beta chisquare gamma loggamma poisson", "method"),
    ("jax.scipy.linalg", _CHECKED, "overwrite_a overwrite_b overwrite_c check_finite lwork lapack_driver turbo debug"),
    ("jax.scipy.linalg", "polar", "method eps max_iterations"),
    ("jax.scipy.linalg", "solve_sylvester", "method tol"),
    ("jax.scipy.linalg", "expm_frechet", "method"),
    ("jax.scipy.linalg", "sqrtm", "blocksize"),
    ("jax.scipy.linalg", "eigh_tridiagonal", "tol"),
    ("jax.scipy.sparse.linalg", "gmres", "solve_method"),
    ("jax.scipy.special", "log_ndtr", "series_order"),
)

#: Module, its functions, and parameters that take nothing but their default, here as in JAX: "name=default".
FIXED: tuple[tuple[str, str, str], ...] = (
    ("jax", "vmap", "sum_match=False"),
    ("jax.lax.linalg", "tridiagonal_solve", "perturb_singular=False"),
    ("jax.numpy", "isneginf isposinf", "out=None"),
    ("jax.numpy", _UFUNCS, "out=None where=None"),
    ("jax.scipy.linalg", "eigh", "eigvals=None"),
    ("jax.scipy.linalg", "funm", "disp=True"),
)

_SWITCHES = "check_tracer_leaks debug_infs debug_nans log_compiles no_tracing"

#: Module, its functions, and parameters that have another name here: "JAX's=name here". A number is a position.
RENAMED: tuple[tuple[str, str, str], ...] = (
    ("jax", _SWITCHES, "new_val=enable"),
    ("jax", "default_device", "new_val=device"),
    ("jax", "default_matmul_precision", "new_val=precision"),
    ("jax", "reshard", "xs=x"),
    ("jax", "shard_map", "f=fun"),
    ("jax.export", "is_symbolic_dim", "p=0"),
    ("jax.export", "symbolic_shape", "shape_spec=shape"),
    ("jax.dtypes", "iinfo", "int_type=dtype"),
    ("jax.dtypes", "issubdtype", "a=dtype b=kind"),
    ("jax.lax", "igamma igamma_grad_a igammac", "a=0 x=1"),
    ("jax.lax", "nextafter", "x1=0 x2=1"),
    ("jax.lax", "zeta", "x=0 q=1"),
    ("jax.numpy", "empty_like", "prototype=a"),
    ("jax.numpy", "fmax fmin gcd lcm", "x1=0 x2=1"),
    ("jax.numpy", "iinfo", "int_type=dtype"),
    ("jax.numpy", "issubdtype", "arg1=dtype arg2=kind"),
    ("jax.numpy.linalg", "cholesky", "a=0"),
    ("jax.numpy.linalg", "matrix_rank", "M=A"),
    ("jax.profiler", "save_device_memory_profile", "filename=file"),
    ("jax.profiler", "trace", "log_dir=directory"),
    ("jax.scipy.special", "kl_div rel_entr", "p=0 q=1"),
    ("jax.scipy.stats.gumbel_l", "ppf", "p=0"),
    ("jax.scipy.stats.logistic", "isf ppf", "x=0"),
    ("jax.scipy.special", "loggamma", "x=0"),
    ("jax.scipy.special", "ndtri", "p=0"),
    ("jax.scipy.stats.gumbel_l", "ppf", "p=q"),
    ("jax.scipy.stats.gumbel_r", "ppf", "p=q"),
    ("jax.scipy.stats.logistic", "isf ppf", "x=q"),
    ("jax.sharding", "reshard", "xs=x"),
    ("jax.tree", "reduce", "function=f"),
    ("jax.tree_util", "is_tree_node", "typ=0"),
    ("jax.tree_util", "tree_reduce", "function=f"),
    ("jax.tree_util", "keystr", "keys=path"),
)


class Adaption(NamedTuple):
    """Parameters of one function of JAX that its counterpart here does not have.

    Attributes:
        ignored: names of those that have no effect.
        renamed: names in JAX, each with the name here or its position, in order.
        fixed: names of those that take their default only, each with it.
    """

    ignored: tuple[str, ...]
    renamed: dict[str, str]
    fixed: dict[str, Any]


@functools.cache
def _table() -> dict[tuple[str, str], Adaption]:
    table: dict[tuple[str, str], Adaption] = defaultdict(lambda: Adaption((), {}, {}))
    for module, names, options in IGNORED:
        for name in names.split():
            known = table[module, name]
            table[module, name] = known._replace(ignored=(*known.ignored, *options.split()))
    for module, names, pairs in RENAMED:
        for name in names.split():
            table[module, name] = table[module, name]._replace(renamed=dict(pair.split("=") for pair in pairs.split()))
    for module, names, pairs in FIXED:
        defaults = {name: literal_eval(value) for name, value in (pair.split("=") for pair in pairs.split())}
        for name in names.split():
            table[module, name] = table[module, name]._replace(fixed=defaults)
    return dict(table)


def adapted(module: str, name: str, fun: Any) -> Any:
    """Return a function that takes JAX's parameters, or `fun` itself if the tables have no entry for it."""
    if (module, name) not in _table() or not callable(fun) or isinstance(fun, type):
        return fun
    return _adapted(module, name, fun)


@functools.cache
def _adapted(module: str, name: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    ignored, renamed, fixed = _table()[module, name]

    positions = [name for name, here in renamed.items() if here.isdigit()]
    places = "out_sharding" in ignored

    @functools.wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        where = None
        if kwargs:
            where = kwargs.get("out_sharding") if places else None
            for option, default in fixed.items():
                if kwargs.pop(option, default) is not default:
                    raise ArgumentError(f"{module}.{name} takes {option}={default} only", fix="leave it out")
            args = (*args, *(kwargs.pop(name) for name in positions if name in kwargs))
            kwargs = {renamed.get(name, name): value for name, value in kwargs.items() if name not in ignored}
        return fun(*args, **kwargs) if where is None else _placed(lambda: fun(*args, **kwargs), where)

    called.__module__, called.__qualname__ = module, name  # pickle finds it by these
    return _without_closure(called)


def _call(*args: Any, **kwargs: Any) -> Any:
    return _called(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore


def _without_closure(called: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that closes over nothing: libraries put other code in the place of `f.__code__`."""
    plain = types.FunctionType(_call.__code__, {"__name__": __name__, "_called": called}, called.__name__)
    return functools.update_wrapper(plain, called)


def _placed(call: Callable[[], Any], where: Any) -> Any:
    from functorch_like.jax_alias.modules.sharding import split_result  # which needs this file

    return split_result(call, where)
