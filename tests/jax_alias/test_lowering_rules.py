"""Primitives of libraries whose lowering rules build MLIR; results beside NumPy's."""

PRELUDE = """
import re
import jax, jax.numpy as jnp, numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import chlo, func, stablehlo as hlo
from jax.interpreters import ad, batching, mlir, xla

def primitive(rule=None, platform=None):
    made = Primitive("mine")
    made.def_abstract_eval(lambda x, **params: x)
    if rule is not None:
        mlir.register_lowering(made, rule, platform)
    return made

def failure(fun, *args):
    try:
        fun(*args)
    except Exception as error:
        line = str(error).splitlines()[0]
        return f"{type(error).__name__}: {re.sub('mine_[0-9]+', 'mine_N', line)}"
    raise AssertionError("nothing was raised")

x = np.linspace(-1, 2, 5, dtype=np.float32)
"""


def program(text):
    """Return a program of the prelude and a text of four spaces' indentation."""
    lines = [line.removeprefix("    ") for line in text.splitlines()]
    return PRELUDE + "\n".join(lines)


def test_the_modules_of_mlir_are_those_of_jaxlib(run):
    text = """
    import importlib, sys
    names = ["ir", "passmanager"] + ["dialects." + n for n in (
        "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "stablehlo",
        "vector")]
    import jax.extend.mlir as outer
    assert "jaxlib.mlir.ir" not in sys.modules  # until one of them is used
    for name in names:
        theirs = importlib.import_module("jax.extend.mlir." + name)
        ours = importlib.import_module("jaxlib.mlir." + name)
        assert theirs is ours and ours.__name__ == ours.__spec__.name == "jaxlib.mlir." + name, name
    from jax.extend.mlir.dialects import func
    assert outer.ir.Type is sys.modules["jaxlib.mlir.ir"].Type and outer.dialects.func is func
    from jax.interpreters import mlir
    with mlir.make_ir_context():
        module = outer.ir.Module.parse("func.func @main(%x: i32) -> i32 { return %x : i32 }")
    print(len(names), func.FuncOp is type(module.body.operations[0]))
    """
    assert run(text) == "14 True"


def test_rules_apply_under_every_transformation(run):
    text = """
    prim = primitive(
        lambda ctx, x, *, scale: [hlo.multiply(hlo.sine(x), mlir.full_like_aval(ctx, scale, ctx.avals_in[0]))])
    ad.primitive_jvps[prim] = lambda ps, ts, scale: (prim.bind(*ps, scale=scale), ts[0] * jnp.cos(ps[0]) * scale)
    batching.defvectorized(prim)
    f = lambda x: prim.bind(x, scale=2.0)
    close = lambda ours, wanted: np.testing.assert_allclose(ours, wanted, rtol=2e-6, atol=1e-6)
    for way in (lambda f: f, jax.jit):
        close(way(f)(x), 2 * np.sin(x))
        close(way(jax.vmap(f))(x.reshape(1, 5)), 2 * np.sin(x).reshape(1, 5))
        close(way(jax.grad(lambda x: f(x).sum()))(x), 2 * np.cos(x))
        close(way(jax.checkpoint(jax.vmap(jax.grad(f))))(x), 2 * np.cos(x))

    def loop(x):
        x, each = jax.lax.scan(lambda c, _: (0.5 * f(c) + 0.1, f(c)), x, None, length=4)
        return jax.lax.cond(x.sum() > 0, f, lambda x: -x, x), each

    c, each = x.astype(float), []
    for _ in range(4):
        each.append(2 * np.sin(c))
        c = np.sin(c) + 0.1
    last = 2 * np.sin(c) if c.sum() > 0 else -c
    for way in (lambda f: f, jax.jit):
        ours = way(loop)(x)
        close(ours[0], last)
        close(ours[1], each)
    many = jax.jit(lambda x: sum(f(x + i) for i in range(40)))  # parts of it become functions
    np.testing.assert_allclose(many(x), sum(2 * np.sin(x.astype(float) + i) for i in range(40)), atol=1e-5)
    """
    run(program(text))


def test_results_may_be_values_operations_or_sequences(run):
    text = """
    for rule in (
        lambda ctx, x: hlo.add(x, x),
        lambda ctx, x: hlo.AddOp(x, x),
        lambda ctx, x: hlo.AddOp(x, x).results,
        lambda ctx, x: ((hlo.add(x, x),),),
    ):
        np.testing.assert_array_equal(primitive(rule).bind(x), 2 * x)
    pair = primitive(lambda ctx, x: [hlo.negate(x), x])
    pair.multiple_results = True
    pair.def_abstract_eval(lambda x: [x, x])
    out = jax.jit(pair.bind)(x)
    np.testing.assert_array_equal(out, [-x, x])
    print(type(pair.bind(x)).__name__)
    """
    assert run(program(text)) == "list"


def test_a_rule_may_be_for_one_platform(run):
    text = """
    rules = {None: hlo.negate, "cpu": hlo.sine, "gpu": hlo.cosine, "cuda": hlo.cosine}
    one = Primitive("one")
    one.def_abstract_eval(lambda x: x)
    for platform, operation in rules.items():
        mlir.register_lowering(one, lambda ctx, x, operation=operation: [operation(x)], platform=platform)
    np.testing.assert_allclose(jax.jit(one.bind)(x), np.sin(x), rtol=1e-6)
    other = primitive(lambda ctx, x: [hlo.negate(x)], "tpu")
    print(failure(other.bind, x))
    other.def_impl(lambda *args, **params: xla.apply_primitive(other, *args, **params))
    print(failure(other.bind, x))
    mlir.register_lowering(other, lambda ctx, x: [hlo.negate(x)])
    np.testing.assert_array_equal(other.bind(x), -x)
    np.testing.assert_array_equal(jax.jit(other.bind)(x), -x)
    np.testing.assert_array_equal(xla.apply_primitive(other, x), -x)
    """
    message = "MissingRuleError: lowering of mine_N(f32[5]): the primitive mine has no lowering rule for cpu"
    assert run(program(text)).splitlines() == [message] * 2


def test_constants_keep_every_bit(run):
    text = """
    import ml_dtypes
    jax.config.update("jax_enable_x64", True)
    random = np.random.default_rng(0)
    values = [np.float32(3), np.float64(0.1), np.int64(-3), np.bool_(True), np.complex64(2j)]
    values += [np.arange(6.0).reshape(2, 3)]
    values += [np.zeros((0, 2)), np.zeros((0, 2), complex), np.ones((2, 2), bool), np.array([True, False])]
    values += [np.array([np.nan, -0.0, np.inf]), np.arange(6).reshape(3, 2).T, np.float16(2)]
    values += [random.integers(0, 2**31, 3).astype(t) for t in ("int8", "uint16", "uint64", "complex128", "float16")]
    values += [np.array([1.5, 2, 3], t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)]
    for value in values:
        value = np.asarray(value)
        made = primitive(lambda ctx, x: [mlir.ir_constant(value)])
        made.def_abstract_eval(lambda x: jax.core.ShapedArray(value.shape, value.dtype))
        ours = np.asarray(made.bind(x))
        assert ours.dtype == value.dtype and ours.shape == value.shape and ours.tobytes() == value.tobytes(), value
    numbers = primitive(lambda ctx, x: [mlir.ir_constant(2, aval=ctx.avals_out[0])])
    numbers.def_abstract_eval(lambda x: jax.core.ShapedArray((), x.dtype))
    assert numbers.bind(x) == 2 and numbers.bind(x).dtype == "float32"

    class Pair:
        pass

    mlir.register_constant_handler(Pair, lambda value, aval: [mlir.ir_constant(v) for v in (x, -x)])
    made = primitive(lambda ctx, x: [hlo.add(x, mlir.ir_constants(Pair())[1])])
    np.testing.assert_array_equal(made.bind(3 * x), 3 * x - x)
    print(failure(primitive(lambda ctx, x: [mlir.ir_constant("text")]).bind, x))
    """
    told = "DtypeError: mine_N(f32[5]): ir_constant: 'text' of type str is not an array with a value"
    assert run(program(text)) == told


def test_attributes_and_types(run):
    text = """
    cases = {
        "1 : i64": 1, "1.500000e+00 : f64": 1.5, "true": np.bool_(True), '"s"': "s", "3 : ui8": np.uint8(3),
        "2.000000e+00 : f16": np.float16(2), "f32": np.dtype("float32"), '[1, "a", []]': (1, "a", []),
        "{a = {b = 1 : i64}}": {"a": {"b": 1}}, "dense<[0, 1, 2]> : tensor<3xi32>": np.arange(3, dtype=np.int32),
        "dense<> : tensor<0xf32>": np.zeros(0, np.float32),
        "dense<[true, false]> : tensor<2xi1>": np.array([True, False]),
        '"bytes"': b"bytes",
    }
    def rule(ctx, x):
        for wanted, value in cases.items():
            assert str(mlir.ir_attribute(value)) == wanted, (wanted, str(mlir.ir_attribute(value)))
        assert ir.Attribute.parse("1 : i8") == mlir.ir_attribute(ir.Attribute.parse("1 : i8"))
        assert str(mlir.i32_attr(3)) == "3 : i32" and str(mlir.i64_attr(-3)) == "-3 : i64"
        assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
        assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
        types = [str(mlir.dtype_to_ir_type(np.dtype(t))) for t in ("bool", "int8", "uint32", "float64", "complex64")]
        assert types == ["i1", "i8", "ui32", "f64", "complex<f32>"]
        (aval,), module = ctx.avals_in, ctx.module_context
        assert mlir.aval_to_ir_type(module, aval) == x.type and mlir.aval_to_ir_types(module, aval) == (x.type,)
        assert mlir.flatten_ir_values([x, [x, (x,)], hlo.AddOp(x, x).results])[:3] == [x] * 3
        assert mlir.ir_tree_registry.flatten([x, (x,)])[0] == [x, x]
        assert mlir.unflatten_ir_values_like_types([x, x, x], [x.type, (x.type,) * 2]) == [x, (x, x)]
        assert ctx.primitive is made and module.platforms == ("cpu",) and module.context is x.context
        assert ctx.replace(avals_in=()).avals_in == () and ctx.avals_out == [aval] and not ctx.is_forward_compat()
        size = mlir.shape_tensor(module, [hlo.get_dimension_size(x, 0), 1])
        return [hlo.reshape(x.type, hlo.dynamic_reshape(ir.RankedTensorType.get([5, 1], ir.F32Type.get()), x, size))]
    made = primitive(rule)
    np.testing.assert_array_equal(made.bind(x), x)
    print(failure(primitive(lambda ctx, x: [mlir.ir_attribute(1j)]).bind, x))
    """
    wanted = "ArgumentError: mine_N(f32[5]): ir_attribute: 1j of type complex is not a value of an attribute"
    assert run(program(text)) == wanted


def test_rules_trace_functions_and_call_programs(run):
    text = """
    def rule(ctx, x):
        closed = jax.make_jaxpr(lambda x: (x * 2, x + 1))(jnp.ones(5))
        (doubled, more), _ = mlir.jaxpr_subcomp(
            ctx.module_context, closed.jaxpr, ctx.name_stack, mlir.TokenSet(), (), x, dim_var_values=())
        called = mlir.core_call_lowering(ctx, x, name="called", call_jaxpr=closed)
        function = mlir.lower_jaxpr_to_fun(ctx.module_context, "called", closed, [])  # another name
        again = func.CallOp(function, [more])
        with_module = ir.Module.parse("func.func @main(%a: tensor<5xf32>) -> tensor<5xf32> {"
            "%0 = func.call @half(%a) : (tensor<5xf32>) -> tensor<5xf32> return %0 : tensor<5xf32> }"
            "func.func private @half(%a: tensor<5xf32>) -> tensor<5xf32> { %0 = stablehlo.constant dense<0.5> : "
            "tensor<5xf32> %1 = stablehlo.multiply %a, %0 : tensor<5xf32> return %1 : tensor<5xf32> }")
        name = mlir.merge_mlir_modules(ctx.module_context.module, "called", with_module)
        half = func.CallOp([x.type], ir.FlatSymbolRefAttr.get(name), [called[1]])
        return mlir.lower_fun(lambda *xs: sum(xs), multiple_results=False)(
            ctx.replace(avals_in=ctx.avals_in * 4), doubled, called[0], again.results[0], half.results[0])
    wanted = 2 * x + 2 * x + 2 * (x + 1) + (x + 1) / 2
    made = primitive(rule)
    np.testing.assert_allclose(made.bind(x), wanted, rtol=1e-6)
    f = jax.jit(lambda x: made.bind(made.bind(x)))
    np.testing.assert_allclose(f(x), 6.5 * wanted + 2.5, rtol=1e-6)

    def loop(ctx, x):  # x = 2 x + 1, three times, in a region
        count = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        made = hlo.WhileOp([count, x.type], [mlir.ir_constant(np.int32(0)), chlo.erf(x)])
        more, step = (region.blocks.append(count, x.type) for region in made.regions)
        with ir.InsertionPoint(more):
            less = hlo.ComparisonDirectionAttr.get("LT")
            hlo.return_([hlo.compare(more.arguments[0], mlir.ir_constant(np.int32(3)), less)])
        with ir.InsertionPoint(step):
            (x,) = mlir.lower_fun(lambda x: 2 * x + 1, multiple_results=False)(ctx, step.arguments[1])
            hlo.return_([hlo.add(step.arguments[0], mlir.ir_constant(np.int32(1))), x])
        return [made.results[1]]
    import math
    wanted = [8 * math.erf(v) + 7 for v in x.tolist()]
    for way in (lambda f: f, jax.jit):
        np.testing.assert_allclose(way(primitive(loop).bind)(x), wanted, rtol=1e-5)

    applied = []
    @mlir.cache_lowering
    def cached(ctx, x, *, by):
        applied.append(by)
        return [hlo.add(x, mlir.full_like_aval(ctx, by, ctx.avals_in[0]))]
    made = primitive(cached)
    f = jax.jit(lambda x: made.bind(made.bind(made.bind(x, by=1), by=2), by=1))
    print(f.lower(x).as_text().count("call @"), applied)
    np.testing.assert_allclose(f(x), x + 4, rtol=1e-6)
    """
    assert run(program(text)) == "3 [1, 2]"


def test_rules_call_python(run):
    text = """
    seen = []
    def host(x):
        seen.append(type(x).__name__)
        return (np.sort(x)[::-1],)
    def rule(ctx, x):
        out, token, keep = mlir.emit_python_callback(
            ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)
        ctx.module_context.add_keepalive(keep)
        return out
    made = primitive(rule)
    mapped = lambda args, dims: (jax.lax.map(made.bind, jnp.moveaxis(args[0], dims[0], 0)), 0)
    batching.primitive_batchers[made] = mapped
    np.testing.assert_array_equal(jax.jit(made.bind)(x), x[::-1])
    np.testing.assert_array_equal(made.bind(x), x[::-1])
    np.testing.assert_array_equal(jax.vmap(made.bind, in_axes=1)(np.stack([x, -x], 1)), [x[::-1], -x])
    print(set(seen), len(seen))
    """
    assert run(program(text)) == "{'ndarray'} 4"


def test_faults_of_rules_are_named(run):
    text = """
    def raising(ctx, x):
        hlo.add(x, x)
        raise ValueError("boom")
    try:
        jax.jit(primitive(raising).bind)(x)
    except ValueError as error:
        print(error, error.__notes__)
    def of_another_size(ctx, x):
        return [mlir.ir_constant(np.ones(4, np.float32))]
    print(failure(primitive(of_another_size).bind, x))
    def without_result(ctx, x):
        return []
    print(failure(primitive(without_result).bind, x))
    def not_valid(ctx, x):
        return ir.Operation.create("stablehlo.add", [x.type], [x])
    print(failure(primitive(not_valid).bind, x))
    def with_a_missing_name(ctx, x):
        hlo.add(x, x)
        return mlir.no_such_name(x)
    print(failure(primitive(with_a_missing_name).bind, x))
    made = primitive(with_a_missing_name)  # with an implementation, that is traced
    made.def_impl(lambda x: 3 * x)
    np.testing.assert_allclose(jax.jit(lambda x: made.bind(x) + made.bind(x + 1))(x), 6 * x + 3, rtol=1e-6)
    print(failure(primitive(lambda ctx, x: ctx.tokens_in.get("effect")).bind, x))
    """
    lines = run(program(text)).splitlines()
    assert lines[0] == "boom ['raised in the lowering rule raising of the primitive mine']"
    assert lines[1] == (
        "CompileError: mine_N(f32[5]): the lowering rule of_another_size of the primitive mine returned "
        "(tensor<4xf32>), where the avals of the results are (tensor<5xf32>)"
    )
    assert "returned (), where" in lines[2]
    assert lines[3].startswith(
        "CompileError: mine_N(f32[5]): the lowering rule not_valid of the primitive mine wrote an"
    )
    assert "the lowering rule with_a_missing_name of the primitive mine needs a name that is missing" in lines[4]
    assert "jax.interpreters.mlir.no_such_name" in lines[4]
    assert "no token of the effect 'effect'" in lines[5]


def test_rules_of_the_ffi_call_kernels(run):
    """LAPACK's Cholesky factorization, which takes columns."""
    text = """
    jax.config.update("jax_enable_x64", True)
    a = np.random.default_rng(0).normal(size=(4, 4))
    a = a @ a.T + 4 * np.eye(4)
    factor = Primitive("factor")
    factor.multiple_results = True
    factor.def_abstract_eval(lambda x, **_: (x, jax.core.ShapedArray(x.shape[:-2], np.dtype("int32"))))
    options = {"operand_output_aliases": {0: 0}, "operand_layouts": [(0, 1)], "result_layouts": [(0, 1), None]}
    mlir.register_lowering(factor, jax.ffi.ffi_lowering("lapack_dpotrf_ffi", **options), platform="cpu")
    f = lambda a: jnp.tril(factor.bind(a, uplo=np.uint8(ord("L")))[0])
    for way in (lambda f: f, jax.jit):
        np.testing.assert_allclose(way(f)(a), np.linalg.cholesky(a), rtol=1e-12)
    def rule(ctx, a):
        config = {"uplo": mlir.ir_attribute(np.uint8(ord("U")))}
        call = jax.ffi.build_ffi_lowering_function("lapack_dpotrf_ffi", backend_config=config, **options)
        return call(ctx, a).results
    mlir.register_lowering(factor, rule, platform="cpu")
    np.testing.assert_allclose(jnp.triu(factor.bind(a)[0]), np.linalg.cholesky(a).T, rtol=1e-12)
    mlir.register_lowering(factor, jax.ffi.ffi_lowering("no_such_kernel"), platform="cpu")
    print(failure(factor.bind, a[:2, :2]))
    mlir.register_lowering(factor, jax.ffi.ffi_lowering("lapack_dpotrf_ffi", operand_layouts=[(0, 0)]), platform="cpu")
    print(failure(factor.bind, a[:3, :3]))
    print(failure(jax.ffi.register_ffi_type_id, "kind", 3))
    jax.ffi.register_ffi_target_as_batch_partitionable("lapack_dpotrf_ffi")
    """
    lines = run(program(text)).splitlines()
    assert "No FFI handler registered for no_such_kernel" in lines[0]
    assert lines[1].endswith("lapack_dpotrf_ffi: the layout (0, 0) is not one of f64[3,3]")
    assert "'kind' is registered by a PyCapsule" in lines[2]


def test_rules_call_kernels_of_the_older_interface(run):
    text = """
    import ctypes
    def twice(out, ins):
        given = ctypes.cast(ins[0], ctypes.POINTER(ctypes.c_float))
        result = ctypes.cast(out, ctypes.POINTER(ctypes.c_float))
        for i in range(5):
            result[i] = 2 * given[i]
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))(twice)
    jax.ffi.register_ffi_target("tests.twice", jax.ffi.pycapsule(kernel), platform="cpu", api_version=0)
    jax.ffi.register_ffi_target("tests.twice", kernel, api_version=0)  # the same one
    rules = [
        jax.ffi.ffi_lowering("tests.twice", api_version=2),
        lambda ctx, x: mlir.custom_call("tests.twice", result_types=[x.type], operands=[x], api_version=2),
    ]
    for rule in rules:
        for way in (lambda f: f, jax.jit):
            np.testing.assert_array_equal(way(primitive(rule).bind)(x), 2 * x)
    shape = jax.ShapeDtypeStruct((5,), "float32")
    print(failure(jax.ffi.ffi_call("tests.twice", shape), x))  # which calls the typed FFI
    print(failure(lambda: jax.ffi.register_ffi_target("tests.twice", kernel)))
    print(failure(lambda: jax.ffi.register_ffi_target("tests.other", {"prepare": kernel})))
    """
    lines = run(program(text)).splitlines()
    assert "no foreign function 'tests.twice' is registered for cpu" in lines[0]
    assert lines[1] == "ArgumentError: another function is registered as 'tests.twice' for cpu"
    assert lines[2] == "ArgumentError: handlers of the stages prepare were given"


def test_rules_on_meshes(run):
    text = """
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
    xs = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("d")))
    seen = []
    def rule(ctx, x):
        seen.append(ctx.module_context.axis_context)
        return [hlo.negate(x)]
    made = primitive(rule)
    out = jax.jit(made.bind)(xs)
    np.testing.assert_array_equal(out, -np.arange(8.0))
    parts = jax.jit(jax.shard_map(made.bind, mesh=mesh, in_specs=P("d"), out_specs=P("d")))(xs)
    np.testing.assert_array_equal(parts, -np.arange(8.0))
    print(out.sharding.spec == P("d"), seen[0].num_devices, sorted(seen[1].manual_axes))
    """
    assert run(program(text)) == "True 2 ['d']"


def test_programs_are_lowered_to_modules(run):
    text = """
    closed = jax.make_jaxpr(lambda x: (jnp.sin(x), x + 1))(x)
    lowered = lambda closed, platform: mlir.lower_jaxpr_to_module(
        "made", closed, num_const_args=0, in_avals=closed.in_avals, ordered_effects=[], platforms=[platform],
        backend=None, axis_context=mlir.ShardingContext(1), donated_args=[False],
        lowering_parameters=mlir.LoweringParameters())
    made = lowered(closed, "cpu")
    text = mlir.module_to_string(made.module)
    with mlir.make_ir_context() as context:
        again = ir.Module.parse(mlir.module_to_bytecode(made.module))
        print("@made" in text, str(again) == text, context is made.module.context)
    one = primitive(lambda ctx, x: [hlo.negate(x)])
    for platform, operation in {"cpu": hlo.sine, "gpu": hlo.tanh, "cuda": hlo.cosine}.items():
        mlir.register_lowering(one, lambda ctx, x, operation=operation: [operation(x)], platform=platform)
    for platform, operation in {"cpu": "sine", "cuda": "cosine"}.items():
        text = mlir.module_to_string(lowered(jax.make_jaxpr(one.bind)(x), platform).module)
        print(platform, f"stablehlo.{operation} " in text)
    """
    assert run(program(text)).splitlines() == ["True True False", "cpu True", "cuda True"]


def test_a_library_may_register_rules_for_primitives_that_are_missing(run, library):
    text = """
    import jax
    from jax.interpreters import mlir
    mlir.register_lowering(jax.lax.after_all_p, lambda ctx, *xs: xs)
    works = True
    """
    assert run("import library; print(library.works)", paths=[library(text)]) == "True"


def test_libraries_may_take_the_interpreters_from_private_modules(run):
    text = """
    from functools import partial
    import jax._src.interpreters.mlir
    from jax._src import dispatch
    from jax._src.ad_util import Zero, p2tz
    from jax._src.interpreters import ad as own_ad, batching as own_batching, mlir as own_mlir
    made = Primitive("theirs")
    made.def_impl(partial(dispatch.apply_primitive, made))
    made.def_abstract_eval(lambda x: x)
    own_mlir.register_lowering(made, lambda ctx, x: [hlo.sine(x)], platform="cpu")
    own_batching.defvectorized(made)
    own_ad.primitive_jvps[made] = lambda xs, ts: (
        made.bind(*xs), p2tz(xs[0]) if isinstance(ts[0], Zero) else ts[0] * jnp.cos(xs[0]))
    assert own_mlir.ir is mlir.ir is ir and own_mlir.register_lowering is mlir.register_lowering
    np.testing.assert_allclose(made.bind(x), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(made.bind)))(x), np.cos(x), rtol=1e-6)
    """
    run(program(text))


def test_rules_of_the_package_s_primitives_can_be_replaced(run):
    text = """
    f = jax.jit(lambda x: jnp.sin(x) + 1)
    np.testing.assert_allclose(f(x), np.sin(x) + 1, rtol=1e-6)
    mlir.register_lowering(jax.lax.sin_p, lambda ctx, x, **_: [hlo.cosine(x)], platform="tpu")
    np.testing.assert_allclose(f(x), np.sin(x) + 1, rtol=1e-6)
    mlir.register_lowering(jax.lax.sin_p, lambda ctx, x, **_: [hlo.cosine(x)])
    np.testing.assert_allclose(f(x), np.cos(x) + 1, rtol=1e-6)
    np.testing.assert_allclose(jnp.sin(x), np.cos(x), rtol=1e-6)
    mlir.register_lowering(jax.lax.sin_p, mlir.lower_fun(lambda x, **_: 3 * x, multiple_results=False), platform="cpu")
    np.testing.assert_allclose(f(x), 3 * x + 1, rtol=1e-6)
    """
    run(program(text))


def test_private_paths_of_dialects_and_of_public_functions(run):
    text = """
    from jax._src import api
    from jax._src.lax import lax
    from jax._src.lib.mlir import ir as private
    from jax._src.lib.mlir.dialects import hlo as dialect
    assert private is ir and dialect.AddOp is hlo.AddOp
    prim = primitive(lambda ctx, x: [dialect.AddOp(x, x).result])
    assert lax.add is jax.lax.add and api.jit is jax.jit
    np.testing.assert_allclose(api.jit(lambda x: prim.bind(lax.mul(x, x)))(x), 2 * x**2, rtol=1e-6)
    """
    run(program(text))
