"""Errors of Python and NumPy that name no argument are raised again with the function, the argument and the remedy."""

import dataclasses
import warnings

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

X = fnp.ones(4)
OF_INTS = {
    "fnp.linspace: num=5.0": lambda: fnp.linspace(0, 1, 5.0),
    "fnp.logspace: num=5.0": lambda: fnp.logspace(0, 1, 5.0),
    "fnp.geomspace: num=5.0": lambda: fnp.geomspace(1, 2, num=5.0),
    "fnp.tile: reps=2.0": lambda: fnp.tile(X, 2.0),
    "fnp.roll: shift=1.0": lambda: fnp.roll(X, 1.0),
    "fnp.split: indices_or_sections=2.0": lambda: fnp.split(X, 2.0),
    "fnp.diag: k=1.0": lambda: fnp.diag(X, 1.0),
    "fnp.diff: n=1.0": lambda: fnp.diff(X, 1.0),
    "fnp.polyfit: deg=2.0": lambda: fnp.polyfit(X, X, 2.0),
    "fnp.vander: N=3.0": lambda: fnp.vander(X, 3.0),
    "fnp.repeat: repeats=2.0": lambda: fnp.repeat(X, 2.0),
    "fnp.rot90: k=1.0": lambda: fnp.rot90(fnp.ones((2, 2)), 1.0),
    "fnp.rot90: k='zz'": lambda: fnp.rot90(fnp.ones((2, 2)), "zz"),
    "fnp.triu_indices: k=[1]": lambda: fnp.triu_indices(3, [1]),
    "fnp.tril_indices: m=2.0": lambda: fnp.tril_indices(3, 0, 2.0),
    "fnp.repeat: repeats=[1, 1, 2.0, 1]": lambda: fnp.repeat(X, [1, 1, 2.0, 1]),
}


OF_OTHERS = {
    "fnp.fft.fftfreq: d='zz' is not a number": lambda: fnp.fft.fftfreq(4, "zz"),
    "fnp.bartlett: M=[1.5] is not a number": lambda: fnp.bartlett([1.5]),
    "fnp.diag_indices: n='zz' is not an int": lambda: fnp.diag_indices("zz"),
    "fnp.resize: new_shape='zz' is not a number": lambda: fnp.resize(X, "zz"),
    "fnp.linalg.tensorinv: ind=(1, 2) is not an int": lambda: fnp.linalg.tensorinv(fnp.ones((2, 2, 4)), (1, 2)),
    "fnp.array: ndmin=1.5 is not an int": lambda: fnp.array(X, ndmin=1.5),
    "fnp.insert: obj='zz' is not an int": lambda: fnp.insert(X, "zz", 9),
    "fnp.top_k: k=(1, 2) is not an int": lambda: fnp.top_k(X, (1, 2)),
    "fnp.iinfo: dtype='zz' is not a dtype": lambda: fnp.iinfo("zz"),
    "fnp.frombuffer: buffer='zz' is not an object of bytes": lambda: fnp.frombuffer("zz"),
}


@pytest.mark.parametrize(
    ("start", "call", "remedy"),
    [*((*each, "int") for each in OF_INTS.items()), *((*each, "give ") for each in OF_OTHERS.items())],
)
def test_another_value_in_the_place_of_an_option(start, call, remedy):
    message = refusal(call, errors.ArgumentError, TypeError)
    assert message.head.startswith(start)
    says(message.at, "test_unclear_errors.py")
    says(message.remedy, remedy)


@pytest.mark.parametrize(("shape", "dtype"), [("zz", "float32"), (2.5, "float32"), ((2,), "zz")])
def test_a_description_of_an_array_names_both_parts(shape, dtype):
    message = refusal(lambda: ft.ShapeDtypeStruct(shape, dtype), errors.ArgumentError, TypeError)
    assert message.head.startswith(f"ShapeDtypeStruct({shape!r}, {dtype!r}): ")
    says(message.remedy, "a tuple of ints and a dtype")


def test_a_dict_in_the_place_of_a_dtype():
    message = refusal(lambda: fnp.ones(2, {}), errors.DtypeError, TypeError)
    says(message.head, "[] is not a dtype of arrays")
    says(message.remedy, "use one of bool, int8")


def test_an_int_in_the_place_of_a_shape():
    message = refusal(lambda: fnp.indices(3), errors.ArgumentError, TypeError)
    says(message.head, "fnp.indices: dimensions=3 is not a sequence")
    says(message.remedy, "(3,)")


@pytest.mark.parametrize("use", [lambda: ft.io.save({"w": X}, "file"), lambda: ft.io.load({"w": 1})])
def test_a_tree_in_the_place_of_a_path(use):
    pytest.importorskip("safetensors")
    message = refusal(use, errors.ArgumentError, TypeError)
    says(message.head, "ft.io.", "path={'w': ", "is not a path")
    says(message.remedy, "str", "(path, ")


@pytest.mark.parametrize("transformed", [ft.grad, ft.jit, ft.jacfwd])
def test_a_traced_value_assigned_to_an_element_of_a_numpy_array(transformed):
    def f(x):
        out = np.zeros(3)
        out[0] = x
        return out.sum()

    message = refusal(lambda: transformed(f)(1.0), errors.ConcretizationError)
    says(message.at, "test_unclear_errors.py", "in f")
    says(message.remedy, "a = a.at[i].set(x)")


@pytest.mark.parametrize(
    ("start", "use"),
    [
        ("fnp.percentile: a=[1.0, 2.0] of type list", lambda: fnp.percentile([1.0, 2.0], [25, 50])),
        ("fnp.where: condition=[True, False] of type list", lambda: fnp.where([True, False], 1, 2)),
        ("fnp.mean: a=[1.0, 2.0] of type list", lambda: fnp.mean([1.0, 2.0])),
        ("ft.random.randint: maxval=(10,) of type tuple", lambda: ft.random.randint(ft.random.key(0), (3,), 0, (10,))),
        ("ft.lax.add: x=[1.0] of type list", lambda: ft.lax.add([1.0], [2.0])),
    ],
)
def test_a_list_in_the_place_of_an_array_names_function_and_parameter(start, use):
    message = refusal(use, errors.DtypeError, TypeError)
    assert message.head.startswith(f"{start} is not an array")
    says(message.remedy, "fnp.asarray")


def test_errors_of_the_users_own_lines_stay():
    def broken(carry, x):
        return range(2.5), x

    for use in (lambda: ft.lax.scan(broken, 0.0, X), lambda: ft.grad(lambda x: broken(x, x))(1.0)):
        with pytest.raises(TypeError, match=r"^'float' object cannot be interpreted as an integer$") as caught:
            use()
        assert not isinstance(caught.value, errors.FtError)
    with pytest.raises(ValueError, match="setting an array element") as other:
        ft.grad(lambda x: x * np.array([[1.0], [1.0, 2.0]]).sum())(1.0)
    assert not isinstance(other.value, errors.FtError)


class Model:
    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    "use",
    [
        lambda m: ft.grad(lambda m: m(1.0))(m),
        lambda m: ft.vmap(lambda m: m(1.0))(m),
        lambda m: ft.hessian(lambda m: m(1.0))(m),
        lambda m: ft.vjp(lambda m: m(1.0), m),
        lambda m: ft.jit(lambda m: m(1.0))(m),
        lambda m: ft.lax.scan(lambda c, x: (c, x), m, X),
    ],
)
def test_objects_of_a_class_of_the_users_may_be_registered(use):
    message = refusal(lambda: use(Model()), errors.DtypeError)
    says(message.head, "Model")
    says(message.remedy, "ft.tree.register_dataclass")


def test_a_loss_without_return():
    def loss(x):
        fnp.sum(x)

    message = refusal(lambda: ft.grad(loss)(X), errors.DifferentiationError)
    says(message.head, "loss returned None")
    says(message.remedy, "`return`")


def test_a_list_to_scan_is_stacked_first():
    message = refusal(lambda: ft.lax.scan(lambda c, x: (c + x, c), 0.0, [1.0, 2.0]), errors.ShapeError)
    says(message.remedy, "fnp.asarray(xs)")


@pytest.mark.parametrize("sizes", [(2, 2), (-1,), ((2, 2),)])
def test_view_takes_a_dtype(sizes):
    says(refusal(lambda: X.view(*sizes), errors.ArgumentError).remedy, "x.reshape")
    assert X.view("int32").dtype == "int32"


def test_an_array_has_no_format_of_numbers():
    assert f"{fnp.asarray(2.0):.2f}" == "2.00" and f"{X:>20}" == f"{np.asarray(X)!s:>20}"
    message = refusal(lambda: f"{X:.2f}", errors.ArgumentError, ValueError)
    says(message.head, "'.2f'", "f32[4]")
    says(message.remedy, "tolist", "set_printoptions")


def test_assignments_by_masks_and_additions():
    def add():
        x = fnp.zeros(3)
        x[0] += 1

    def mask():
        x = fnp.zeros(3)
        x[x > 1] = 2.0

    says(refusal(add, errors.ImmutableError, TypeError).remedy, "x = x.at[0].add(y)")
    says(refusal(mask, errors.ImmutableError, TypeError).remedy, "x.at[idx].set(2.0)", "fnp.where(mask")


@pytest.mark.parametrize(
    "name",
    ["mean", "std", "var", "median", "average", "ptp", "nanmean", "nansum", "nanmax", "count_nonzero", "percentile"],
)
def test_an_axis_that_is_not_there_is_refused_by_the_function_that_was_called(name):
    rest = (50.0,) if name == "percentile" else ()
    message = refusal(lambda: getattr(fnp, name)(X, *rest, axis=5), errors.AxisError)
    says(message.head, f"fnp.{name}: axis 5 is out of bounds")
    message = refusal(lambda: ft.jit(lambda x: getattr(fnp, name)(x, *rest, axis=5))(X), errors.AxisError)
    says(message.head, f"fnp.{name}: axis 5 is out of bounds")


@pytest.mark.parametrize("name", ["jvp", "hvp", "gnvp"])
def test_tuples_of_primals_and_tangents(name):
    loss = (fnp.sum,) if name == "gnvp" else ()
    message = refusal(lambda: getattr(ft, name)(fnp.sum, *loss, X, X), errors.ArgumentError)
    says(message.head, f"{name} takes tuples")
    says(message.remedy, f"{name}(f, ")


def test_methods_are_named_as_they_are_called():
    with pytest.raises(TypeError) as caught:
        X.clip(a_min=2)
    assert caught.value.__notes__ == ["x.clip(min=None, max=None); what NumPy calls a_min is min"]


def test_debug_print_takes_no_formatted_string():
    message = refusal(lambda: ft.jit(lambda x: ft.debug.print(f"x is {x}"))(1.0), errors.ArgumentError)
    says(message.remedy, "leave out the f")
    ft.debug.print(f"x is {X}")


def test_a_place_without_its_method_is_no_array():
    says(refusal(lambda: fnp.sin(X.at[0]), errors.DtypeError).remedy, "x.at[i].set")


@pytest.mark.parametrize(("words", "note"), [({"size": 3}, "shape"), ({"input": 3}, "")])
def test_names_of_numpys_parameters(words, note):
    with pytest.raises(TypeError) as caught:
        ft.random.normal(ft.random.key(0), **words)
    notes = caught.value.__notes__
    assert notes[0].endswith(f"what NumPy calls size is {note}" if note else ")")


def test_names_of_a_data_loaders_parameters():
    with pytest.raises(TypeError) as caught:
        ft.data.batches(np.ones((4, 2)), batch_size=2)
    says(caught.value.__notes__[0], "ft.data.batches(arrays, size, ", "what PyTorch calls batch_size is size")


def test_batches_refuse_a_seed_where_they_are_made():
    message = refusal(lambda: ft.data.batches(np.ones((4, 2)), 2, 0), errors.DtypeError)
    says(message.head, "needs a key")
    says(message.remedy, "random.key(seed)")


I = fnp.arange(3)
STATIC = {
    **{
        f"fnp.{name}: size={size!r} is not an int": lambda name=name, size=size, n=n: getattr(fnp, name)(
            *(X,) * n, size=size
        )
        for n, names in (
            (
                1,
                (
                    "unique",
                    "unique_all",
                    "unique_counts",
                    "unique_values",
                    "nonzero",
                    "argwhere",
                    "flatnonzero",
                    "where",
                ),
            ),
            (2, ("union1d", "intersect1d", "setdiff1d", "setxor1d")),
        )
        for name in names
        for size in ("a", 2.5)
    },
    "fnp.bincount: length='a' is not an int": lambda: fnp.bincount(I, length="a"),
    "fnp.bincount: minlength='a' is not an int": lambda: fnp.bincount(I, minlength="a"),
    "fnp.repeat: total_repeat_length='a' is not an int": lambda: fnp.repeat(X, 2, total_repeat_length="a"),
    "fnp.nonzero: fill_value='a' is not a number": lambda: fnp.nonzero(X, size=3, fill_value="a"),
    "fnp.take: fill_value='a' is not a number": lambda: fnp.take(X, I + 9, mode="fill", fill_value="a"),
    "axis_size='a' of vmap": lambda: ft.vmap(lambda x: x, axis_size="a")(X),
    "fnp.histogram: bins='a'": lambda: fnp.histogram(X, bins="a"),
    "size=-1 is negative": lambda: fnp.unique(X, size=-1),
    "length=-1 is negative": lambda: fnp.bincount(I, length=-1),
    "fnp.nonzero of f32[4]: fill_value has 2 numbers": lambda: fnp.nonzero(X, size=3, fill_value=(1, 2)),
}


@pytest.mark.parametrize("start", STATIC)
def test_a_static_argument_of_another_kind(start):
    message = refusal(STATIC[start], errors.ArgumentError)
    assert message.head.startswith(start)
    says(message.at, "test_unclear_errors.py")


def test_a_traced_size_is_no_size():
    for name in ("unique", "nonzero", "flatnonzero"):
        use = ft.jit(lambda n, name=name: getattr(fnp, name)(X, size=n))
        says(refusal(lambda use=use: use(3), errors.ConcretizationError).remedy, "static_argnums")


@pytest.mark.parametrize(
    ("use", "note"),
    [
        (lambda: ft.grad(lambda x: fnp.sum(x) / x.size())(X), "x.shape"),
        (lambda: ft.jit(lambda x: fnp.sum(x) / x.size(min(0, 1)))(X), "x.shape[0]"),
        (lambda: ft.vmap(lambda x: x / x.T.shape())(fnp.ones((2, 2))), "x.shape is an attribute"),
        (lambda: ft.lax.scan(lambda c, x: (c.T(), x), 0.0, X), "x.T is an attribute"),
    ],
)
def test_attributes_that_are_called_as_methods(use, note):
    with pytest.raises(TypeError, match="is not callable") as caught:
        use()
    says(caught.value.__notes__[0], note)


def test_other_calls_of_what_is_no_function_get_no_note():
    for use in (lambda x: x(), lambda x: X.size.__abs__()(x.size)):
        with pytest.raises(TypeError, match="is not callable") as caught:
            ft.grad(use)(X)
        assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("use", "note"),
    [
        (lambda: fnp.zeros(3, requires_grad=True), "ft.grad(f)(x)"),
        (lambda: fnp.clip(X, a_min=0.0), "what NumPy calls a_min is min"),
        (lambda: ft.tree.map({"a": 1}, lambda x: x), "ft.tree.map(f, tree"),
    ],
)
def test_notes_on_calls_that_fail(use, note):
    with pytest.raises(TypeError) as caught:
        use()
    says(caught.value.__notes__[0], note)


LAX = {
    "dimension=(0, 1) must be one int": lambda: ft.lax.concatenate([X, X], (0, 1)),
    "k={} must be ints": lambda: ft.lax.top_k(X, {}),
    "start_dimension=1.5 must be ints": lambda: ft.lax.collapse(X, 1.5),
    "exponent_bits=() must be one int": lambda: ft.lax.reduce_precision(1.0, (), 7),
    "axes={} must be ints": lambda: ft.lax.reduce_sum(X, {}),
    "dimension_numbers='zz' are not two pairs": lambda: ft.lax.dot_general(X, X, "zz"),
    "dimension_numbers='zz' are not those": lambda: ft.lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), "zz"),
    "got 1 sizes, 2 of the window": lambda: ft.lax.padtype_to_pads((5,), (4, 4), (1,), "SAME"),
    "x=[1, 2] of type list is not an array": lambda: ft.lax.linalg.cholesky([1, 2]),
    "beta='zz' is not a number": lambda: ft.lax.linalg.symmetric_product(fnp.eye(2), fnp.eye(2), beta="zz"),
    "random.orthogonal needs a shape": lambda: ft.random.orthogonal(ft.random.key(0), (2, 3)),
    "ind=1.5 is not an int": lambda: fnp.linalg.tensorinv(fnp.eye(2), ind=1.5),
}


@pytest.mark.parametrize("text", LAX)
def test_functions_of_lax_name_the_argument(text):
    says(refusal(LAX[text]).head, text)


def test_compiled_functions_show_their_parameters():
    with pytest.raises(TypeError, match="'upper'") as caught:
        ft.lax.linalg.cholesky(fnp.eye(2), upper=True)
    says(caught.value.__notes__[0], "ft.lax.linalg.cholesky(x, *, symmetrize_input=True)")


def test_values_in_the_place_of_a_dtype_show_the_parameters():
    says(
        refusal(lambda: ft.random.uniform(ft.random.key(0), (3,), 1, 0)).remedy,
        "ft.random.uniform(key, shape=(), dtype",
    )
    assert "arguments" not in refusal(lambda: fnp.zeros(3, "float23")).remedy


@pytest.mark.parametrize("call", [ft.tree.leaves, ft.tree.structure, ft.tree.flatten])
def test_what_is_no_function_of_leaves_is_named(call):
    says(refusal(lambda: call(X, "a"), TypeError).head, "is_leaf='a' is not a function")


def test_keys_that_vmap_takes_apart_and_arguments_by_name():
    message = refusal(lambda: ft.vmap(ft.random.normal)(ft.random.key(0)), errors.ShapeError)
    says(message.remedy, "random.split(key, n)")
    message = refusal(lambda: ft.vmap(lambda a, b: a, in_axes=(0, None))(X, b=1.0), errors.ArgumentError)
    says(message.remedy, "arguments with names are mapped along axis 0")


def test_generators_and_coroutines_among_results():
    def later(x):
        yield x

    async def awaited(x):
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of newer jaxlibs, whose pytrees will refuse generators
        says(refusal(lambda: ft.jit(later)(X)).remedy, "`yield`", "list")
    coroutine = awaited(X)
    says(refusal(lambda: ft.jit(lambda x: coroutine)(X)).remedy, "`async`")
    coroutine.close()


def test_methods_of_arrays_and_of_at_that_are_missing():
    for work, text in (
        (lambda: X.eq(X), "x == y"),
        (lambda: X.narrow(0, 0, 1), "x[start : start + length]"),
        (lambda: X.new_zeros(3), "fnp.zeros(shape, x.dtype)"),
        (lambda: X.at.add(0, 1.0), "x.at[i].add(value)"),
    ):
        with pytest.raises(AttributeError) as caught:
            work()
        says(str(caught.value), text)


@pytest.mark.parametrize("name", ["device", "devices", "sharding"])
def test_traced_values_are_on_no_device(name):
    with pytest.raises(AttributeError, match="on no device yet") as caught:
        ft.jit(lambda x: getattr(x, name))(X)
    says(str(caught.value), repr(name), "lax.with_sharding_constraint")
    assert getattr(X, name) and not ft.eval_shape(lambda x: [0] * hasattr(x, name), X)


def test_devices_name_an_attribute_that_is_missing():
    with pytest.raises(AttributeError, match=r"'type'; use device.platform"):
        _ = X.device.type
    assert not hasattr(X.device, "nothing") and X.device.device_kind


def test_static_arguments_of_checkpoint_and_of_classes_without_a_hash():
    @dataclasses.dataclass
    class Options:
        size: int = 3

    message = refusal(lambda: ft.jit(lambda o, x: x, static_argnums=0)(Options(), X))
    says(message.remedy, "@dataclasses.dataclass(frozen=True) above class Options")
    message = refusal(lambda: ft.checkpoint(lambda x, flag: x if flag else -x)(X, True))
    says(message.remedy, "static: checkpoint(static_argnums=...)")
