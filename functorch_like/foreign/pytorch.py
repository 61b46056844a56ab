"""Names of PyTorch 2 beyond arrays and layers (compiler, processes, export, tools), and what has the same here."""

from __future__ import annotations

_BARE = "with ft.disable_jit(): functions run as plain Python; ft.pure_callback calls one plain function inside of jit"
_NOT_TRACED = (
    "all functions of fnp and ft are traced, and Python's own run while tracing; ft.pure_callback calls others"
)
_SIZES = "ft.jit(f, buckets=...) serves sizes that vary with one program; see docs/control_flow.md"
_LIMITS = "ft.testing.count_compiles() counts programs; ft.explain(f)(x) says why each was compiled"
_COMPILED = "ft.explain(f)(x) lists what is traced and compiled, and why; ft.log_compiles() logs it"
_KEYS = "a key is the state: ft.random.key(seed); pass keys on, and split them"
_MESH = "use ft.make_mesh((2, 4), ('data', 'model'))"
_PLACED = "use ft.device_put(x, ft.sharding.NamedSharding(mesh, ft.sharding.PartitionSpec('data')))"
_FSDP = "use ft.parallel.data_parallel(step, state=ft.parallel.fsdp_shardings(state, mesh))"
_DDP = "use ft.parallel.data_parallel(step)"
_TENSOR_PARALLEL = (
    "shard the parameters, ft.sharding.NamedSharding, and ft.jit splits the products; see docs/sharding.md"
)
_MANUAL = "inside of ft.shard_map"
_CHECKPOINTS = "use ft.io.save(path, tree), ft.io.load(path), or ft.io.CheckpointManager; arrays keep their shardings"
_NO_GROUPS = "axes of a mesh are the groups: ft.lax.psum(x, 'data') inside of ft.shard_map"
_EXPORTED = "ft.export.export(ft.jit(f))(x).serialize() gives bytes, and ft.export.deserialize reads them"
_SYMBOLIC = "ft.ShapeDtypeStruct(ft.export.symbolic_shape('b, 3'), 'float32') stands for an argument with any b"
_CUSTOM = "ft.custom_vjp or ft.custom_jvp give a function a derivative, ft.custom_batching.custom_vmap a batched form"
_HOST = "ft.pure_callback calls a Python function, ft.ffi.ffi_call a compiled one; " + _CUSTOM
_KEPT = "ft.checkpoint(f, policy=...), with a policy of ft.checkpoint_policies"
_TIMER = "use timeit, with .block_until_ready() on the results; see docs/recipes/profiling.md"
_MARKED = "use ft.profiler.TraceAnnotation(name), or ft.named_scope(name)"
_CHECKED = "use ft.testing.check_grads(f, args, order=2)"
_SPLIT = "shuffle positions, ft.random.permutation(key, n), and index the arrays with parts of them"
_SCALED = "use ft.amp.scaled_value_and_grad"
_NANS = "with ft.debug.nans(): the operation that gives a NaN raises"
_CLIPPED = "see docs/recipes/optimizers.md, or optax.clip_by_global_norm"

_COMPILER = {
    "disable": _BARE,
    "set_stance": "ft.disable_jit() runs functions without compiling; " + _LIMITS,
    **dict.fromkeys(("allow_in_graph", "substitute_in_graph", "nested_compile_region"), _NOT_TRACED),
    "assume_constant_result": "Python's values are constants of a trace, and so are arrays that a function closes over",
    **dict.fromkeys(("is_compiling", "is_dynamo_compiling", "is_exporting"),
                    "isinstance(x, ft.extend.Tracer) is true of traced values"),
    "reset": "use ft.clear_caches()",
    "list_backends": "XLA compiles all programs",
    "cudagraph_mark_step_begin": "leave it out: results are new arrays, and no call overwrites them",
    "config": "options of the compiler are ft.jit(f, compiler_options=...), and settings are in ft.backends",
    "wrap_numpy": "use fnp in place of np",
    **dict.fromkeys(("save_cache_artifacts", "load_cache_artifacts"),
                    "compiled programs are on disk already: ft.backends.cache"),
}  # fmt: skip
_GROUPS = {
    "is_available": "it is always available",
    "get_backend": "CPUs use Gloo, and GPUs NCCL",
    **dict.fromkeys(("get_local_rank", "get_node_local_rank"),
                    "ft.local_devices() are the devices of a process, and ft.process_index() is its number"),
    **dict.fromkeys(("new_group", "new_subgroups", "group", "GroupMember", "ProcessGroup"), _NO_GROUPS),
    "reduce": f"use ft.lax.psum(x, axis_name) {_MANUAL}",
    "ReduceOp": f"ft.lax.psum, ft.lax.pmean, ft.lax.pmax and ft.lax.pmin reduce {_MANUAL}",
    "gather": f"use ft.lax.all_gather(x, axis_name) {_MANUAL}",
    "all_gather_into_tensor": f"use ft.lax.all_gather(x, axis_name, tiled=True) {_MANUAL}",
    "reduce_scatter_tensor": f"use ft.lax.psum_scatter(x, axis_name, tiled=True) {_MANUAL}",
    "all_to_all_single": f"use ft.lax.all_to_all(x, axis_name, split_axis, concat_axis) {_MANUAL}",
    "scatter": _PLACED,
    **dict.fromkeys(("isend", "irecv", "P2POp", "batch_isend_irecv"),
                    f"use ft.lax.ppermute(x, axis_name, pairs) {_MANUAL}"),
    **dict.fromkeys(("all_gather_object", "gather_object"), "use ft.multihost_utils.process_allgather(arrays)"),
    **dict.fromkeys(("broadcast_object_list", "scatter_object_list"),
                    "use ft.multihost_utils.broadcast_one_to_all(tree)"),
    "monitored_barrier": "use ft.multihost_utils.sync_global_devices(name)",
    **dict.fromkeys(("init_device_mesh", "DeviceMesh", "device_mesh"), _MESH),
    **dict.fromkeys(("tensor", "DTensor", "distribute_tensor", "distribute_module"), _PLACED),
    **dict.fromkeys(("fsdp", "FSDP", "fully_shard", "FullyShardedDataParallel"), _FSDP),
    "DistributedDataParallel": _DDP,
    "checkpoint": _CHECKPOINTS,
    "torchrun": "use python -m functorch_like.distributed.run --nproc 4 train.py",
    **dict.fromkeys(("TCPStore", "FileStore", "Store", "rendezvous"),
                    "the launcher's coordinator connects processes: ft.distributed.initialize(address)"),
    "pipelining": "ft.lax.ppermute hands values to the next stage; functorch_like/examples/pipeline.py has a pipeline",
    "optim": "states of optimisers are split as the parameters are: ft.parallel.fsdp_shardings(state, mesh)",
    "rpc": "processes run the same program on one mesh: ft.shard_map, ft.multihost_utils",
}  # fmt: skip

#: By the module in which users look for them.
TORCH: dict[str, dict[str, str]] = {
    "functorch_like": {
        "_dynamo": _COMPILED,
        "_inductor": "options of the compiler are ft.jit(f, compiler_options=...); ft.jit(f).lower(x) shows programs",
        "_logging": _COMPILED,
        "library": _HOST,
        **dict.fromkeys(("gradcheck", "gradgradcheck"), _CHECKED),
        "autograd": "a derivative belongs to a function: ft.grad(f), ft.vjp(f, x), ft.jvp(f, (x,), (dx,)); "
                    "Function is ft.custom_vjp, detect_anomaly ft.debug.nans, gradcheck ft.testing.check_grads, "
                    "saved_tensors_hooks ft.checkpoint(f, policy=...)",
        "utils": "dlpack is fnp.from_dlpack, checkpoint ft.checkpoint, data.DataLoader ft.data.batches and "
                 "ft.data.prefetch, benchmark timeit",
        "cuda": "ft.devices() lists the devices, and ft.device_put(x, device) moves an array; memory is "
                "ft.profiler.memory_stats(), amp ft.autocast",
        "get_default_dtype": "it is fnp.ones(1).dtype",
        "are_deterministic_algorithms_enabled": "use ft.backends.are_deterministic_algorithms_enabled()",
        "is_grad_enabled": "derivatives are taken by ft.grad(f), and of nothing else",
        "is_inference_mode_enabled": "nothing is recorded outside of ft.grad",
        **dict.fromkeys(("seed", "initial_seed", "get_rng_state", "set_rng_state", "Generator"), _KEYS),
        "tensor_split": "use fnp.array_split",
        "chunk": "use fnp.array_split(x, n)",
        "special": "use ft.scipy.special",
        "sparse": "use ft.experimental.sparse; see docs/sparse.md",
        "Size": "shapes are tuples",
        "device": 'devices are ft.devices(), or names: "cpu", "gpu"',
        **dict.fromkeys(("accelerator", "mps", "xpu"),
                        "ft.devices() lists the devices, and ft.device_put(x, device) moves an array"),
        **dict.fromkeys(("set_num_threads", "get_num_threads"),
                        "use ft.backends.cpu.num_threads, or FT_CPU_THREADS in the environment"),
        **dict.fromkeys(("memory_format", "channels_last", "contiguous_format", "layout", "strided"),
                        "XLA chooses layouts: leave it out"),
        **dict.fromkeys(("onnx", "package", "fx"), _EXPORTED + "; see docs/shipping.md"),
        **dict.fromkeys(("quantization", "ao"), "use functorch_like.nn.quantization; see docs/quantization.md"),
        "multiprocessing": "use multiprocessing with the method 'spawn'; see docs/differences.md",
        **{name: f"dtypes are strings: {dtype!r}" for name, dtype in (
            ("long", "int64"), ("double", "float64"), ("half", "float16"), ("uint16", "uint16"), ("uint32", "uint32"),
            ("uint64", "uint64"), ("cfloat", "complex64"), ("float8_e4m3fn", "float8_e4m3fn"),
        )},
    },
    "functorch_like.compiler": _COMPILER,
    "functorch_like.distributed": _GROUPS,
    "functorch_like.sharding": {
        **dict.fromkeys(("init_device_mesh", "DeviceMesh"), _MESH),
        **dict.fromkeys(("DTensor", "distribute_tensor"), _PLACED),
        "Replicate": "use ft.sharding.PartitionSpec()",
        "Partial": f"ft.lax.psum adds partial sums up {_MANUAL}; under ft.jit XLA does",
    },
    "functorch_like.parallel": {
        "FSDP": _FSDP,
        "DDP": _DDP,
        **dict.fromkeys(("parallelize_module", "ColwiseParallel", "RowwiseParallel", "SequenceParallel"),
                        _TENSOR_PARALLEL),
        "pipeline": _GROUPS["pipelining"],
    },
    "functorch_like.io": {
        "async_save": "use ft.io.save_async(path, tree)",
        **dict.fromkeys(("save_state_dict", "load_state_dict", "dcp", "FileSystemReader", "FileSystemWriter",
                         "get_state_dict", "set_state_dict"), _CHECKPOINTS),
        "save_file": "use ft.io.save(path, tree), which writes safetensors",
        "load_file": "use ft.io.load(path), which reads safetensors",
    },
    "functorch_like.export": {
        "Dim": _SYMBOLIC,
        "ShapesCollection": _SYMBOLIC,
        **dict.fromkeys(("save", "load"), _EXPORTED),
        "ExportedProgram": "use ft.export.Exported",
        "draft_export": "ft.export.export(ft.jit(f))(x); an error names the line that cannot be traced",
        "register_dataclass": "use ft.tree_util.register_dataclass",
        "unflatten": "the exported function takes and returns pytrees: exported.call(x)",
    },
    "functorch_like.checkpoint_policies": dict.fromkeys(
        ("CheckpointPolicy", "create_selective_checkpoint_contexts", "checkpoint", "checkpoint_sequential"), _KEPT),
    "functorch_like.profiler": {
        "record_function": _MARKED,
        "itt": _MARKED,
        "emit_nvtx": _MARKED,
        "ProfilerActivity": "leave it out: ft.profiler.profile() records all devices",
        **dict.fromkeys(("schedule", "tensorboard_trace_handler", "ExecutionTraceObserver"),
                        "ft.profiler.trace(folder) writes a trace of its block for TensorBoard and Perfetto"),
        "benchmark": _TIMER,
    },
    "functorch_like.extend": {
        **dict.fromkeys(("custom_op", "library", "triton_op", "Library", "define", "register_kernel"), _HOST),
        **dict.fromkeys(("register_autograd", "register_vmap", "setup_context"), _CUSTOM),
        "register_fake": "ft.pure_callback takes shapes and dtypes of the results",
    },
    "functorch_like.testing": {
        "assert_close": "use ft.testing.assert_allclose",
        "make_tensor": "use ft.random.normal(key, shape)",
        **dict.fromkeys(("gradcheck", "gradgradcheck", "opcheck"), _CHECKED),
        "Timer": _TIMER,
        "benchmark": _TIMER,
    },
    "functorch_like.data": {
        **dict.fromkeys(("random_split", "Subset", "SubsetRandomSampler"), _SPLIT),
        **dict.fromkeys(("DistributedSampler", "RandomSampler"),
                        "ft.data.batches(arrays, size, key, process=...) draws the parts of a process"),
        **dict.fromkeys(("IterableDataset", "default_collate", "ConcatDataset"),
                        "ft.data.prefetch takes any iterable of pytrees, and PyTorch's DataLoader"),
    },
    "functorch_like.nn": {
        "utils": _CLIPPED,
        **dict.fromkeys(("clip_grad_norm_", "clip_grad_value_"), _CLIPPED),
        "parallel": _DDP,
        "DataParallel": _DDP,
        "flex_attention": "use nn.dot_product_attention with bias= or mask=; XLA fuses them",
        "Buffer": "parameters and state are arguments and results of a function",
    },
    "functorch_like.random": dict.fromkeys(("manual_seed", "fork_rng", "get_rng_state", "set_rng_state"), _KEYS),
    "functorch_like.debug": {
        **dict.fromkeys(("leaks", "check_tracer_leaks"), "use with ft.checking_leaks():"),
        **dict.fromkeys(("anomaly_mode", "detect_anomaly", "set_detect_anomaly"), _NANS),
        "set_logs": _COMPILED,
        "benchmark": _TIMER,
    },
    "functorch_like.backends": {
        "quantized": "use functorch_like.nn.quantization; see docs/quantization.md",
        **dict.fromkeys(("nnpack", "kleidiai", "miopen", "python_native"),
                        "XLA compiles all programs; ft.backends.describe() lists the settings"),
    },
    "functorch_like.backends.compilation": {
        **dict.fromkeys(("error_on_recompile", "recompile_limit", "cache_size_limit", "fail_on_recompile_limit_hit"),
                        _LIMITS),
        **dict.fromkeys(("automatic_dynamic_shapes", "assume_static_by_default", "mark_dynamic"), _SIZES),
    },
    "functorch_like.backends.cuda": {
        "sdp_kernel": "nn.dot_product_attention(implementation=...) chooses",
    },
}  # fmt: skip
