"""Kernel libraries, processors and platforms: reports about them, and effects of their settings."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import backends
from functorch_like.backends.xla import compile_options, cuda, memory, option_sets, probe, processor

YNN = "xla_cpu_experimental_ynn_fusion_type"


def cpu_options(**settings):
    with backends.flags(settings):
        return compile_options.chosen("cpu", fitting=option_sets.NONE)


# ------------------------------------------------------------------------------------------------------------ settings
def test_left_alone_the_rule_decides():
    assert cpu_options()[YNN] == ""
    assert "xla_cpu_use_onednn" not in cpu_options() and "xla_cpu_use_xnnpack" not in cpu_options()


def test_what_is_handed_to_ynnpack():
    assert cpu_options(ynn_fusions="dot, reduce")[YNN] == "LIBRARY_FUSION_TYPE_REDUCE,LIBRARY_FUSION_TYPE_DOT"
    assert cpu_options(ynn_fusions=["individual_dot"])[YNN] == "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
    assert cpu_options(ynn_fusions="none")[YNN] == "" == cpu_options(ynn_fusions=())[YNN]
    with pytest.raises(ft.errors.ArgumentError, match="'individual_convolution'"):
        backends.ynn.fusions = "dots"


def test_onednn_and_xnnpack():
    assert cpu_options(mkldnn_enabled=True).items() >= option_sets.ONEDNN.items()
    assert cpu_options(mkldnn_enabled=False)["xla_cpu_use_onednn"] is False
    assert cpu_options(xnnpack_enabled=True)["xla_cpu_use_xnnpack"] is True
    assert backends.mkldnn.fusions() == ("INDIVIDUAL_DOT",)


@pytest.mark.parametrize("setting", [{"ynn.fusions": "none"}, {"mkldnn.enabled": True}, {"xnnpack.enabled": True}])
def test_programs_compile_and_are_right_under_each(setting):
    x = np.random.default_rng(0).standard_normal((3, 40, 50)).astype(np.float32)
    with backends.flags(setting):
        got = ft.jit(lambda x: ft.nn.softmax(ft.numpy.einsum("bij,bkj->bik", x, x)))(x)
    scores = np.einsum("bij,bkj->bik", x, x, dtype=np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(got, weights / weights.sum(-1, keepdims=True), rtol=2e-3, atol=1e-6)


def test_availability_is_found_out_by_compiling(monkeypatch):
    assert backends.ynn.is_available() is probe.accepts(option_sets.PLAIN)
    assert not probe.accepts({"xla_cpu_there_is_no_such_library": True})
    monkeypatch.setattr(probe, "accepts", lambda options: False)
    assert not backends.ynn.is_available() and not backends.mkldnn.is_available()
    rows = {row[0]: row[4] for row in backends.describe().rows}
    if ft.default_backend() == "cpu":
        assert rows["ynn.fusions"] == "no: this jaxlib's XLA came without YNNPACK"


# ----------------------------------------------------------------------------------------------------------- processor
def test_the_processor(monkeypatch):
    found = backends.cpu.get_cpu_capability()
    assert found.vector_bits in (128, 256, 512) and found.threads >= 1 and found.cores >= 1
    assert found in found.describe() and found.name in found.describe()
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx2", "fma", "mmx"}))
    other = backends.capability.Capability()
    assert other == "AVX2" and other.vector_bits == 256 and other.instruction_sets == ("avx2", "fma")
    monkeypatch.setattr(processor, "features", frozenset)
    assert backends.capability.Capability() == "DEFAULT"


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("", "sse4_2 avx f16c avx2 fma avx512f avx512_vnni avx512_bf16 amx_bf16 amx_fp16"),
        ("--xla_cpu_max_isa=AMX", "sse4_2 avx f16c avx2 fma avx512f avx512_vnni avx512_bf16 amx_bf16"),
        ("--xla_cpu_max_isa=AVX512_BF16", "sse4_2 avx f16c avx2 fma avx512f avx512_vnni avx512_bf16"),
        ("--xla_cpu_max_isa=AVX512", "sse4_2 avx f16c avx2 fma avx512f"),
        ("--xla_dump_to=/tmp --xla_cpu_max_isa=avx2", "sse4_2 avx f16c avx2 fma"),
        ("--xla_cpu_max_isa=AVX2 --xla_cpu_max_isa=SSE4_2", "sse4_2"),  # the last one counts
    ],
)
def test_instructions_that_xla_is_forbidden_are_not_there(flags, left):
    have = ["sse4_2", "avx", "f16c", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_fp16"]
    assert processor.allowed(have, flags) == set(left.split())
    assert processor.allowed(["asimd", "bf16"], "--xla_cpu_max_isa=NEON") == {"asimd", "bf16"}


THREADS = """
import os
import functorch_like as ft
x = ft.numpy.ones((600, 600))
(x @ x).block_until_ready()
tasks = [open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task")]
print(tasks.count("tf_XLAEigen"), "NPROC" in os.environ)
try:
    ft.backends.cpu.num_threads = 7
except ft.errors.ArgumentError as e:
    print(e.reason)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_threads_are_settled_before_the_first_array():
    env = {**os.environ, "FT_CPU_THREADS": "3", "FT_PLATFORM": "cpu"}
    env.pop("NPROC", None)
    out = subprocess.run([sys.executable, "-c", THREADS], env=env, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["3 False", "cpu.num_threads is settled: a device was used already"]
    with pytest.raises(ft.errors.ArgumentError, match="holds for the process"):
        backends.flags({"cpu.num_threads": 2})


FAULTS = """
import resource
import numpy as np
import functorch_like as ft
x = ft.device_put(np.ones(10 << 20, "float32"))
f = ft.jit(lambda x: x + 1)
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
resident = lambda: int(open("/proc/self/statm").read().split()[1])
f(x).block_until_ready()
f.optimised()
of_calls = []
for _ in range(31):
    before = faults()
    f(x).block_until_ready()
    of_calls.append(faults() - before)
print(sorted(of_calls)[15])
del x
kept = resident()
ft.clear_caches()
print(kept - resident())
"""
PAGES = (10 << 20) * 4 // 4096  # pages of memory of one array


def _paged(**environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    env |= {"FT_PLATFORM": "cpu", **environment}
    done = subprocess.run([sys.executable, "-c", FAULTS], env=env, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(not hasattr(os, "confstr") or "CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="for glibc")
def test_freed_memory_is_kept_for_the_next_array():
    faults, given_back = _paged()
    assert faults < PAGES / 2 and given_back > PAGES / 2
    for asked in ({"FT_CPU_KEPT_MEMORY": "0"}, {"MALLOC_MMAP_THRESHOLD_": "1000000"}):
        faults, _ = _paged(**asked)
        assert faults >= PAGES


def test_how_much_memory_is_kept_is_settled_with_the_first_array():
    assert backends.cpu.kept_memory is None  # the limit is a part of the available memory
    ft.numpy.ones(3)
    with pytest.raises(ft.errors.ArgumentError, match=r"cpu\.kept_memory is settled"):
        backends.cpu.kept_memory = 1 << 30


def test_memory_that_the_process_may_have(tmp_path):
    machine = memory.available(tmp_path)
    assert machine == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available(tmp_path) == machine
    (tmp_path / "memory.max").write_text("1000000\n")
    assert memory.available(tmp_path) == 1_000_000
    (tmp_path / "memory.max").unlink()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2000000\n")
    assert memory.available(tmp_path) == 2_000_000


def test_what_xla_does_not_use():
    assert not backends.mkl.is_available() and not backends.openmp.is_available()
    assert backends.mkl.blas()


# ------------------------------------------------------------------------------------------------------ other platforms
def test_gpus_are_described_as_they_are(monkeypatch, tmp_path):
    assert backends.cuda.device_count() == len([d for d in ft.devices() if d.platform in ("gpu", "cuda")])
    assert backends.cuda.is_available() == (backends.cuda.device_count() > 0)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert not backends.cuda.is_built()
    plugin = tmp_path / "jax_plugins" / "xla_cuda13"
    plugin.mkdir(parents=True)
    (plugin / "xla_cuda_plugin.so").write_bytes(b"")
    assert backends.cuda.is_built()
    with pytest.raises(ft.errors.DeviceError, match="is not a GPU"):
        backends.cuda.get_device_properties("cpu")


def test_the_gpus_share_of_memory_reaches_its_client(monkeypatch):
    given = {}
    monkeypatch.setattr(cuda, "load_plugin", lambda plugin: None)
    monkeypatch.setattr(cuda.xc, "make_c_api_client", lambda name, options, client: given.update(options))
    monkeypatch.setattr(cuda, "_asked_memory", lambda: (False, 0.25))
    cuda._load(None)
    assert given["preallocate"] is False and given["memory_fraction"] == 0.25
    with pytest.raises(ft.errors.ArgumentError, match="a number above 0 and up to 1"):
        backends.cuda.memory_fraction = 1.5


def test_libraries_that_cannot_be_chosen_say_so():
    assert backends.cuda.preferred_linalg_library("cusolver") == "cusolver"
    with pytest.raises(ft.errors.UnsupportedError, match="'magma' cannot be preferred"):
        backends.cuda.preferred_linalg_library("magma")
    with pytest.raises(ft.errors.UnsupportedError, match="'cublaslt' cannot be preferred"):
        backends.cuda.preferred_blas_library("cublaslt")
    assert backends.cuda.cufft_plan_cache.size == backends.cuda.cufft_plan_cache[0].max_size == 0
    backends.cuda.cufft_plan_cache.clear()
    with pytest.raises(ft.errors.UnsupportedError, match="XLA owns the plans"):
        backends.cuda.cufft_plan_cache.max_size = 3


class Entry:
    name, value = "metal", "somewhere:initialize"

    class dist:
        name, version = "jax-metal", "1.0"


@pytest.mark.parametrize("there", [True, False])
def test_plugins_are_found_by_their_entry_points(monkeypatch, there):
    from importlib import metadata

    monkeypatch.setattr(metadata, "entry_points", lambda group: [Entry] if there else [])
    assert backends.plugins.installed() == ({"metal": "jax-metal 1.0"} if there else {})
    assert backends.mps.is_built() is there and backends.rocm.is_built() is False
    assert not backends.mps.is_available() and not backends.rocm.is_available()


@pytest.mark.parametrize("version", ["9.10.2.21", None])
def test_the_version_of_cudnn(monkeypatch, version):
    from importlib import metadata

    def asked(name):
        if version is None or name != "nvidia-cudnn-cu13":
            raise metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(metadata, "version", asked)
    assert backends.cudnn.version() == (None if version is None else 91002)
    assert not backends.cusparselt.is_available() and backends.cusparselt.version() is None
