"""The on-disk cache: hits, misses, and files that are never trusted."""

import os
import shutil
import stat
import warnings

import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import cache, cache_policy

F8 = ShapedArray((8,), np.float32)


@pytest.fixture
def use(monkeypatch):
    """Replace the cache's settings: directory, switch and size limit."""

    def use(directory, enabled=True, max_bytes=cache_policy.DEFAULT_BYTES):
        monkeypatch.setattr(cache_policy, "_read", lambda: (enabled, str(directory), max_bytes))
        cache._usable.cache_clear()

    yield use
    monkeypatch.undo()
    cache._usable.cache_clear()


@pytest.fixture
def folder(use, tmp_path):
    use(tmp_path / "cache")
    return tmp_path / "cache"


def compile(number=1.0, line=1, options=None):
    """Compile `x + number` and check its result for zeros; return the counters of compilations and of the cache."""

    def body(e, x):
        e.place = e.location("/home/me/model.py", line, "model")
        return [e.op("stablehlo.add", [x, e.full(number, F8)], [F8])]

    before = xla.counters.snapshot()
    program = xla.compile(xla.build("f", [F8], body), out_avals=[F8], options=options)
    result = xla.to_numpy(program.execute([np.zeros(8, np.float32)])[0])
    assert result.tolist() == [number] * 8
    grown = xla.counters.since(before)
    return {name: grown.get(name, 0) for name in ("compiles", "cache_hits", "cache_writes")}


COMPILED = {"compiles": 1, "cache_hits": 0, "cache_writes": 1}
LOADED = {"compiles": 0, "cache_hits": 1, "cache_writes": 0}


def test_second_time_is_loaded(folder):
    assert compile() == COMPILED and compile() == LOADED and compile(2.0) == COMPILED
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_the_users_lines_do_not_split_it(folder):
    assert compile(line=1) == COMPILED and compile(line=99) == LOADED


def test_options_version_and_processor_split_it(folder, monkeypatch):
    assert compile() == COMPILED
    assert compile(options={"xla_backend_optimization_level": 0}) == COMPILED
    monkeypatch.setattr(cache.processor, "identity", lambda: b"another one")
    assert compile() == COMPILED
    monkeypatch.setattr(cache, "FULL_VERSION", "0.0.1")
    assert compile() == COMPILED


class Gpu:
    """A GPU, as far as the key of a program reads it."""

    platform, compute_capability, core_count = "gpu", "9.0", 132

    def __init__(self, kind="NVIDIA H200", version="cuda 13000", processes=1):
        self.device_kind, self.platform_version, self.processes = kind, version, processes
        self.client = self  # of this one device

    def local_devices(self):
        return [self]

    def devices(self):
        return [self] * self.processes


def test_the_fastest_kernels_of_a_card_are_kept_beside_the_programs(folder, use):
    kernels = cache.kernels(Gpu())
    assert kernels.parent == folder and kernels == cache.kernels(Gpu()) != cache.kernels(Gpu("NVIDIA H100"))
    (kernels / "choice").write_text("a kernel")
    assert not cache.files(folder), "they are no programs"
    cache.clear()
    assert not kernels.exists()
    assert cache.kernels(Gpu(processes=2)) is cache.kernels(xla.default_device()) is None
    use(folder, enabled=False)
    assert cache.kernels(Gpu()) is None


def test_programs_for_gpus_are_those_of_a_card_and_its_libraries(folder, monkeypatch, tmp_path):
    options = xla.compile_options.options(xla.default_device(), None, None)
    key = lambda gpu: cache.key(b"a fingerprint", options, gpu)
    assert key(Gpu()) == key(Gpu()) != key(Gpu("NVIDIA H100"))
    assert key(Gpu()) != key(Gpu(version="cuda 12090"))
    assert key(Gpu()) != cache.key(b"a fingerprint", options, xla.default_device())
    assert key(Gpu(processes=2)) is None, "all processes compile, since they share the work"
    before = key(Gpu())
    library = tmp_path / "libcudnn.so.9"
    library.write_bytes(b"9.1")
    monkeypatch.setattr(cache.cuda, "_loaded_libraries", [library])
    assert key(Gpu()) != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b"garbage",
        lambda b: b[: len(b) // 2],
        lambda b: b[:-1],
        lambda b: b + b"x",
        lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:],
        lambda b: b[:-200] + bytes([b[-200] ^ 1]) + b[-199:],
    ],
)
def test_damaged_files_are_compiled_again(folder, damage):
    compile()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert compile() == COMPILED and compile() == LOADED
    assert [f.name for f in folder.iterdir()] == [file.name]


def test_whole_files_with_nonsense_inside(folder):
    compile()
    (file,) = folder.iterdir()
    body = b"no executable"
    file.write_bytes(cache._header(file.name, body) + body)
    assert compile() == COMPILED and compile() == LOADED


def test_files_under_each_others_names_are_not_run(folder):
    """A swapped program would give the other number, and `compile` checks the result."""
    compile(1.0)
    (first,) = folder.iterdir()
    compile(2.0)
    (second,) = set(folder.iterdir()) - {first}
    first.rename(folder / "aside")
    second.rename(first)
    (folder / "aside").rename(second)
    assert compile(1.0) == COMPILED and compile(2.0) == COMPILED
    assert compile(1.0) == LOADED and compile(2.0) == LOADED


def test_a_text_is_bound_to_its_name(folder):
    folder.mkdir(mode=0o700)
    one, two = "1" * 64, "2" * 64
    cache.remember(one, "this way")
    shutil.copy(folder / f"{one}.text", folder / f"{two}.text")
    shutil.copy(folder / f"{one}.text", folder / two)
    assert cache.recall(one) == "this way" and cache.recall(two) is None
    assert cache._read(two) is None  # a text is not loaded as a program
    assert [file.name for file in folder.iterdir()] == [f"{one}.text"]


def test_turned_off(use, tmp_path):
    use(tmp_path / "cache", enabled=False)
    assert compile()["compiles"] == compile()["compiles"] == 1
    assert not (tmp_path / "cache").exists()


def test_where(use, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    use("")
    assert cache.directory() == tmp_path / "functorch_like"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    use("")
    assert cache.directory() == tmp_path / "home" / ".cache" / "functorch_like"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_directory_that_others_can_write_to_is_not_used(use, tmp_path, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    use(tmp_path / "open")
    with pytest.warns(UserWarning, match=rf"other users can write to .*open \(mode {mode:04o}: chmod go-w\)"):
        compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the warning is given once
        assert compile()["compiles"] == 1
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o700])
def test_a_directory_that_others_can_read_is_used(use, tmp_path, mode):
    (tmp_path / "read").mkdir()
    (tmp_path / "read").chmod(mode)
    use(tmp_path / "read")
    assert compile() == COMPILED and compile() == LOADED
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "read").iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o622, 0o620, 0o602])
def test_a_file_that_others_can_write_to_is_compiled_again(folder, mode):
    compile()
    (file,) = folder.iterdir()
    file.chmod(mode)
    assert compile() == COMPILED and compile() == LOADED
    file.chmod(0o644)  # others may read the file
    assert compile() == LOADED


def test_a_file_of_another_user_is_compiled_again(folder, monkeypatch):
    """Such files appear if another user replaces the directory after the check."""
    compile()
    assert cache.directory() == folder  # the owner of the directory is checked here, once
    monkeypatch.setattr(os, "getuid", lambda: -1)
    assert compile() == COMPILED


def test_a_directory_of_another_user_is_not_used(use, tmp_path, monkeypatch):
    use(tmp_path)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert cache.directory() is None


def test_a_path_that_is_a_file(use, tmp_path):
    (tmp_path / "file").write_text("")
    use(tmp_path / "file")
    with pytest.warns(UserWarning, match="Set FT_CACHE_DIR"):
        assert compile()["compiles"] == 1


def test_a_full_disk_stops_nothing(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    assert compile() == {"compiles": 1, "cache_hits": 0, "cache_writes": 0}


def test_half_written_files_are_not_left(folder, monkeypatch):
    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", fails)
    assert compile()["cache_writes"] == 0 and list(folder.iterdir()) == []


def test_sweeping_removes_what_was_not_used_for_longest(folder, use):
    for i in range(4):
        compile(float(i))
    files = sorted(folder.iterdir(), key=lambda f: f.stat().st_mtime_ns)
    for age, file in enumerate(files):
        os.utime(file, (1000 + age, 1000 + age))
    assert compile(0.0) == LOADED  # the first one has just been used
    sizes = [file.stat().st_size for file in files]
    use(folder, max_bytes=sum(sizes) - 1)
    cache.sweep(folder)
    assert files[0].exists() and not files[1].exists() and files[3].exists()


@pytest.mark.parametrize("programs", [0, 2])
def test_small_limits_are_kept(folder, use, programs):
    compile(0.0)
    size = next(folder.iterdir()).stat().st_size
    use(folder, max_bytes=int(programs * size * 1.2))
    for i in range(1, 6):
        compile(float(i))
        assert sum(file.stat().st_size for file in folder.iterdir()) <= programs * size * 1.2


def test_the_directory_is_listed_seldom(folder, use, monkeypatch):
    """After a listing, a process writes an eighth of what is free before the next one."""
    compile(0.0)
    size = next(folder.iterdir()).stat().st_size
    lists = []
    files = cache.files
    monkeypatch.setattr(cache, "files", lambda place: lists.append(1) or files(place))
    monkeypatch.setattr(cache, "_SWEEPING", ("",))  # the first program counts
    use(folder, max_bytes=100 * size)
    for i in range(1, 31):
        compile(float(i))
    assert 1 <= len(lists) <= 4
    assert sum(file.stat().st_size for file in folder.iterdir()) > 25 * size


def test_a_fingerprint_finds_what_its_module_was_compiled_to(folder):
    """The cache has one program and a text for each fingerprint; with a known fingerprint no module is built."""
    made = []

    def module():
        made.append(1)
        return xla.build("f", [F8], lambda e, x: [e.op("stablehlo.sine", [x], [F8])])

    def compiled(fingerprint):
        before = xla.counters.snapshot()
        xla.compile(module, in_avals=[F8], out_avals=[F8], fingerprint=fingerprint)
        grown = xla.counters.since(before)
        return grown.get("compiles", 0), grown.get("cache_hits", 0), len(made)

    assert compiled(b"one") == (1, 0, 1)
    assert compiled(b"one") == (0, 1, 1)
    assert compiled(b"two") == (0, 1, 2)  # as after a change of the package's code that leaves the module the same
    assert compiled(b"two") == (0, 1, 2)
    assert len(list(folder.iterdir())) == 3 and cache.programs(cache.files(folder)) == 1


def test_fingerprints_under_each_others_names(folder):
    """After their texts are swapped, each fingerprint still gets its own program."""

    def compiled(number, fingerprint):
        before = xla.counters.snapshot()
        program = xla.compile(
            lambda: xla.build("f", [F8], lambda e, x: [e.op("stablehlo.add", [x, e.full(number, F8)], [F8])]),
            in_avals=[F8],
            out_avals=[F8],
            fingerprint=fingerprint,
        )
        assert xla.to_numpy(program.execute([np.zeros(8, np.float32)])[0]).tolist() == [number] * 8
        return xla.counters.since(before).get("compiles", 0)

    assert compiled(1.0, b"one") == compiled(2.0, b"two") == 1
    one, two = folder.glob("*.text")
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    assert compiled(1.0, b"one") == compiled(2.0, b"two") == 0


def test_a_second_process_hits(run, tmp_path):
    text = """
    import numpy as np
    from functorch_like.avals import ShapedArray
    from functorch_like.backends import xla
    aval = ShapedArray((8,), np.float32)
    module = xla.build("f", [aval], lambda e, a: [e.op("stablehlo.sine", [a], [aval])])
    program = xla.compile(module, out_avals=[aval])
    assert np.allclose(program.execute([np.ones(8, np.float32)])[0], np.sin(1))
    print(xla.counters.compiles, xla.counters.cache_hits)
    """
    place = {"FT_CACHE": "1", "FT_CACHE_DIR": str(tmp_path / "cache"), "FT_PLATFORM": "cpu"}
    assert run(text, **place) == "1 0" and run(text, **place) == "0 1"
    assert run(text, **place, XLA_FLAGS="--xla_cpu_prefer_vector_width=512") == "1 0"
