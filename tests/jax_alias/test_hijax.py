"""Types and primitives of a library's own: `jax.experimental.hijax`."""

_POWER = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import hijax


class Power(hijax.VJPHiPrimitive):
    '''x ** n times y; its cotangents are those of the power rule times `factor`, which shows that they are used.'''

    def __init__(self, x, y, *, n, factor=1.0):
        self.in_avals, self.out_aval = ({"x": x}, y), (x, {"sum": x})
        self.params = {"n": n, "factor": factor}
        super().__init__()

    def expand(self, d, y):
        return d["x"] ** self.n * y, {"sum": d["x"] + y}

    def vjp_fwd(self, nonzero, d, y):
        assert nonzero == ({"x": True}, True) or nonzero == ({"x": True}, False), nonzero
        return self(d, y), (d["x"], y, "a text")

    def vjp_bwd_retval(self, residuals, ct):
        x, y, text = residuals
        assert text == "a text"
        dx = self.factor * (ct[0] * self.n * x ** (self.n - 1) * y + ct[1]["sum"])
        return {"x": dx}, self.factor * (ct[0] * x**self.n + ct[1]["sum"])


class MappedPower(Power):
    def vjp_fwd(self, nonzero, d, y):
        return self(d, y), (d["x"], y)

    def vjp_bwd(self, residuals, ct, d, y):
        back = super().vjp_bwd_retval((*residuals, "a text"), ct)
        d["x"].accum(back[0]["x"])
        y.accum(back[1])

    def batch_dim_rule(self, axis, dims):
        assert axis.size == 3 and dims in (({"x": 0}, None), ({"x": 1}, None), ({"x": 0}, 0)), dims
        return 0


scalar = jax.typeof(jnp.float32(0))
power = lambda x, y, kind=Power, **options: kind(scalar, scalar, n=3, **options)({"x": x}, y)
close = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-5)
"""


def test_operations_with_rules_as_methods(run):
    text = (
        _POWER
        + """
x, y = jnp.float32(1.5), jnp.float32(2.0)
for call in (power, jax.jit(power), jax.checkpoint(power)):
    out, rest = call(x, y)
    close([out, rest["sum"]], [1.5**3 * 2, 3.5])
assert Power(scalar, scalar, n=3) == Power(scalar, scalar, n=3) != Power(scalar, scalar, n=4)
(eqn,) = jax.make_jaxpr(power)(x, y).eqns
assert eqn.primitive.name == "call_hi_primitive" and eqn.params["_prim"] == Power(scalar, scalar, n=3)

both = lambda x, y, **options: power(x, y, **options)[0] * 2 + power(x, y, **options)[1]["sum"]
for factor in (1.0, 10.0):
    grad = jax.grad(lambda x, y: both(x, y, factor=factor), argnums=(0, 1))
    wanted = [factor * (2 * 3 * 1.5**2 * 2 + 1), factor * (2 * 1.5**3 + 1)]
    close(grad(x, y), wanted)
    close(jax.jit(grad)(x, y), wanted)
    moved = jax.jvp(lambda x: both(x, y, factor=factor), (x,), (jnp.float32(1),))[1]  # the transpose of the vjp rule
    close(moved, wanted[0])
    close(jax.linearize(lambda x: both(x, y, factor=factor), x)[1](1.0), wanted[0])
close(jax.grad(jax.grad(lambda x: power(x, y)[0]))(x), 6 * 1.5 * 2)
try:
    jax.vmap(power)(jnp.ones(3), jnp.ones(3))
except NotImplementedError as error:
    print("batch_dim_rule" in str(error))
"""
    )
    assert run(text) == "True"


def test_operations_are_mapped(run):
    text = (
        _POWER
        + """
import functools
power = functools.partial(power, kind=MappedPower)
xs, ys = np.array([0.5, 1.5, -2], np.float32), np.array([2, 3, 4], np.float32)
out, rest = jax.vmap(power, in_axes=(0, None))(xs, 2.0)
close(out, xs**3 * 2)
close(rest["sum"], xs + 2)
close(jax.jit(jax.vmap(power))(xs, ys)[0], xs**3 * ys)
one = lambda x, y: power(x, y, factor=10.0)[0]
close(jax.vmap(jax.grad(one))(xs, ys), 30 * xs**2 * ys)
total = lambda x, y: jax.vmap(one, in_axes=(0, None))(x, y).sum()
dx, dy = jax.grad(total, argnums=(0, 1))(xs, 2.0)  # the vjp rule of the mapped operation
close(dx, 60 * xs**2)
close(dy, 10 * (xs**3).sum())
grid = np.stack([xs, xs + 1, xs - 1])
twice = jax.vmap(jax.vmap(one, in_axes=(0, None)), in_axes=(0, None))
close(twice(grid, 2.0), grid**3 * 2)
close(jax.grad(lambda x: twice(x, 2.0).sum())(grid), 60 * grid**2)
"""
    )
    run(text)


def test_forward_rules_and_transposes(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental import hijax

    class Sine(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()
        expand = staticmethod(jnp.sin)
        def jvp(self, primals, tangents):
            (x,), (t,) = primals, tangents
            return self(x), 7 * t * jnp.cos(x)

    class Linearized(Sine):
        def jvp(self, primals, tangents): raise AssertionError
        def lin(self, nonzero, x): return self(x), jnp.cos(x)
        def linearized(self, slope, t): return 7 * t * slope
    Linearized.jvp = hijax.VJPHiPrimitive.jvp

    class Twice(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()
        def expand(self, x): return 2 * x
        def transpose(self, ct, x): x.accum(5 * ct)

    x = jnp.asarray([0.5, 1.0, 2.0])
    aval = jax.typeof(x)
    for kind in (Sine, Linearized):
        sine = kind(aval)
        np.testing.assert_allclose(jax.jvp(sine, (x,), (x,))[1], 7 * x * np.cos(x), rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x: sine(x).sum())(x), 7 * np.cos(x), rtol=1e-6)
    (back,) = jax.linear_transpose(Twice(aval), x)(x)
    np.testing.assert_allclose(back, 5 * x)
    try:
        Twice(aval)(x, x)
    except ValueError as error:
        print(type(error).__name__)
    """
    assert run(text) == "ArgumentError"


def test_values_of_own_types(run):
    text = """
    import dataclasses, jax, jax.numpy as jnp, numpy as np
    from jax.experimental import hijax

    @dataclasses.dataclass(frozen=True)
    class Scaled:
        values: object
        scale: object

    @dataclasses.dataclass(frozen=True)
    class ScaledType(hijax.HiType):
        shape: tuple
        def lo_ty(self): return [jax.core.ShapedArray(self.shape, jnp.dtype("float32")), jax.typeof(jnp.float32(0))]
        def lower_val(self, x): return [x.values, x.scale]
        def raise_val(self, values, scale): return Scaled(values, scale)
        def to_tangent_aval(self): return self

    hijax.register_hitype(Scaled, lambda x: ScaledType(jnp.shape(x.values)))

    class Pack(hijax.HiPrimitive):
        def abstract_eval(self, values, scale): return ScaledType(values.shape), set()
        def to_lojax(self, values, scale): return Scaled(values, scale)
        def jvp(self, primals, tangents): return pack(*primals), pack(*tangents)
        def transpose(self, ct, values, scale):
            assert hijax.is_undefined_primal(values) and hijax.is_undefined_primal(scale)
            return [ct.values, ct.scale]

    class Unpack(hijax.HiPrimitive):
        multiple_results = True
        def abstract_eval(self, x): return ScaledType.lo_ty(x), set()
        def to_lojax(self, x): return [x.values, x.scale]
        def jvp(self, primals, tangents): return unpack(*primals), unpack(*tangents)
        def transpose(self, cts, x): return [pack(*cts)]

    pack, unpack = Pack("pack").bind, Unpack("unpack").bind

    def loss(values, scale):
        values, scale = unpack(pack(values, scale))
        return (values**2).sum() * scale

    x, s = np.array([1, 2, 3], np.float32), np.float32(4)
    packed = Scaled(jnp.asarray(x), jnp.asarray(s))
    assert jax.typeof(packed) == ScaledType((3,)) and jax.tree.leaves([packed, 1]) == [packed, 1]
    for f in (loss, jax.jit(loss)):
        np.testing.assert_allclose(f(x, s), 56)
        dx, ds = jax.grad(f, argnums=(0, 1))(x, s)
        np.testing.assert_allclose(dx, 8 * x)
        np.testing.assert_allclose(ds, 14)
        np.testing.assert_allclose(jax.jvp(f, (x, s), (x, s))[1], 3 * 56)
    of_packed = lambda p: unpack(p)[0].sum() * unpack(p)[1]
    grad = jax.jit(jax.grad(of_packed))(packed)
    assert isinstance(grad, Scaled)
    np.testing.assert_allclose(grad.values, 4 * np.ones(3))
    np.testing.assert_allclose(grad.scale, 6)
    kept = jax.lax.fori_loop(0, 3, lambda i, p: pack(*[2 * part for part in unpack(p)]), packed)
    np.testing.assert_allclose(kept.values, 8 * x)
    assert jax.jit(lambda p: p)(packed).scale == 4
    """
    run(text)


_TALLY = """
import dataclasses
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import cur_qdd, hijax


@dataclasses.dataclass(frozen=True)
class State:
    avals: tuple


class Tally:
    '''Arrays that operations replace in place.'''

    __slots__ = ("arrays",)

    def cur_qdd(self):
        return State(tuple(map(jax.typeof, self.arrays)))


@dataclasses.dataclass(frozen=True)
class TallyType(hijax.MutableHiType):
    def lo_ty_qdd(self, qdd):
        return [lo for aval in qdd.avals for lo in aval.lo_ty()]

    def new_from_loval(self, qdd, *values):
        made = Tally()
        made.arrays = list(values)
        return made

    def read_loval(self, qdd, tally):
        return list(get_p.bind(tally, avals=cur_qdd(tally).avals))

    def update_from_loval(self, qdd, tally, *values):
        put_p.bind(tally, *values)


hijax.register_hitype(Tally, lambda tally: TallyType())


class Make(hijax.HiPrimitive):
    def abstract_eval(self, *avals):
        return hijax.AvalQDD(TallyType(), State(avals)), set()

    def to_lojax(self, *arrays):
        return TallyType().new_from_loval(None, *arrays)


class Get(hijax.HiPrimitive):
    multiple_results = True

    def abstract_eval(self, tally, *, avals):
        return list(avals), set()

    def to_lojax(self, tally, *, avals):
        return list(tally.arrays)


class Put(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, tally, *arrays):
        tally.arrays = list(arrays)
        return []


make_p, get_p, put_p = Make("make"), Get("get"), Put("put")
get = lambda tally: get_p.bind(tally, avals=cur_qdd(tally).avals)
close = lambda found, wanted: np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)
"""


def test_mutable_values_are_changed_by_compiled_functions(run):
    text = (
        _TALLY
        + """
tally, other = make_p.bind(jnp.zeros(2), jnp.int32(0)), make_p.bind(jnp.ones(2), jnp.int32(5))


@jax.jit
def count(tally, x):
    total, n = get(tally)
    put_p.bind(tally, total + x, n + 1)
    return get(tally)[0] * 2


for k in range(3):
    close(count(tally, jnp.array([1.0, 2.0])), [2.0 * (k + 1), 4.0 * (k + 1)])
count(other, jnp.array([1.0, 2.0]))
close(get(tally)[0], [3, 6])
close(get(tally)[1], 3)
close(get(other)[0], [2, 3])

jax.jit(lambda x: put_p.bind(tally, x, get(tally)[1] + 1) and None)(jnp.ones(2))  # closed over
close(get(tally)[0], [1, 1])
close(get(tally)[1], 4)


def body(carry, x):
    total, n = get(tally)
    put_p.bind(tally, total * x, n)
    return carry, get(tally)[0].sum()


close(jax.lax.scan(body, None, jnp.array([2.0, 3.0]))[1], [4, 12])
close(get(tally)[0], [6, 6])


@jax.jit
def inside(x):
    local = make_p.bind(x)
    put_p.bind(local, get(local)[0] * 2)
    put_p.bind(local, get(local)[0], x)  # other parts, where it was made
    first, second = get(local)
    return first + second


close(inside(3.0), 9)
assert jax.tree.leaves({"a": tally})[0] is tally
put_p.bind(tally, jnp.ones(3))
close(get(tally)[0], [1, 1, 1])
print(jax.eval_shape(lambda t: get(t)[0], tally).shape)
"""
    )
    assert run(text) == "(3,)"


def test_mutable_values_are_changed_by_differentiated_functions(run):
    text = (
        _TALLY
        + """
tally = make_p.bind(jnp.zeros(2))


def loss(x):
    put_p.bind(tally, jax.lax.stop_gradient(x) * jnp.ones(2))
    return x**3 + get(tally)[0].sum()


close(jax.grad(loss)(2.0), 12)
close(get(tally)[0], [2, 2])
try:
    jax.grad(lambda x: put_p.bind(tally, x * jnp.ones(2)) or x)(2.0)
except Exception as error:
    print("stop_gradient" in str(error))
close(get(tally)[0], [2, 2])
"""
    )
    assert run(text) == "True"


def test_mutable_values_do_not_change_their_parts_inside_of_functions(run):
    text = (
        _TALLY
        + """
tally = make_p.bind(jnp.zeros(2))
for call in (lambda t: put_p.bind(t, jnp.zeros(3)), lambda t: put_p.bind(t, jnp.zeros(2), jnp.zeros(2))):
    try:
        jax.jit(lambda t: call(t) and None)(tally)
    except Exception as error:
        print(type(error).__name__, "another number, shape or dtype" in str(error), end=" ")
    close(get(tally)[0], [0, 0])
"""
    )
    assert run(text) == "UnsupportedError True UnsupportedError True"


def test_typed_keys_are_parts_of_mutable_values(run):
    text = (
        _TALLY
        + """
tally = make_p.bind(jax.random.key(3))


@jax.jit
def draw(tally):
    key, here = jax.random.split(get(tally)[0])
    put_p.bind(tally, key)
    return jax.random.uniform(here)


key = jax.random.key(3)
for _ in range(2):
    key, here = jax.random.split(key)
    close(draw(tally), jax.random.uniform(here))
print((jax.random.key_data(get(tally)[0]) == jax.random.key_data(key)).all())
"""
    )
    assert run(text) == "True"


def test_a_mutable_value_that_is_given_twice_is_written_once(run):
    text = (
        _TALLY
        + """
class Move(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, first, second, x):
        first.arrays = [first.arrays[0] + x, first.arrays[1]]
        second.arrays = [second.arrays[0], second.arrays[1] + 10 * x]
        return [second, second.arrays[0]]


move = Move("move").bind
make = lambda: make_p.bind(jnp.zeros(2), jnp.ones(2))
for wrap in (lambda f: f, jax.jit):
    one, other = make(), make()
    total = wrap(lambda x: move(one, one, x)[1])(jnp.ones(2))
    close(total, [1, 1])
    close(get(one), [[1, 1], [11, 11]])
    wrap(lambda x: move(one, other, x)[1])(jnp.ones(2))
    close(get(one), [[2, 2], [11, 11]])
    close(get(other), [[0, 0], [11, 11]])
one = make()
assert move(one, one, jnp.ones(2))[0] is one
"""
    )
    run(text)


def test_states_of_other_values_are_refused(run):
    text = """
    from jax.experimental import cur_qdd
    try:
        cur_qdd(3.0)
    except ValueError as error:
        print("3.0 of type float" in str(error) and "register_hitype" in str(error))
    """
    assert run(text) == "True"


def test_rules_for_cotangents_need_not_be_linear(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental import hijax

    class Limit(hijax.VJPHiPrimitive):
        def __init__(self, most, x):
            self.in_avals, self.out_aval, self.params = (most, x), x, {}
            super().__init__()
        def expand(self, most, x): return 1 * x
        def vjp_fwd(self, nonzero, most, x): return self(most, x), most
        def vjp_bwd_retval(self, most, ct): return None, jnp.clip(ct, -most, most)
        def batch_dim_rule(self, axis, dims): return dims[1]

    limit = lambda x: Limit(jax.typeof(0.75), jax.typeof(x))(0.75, x)
    f = lambda x: jnp.sin(limit(x))
    xs = np.linspace(0, 3, 7, dtype=np.float32)
    wanted = np.clip(np.cos(xs), -0.75, 0.75)
    close = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    for grad in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)), jax.grad(jax.checkpoint(f))):
        close(jax.vmap(grad)(xs), wanted)
        close(grad(xs[1]), wanted[1])
    close(jax.grad(lambda xs: jax.vmap(f)(xs).sum())(xs), wanted)
    scanned = lambda xs: jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0]
    close(jax.grad(scanned)(xs), wanted)
    close(jax.vmap(jax.grad(scanned))(np.stack([xs, xs])), [wanted, wanted])
    twice = jax.grad(jax.grad(lambda x: f(x) ** 2))  # of clip(sin 2x); its cotangent is clipped, too
    close([twice(xs[5]), twice(xs[6])], [0, 0.75])
    try:
        jax.jvp(f, (xs[0],), (xs[0],))
    except Exception as error:
        print("not linear" in str(error))
    """
    assert run(text) == "True"


def test_rules_for_cotangents_see_values_outside_of_jit(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental import hijax

    class Sided(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()
        def expand(self, x): return jnp.abs(x)
        def vjp_fwd(self, nonzero, x): return self(x), x
        def vjp_bwd_retval(self, x, ct): return (3 * ct if x > 0 else -2 * ct,)
        def jvp(self, primals, tangents):
            (x,), (t,) = primals, tangents
            return self(x), 3 * t if x > 0 else -2 * t

    sided = lambda x: Sided(jax.typeof(x))(x)
    one = jnp.float32(1)
    for x, slope in ((2.0, 3.0), (-2.0, -2.0)):
        x = jnp.float32(x)
        y, back = jax.vjp(sided, x)
        forward = jax.linearize(sided, x)[1]
        found = [y, jax.grad(sided)(x), back(one)[0], jax.jvp(sided, (x,), (one,))[1], forward(one)]
        np.testing.assert_allclose(found, [2, *[slope] * 4])
    """
    run(text)


def test_linear_programs_of_operations_are_mapped_and_differentiated(run):
    text = (
        _POWER
        + """
x, y, ts = jnp.float32(1.5), jnp.float32(2.0), np.array([1, 2, -3], np.float32)
only = lambda x: power(x, y, kind=MappedPower, factor=10.0)[0]
slope = 10 * 3 * 1.5**2 * 2
forward = jax.linearize(only, x)[1]
for call in (jax.vmap(forward), jax.jit(jax.vmap(forward)), jax.vmap(jax.jit(forward))):
    close(call(ts), slope * ts)
close(jax.vmap(lambda t: jax.jvp(only, (x,), (t,))[1])(ts), slope * ts)
close(jax.vmap(lambda x, t: jax.jvp(only, (x,), (t,))[1])(ts, ts), 60 * ts**3)
close(jax.grad(lambda t: forward(t))(x), slope)
close(jax.linear_transpose(jax.vmap(forward), ts)(ts)[0], slope * ts)
close(jax.grad(lambda x: jax.jvp(only, (x,), (jnp.float32(1),))[1])(x), 10 * 6 * 1.5 * 2)
close(jax.jvp(jax.grad(only), (x,), (jnp.float32(1),))[1], 10 * 6 * 1.5 * 2)
close(jax.jvp(lambda x: jax.jvp(only, (x,), (jnp.float32(1),))[1], (x,), (jnp.float32(1),))[1], 10 * 6 * 1.5 * 2)
"""
    )
    run(text)
