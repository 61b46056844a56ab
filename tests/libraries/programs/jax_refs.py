"""References to arrays: state of jitted functions, loops and branches, and side values of gradients and maps."""

import jax
import jax.numpy as jnp


def jitted():
    state, count = jax.new_ref(jnp.zeros((2, 3))), jax.new_ref(0)

    @jax.jit
    def step(out, x):
        out[0] += x
        out[1, 1:] = x[:2] * 2.0
        count[...] += 1
        local = jax.new_ref(x)
        local[jnp.array([0, 2])] = jnp.array([7.0, 8.0])
        return local[...] + out[0]

    results = [step(state, jnp.arange(3.0) + k) for k in range(3)]
    return {"results": jnp.stack(results), "state": state[...], "count": count[...]}


def loops():
    total, rows, picked = jax.new_ref(0.0), jax.new_ref(jnp.zeros(4)), jax.new_ref(jnp.zeros(2))

    def body(carry, x):
        total[...] += x * carry
        rows[jnp.int32(x)] = total[...]
        return carry + 1.0, total[...]

    @jax.jit
    def run(n):
        carry, sums = jax.lax.scan(body, 1.0, jnp.arange(4.0))
        jax.lax.fori_loop(0, n, lambda i, c: (rows.addupdate(2.0, i), c)[1], 0)

        def high(x):
            picked[0] = x

        def low(x):
            picked[1] -= x

        for x in (1.0, 5.0, 9.0):
            jax.lax.cond(total[...] > x, high, low, x)
        return carry, sums

    carry, sums = run(3)
    mapped = jax.lax.map(lambda x: x + total[...], jnp.arange(2.0))
    return {"carry": carry, "sums": sums, "rows": rows[...], "picked": picked[...], "mapped": mapped}


def derivatives():
    side = jax.new_ref(0.0)

    def plain(x):
        ref = jax.new_ref(jnp.zeros(3))

        def body(i, c):
            ref[i] = jnp.sin(x * i)
            return c

        jax.lax.fori_loop(0, 3, body, 0)
        ref[1] *= ref[2]
        return (ref[...] ** 2).sum()

    def watched(x, ref):
        y = jnp.sin(x) * x
        ref[...] = jax.lax.stop_gradient(y)
        return y * side[...]

    @jax.custom_vjp
    def stash(ref, x):
        return x

    def backward(ref, ct):
        ref[...] += ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), backward)
    side[...] = 3.0
    ref, kept = jax.new_ref(0.0), jax.new_ref(0.0)
    slope = jax.jit(jax.grad(watched))(0.7, ref)
    stashed = jax.grad(lambda x: jnp.exp(stash(kept, x * 2.0)))(0.3)
    return {
        "grad": jax.grad(plain)(0.7),
        "jit(grad)": jax.jit(jax.grad(plain))(0.7),
        "grad(jit)": jax.grad(jax.jit(plain))(0.7),
        "vmap(grad)": jax.vmap(jax.grad(plain))(jnp.arange(3.0)),
        "jvp": jnp.stack(jax.jvp(plain, (0.7,), (1.0,))),
        "slope": slope,
        "watched": ref[...],
        "stashed": stashed,
        "kept": kept[...],
    }


def maps():
    out = jax.new_ref(jnp.zeros((3, 3)))
    columns = jax.new_ref(jnp.zeros((2, 3)))
    shared = jax.new_ref(2.0)

    def distance(x, y, ref):
        ref[...] = jnp.sum((x - y) ** 2) * shared[...]

    def column(ref, x):
        ref[0] += x
        ref[1] = 5.0
        return ref[0] * 2

    rows = jnp.arange(12.0).reshape(3, 4)
    jax.vmap(jax.vmap(distance, (0, None, 0)), (None, 0, 0))(rows, rows, out)
    twice = jax.vmap(column, (1, 0))(columns, jnp.arange(3.0))
    return {"out": out[...], "columns": columns[...], "twice": twice}


def functions():
    ref = jax.new_ref(jnp.arange(5))
    before = jax.ref.swap(ref, 3, 10)
    jax.ref.set(ref, 0, 4)
    jax.ref.addupdate(ref, slice(1, 3), jnp.array([5, 6]))
    jax.ref.addupdate(ref, jnp.array([4, 4]), jnp.array([1, 2]))
    found = jax.ref.get(ref, slice(2, 5))
    shape = jax.eval_shape(lambda r: r[1:], ref).shape
    return {"before": before, "found": found, "shape": shape, "last": jax.freeze(ref)}


def main():
    parts = [jitted, loops, derivatives, maps, functions]
    return {f"{part.__name__}: {name}": value for part in parts for name, value in part().items()}
