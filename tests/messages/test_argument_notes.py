"""Errors for arguments that do not fit a signature show the signature, or the package's function that made the call."""

import contextlib
import functools

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, random

X = fnp.ones((2, 3))


def notes(work):
    with pytest.raises(TypeError) as e:
        work()
    return "\n".join(getattr(e.value, "__notes__", ()))


@pytest.mark.parametrize("words", [{"dim": 1}, {"axis": 1, "keepdim": True}])
def test_names_of_pytorch(words):
    told = notes(lambda: fnp.mean(X, **words))
    theirs, ours = ("keepdim", "keepdims") if "keepdim" in words else ("dim", "axis")
    assert told.startswith("fnp.mean(a, axis=None, ") and told.endswith(f"what PyTorch calls {theirs} is {ours}")


def test_names_of_torch_compile_and_of_loaders():
    assert notes(lambda: ft.jit(fnp.sin, options={})).endswith("what PyTorch calls options is compiler_options")
    assert notes(lambda: ft.jit(fnp.sin, dynamic=True)).endswith("what PyTorch calls dynamic is buckets")
    assert notes(lambda: ft.data.batches(X, 2, drop_last=True)).endswith("what PyTorch calls drop_last is remainder")


@pytest.mark.parametrize(
    ("work", "remedy"),
    [
        (lambda: ft.jit(fnp.sin, backend="inductor"), "leave backend= out: XLA compiles"),
        (lambda: ft.jit(fnp.sin, disable=True), "ft.disable_jit()"),
        (lambda: ft.jit(fnp.sin, recompile_limit=1), "ft.testing.count_compiles()"),
        (lambda: ft.checkpoint(fnp.sin, use_reentrant=False), "leave it out: a function is computed again"),
        (lambda: ft.checkpoint(fnp.sin, context_fn=None), "what PyTorch calls context_fn is policy"),
        (lambda: ft.autocast(device_type="cuda"), "the block holds on all devices"),
        (lambda: ft.vmap(fnp.sin, strict=True), "leave strict= out"),
        (lambda: ft.grad(fnp.sin, create_graph=True), "ft.grad(ft.grad(f))"),
        (lambda: ft.make_mesh((1,), mesh_dim_names=("data",)), "what PyTorch calls mesh_dim_names is axis_names"),
        (lambda: ft.distributed.initialize(backend="nccl"), "GPUs NCCL"),
        (lambda: ft.distributed.initialize(world_size=2), "what PyTorch calls world_size is num_processes"),
        (lambda: ft.io.load("x", weights_only=True), "nothing in a file is executed"),
        (lambda: ft.data.prefetch([], num_workers=2), "DataLoader has workers"),
        (lambda: ft.nn.elu(X, inplace=True), "leave inplace= out, and use the result"),
        (lambda: fnp.linspace(0, 1, steps=3), "what PyTorch calls steps is num"),
        (lambda: ft.export.export(ft.jit(fnp.sin), dynamic_shapes={}), "ft.export.symbolic_shape"),
        (lambda: fnp.arange(0, end=3), "what PyTorch calls end is stop"),
        (lambda: fnp.roll(X, 1, dims=0), "what PyTorch calls dims is axis"),
        (lambda: fnp.tril(X, diagonal=1), "what PyTorch calls diagonal is k"),
        (lambda: fnp.diagonal(X, dim1=1), "what PyTorch calls dim1 is axis1"),
        (lambda: fnp.std(X, unbiased=False), "ddof=0, the default here, unbiased=False"),
        (lambda: ft.nn.softplus(X, beta=2), "nn.softplus(beta * x) / beta"),
        (lambda: random.normal(random.key(0), (), std=2), "mean + std * ft.random.normal(key, shape)"),
        (lambda: fnp.transpose(X, 0, 1), "the axes are one tuple"),
    ],
)
def test_options_of_pytorch_2(work, remedy):
    assert remedy in notes(work)


@pytest.mark.parametrize(
    ("work", "message", "told"),
    [
        (lambda: ft.nn.relu(X, inplace=True), "'inplace'", "ft.nn.relu(x); arrays are immutable"),
        (lambda: fnp.exp(X, dim=1), "'dim'", "fnp.exp(x, /)"),
        (lambda: fnp.add(X), "'x2'", "fnp.add(x1, x2, /)"),
        (lambda: fnp.add(X, X, X, X), "takes 2 positional arguments but 4 were given", "fnp.add(x1, x2, /)"),
        (lambda: fnp.exp(x=X), "positional", "fnp.exp(x, /)"),
        (lambda: lax.exp(X, dim=1), "'dim'", "ft.lax.exp(x)"),
    ],
)
def test_elementwise_functions_name_their_parameters(work, message, told):
    with pytest.raises(TypeError, match=message):
        work()
    assert notes(work).startswith(told)


def test_functions_of_nn_and_lax_take_operands_by_their_names():
    assert ft.nn.relu(x=-1.0) == 0 and lax.add(x=1.5, y=2.0) == 3.5 and lax.neg(x=1.0) == -1


def test_an_unknown_option_gets_the_nearest_one_and_defaults_have_no_addresses():
    assert notes(lambda: ft.jit(fnp.sin, static_argnum=0)).endswith("did you mean 'static_argnums'?")
    assert "object at" not in notes(lambda: lax.cond(True, true_fn=1)) + notes(lambda: ft.vmap(fnp.sin, axis=1))


def test_numpys_order_of_the_arguments_of_normal_is_refused_for_want_of_a_key():
    with pytest.raises(ft.errors.DtypeError, match=r"random\.normal needs a key, got 0"):
        random.normal(0, 1, (3,))


def test_arguments_beside_the_function_go_to_what_is_made_of_it():
    assert notes(lambda: ft.checkpoint(fnp.sin, X)).endswith("takes the arguments: ft.checkpoint(f)(x)")
    assert notes(lambda: ft.explain(fnp.sin, X)).endswith("takes the arguments: ft.explain(f)(x)")
    assert notes(lambda: ft.export.export(fnp.sin, (X,))).endswith("arguments: ft.export.export(ft.jit(f))(x)")
    assert "makes a function" not in notes(lambda: fnp.sum(X, 0, None, None, False, None, None, True, 3))


def test_options_of_numpy():
    assert notes(lambda: fnp.clip(X, 0, 1, out=X)).endswith("arrays are immutable: leave out= out, and use the result")
    assert notes(lambda: fnp.matmul(X, X.T, out=X)).endswith("arrays are immutable: leave out= out, and use the result")
    assert notes(lambda: fnp.concatenate([X], casting="no")).endswith("leave casting= out, and convert with astype")


def test_options_of_torch_func():
    assert "leave randomness= out" in notes(lambda: ft.jacfwd(fnp.sin, randomness="same"))
    assert "chunk_size= alone" in notes(lambda: ft.jacrev(fnp.sin, _preallocate_and_copy=True))


def test_the_signature_is_reported():
    assert notes(lambda: random.normal()).startswith("ft.random.normal(key, ")
    assert notes(lambda: ft.grad()).startswith("ft.grad(fun, ")
    assert "PyTorch" not in notes(lambda: fnp.ones())


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("fori_loop", lambda: lax.fori_loop(0, 3, lambda x: x, 0)),
        ("scan", lambda: lax.scan(lambda c: c, 0.0, fnp.ones(3))),
        ("cond", lambda: lax.cond(True, lambda x: x, lambda x: x)),
    ],
)
def test_bodies_with_other_parameters(name, work):
    told = notes(work)
    assert told.startswith(f"ft.lax.{name} called ") and told.endswith(f"help(ft.lax.{name}) says with which arguments")


def test_errors_of_the_user_stay_as_they_are():
    def broken(x):
        return (lambda y: y)(x, x)

    assert notes(lambda: lax.map(broken, fnp.ones(3))) == ""
    assert notes(lambda: ft.jit(broken)(1.0)) == ""


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full"])
def test_shapes_that_are_traced_are_reported_with_the_function(name):
    rest = (0.0,) if name == "full" else ()
    with pytest.raises(ft.errors.ConcretizationError, match=rf"^fnp\.{name} needs a shape"):
        ft.jit(lambda n: getattr(fnp, name)(n, *rest))(3)


def custom(**rules):
    f = (ft.custom_jvp if "jvp" in rules else ft.custom_vjp)(lambda x: 2 * x)
    if "jvp" in rules:
        f.defjvp(rules["jvp"])
    else:
        f.defvjp(rules.get("fwd", lambda x: (2 * x, None)), rules.get("bwd", lambda residuals, ct: (2 * ct,)))
    return lambda: ft.grad(lambda x: fnp.sum(f(x)))(X)


@pytest.mark.parametrize(
    ("work", "form"),
    [
        (custom(fwd=lambda ctx, x: (2 * x, None)), "fwd takes the function's arguments, no ctx"),
        (custom(bwd=lambda ct: (2 * ct,)), "bwd(residuals, ct) returns a tuple"),
        (custom(jvp=lambda ctx, x, dx: (2 * x, 2 * dx)), "jvp(primals, tangents) takes two tuples"),
    ],
    ids=["fwd", "bwd", "jvp"],
)
def test_rules_with_the_parameters_of_pytorch(work, form):
    assert form in notes(work)


def test_a_rule_that_calls_a_function_wrongly_has_the_note_of_that_function():
    told = notes(custom(fwd=lambda x: (fnp.sum(x, dim=0), None)))
    assert told.endswith("what PyTorch calls dim is axis") and "ctx" not in told


def test_a_batching_rule_with_other_parameters():
    f = ft.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda x: (x, True))
    assert "rule(axis_size, in_batched, *args)" in notes(lambda: ft.vmap(f)(X))


def test_calls_in_the_form_of_pytorch():
    assert "one argument, the carry" in notes(
        lambda: lax.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x), (0, X))
    )
    for choose in (lambda f: lax.cond(True, f, f, (X,)), lambda f: lax.switch(0, [f], (X,))):
        assert "passed one by one, and not in a tuple" in notes(lambda choose=choose: choose(lambda x: -x))
    policy = ft.checkpoint_policies.dots_saveable
    assert notes(lambda: ft.checkpoint(fnp.sin, policy=policy())).endswith(
        "ft.checkpoint(f, policy=ft.checkpoint_policies.dots_saveable)"
    )


class Model:
    def __init__(self):
        self.weight = X

    def __call__(self, x):
        return x * self.weight


def test_models_that_are_no_pytrees():
    assert "ft.tree.register_dataclass" in notes(lambda: ft.functional_call(Model(), {"weight": X}, (X,)))
    with pytest.raises(ft.errors.ArgumentError, match=r"of type Model, which is no pytree(.|\n)*register_dataclass"):
        ft.named_parameters(Model())
    assert ft.named_parameters(2.0) == {"": 2.0}


def called_wrongly(x, y=1):
    return Wrong.__call__(x, y, bad=2)


class Wrong:
    def __call__(self, x):
        return called_wrongly(x, z=1)


@pytest.mark.parametrize("fun", [functools.partial(called_wrongly, y=1), functools.partial(called_wrongly), Wrong()])
def test_functions_without_a_name(fun):
    for transform in (ft.jit, ft.grad, ft.vmap, ft.checkpoint, lambda f: ft.jit(ft.vmap(f))):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            transform(fun)(fnp.ones(3))


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda: ft.ShapeDtypeStruct((3,), dtypes="float32"), "ft.ShapeDtypeStruct(shape, dtype, "),
        (lambda: ft.sharding.Mesh(ft.devices(), axis="x"), "ft.sharding.Mesh(devices, axis_names, "),
        (lambda: ft.io.CheckpointManager("x", max_to_keep=3), "ft.io.CheckpointManager(folder, *, keep_last=3, "),
        (lambda: ft.amp.LossScale(1.0, 2, 3), "ft.amp.LossScale(scale, good_steps)"),
        (lambda: ft.experimental.sparse.BCOO(3), "ft.experimental.sparse.BCOO(args, *, shape, "),
    ],
)
def test_constructors(work, told):
    assert notes(work).startswith(told)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda: ft.profiler.profile(activities=[]), "ft.profiler.profile()"),
        (lambda: ft.profiler.trace(), "ft.profiler.trace(directory)"),
        (lambda: ft.set_mesh(), "ft.set_mesh(mesh)"),
        (lambda: ft.debug_nans(1, 2), "ft.debug.nans(enable=True)"),
        (lambda: ft.clear_caches(1), "ft.clear_caches()"),
        (lambda: ft.experimental.ode.odeint(fnp.sin, X), "ft.experimental.ode.odeint(func, y0, t, *args, "),
    ],
)
def test_context_managers_and_modules_of_modules(work, told):
    assert notes(work).startswith(told)


def test_context_managers_of_users_are_not_called_by_the_package():
    @contextlib.contextmanager
    def block(x):
        yield

    def f(x):
        with block():
            return x

    assert notes(lambda: ft.jit(f)(1.0)) == ""


def test_initializers():
    initializers = ft.nn.initializers
    assert notes(lambda: initializers.normal(std=0.1)).endswith("what PyTorch calls std is stddev")
    assert notes(lambda: initializers.he_normal()((3, 3))).endswith("initializer(key, shape, dtype=None)")
    for make in (initializers.he_normal, initializers.normal, initializers.orthogonal):
        with pytest.raises(ft.errors.ArgumentError, match=r"he_normal\(\)\(key, shape\)"):
            make(random.key(0), (3, 3))


@pytest.mark.parametrize(
    ("fun", "tree"),
    [
        (lambda p: p - 0.1 * p, {"w": 1.0}),
        (lambda p: p * 0.5, [1.0, 2.0]),
        (lambda p: p + 1, [1.0, 2.0]),
        (lambda p: -p, (1.0, 2.0)),
        (lambda p: p**2, [1.0, 2.0]),
        (lambda p: p > 0, [1.0, 2.0]),
        (lambda p: p[:, 0], [1.0, 2.0]),
        (lambda p: p.shape, [1.0, 2.0]),
    ],
)
def test_containers_in_the_place_of_arrays(fun, tree):
    kind = type(tree).__name__
    with pytest.raises((TypeError, AttributeError)) as e:
        ft.jit(fun)(tree)
    assert len(e.value.__notes__) == 1
    assert e.value.__notes__[0].startswith("operators and attributes are those of arrays, and this is a ")
    assert kind in e.value.__notes__[0] or "sequence" in e.value.__notes__[0]
    assert "ft.tree.map" in e.value.__notes__[0] and "fnp.asarray" in e.value.__notes__[0]


def test_functions_of_users_are_named_as_they_are():
    def model(w, x):
        return w * x

    assert notes(lambda: ft.jit(model)(1.0)).startswith("test_functions_of_users_are_named_as_they_are.<locals>.model(")


@pytest.mark.parametrize(("other", "remedy"), [("a", "float"), (None, "return"), ({"w": 1.0}, "ft.tree.map")])
def test_operands_that_are_no_arrays(other, remedy):
    works = (lambda x: x + other, lambda x: other * x, lambda x: x < other, ft.jit(lambda x: x / other))
    for x in (X, fnp.float32(2)):
        for work in works:
            with pytest.raises(ft.errors.DtypeError, match="are not combined") as e:
                work(x)
            assert remedy in e.value.fix
        assert (x == other) is False and (x != other) is True


def test_profiles_name_what_they_have():
    with ft.profiler.profile() as profile:
        pass
    with pytest.raises(AttributeError, match=r"profile\.operations"):
        profile.key_averages()
    assert notes(lambda: ft.profiler.profile(activities=[])).endswith("all devices are recorded")


def test_options_of_scipy():
    assert "scipy.optimize.minimize(f, x0, jac=ft.grad(f)" in notes(
        lambda: ft.scipy.optimize.minimize(fnp.sum, X, bounds=())
    )


@pytest.mark.parametrize("control_flow", ["error", "paths"])
def test_messages_of_users_with_traced_values(control_flow):
    @ft.jit(control_flow=control_flow)
    def f(x):
        raise ValueError(f"negative: {x}")

    with pytest.raises(ValueError, match="Traced") as e:
        f(-1.0)
    assert "ft.disable_jit()" in e.value.__notes__[0]
    with ft.disable_jit(), pytest.raises(ValueError, match=r"negative: -1\.0") as plain:
        f(-1.0)
    assert not hasattr(plain.value, "__notes__")


def test_blocks_of_checks_in_traced_functions():
    def checked(x):
        with ft.debug.nans():
            return fnp.log(x)

    with pytest.warns(UserWarning, match="enter it around the call"):
        ft.jit(checked)(X)
    with pytest.raises(ft.errors.NonFiniteError):
        checked(-X)


def test_rules_that_take_values_in_place_of_tuples():
    @ft.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda x, dx: (fnp.sin(x), fnp.cos(x) * dx))
    assert "jvp(primals, tangents) takes two tuples" in notes(lambda: ft.grad(f)(1.0))
    with pytest.raises(ft.errors.DtypeError) as e:
        ft.jit(fnp.sin)((1.0, 2.0))
    assert "register_dataclass(tuple)" not in e.value.fix


def test_functions_of_pytorch_with_rules():
    class Square:
        forward = staticmethod(lambda ctx, x: x * x)
        backward = staticmethod(lambda ctx, ct: 2 * ct)

    with pytest.raises(ft.errors.ArgumentError, match="class Square") as e:
        ft.custom_vjp(Square)
    assert "f.defvjp(fwd, bwd)" in e.value.fix


@pytest.mark.parametrize("x", [X, fnp.zeros((0,))])
def test_item_takes_one_element(x):
    with pytest.raises(ValueError, match=r"takes an array of one element") as e:
        x.item()
    assert isinstance(e.value, ft.errors.ShapeError) and "x.tolist()" in e.value.fix
    assert X.item(0) == 1.0 and X[:1, :1].item() == 1.0
