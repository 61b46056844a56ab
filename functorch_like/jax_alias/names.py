"""The table of names: where the alias finds each module of JAX.

A module not listed is missing. Its sources are tried in turn for a name; ".x" is a file of the alias, "x" a module of
the package, "" the package itself. The table lists no internals of the package.
"""

from __future__ import annotations

from typing import NamedTuple

MODULES: dict[str, tuple[str, ...]] = {
    "jax": (".modules.root", ""),
    "jax.ad_checkpoint": (".modules.ad_checkpoint", ".modules.root", ""),
    "jax.api_util": (".modules.api_util",),
    "jax.cloud_tpu_init": (),
    "jax.core": (".modules.core",),
    "jax.ad": ("ad",),
    "jax.custom_batching": ("custom_batching",),
    "jax.custom_derivatives": (".modules.custom_derivatives", "custom_derivatives"),
    "jax.debug": (".modules.debug", "debug"),
    "jax.distributed": (".modules.distributed", "distributed"),
    "jax.dlpack": (".modules.dlpack",),
    "jax.dtypes": (".modules.dtypes", "dtypes"),
    "jax.errors": (".modules.errors", "errors"),
    "jax.example_libraries": (),
    "jax.example_libraries.optimizers": (".modules.optimizers",),
    "jax.example_libraries.stax": (".modules.stax",),
    "jax.experimental": (".modules.experimental",),
    "jax.experimental.array_serialization": (),
    "jax.experimental.array_serialization.serialization": (".modules.array_serialization",),
    "jax.experimental.buffer_callback": ("experimental.buffer_callback",),
    "jax.experimental.checkify": (".modules.checkify", "checkify"),
    "jax.experimental.compilation_cache": (),
    "jax.experimental.compilation_cache.compilation_cache": (".modules.compilation_cache",),
    "jax.experimental.jet": ("transforms.taylor.jet",),
    "jax.experimental.custom_partitioning": ("experimental.custom_partitioning",),
    "jax.experimental.hijax": (".modules.hijax",),
    "jax.experimental.key_reuse": (),
    "jax.experimental.layout": (".modules.layout",),
    "jax.experimental.mesh_utils": (".modules.mesh_utils",),
    "jax.experimental.multihost_utils": (".modules.multihost_utils", "multihost_utils"),
    "jax.experimental.compute_on": ("experimental.compute_on",),
    "jax.experimental.control_deps": ("experimental.control_deps",),
    "jax.experimental.profiler": (".modules.instructions_profile",),
    "jax.experimental.random": (".modules.stateful_random",),
    "jax.experimental.rnn": ("experimental.rnn",),
    "jax.experimental.scheduling_groups": ("experimental.scheduling_groups",),
    "jax.experimental.serialize_executable": ("experimental.serialize_executable",),
    "jax.experimental.shard_alike": ("experimental.shard_alike",),
    "jax.experimental.topologies": ("experimental.topologies",),
    "jax.experimental.xla_metadata": ("experimental.xla_metadata",),
    "jax.experimental.ode": ("experimental.ode",),
    "jax.experimental.pallas": ("experimental.pallas",),
    "jax.experimental.pallas.ops": (),
    "jax.experimental.pallas.ops.gpu": (),
    "jax.experimental.pallas.ops.gpu.attention": (".modules.pallas_ops.gpu_attention",),
    "jax.experimental.pallas.ops.gpu.decode_attention": (".modules.pallas_ops.decode_attention",),
    "jax.experimental.pallas.ops.gpu.layer_norm": (".modules.pallas_ops.normalization",),
    "jax.experimental.pallas.ops.gpu.paged_attention": (".modules.pallas_ops.gpu_paged_attention",),
    "jax.experimental.pallas.ops.gpu.rms_norm": (".modules.pallas_ops.normalization",),
    "jax.experimental.pallas.ops.gpu.softmax": (".modules.pallas_ops.normalization",),
    "jax.experimental.pallas.ops.tpu": (),
    "jax.experimental.pallas.ops.tpu.flash_attention": (".modules.pallas_ops.flash_attention",),
    "jax.experimental.pallas.ops.tpu.matmul": (".modules.pallas_ops.matmul",),
    "jax.experimental.pallas.ops.tpu.megablox": (".modules.pallas_ops.megablox",),
    "jax.experimental.pallas.ops.tpu.megablox.ops": (".modules.pallas_ops.megablox",),
    "jax.experimental.pallas.ops.tpu.paged_attention": (".modules.pallas_ops.paged_attention",),
    "jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel": (".modules.pallas_ops.paged_attention",),
    "jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils": (".modules.pallas_ops.quantized_pages",),
    "jax.experimental.pallas.ops.tpu.ragged_paged_attention": (".modules.pallas_ops.ragged_paged_attention",),
    "jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel": (".modules.pallas_ops.ragged_paged_attention",),
    "jax.experimental.pallas.ops.tpu.splash_attention": (
        ".modules.pallas_ops.splash_attention",
        ".modules.pallas_ops.splash_masks",
    ),
    "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel": (
        ".modules.pallas_ops.splash_attention",
    ),
    "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask": (".modules.pallas_ops.splash_masks",),
    "jax.experimental.pallas.tpu": ("experimental.pallas.tpu",),
    "jax.experimental.pallas.triton": ("experimental.pallas.triton",),
    "jax.experimental.pjit": (".modules.pjit",),
    "jax.experimental.shard_map": (".modules.experimental",),
    "jax.experimental.sparse": ("experimental.sparse",),
    "jax.experimental.sparse.ad": (".modules.sparse.ad",),
    "jax.experimental.sparse.api": (".modules.sparse.api",),
    "jax.experimental.sparse.bcoo": (".modules.sparse.bcoo",),
    "jax.experimental.sparse.bcsr": (".modules.sparse.bcsr",),
    "jax.experimental.sparse.coo": (".modules.sparse.coo",),
    "jax.experimental.sparse.csr": (".modules.sparse.csr",),
    "jax.experimental.sparse.linalg": ("experimental.sparse.linalg",),
    "jax.experimental.sparse.random": (".modules.sparse.random",),
    "jax.experimental.sparse.transform": (".modules.sparse.transform",),
    "jax.experimental.sparse.util": (".modules.sparse.util",),
    "jax.export": (".modules.export", "export"),
    "jax.extend": (),
    "jax.extend.backend": (".modules.backend",),
    "jax.extend.core": (".modules.core",),
    "jax.extend.core.primitives": (".modules.core_primitives",),
    "jax.extend.ifrt_programs": (".modules.ifrt_programs",),
    "jax.extend.linear_util": (".modules.linear_util",),
    "jax.extend.lowering": (".modules.lowering",),
    "jax.extend.mlir": (".modules.extend_mlir",),
    "jax.extend.mlir.dialects": (),
    "jax.extend.random": (".modules.random_impl", ".modules.random"),
    "jax.extend.sharding": (".modules.extend_sharding",),
    "jax.extend.source_info_util": (".modules.source_info",),
    "jax.ffi": (".modules.ffi", "ffi"),
    "jax.flatten_util": (".modules.flatten_util",),
    "jax.image": ("image",),
    "jax.interpreters": (),
    "jax.interpreters.ad": (".modules.ad",),
    "jax.interpreters.batching": (".modules.batching",),
    "jax.interpreters.mlir": (".modules.mlir",),
    "jax.interpreters.partial_eval": (".modules.partial_eval",),
    "jax.interpreters.pxla": (".modules.pxla", ".modules.mesh_utils"),
    "jax.interpreters.xla": (".modules.xla", ".modules.core"),
    "jax.lax": (".modules.lax", "lax"),
    "jax.lax.linalg": (".modules.lax_linalg", "lax.linalg", ".modules.core_primitives"),
    "jax.lib": (),
    "jax.lib.xla_bridge": (".modules.backend",),
    "jax.memory": (".modules.memory",),
    "jax.monitoring": (".modules.monitoring",),
    "jax.nn": ("nn",),
    "jax.nn.initializers": (".modules.initializers", "nn.initializers"),
    "jax.numpy": (".modules.numpy", "numpy"),
    "jax.numpy.fft": ("numpy.fft",),
    "jax.numpy.linalg": (".modules.linalg", "numpy.linalg"),
    "jax.ops": ("ops",),
    "jax.profiler": (".modules.profiler", "profiler"),
    "jax.random": (".modules.random", "random"),
    "jax.ref": ("ref",),
    "jax.scipy": (),
    "jax.scipy.cluster": (),
    "jax.scipy.cluster.vq": ("scipy.cluster.vq",),
    "jax.scipy.fft": ("scipy.fft",),
    "jax.scipy.integrate": ("scipy.integrate",),
    "jax.scipy.interpolate": ("scipy.interpolate",),
    "jax.scipy.linalg": ("scipy.linalg",),
    "jax.scipy.ndimage": (".modules.ndimage", "scipy.ndimage"),
    "jax.scipy.optimize": ("scipy.optimize",),
    "jax.scipy.signal": (".modules.signal", "scipy.signal"),
    "jax.scipy.sparse": (),
    "jax.scipy.sparse.linalg": ("scipy.sparse.linalg",),
    "jax.scipy.spatial": (),
    "jax.scipy.spatial.transform": ("scipy.spatial.transform",),
    "jax.scipy.special": (".modules.special", "scipy.special"),
    "jax.scipy.stats": ("scipy.stats",),
    "jax.sharding": (".modules.sharding", "sharding"),
    "jax.stages": (".modules.stages", "transforms.jit_stages"),
    "jax.test_util": (".modules.test_util",),
    "jax.tree": (".modules.tree",),
    "jax.tree_util": (".modules.tree_util", "tree_util"),
    "jax.typing": (".modules.typing", "typing"),
    "jax.version": (".modules.root",),
}

#: Families of distributions, each a module of `jax.scipy.stats`.
DISTRIBUTIONS = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
)  # fmt: skip
MODULES.update({f"jax.scipy.stats.{name}": (f"scipy.stats.{name}",) for name in DISTRIBUTIONS})

#: Modules of `jaxlib.mlir` under JAX's names: the same module objects, so that their types are the same.
JAXLIB = {
    "jax.extend.mlir.ir": "ir",
    "jax.extend.mlir.passmanager": "passmanager",
    "jax.interpreters.mlir.ir": "ir",
    "jax._src.interpreters.mlir.ir": "ir",
    "jax._src.lib.mlir.dialects.hlo": "dialects.stablehlo",
    "jax._src.lib.mlir.ir": "ir",
    **{
        f"jax.extend.mlir.dialects.{name}": f"dialects.{name}"
        for name in (
            "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "stablehlo",
            "vector",
        )
    },
}  # fmt: skip
MODULES.update(dict.fromkeys(JAXLIB, ()))

#: Private modules of JAX that public libraries (jax-finufft, qwix) use in place of the public ones.
MODULES.update(
    {f"jax._src.interpreters.{name}": MODULES[f"jax.interpreters.{name}"] for name in ("ad", "batching", "mlir")}
)
MODULES["jax._src.numpy.indexing"] = (".modules.indexing",)  # for qwix
MODULES["jax._src.numpy.util"] = (".modules.numpy_util",)  # for cuthbert and saiunit
MODULES["jax._src.nn.functions"] = MODULES["jax.nn"]  # for sbijax
MODULES["jax._src.scipy.special"] = MODULES["jax.scipy.special"]  # for jaxns
MODULES["jax._src.lax.linalg"] = MODULES["jax.lax.linalg"]  # for unxt
MODULES["jax._src.lax.lax"] = MODULES["jax.lax"]  # for JAX's page on primitives
MODULES["jax._src.api"] = MODULES["jax"]  # for JAX's page on primitives


class Private(NamedTuple):
    """A private name of JAX that a public library needs.

    Attributes:
        public: the module in which the alias finds it.
        libraries: the libraries that need it.
    """

    public: str
    libraries: str


#: Private names of JAX, each with the module that has it and the libraries that need it. All others are missing.
PRIVATE: dict[str, Private] = {
    "jax._src.ad_util.Zero": Private("jax.interpreters.ad", "tesseract-jax"),
    "jax._src.ad_util.p2tz": Private("jax.interpreters.ad", "jax-finufft"),
    "jax._src.ad_util.stop_gradient_p": Private("jax.extend.core.primitives", "chex"),
    "jax._src.api_util.debug_info": Private("jax.api_util", "equinox"),
    "jax._src.ad_checkpoint.saved_residuals": Private("jax.ad_checkpoint", "haliax"),
    "jax._src.api_util.infer_argnums_and_argnames": Private("jax.api_util", "e3nn-jax"),
    "jax._src.basearray.Array": Private("jax", "jinns"),
    "jax._src.checkify.checkify": Private("jax.experimental.checkify", "flax"),
    "jax._src.checkify.user_checks": Private("jax.experimental.checkify", "flax"),
    "jax._src.core.ShapedArray": Private("jax.core", "numpyro, quax"),
    "jax._src.core.AbstractValue": Private("jax.core", "quax"),
    "jax._src.core.DropVar": Private("jax.extend.core", "oryx"),
    "jax._src.core.JaxprEqn": Private("jax.extend.core", "brainstate, pennylane"),
    "jax._src.core.Primitive": Private("jax.extend.core", "quax"),
    "jax._src.core.Trace": Private("jax.core", "quax"),
    "jax._src.core.TraceTag": Private("jax.extend.core", "quax"),
    "jax._src.core.Tracer": Private("jax.core", "quax"),
    "jax._src.core.Var": Private("jax.extend.core", "brainstate, pennylane"),
    "jax._src.core.concrete_or_error": Private("jax.core", "dynamiqs"),
    "jax._src.core.full_lower": Private("jax.extend.core", "quax"),
    "jax._src.core.jaxpr_as_fun": Private("jax.extend.core", "quax"),
    "jax._src.core.set_current_trace": Private("jax.extend.core", "quax"),
    "jax._src.core.take_current_trace": Private("jax.extend.core", "quax"),
    "jax._src.pjit.auto_axes": Private("jax.sharding", "jaxns"),
    "jax._src.pjit.jit_p": Private("jax.extend.core.primitives", "quax"),
    "jax._src.core.get_aval": Private("jax.core", "flax, quax"),
    "jax._src.core.get_opaque_trace_state": Private("jax.extend.core", "flax"),
    "jax._src.core.trace_ctx": Private("jax.extend.core", "brainstate"),
    "jax._src.core.trace_state_clean": Private("jax.core", "flax"),
    "jax._src.core.unsafe_get_axis_names_DO_NOT_USE": Private("jax.extend.core", "equinox"),
    "jax._src.dispatch.apply_primitive": Private("jax.interpreters.xla", "celerite2"),
    "jax._src.dispatch.wait_for_tokens": Private("jax.extend.backend", "chex"),
    "jax._src.dtypes.TypePromotionError": Private("jax.dtypes", "jaxtyping"),
    "jax._src.dtypes.canonicalize_dtype": Private("jax.dtypes", "flax"),
    "jax._src.dtypes.result_type": Private("jax.dtypes", "optree"),
    "jax._src.dtypes.to_complex_dtype": Private("jax.dtypes", "tinygp"),
    "jax._src.distributed.global_state": Private("jax.distributed", "orbax"),
    "jax._src.flatten_util.ravel_pytree": Private("jax.flatten_util", "mctx"),
    "jax._src.interpreters.ad.CustomVJPException": Private("jax.interpreters.ad", "diffrax"),
    "jax._src.lib._jax.PjitFunction": Private("jax.extend.backend", "qwix"),
    "jax._src.lib.xla_client.XlaRuntimeError": Private("jax.extend.backend", "dynamiqs"),
    "jax._src.lax.control_flow.scan": Private("jax.lax", "pytensor"),
    "jax._src.literals.LiteralArray": Private("jax.extend.core", "orbax"),
    "jax._src.literals.TypedNdArray": Private("", "jaxlib"),
    "jax._src.mesh.get_concrete_mesh": Private("jax.interpreters.pxla", "haliax"),
    "jax._src.mesh.thread_resources": Private("jax.interpreters.pxla", "levanter"),
    "jax._src.named_sharding.check_pspec": Private("", "jaxlib"),
    "jax._src.sharding_impls.make_single_device_sharding": Private("", "jaxlib"),
    "jax._src.sharding_impls.UNSPECIFIED": Private("jax.interpreters.pxla", "brainstate"),
    "jax._src.source_info_util.current": Private("jax.extend.source_info_util", "brainstate"),
    "jax._src.numpy.ufuncs.ufunc": Private("jax.numpy", "esquilax"),
    "jax._src.numpy.einsum._einsum": Private("jax.numpy", "haliax"),
    "jax._src.public_test_util.check_close": Private("jax.test_util", "tinygp"),
    "jax._src.random.PRNGKey": Private("jax.random", "levanter"),
    "jax._src.state.indexing.Slice": Private("jax.experimental.pallas", "haliax"),
    "jax._src.state.types.AbstractRef": Private("jax.ref", "flax"),
    "jax._src.traceback_util.api_boundary": Private("jax.extend.source_info_util", "flax"),
    "jax._src.traceback_util.include_frame": Private("jax.extend.source_info_util", "equinox"),
    "jax._src.traceback_util.register_exclusion": Private("jax.extend.source_info_util", "flax, equinox, haiku"),
    "jax._src.tree_util._registry": Private("jax.tree_util", "flax, jaxlie"),
    "jax._src.tree_util.flatten_one_level": Private("jax.tree_util", "orbax, penzai"),
    "jax._src.util.HashablePartial": Private("jax.tree_util", "flax"),
    "jax._src.core.safe_map": Private("jax.api_util", "oryx"),
    "jax._src.core.safe_zip": Private("jax.api_util", "oryx"),
    "jax._src.util.safe_map": Private("jax.api_util", "oryx, programs after JAX's tutorial of interpreters"),
    "jax._src.util.safe_zip": Private("jax.api_util", "oryx"),
    "jax._src.util.split_list": Private("jax.api_util", "oryx"),
    "jax._src.util.unzip2": Private("jax.api_util", "oryx"),
    "jax._src.xla_bridge.get_backend": Private("jax.extend.backend", "keras"),
    "jax._src.xla_bridge._backends": Private("jax.extend.backend", "equinox"),
}
