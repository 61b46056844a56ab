"""Notes on Python's errors for wrong calls: the signature, the call of a loop's body, attributes that were called."""

from __future__ import annotations

import inspect
import itertools
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from functorch_like.errors import nearest

_MISMATCH = re.compile(r"^([\w.<>]+)\(\) (takes|missing|got an unexpected|got some|got multiple)")
_NO_FUNCTION = re.compile(r"^'[\w.]+' object is not callable$")
#: Attributes of arrays that PyTorch has as methods, or that are called by mistake.
_ATTRIBUTES = {
    "size": "x.size is the number of elements; what PyTorch calls x.size() is x.shape, and x.size(0) is x.shape[0]",
    **{name: f"x.{name} is an attribute: leave out the parentheses"
       for name in ("shape", "ndim", "dtype", "itemsize", "nbytes", "T", "mT", "real", "imag")},
}  # fmt: skip
_PACKAGE = __name__.partition(".")[0]
_ROOMS = ("lax", "nn", "random", "image", "ops", "tree", "io", "data", "debug", "sharding")
#: Libraries, their names of parameters, and those here.
_RENAMED = (
    ("PyTorch", "dim", "axis"), ("PyTorch", "dims", "axes"), ("PyTorch", "keepdim", "keepdims"),
    ("PyTorch", "input", "x"), ("PyTorch", "input", "a"),
    ("PyTorch", "options", "compiler_options"), ("PyTorch", "dynamic", "buckets"),
    ("PyTorch", "drop_last", "remainder"),
    ("PyTorch", "batch_size", "size"), ("PyTorch", "shuffle", "key"), ("PyTorch", "in_dims", "in_axes"),
    ("PyTorch", "mesh_dim_names", "axis_names"), ("PyTorch", "mesh_shape", "axis_shapes"),
    ("PyTorch", "world_size", "num_processes"), ("PyTorch", "rank", "process_id"),
    ("PyTorch", "attn_mask", "mask"), ("PyTorch", "steps", "num"), ("PyTorch", "num_samples", "shape"),
    ("PyTorch", "context_fn", "policy"), ("PyTorch", "prefetch_factor", "size"),
    ("PyTorch", "map_location", "shardings"),
    ("PyTorch", "end", "stop"), ("PyTorch", "dims", "axis"), ("PyTorch", "shifts", "shift"), ("PyTorch", "p", "ord"),
    ("PyTorch", "n", "N"), ("PyTorch", "m", "M"), ("PyTorch", "diagonal", "k"), ("PyTorch", "correction", "ddof"),
    ("PyTorch", "dim0", "axis1"), ("PyTorch", "dim1", "axis1"),
    ("PyTorch", "split_size_or_sections", "indices_or_sections"), ("PyTorch", "chunks", "indices_or_sections"),
    ("PyTorch", "other", "b"), ("PyTorch", "other", "y"), ("PyTorch", "replacement", "replace"),
    ("PyTorch", "concentration", "a"), ("PyTorch", "rate", "lam"), ("PyTorch", "stride", "window_strides"),
    ("PyTorch", "dilation", "rhs_dilation"), ("PyTorch", "groups", "feature_group_count"),
    ("PyTorch", "std", "stddev"), ("NumPy", "newshape", "shape"),
    ("NumPy", "size", "shape"), ("NumPy", "low", "minval"), ("NumPy", "high", "maxval"), ("NumPy", "loc", "mean"),
    ("NumPy", "a_min", "min"), ("NumPy", "a_max", "max"), ("TensorFlow", "alpha", "negative_slope"),
)  # fmt: skip
#: Remedies for options that no function has, or one function lacks, by their names.
_LEFT_OUT = {
    "out": "arrays are immutable: leave out= out, and use the result",
    "casting": "leave casting= out, and convert with astype",
    "randomness": "leave randomness= out: draws belong to keys, and each column has the same",
    "_preallocate_and_copy": "leave it out: chunk_size= alone bounds the memory",
    "requires_grad": "a derivative belongs to a function: ft.grad(f)(x)",
    **dict.fromkeys(
        ("use_reentrant", "preserve_rng_state", "determinism_check", "early_stop"),
        "leave it out: a function is computed again from the same arguments, and random keys are arguments",
    ),
    **dict.fromkeys(("create_graph", "retain_graph"), "leave it out: ft.grad(ft.grad(f)) is the second derivative"),
    "inplace": "arrays are immutable: leave inplace= out, and use the result",
    "cache_enabled": "leave cache_enabled= out: conversions are part of the compiled program",
    "profile.activities": "leave it out: all devices are recorded",
    **dict.fromkeys(
        ("record_shapes", "profile_memory", "with_stack", "with_flops", "on_trace_ready", "schedule"),
        "leave it out: print(profile) shows the user's lines; ft.profiler.trace(folder) records all that XLA has",
    ),
    "device_type": "leave device_type= out: the block holds on all devices",
    "pin_memory": "leave pin_memory= out: ft.data.prefetch copies the next batches meanwhile",
    "num_workers": "leave num_workers= out: a thread prepares the next batches; PyTorch's DataLoader has workers",
    "weights_only": "leave weights_only= out: nothing in a file is executed",
    "dropout_p": "leave dropout_p= out: drop elements of the result, with a key",
    "dynamic_shapes": "ft.ShapeDtypeStruct(ft.export.symbolic_shape('b, 3'), 'float32') as the argument has any b",
    **dict.fromkeys(("layout", "memory_format"), "leave it out: XLA chooses layouts"),
    "generator": "a key is the state: leave generator= out",
    "subok": "leave subok= out: all arrays are of one class",
    "unbiased": "ddof=1 is what PyTorch calls unbiased=True, and ddof=0, the default here, unbiased=False",
    "as_tuple": "leave as_tuple= out: the result is a tuple; fnp.argwhere(x) has a row for each position",
    "enable_gqa": "leave enable_gqa= out: key and value may have fewer heads than the query",
    "softplus.beta": "nn.softplus(beta * x) / beta",
    "softplus.threshold": "leave threshold= out: large values do not overflow",
    **dict.fromkeys(("softmax.dtype", "log_softmax.dtype"), "convert with x.astype(dtype) before"),
    "svd.some": "full_matrices=False is what PyTorch calls some=True",
    "qr.some": "mode='reduced' is what PyTorch calls some=True, and mode='complete' some=False",
    "solve.left": "x @ inv(a) is fnp.linalg.solve(a.T, x.T).T",
    "driver": "leave driver= out: there is one method",
    "searchsorted.right": "side='right' is what PyTorch calls right=True",
    **dict.fromkeys(
        ("normal.loc", "normal.scale", "normal.mean", "normal.std"), "mean + std * ft.random.normal(key, shape)"
    ),
    "exponential.scale": "scale * ft.random.exponential(key, shape)",
    "gamma.scale": "scale * ft.random.gamma(key, a, shape)",
    **dict.fromkeys(
        (
            "minimize.jac",
            "minimize.hess",
            "minimize.hessp",
            "minimize.bounds",
            "minimize.constraints",
            "minimize.callback",
        ),
        "derivatives are those of fun; SciPy's own has the option: scipy.optimize.minimize(f, x0, jac=ft.grad(f), ...)",
    ),
    "vmap.strict": "leave strict= out: results that depend on no mapped argument are repeated",
    "jit.backend": "leave backend= out: XLA compiles; with ft.disable_jit(): functions run without it",
    "jit.disable": "with ft.disable_jit(): functions run as plain Python",
    "jit.recompile_limit": "ft.testing.count_compiles() counts programs, max_paths= bounds those of paths",
    "initialize.backend": "leave backend= out: CPUs use Gloo, GPUs NCCL",
    "initialize.init_method": "an address is coordinator_address='host:port'; PyTorch's variables are read",
}
#: How functions of `lax` call those that users pass to them, and what else is called with arguments of its own.
_BODIES = {
    "while_loop": "both functions take one argument, the carry; take it apart inside: i, x = carry",
    "fori_loop": "the body takes two arguments, (i, carry)",
    "scan": "the body takes two arguments, (carry, element); take tuples apart inside: a, b = element",
    "map": "the function takes one argument, the element; take a tuple apart inside: a, b = element",
    **dict.fromkeys(("cond", "switch"), "each function takes all operands, which are passed one by one"),
    "functional_call": "it calls fun(params, *args); a class whose attributes are its parameters is a pytree first: "
    "ft.tree.register_dataclass(Model)",
}
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")
_TUPLE = re.compile(r"^(bad operand type|unsupported operand type).*'tuple'")
_NONE = re.compile(r"^unsupported operand type.*'NoneType'")
#: Messages about a list, a tuple or a dict in the place of an array.
_CONTAINER = re.compile(
    r"^(?:(?:bad|unsupported) operand type.*'(list|tuple|dict)'|can't multiply (sequence)|can only concatenate (\w+) "
    r"|'\W+' not supported between instances of.*'(list|tuple|dict)'|(list|tuple) indices must be .* not tuple$"
    r"|'(list|tuple|dict)' object has no attribute '(?:shape|dtype|ndim|size|at|T|mean|sum|max|min|reshape|astype)'$)"
)


def add_note(error: TypeError | AttributeError, fun: Callable[..., Any]) -> None:
    """Add one note to an error: the signature that the arguments do not fit, or what is no array or no function.

    Args:
        error: as it leaves a public function.
        fun: that function, or one that takes the arguments of a class.
    """
    if _NO_FUNCTION.match(str(error)) and not getattr(error, "__notes__", None):
        called = _called(error.__traceback__).rpartition(".")[2]
        if called in _ATTRIBUTES:
            error.add_note(_ATTRIBUTES[called])
        elif error.__traceback__ is not None and _inside(error.__traceback__):
            error.add_note(call_of(fun))
        return
    if _NONE.match(str(error)) and not getattr(error, "__notes__", None):
        error.add_note("one of them is None: a function without `return` gives None")
        return
    if _TUPLE.match(str(error)) and _plain_name(fun) in ("cond", "switch") and not getattr(error, "__notes__", None):
        error.add_note(f"{name_of(fun)}: {_BODIES[fun.__name__]}, and not in a tuple")
        return
    container = _CONTAINER.match(str(error))
    if container is not None and not getattr(error, "__notes__", None):
        kind = next(filter(None, container.groups()))
        error.add_note(
            f"operators and attributes are those of arrays, and this is a {kind}: fnp.asarray(x) makes an array of "
            "numbers; of trees of arrays it is ft.tree.map(lambda p, g: p - 0.1 * g, params, grads)"
        )
        return
    match = _MISMATCH.match(str(error))
    if match is None or getattr(error, "__notes__", None) or error.__traceback__ is None:
        return
    name = name_of(fun)
    named = match[1].removesuffix(".__init__").removesuffix(".__new__").rpartition(".")[2]
    own = named == _plain_name(fun) and _inside(error.__traceback__)  # the package handed it on
    if error.__traceback__.tb_next is None or own:  # the call of `fun` failed, not one inside of it
        error.add_note(_remedy(fun, str(error)))
    elif called_wrongly(error) and (fun.__module__ == f"{_PACKAGE}.lax" or _plain_name(fun) in _BODIES):
        form = f"; {_BODIES[fun.__name__]}" if _plain_name(fun) in _BODIES else ""
        error.add_note(f"{name} called {match[1]}{form}; help({name}) says with which arguments")


def add_note_on_values(error: Exception) -> None:
    """Add one note to an error of the user's whose message has a traced value: how to see its number."""
    if "Traced<" in str(error) and not getattr(error, "__notes__", None):
        error.add_note("a traced value has no number in a message: within ft.disable_jit() jit runs plain Python")


def wrong_call(fun: Callable[..., Any], message: str, count: int) -> TypeError:
    """Return the error for arguments that a function does not take, with a note, in the form of Python's.

    Args:
        fun: a public function.
        message: that of `Signature.bind`.
        count: number of the positional arguments.
    """
    if message.startswith("too many"):
        most = len(inspect.signature(fun).parameters)
        message = f"takes {most} positional argument{'s' * (most > 1)} but {count} were given"
    elif "positional only" in message:
        names = message.partition(" parameter")[0]
        message = f"got some positional-only arguments passed as keyword arguments: {names}"
    error = TypeError(f"{fun.__name__}() {message}")
    error.add_note(_remedy(fun, str(error)))
    return error


def refuse_unknown(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raise TypeError for arguments that a function does not take, before their values are looked at."""
    try:
        inspect.signature(fun).bind(*args, **kwargs)
    except TypeError as e:
        if getattr(fun, "__module__", "").startswith("functorch_like"):
            raise wrong_call(fun, str(e), len(args)) from None
        raise TypeError(f"{getattr(fun, '__name__', repr(fun))}() {e}") from None
    except ValueError:  # a function of C has no signature
        pass


def _remedy(fun: Callable[..., Any], message: str) -> str:
    """Return the parameters of a function, and what is right in place of the argument that a message is about."""
    parameters = inspect.signature(fun).parameters
    renamed = [
        f"; what {library} calls {foreign} is {own}"
        for library, foreign, own in _RENAMED
        if f"'{foreign}'" in message and own in parameters and foreign not in parameters
    ]
    renamed += [f"; {remedy}" for option, remedy in _LEFT_OUT.items() if _is_of(option, fun, message)]
    if "() takes" in message and _plain_name(fun) == "shard_map":
        renamed.append("; options have names: ft.shard_map(f, mesh=mesh, in_specs=..., out_specs=...)(x)")
    made_of = {"fun": "f", "fun_jit": "ft.jit(f)"}.get(next(iter(parameters), ""))
    if next(iter(parameters), "") == "prim":
        renamed.append(f"; it is a policy itself: ft.checkpoint(f, policy={name_of(fun)})")
    if "() takes" in message and made_of is not None:
        name = name_of(fun)
        renamed.append(f"; {name} makes a function, which takes the arguments: {name}({made_of})(x)")
    if "() takes" in message and _plain_name(fun) in ("transpose", "permute_dims"):
        renamed.append("; the axes are one tuple: (1, 0); what exchanges two axes is fnp.swapaxes(x, 0, 1)")
    unknown = _UNKNOWN.search(message)
    if unknown is not None:
        renamed.append(nearest(unknown[1], parameters, likeness=0.75))
    return call_of(fun) + "".join(renamed[:1])


def called_wrongly(error: TypeError | AttributeError) -> bool:
    """Return True if the package has called a function of a user with arguments that it does not take."""
    traceback = error.__traceback__
    return _MISMATCH.match(str(error)) is not None and traceback is not None and _inside(traceback)


def _is_of(option: str, fun: Callable[..., Any], message: str) -> bool:
    """Return True if an error is about an option, which may be that of one function: "jit.backend"."""
    owner, _, name = option.rpartition(".")
    return f"'{name}'" in message and owner in ("", _plain_name(fun))


def _called_as(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the class whose arguments a function takes, or else the function."""
    called: Callable[..., Any] = getattr(fun, "constructs", fun)
    return called


def call_of(fun: Callable[..., Any]) -> str:
    """The name of a public function with its parameters, without their types."""
    signature = inspect.signature(_called_as(fun))
    if list(signature.parameters)[:1] == ["self"]:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"{name_of(fun)}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a public function as users write it, or the text of one without a name, such as a jitted partial."""
    if not hasattr(fun, "__name__"):
        return repr(fun)
    path = getattr(fun, "public_module", fun.__module__).split(".")
    fun = _called_as(fun)
    if path[0] != _PACKAGE:  # a function of the user's
        return fun.__qualname__
    for n in range(1, len(path) + 1):  # the first module that has it is the public one
        if vars(sys.modules.get(".".join(path[:n]), sys)).get(fun.__name__) is fun:
            return ".".join((*_short(path[1:n]), fun.__name__))
    if fun.__qualname__.startswith("_"):  # a method of arrays
        return f"x.{fun.__name__.lstrip('_')}"
    return ".".join((*_short([room for room in path[1:2] if room == "numpy" or room in _ROOMS]), fun.__qualname__))


def _plain_name(fun: Callable[..., Any]) -> str:
    return getattr(_called_as(fun), "__name__", "")


def _short(path: list[str]) -> list[str]:
    return ["fnp", *path[1:]] if path[:1] == ["numpy"] else ["ft", *path]


def _called(traceback: TracebackType | None) -> str:
    """Return the expression that was called on the innermost line, as `x.size` of `x.size(0)`; empty if unknown."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    code = traceback.tb_frame.f_code
    line, last, start, end = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None))
    if line is None or line != last:
        return ""
    text = linecache.getline(code.co_filename, line, traceback.tb_frame.f_globals).encode()[start:end].decode()
    depth = 0
    for k in reversed(range(len(text))):
        depth += (text[k] == ")") - (text[k] == "(")
        if depth == 0:  # the parenthesis that the last one closes
            return text[:k]
    return ""


def _inside(traceback: TracebackType) -> bool:
    """Return True if the call that failed is in a file of the package: the called function never began.

    The functions that `contextlib.contextmanager` makes are called by its own frames.
    """
    caller = ""
    following: TracebackType | None = traceback
    while following is not None:
        module = following.tb_frame.f_globals.get("__name__", "")
        caller = caller if module == "contextlib" else module
        following = following.tb_next
    return caller.startswith(_PACKAGE + ".")
