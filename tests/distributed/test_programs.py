"""Programs over the devices of several processes: values, compilation, and the end of processes after a loss."""

from support.processes import collect, quiet, start, start_some

MESH = """
    from functorch_like.sharding import NamedSharding, PartitionSpec as P
    initialize(**OPTIONS)
    mesh = ft.make_mesh((ft.device_count(),), ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    N = ft.device_count()
"""

STEP = (
    """
    OPTIONS = {}
    """
    + MESH.strip()
    + """
    from functorch_like import multihost_utils as mu
    from functorch_like.backends.xla import counters
    rng = np.random.default_rng(0)  # the same in all processes
    X, Y = rng.standard_normal((8 * N, 5)), rng.standard_normal(8 * N)

    def loss(w, x, y):
        return fnp.mean((x @ w - y) ** 2)

    step = ft.jit(lambda w, x, y: w - 0.1 * ft.grad(loss)(w, x, y), out_shardings=whole)
    w, x, y = ft.device_put(np.zeros(5), whole), ft.device_put(X, split), ft.device_put(Y, split)
    assert len(x.addressable_shards) == ft.local_device_count() and not x.is_fully_addressable
    before = counters.compiles
    for _ in range(20):
        w = step(w, x, y)
    compiled = counters.compiles - before

    expected = np.zeros(5)
    for _ in range(20):
        expected -= 0.1 * 2 / (8 * N) * X.T @ (X @ expected - Y)
    np.testing.assert_allclose(np.asarray(w), expected, rtol=1e-12)
    mu.assert_equal(w)
    np.testing.assert_array_equal(mu.process_allgather({"x": x})["x"], X)  # it is spread already: all of it
    assert mu.process_allgather(compiled).sum() == 1, "one of the processes compiles, the others load"
    try:
        np.asarray(x)
    except ft.errors.DeviceError as error:
        assert "has parts in other processes" in str(error)
"""
)


def test_a_training_step(tmp_path):
    ended = start(STEP, range(2), 2, FT_CPU_DEVICES="2", FT_CACHE="1", FT_CACHE_DIR=str(tmp_path / "cache"))
    assert [e.status for e in ended] == [0] * 2, ended


LOSS = (
    """
    OPTIONS = {"heartbeat_timeout_seconds": 30 if os.environ["FT_CPU_DEVICES"] == "1" else 5}
    """
    + MESH.strip()
    + """
    f = ft.jit(lambda x: fnp.sum(x, axis=0), out_shardings=whole)
    x = ft.device_put(np.ones((N, 4)), split)
    for k in range(10):
        if k == 5 and RANK == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        y = f(x)
        if ft.local_device_count() > 1:  # calls return before they have finished
            y.block_until_ready()
"""
)


def test_a_peer_that_is_killed():
    ended = start(LOSS, range(3), 3, FT_CPU_DEVICES="1")
    assert [e.status for e in ended] == [1, 1, -9], [e.errors for e in ended]
    for e in ended[:2]:
        assert "functorch_like.errors.DistributedError" in e.errors, e.errors
        assert "cannot be finished: process 2 of 3 is gone: its connection closed" in e.errors, e.errors


def test_a_peer_of_several_devices_that_is_killed():
    """After the loss, XLA may wait for ever for the other devices of its own process; the process still ends."""
    ended = start(LOSS, range(3), 3, FT_CPU_DEVICES="2")
    assert [e.status for e in ended] == [1, 1, -9], [e.errors for e in ended]
    assert all("process 2 of 3 is gone: its connection closed" in e.errors for e in ended[:2])


FROZEN = (
    """
    OPTIONS = {"heartbeat_timeout_seconds": 3}
    """
    + MESH.strip()
    + """
    f = ft.jit(lambda x: fnp.sum(x, axis=0), out_shardings=whole)
    x = ft.device_put(np.ones((N, 4)), split)
    f(x)
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    f(x)
    print("never reached")
"""
)


def test_a_peer_that_freezes():
    """The other process hangs in a collective, where no exception reaches it; the package ends it in bounded time."""
    with start_some(FROZEN, range(2), 2) as (first, second):
        ((output, errors),) = collect([first])
        assert first.returncode == 1 and quiet(output) == ""
        assert "process 1 of 2 is gone: it was silent for 3 s: frozen" in errors
        assert second.poll() is None


DIFFERENT = (
    """
    OPTIONS = {"agreement_timeout_seconds": 3}
    """
    + MESH.strip()
    + """
    x = ft.device_put(np.ones((N, 4)), split)
    def refused(parts, f, *args):
        try:
            f(*args)
        except ft.errors.DistributedError as error:
            assert all(part in str(error) for part in parts), str(error)
        else:
            raise AssertionError(parts)

    def step(x):
        return fnp.sum(x * (2.0 if RANK else 3.0))
    refused([f"process {RANK} compiles 'step'", "compiles another version of 'step'"], ft.jit(step), x)

    def left(x): return x + fnp.sum(x)
    def right(x): return x - fnp.sum(x)
    refused(["'left'", "'right'", "the same order"], ft.jit(right if RANK else left), x)

    f = ft.jit(left)
    f(x)
    ft.clear_caches()
    if RANK == 0:
        f(x.addressable_shards[0].data)  # of its own devices a process may compile what it likes
    if RANK == 1:
        time.sleep(0.5)
    f(x)  # compiled again by each, agreed on before

    def late(x): return fnp.prod(x)
    if RANK == 0:
        refused(["compiling 'late' over 2 processes: process 1 did not come within 3 s"], ft.jit(late), x)
    ft.multihost_utils.sync_global_devices("end")
"""
)


def test_processes_that_run_different_programs():
    ended = start(DIFFERENT, range(2), 2)
    assert [e.status for e in ended] == [0] * 2, ended
