"""Every first operation of a program works, although the package imports its modules as late as possible."""

import json
import os
import subprocess
import sys

import pytest

#: Each runs in a process that has only imported the package, with a NumPy array `X`.
FIRST = {
    "operator": "assert float(fnp.asarray(2.0) + 1) == 3",
    "array": "assert fnp.ones(3).shape == (3,)",
    "index": "assert int(fnp.arange(3)[1]) == 1",
    "method": "assert float(fnp.asarray([1.0, 2.0]).sum()) == 3",
    "primitive": "assert ft.primitives.elementwise.sin(X).shape == (2,)",
    "jit": "assert float(ft.jit(fnp.sum)(X)) == 3",
    "grad": "assert ft.grad(fnp.sum)(X).tolist() == [1, 1]",
    "grad of arithmetic": "assert ft.grad(lambda x: x * x)(3.0) == 6",
    "value_and_grad": "assert ft.value_and_grad(lambda x: x * x)(3.0)[1] == 6",
    "jvp": "assert ft.jvp(lambda x: x * x, (3.0,), (1.0,))[1] == 6",
    "vjp": "assert ft.vjp(lambda x: x * x, 3.0)[1](1.0)[0] == 6",
    "linearize": "assert ft.linearize(lambda x: x * x, 3.0)[1](1.0) == 6",
    "vmap": "assert ft.vmap(lambda x: x[0])(np.ones((2, 3), np.float32)).tolist() == [1, 1]",
    "vmap of a product": "assert ft.vmap(lambda x: x @ x)(np.ones((2, 3), np.float32)).tolist() == [3, 3]",
    "hessian": "assert ft.hessian(lambda x: fnp.sum(x * x))(X).shape == (2, 2)",
    "jacfwd": "assert ft.jacfwd(fnp.sin)(X).shape == (2, 2)",
    "scan": "assert float(ft.lax.scan(lambda c, x: (c + x, c), 0.0, X)[0]) == 3",
    "while_loop": "assert float(ft.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0.0)) == 3",
    "cond": "assert float(ft.lax.cond(True, fnp.sin, fnp.cos, 0.0)) == 0",
    "checkpoint": "assert ft.grad(ft.checkpoint(lambda x: x * x))(3.0) == 6",
    "custom_jvp": "f = ft.custom_jvp(fnp.sin); f.defjvp(lambda p, t: (p[0], 2 * t[0])); assert ft.grad(f)(1.0) == 2",
    "random": "assert ft.random.normal(ft.random.key(0), (3,)).shape == (3,)",
    "device_put": "assert ft.device_put(np.ones(3)).shape == (3,)",
    "devices": "assert ft.devices()[0].platform == 'cpu' and ft.device_count() == 1",
    "eval_shape": "assert ft.eval_shape(fnp.sum, X).shape == ()",
    "make_jaxpr": "assert 'sin' in str(ft.make_jaxpr(fnp.sin)(X))",
    "lower": "assert 'stablehlo' in ft.jit(fnp.sin).lower(X).as_text()",
    "disable_jit": "with ft.disable_jit(): assert float(ft.jit(fnp.sum)(X)) == 3",
    "settings": "assert all(name in str(ft.backends.describe()) for name in ('disable_jit', 'default_device'))",
    "cache": "assert ft.backends.cache.stats().compiles == 0",
    "error": "raises(ft.FtError, lambda: fnp.add(X, np.ones(3)))",
    "argument": "raises(ft.FtError, lambda: fnp.zeros('a'))",
    "nans": "ft.debug.set_nans(True); raises(ft.FtError, lambda: fnp.log(-X))",
    "pickle of a function": "import pickle; assert pickle.loads(pickle.dumps(fnp.add)) is fnp.add",
    "pickle of a compiled function": "import pickle; assert pickle.loads(pickle.dumps(fnp.mean)) is fnp.mean",
    "copy of a function": "import copy; assert copy.deepcopy(fnp.mean) is fnp.mean",
    "callback": "assert float(ft.pure_callback(np.sum, ft.ShapeDtypeStruct((), np.float32), X)) == 3",
    "clear_caches": "ft.clear_caches()",
    "display": "assert 'Array' in repr(fnp.ones(2))",
    "explain": "assert str(ft.explain(ft.jit(fnp.sum)))",
    "array namespace": "assert fnp.ones(2).__array_namespace__() is fnp",
}
#: A program that prints failures. Each call runs in a forked child: the parent never makes a device or an array.
DRIVER = """
import json, os, sys, traceback
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp

X = np.asarray([1, 2], np.float32)

def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError("nothing was raised")

for name, code in json.load(sys.stdin).items():
    child = os.fork()
    if not child:
        try:
            exec(code)
        except BaseException:
            print(f"--- {name}: {code}", traceback.format_exc(), sep="\\n", flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(f"--- {name}: {code}: the process ended", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_each_works_as_the_first():
    run = subprocess.run([sys.executable, "-c", DRIVER], input=json.dumps(FIRST), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""


#: What a program that is found on disk does without: each takes a millisecond or more.
WITHOUT = ("hashlib", "concurrent.futures", "functorch_like.primitives.ordering.sort")
LOADING = f"""
import sys
import numpy as np, functorch_like as ft, functorch_like.numpy as fnp
before = set(sys.modules)
ft.jit(ft.grad(lambda w, x: fnp.sum(fnp.tanh(x @ w))))(np.ones((3, 3), np.float32), np.ones((2, 3), np.float32))
counts = ft.backends.cache.stats()
print(counts.compiles, *(set(sys.modules) - before) & set({WITHOUT!r}))
"""


def test_a_program_on_disk_runs_without_what_compiling_needs(tmp_path):
    environment = dict(os.environ, FT_CACHE_DIR=str(tmp_path))
    tmp_path.chmod(0o700)
    run = [sys.executable, "-c", LOADING]
    first, second = (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert first[0] == "1"
    assert second == ["0"]


def test_no_module_makes_a_setting_of_traces_later():
    """A setting that a module makes when it is first used would change the key of all earlier traces."""
    text = """
import importlib, pkgutil
import functorch_like as ft
from functorch_like.backends.xla import configuration
ft.jit(lambda x: x + 1)(1.0)
before = configuration.setting_names()
for module in pkgutil.walk_packages(ft.__path__, "functorch_like."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass  # of an optional package
assert configuration.setting_names() == before, configuration.setting_names()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", text], check=True, timeout=300)
