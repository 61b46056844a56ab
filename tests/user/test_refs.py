"""References to arrays, outside of transformations: reading and writing against NumPy, and refused uses."""

import copy
import pickle
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

INDICES = [
    ...,
    0,
    -1,
    (1, 2),
    slice(0, 2),
    (slice(None), 1),
    (slice(None, None, 2), slice(None, None, -1)),
    (..., 3),
    np.array([0, 2]),
    (np.array([0, 2]), np.array([1, 3])),
    (slice(1, 3), np.array([0, 1])),
    np.array([True, False, True]),
]


def refs(value):
    """Return a Ref and the NumPy array that must stay equal to it."""
    return ft.new_ref(value), np.array(value)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reads_and_writes_are_those_of_numpy(index):
    ref, want = refs(np.arange(12, dtype=np.float32).reshape(3, 4))
    np.testing.assert_array_equal(ref[index], want[index])
    new = np.random.default_rng(0).normal(size=want[index].shape).astype(np.float32)
    ref[index] = new
    want[index] = new
    np.testing.assert_array_equal(ref[...], want)
    ref[index] += 2
    want[index] += 2
    np.testing.assert_array_equal(ref[...], want)
    ref[index] = 7.0
    want[index] = 7.0
    np.testing.assert_array_equal(ref[...], want)


def test_positions_named_twice_are_added_twice_by_addupdate_alone():
    ref = ft.new_ref(fnp.zeros(3))
    ref.addupdate(fnp.asarray([1.0, 2.0, 4.0]), fnp.asarray([1, 1, 2]))
    assert ref[...].tolist() == [0.0, 3.0, 4.0]
    ft.ref.addupdate(ref, None, 1.0)
    assert ref[...].tolist() == [1.0, 4.0, 5.0]


def test_functions_of_the_module():
    ref = ft.new_ref(fnp.arange(4))
    assert ft.ref.get(ref).tolist() == [0, 1, 2, 3] and ft.ref.get(ref, 1).item() == 1
    assert ft.ref.swap(ref, 0, 9).item() == 0
    assert ft.ref.swap(ref, None, 5).tolist() == [9, 1, 2, 3]
    ft.ref.set(ref, None, fnp.arange(4))
    assert ft.freeze(ref).tolist() == [0, 1, 2, 3]
    empty = ft.empty_ref(ft.ShapeDtypeStruct((2, 1), "int8"))
    assert empty.shape == (2, 1) and empty.dtype == np.int8 and empty[...].tolist() == [[0], [0]]


def test_facts():
    ref = ft.new_ref(fnp.zeros((2, 3)))
    assert (ref.shape, ref.ndim, ref.size, len(ref), ref.dtype) == ((2, 3), 2, 6, 2, np.float32)
    assert isinstance(ref, ft.Ref) and not isinstance(ref, ft.Array)
    assert ft.typeof(ref) == ref.aval == ft.ref.AbstractRef(ft.typeof(fnp.zeros((2, 3))))
    assert ref.sharding == fnp.zeros(1).sharding
    assert [row.tolist() for row in ref] == [[0.0] * 3] * 2
    assert repr(ft.new_ref(1.5)) == "Ref(1.5, dtype=float32)"
    assert not ft.typeof(ft.new_ref(1.0)[...]).weak_type


def test_nothing_is_shared_with_the_arrays_that_go_in_and_out():
    given, written = np.zeros(3, np.float32), np.ones(3, np.float32)
    ref = ft.new_ref(given)
    given[0] = 9
    assert ref[...].tolist() == [0, 0, 0]
    ref[...] = written
    written[0] = 9
    assert ref[...].tolist() == [1, 1, 1]
    before = ref[...]
    ref[0] = 5.0
    assert before.tolist() == [1, 1, 1]


def test_copies_and_pickles_hold_the_value_and_are_others():
    ref = ft.new_ref(fnp.arange(3))
    both = [copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))]
    same = copy.deepcopy([ref, ref])
    assert same[0] is same[1]
    ref[0] = 7
    assert [c[...].tolist() for c in both] == [[0, 1, 2]] * 2


def test_it_is_a_leaf_of_pytrees_and_a_key_of_dictionaries():
    a, b = ft.new_ref(1.0), ft.new_ref(2.0)
    assert ft.tree.map(lambda r: r[...].item(), {"a": a, "b": [b]}) == {"a": 1.0, "b": [2.0]}
    assert {a: 1, b: 2}[b] == 2 and a != b


def test_threads_may_write():
    ref = ft.new_ref(fnp.zeros(4))

    def work(k):
        ref[k] = k

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(ref[...].tolist()) <= {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (lambda r: fnp.sin(r), errors.DtypeError, "read it first"),
        (lambda r: fnp.asarray(r), errors.DtypeError, "read it first"),
        (lambda r: np.asarray(r), errors.DtypeError, "read it first"),
        (lambda r: ft.new_ref(r), errors.DtypeError, "read it first"),
        (lambda r: r.__setitem__(0, r), errors.DtypeError, "ref\\[...\\]"),
        (lambda r: r.__setitem__(0, 1.5), errors.DtypeError, "astype\\('int32'\\)"),
        (lambda r: r.__setitem__(..., fnp.zeros(3)), errors.DtypeError, "got f32"),
        (lambda r: r.__setitem__(..., fnp.zeros(2, "int32")), errors.ShapeError, "i32\\[2\\]"),
        (lambda r: r[3], errors.BoundsError, "out of bounds"),
        (lambda r: r.__setitem__(-4, 1), errors.BoundsError, "out of bounds"),
        (lambda r: bool(r), errors.DtypeError, "if ref\\[...\\]"),
        (lambda r: r.sum(), AttributeError, "ref\\[...\\].sum"),
        (lambda r: r.no_such_name, AttributeError, "no_such_name"),
        (lambda r: ft.grad(lambda r: r[...])(r), errors.DtypeError, "read it first"),
        (lambda r: ft.new_ref(1, kind="no_grad_no_remat"), errors.ArgumentError, "leave them out"),
        (lambda r: ft.new_ref([1.0]), errors.DtypeError, "pass an array"),
        (lambda r: ft.empty_ref(3), errors.ArgumentError, "ShapeDtypeStruct"),
        (lambda r: ft.freeze(fnp.zeros(3)), errors.DtypeError, "takes a Ref"),
        (lambda r: (ft.freeze(r), r[...]), errors.ArgumentError, "frozen"),
        (lambda r: (ft.freeze(r), ft.freeze(r)), errors.ArgumentError, "frozen"),
        (lambda r: (ft.ref.free_ref(r), r.__setitem__(0, 1)), errors.ArgumentError, "freed"),
    ],
)
def test_mistakes_are_refused_with_a_remedy(use, kind, text):
    ref = ft.new_ref(fnp.arange(3))
    with pytest.raises(kind, match=text):
        use(ref)
