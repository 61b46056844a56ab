"""Export of jitted functions as StableHLO, to be stored and called in other processes, machines and versions.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> from functorch_like import export
>>> made = export.export(ft.jit(lambda x, w: {"y": fnp.tanh(x @ w)}))(fnp.ones((2, 3)), fnp.ones((3, 4)))
>>> stored = made.serialize()                # bytes, for a file
>>> again = export.deserialize(stored)       # where the function need not exist
>>> again.call(fnp.ones((2, 3)), fnp.ones((3, 4)))["y"].shape
(2, 4)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray, ShapeDtypeStruct, is_symbolic
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import AbstractMesh, Mesh
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.calling import api_boundary
from functorch_like.compiler import lower as lowering
from functorch_like.compiler.placement import settle
from functorch_like.core import Tracer, argument_aval
from functorch_like.errors import ArgumentError, NumberError, UnsupportedError
from functorch_like.exporting import format as file_format
from functorch_like.exporting.derivatives import backward_avals, backward_of, with_backward
from functorch_like.exporting.dimensions import is_symbolic_dim as is_symbolic_dim
from functorch_like.exporting.dimensions import symbolic_scope as symbolic_scope
from functorch_like.exporting.dimensions import symbolic_shape as symbolic_shape
from functorch_like.exporting.format import Contents, argument_names, leaves_of
from functorch_like.exporting.nodes import register_namedtuple_serialization as register_namedtuple_serialization
from functorch_like.exporting.nodes import register_pytree_node_serialization as register_pytree_node_serialization
from functorch_like.exporting.shapes import symbolic_args_specs as symbolic_args_specs
from functorch_like.exporting.symbolic import MAGIC, exported_for, one_of, read
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functorch_like.primitives.effects.call_exported import Artifact, Split, call_exported, shardings_on
from functorch_like.transforms.jit import jit

__all__ = [
    "Exported",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_scope",
    "symbolic_shape",
]


class Exported:
    """A function as a program for chosen platforms, for arguments of one signature.

    Attributes:
        fun_name: name of the function.
        platforms: the platforms for which it can be compiled.
        in_tree, out_tree: structures of the arguments, as (args, kwargs) without static ones, and of the result.
        in_avals, out_avals: shapes and dtypes of their leaves.
        stablehlo_version: version of StableHLO that the program is written in.
        written_by: versions of functorch_like and jaxlib that lowered it; empty if a stored program has none.
        mesh: the axes of the devices that the program is split over; None if it is for one device.
        nr_devices: their number.
    """

    def __init__(
        self,
        artifact: Artifact,
        in_tree: Any,
        out_tree: Any,
        version: str,
        written_by: dict[str, str] | None = None,
        backward: Callable[[], Exported] | None = None,
    ) -> None:
        self._artifact, self.stablehlo_version, self._backward = artifact, version, backward
        self.written_by = file_format.versions() if written_by is None else written_by
        self.fun_name, self.in_tree, self.out_tree = artifact.name, in_tree, out_tree
        self.platforms = tuple(name for name, _ in artifact.programs)
        self.in_avals, self.out_avals = artifact.in_avals, artifact.out_avals
        self.mesh = None if artifact.split is None else artifact.split.mesh
        self.nr_devices = 1 if self.mesh is None else self.mesh.size

    @api_boundary.public
    def in_shardings(self, mesh: AbstractMesh | None = None) -> tuple[NamedSharding | None, ...]:
        """Return the sharding of each leaf of the arguments; None for those that the compiler splits.

        Args:
            mesh: a mesh with the axes of `self.mesh`, which is taken if None.

        Raises:
            ArgumentError: for another mesh.

        Example:
            >>> import functorch_like as ft
            >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
            >>> mesh = ft.make_mesh((1,), ("data",))
            >>> x = ft.ShapeDtypeStruct((4,), "float32", sharding=NamedSharding(mesh, P("data")))
            >>> ft.export.export(ft.jit(lambda x: 2 * x))(x).in_shardings(mesh)
            (NamedSharding(Mesh('data': 1), P('data')),)
        """
        return self._shardings(mesh, self._artifact.split and self._artifact.split.ins, self.in_avals)

    @api_boundary.public
    def out_shardings(self, mesh: AbstractMesh | None = None) -> tuple[NamedSharding | None, ...]:
        """Return the sharding of each leaf of the result; see `in_shardings`.

        Args:
            mesh: a mesh with the axes of `self.mesh`, which is taken if None.

        Raises:
            ArgumentError: for another mesh.

        Example:
            >>> import functorch_like as ft
            >>> ft.export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct((4,), "float32")).out_shardings()
            (None,)
        """
        return self._shardings(mesh, self._artifact.split and self._artifact.split.outs, self.out_avals)

    def _shardings(
        self, mesh: AbstractMesh | None, specs: Sequence[Any] | None, avals: Sequence[ShapedArray]
    ) -> tuple[NamedSharding | None, ...]:
        if specs is None or self.mesh is None:
            return (None,) * len(avals)
        where = self.mesh if mesh is None else mesh
        if where.shape_tuple != self.mesh.shape_tuple:
            raise ArgumentError(
                f"{self.fun_name} was exported for {self.mesh!r}, and is given {where!r}",
                fix="give a mesh of these axes",
            )
        return shardings_on(where, specs)

    @api_boundary.public
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; inside of a jitted function it becomes part of the function's program.

        Args:
            args: the function's arguments without static ones, of the shapes and dtypes it was exported for.
            kwargs: likewise.

        Returns:
            The function's result, a pytree of arrays.

        Raises:
            TreeError: for arguments of another structure.
            ArgumentError: for other shapes or dtypes.
            UnsupportedError: on a platform that it was not exported for; under vmap and forward mode; under reverse
                mode, unless `has_vjp()`.

        Example:
            >>> import functorch_like as ft
            >>> made = ft.export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct((), "float32"))
            >>> float(made.call(3.0))
            6.0
        """
        leaves = leaves_of((args, kwargs), self.in_tree, self.fun_name)
        pairs = zip(leaves, self.in_avals, strict=True)
        in_avals = [
            _checked(x, aval, lambda k=k: argument_names(self.in_tree)[k], self.fun_name)
            for k, (x, aval) in enumerate(pairs)
        ]
        return self.out_tree.unflatten(self._run(*in_avals))

    @functools.cached_property
    def _run(self) -> Callable[..., list[Any]]:
        """The program as a function of leaves, with its derivative if there is one."""
        run = functools.partial(call_exported, artifact=self._artifact)
        return run if self._backward is None else with_backward(run, self._artifact, self.vjp)

    def has_vjp(self) -> bool:
        """Return True if it has a derivative: if it was exported in this process, or stored with `vjp_order`."""
        return self._backward is not None

    def vjp(self) -> Exported:
        """Return the derivative in reverse mode as an exported function.

        Its arguments are the leaves of this one's arguments, and then a cotangent for each leaf of the result that is a
        float or complex. It returns a list of cotangents, one for each leaf of the arguments that is.

        Raises:
            ArgumentError: where there is none; see `has_vjp`.

        Example:
            >>> import functorch_like as ft
            >>> square = ft.export.export(ft.jit(lambda x: x * x))(ft.ShapeDtypeStruct((), "float32"))
            >>> [float(x) for x in square.vjp().call(3.0, 1.0)]
            [6.0]
        """
        if self._backward is None:
            raise ArgumentError(
                f"{self.fun_name} was stored without its derivative", fix="store it with serialize(vjp_order=1)"
            )
        return self._backward()

    def of_shapes(
        self,
        programs: tuple[tuple[str, bytes], ...],
        ins: tuple[ShapedArray, ...],
        outs: tuple[ShapedArray, ...],
        backward: Callable[[], Exported] | None,
    ) -> Exported:
        """Return the function with programs for other shapes, and their derivative."""
        artifact = Artifact(self.fun_name, programs, ins, outs)
        return Exported(artifact, self.in_tree, self.out_tree, self.stablehlo_version, self.written_by, backward)

    def mlir_module(self, platform: str | None = None) -> str:
        """Return the program as StableHLO text.

        Args:
            platform: one of `platforms`; the first if None.

        Raises:
            UnsupportedError: for a platform that is not one of them.
        """
        from functorch_like.backends.xla import portable

        return xla.module_text(portable.read(self.portable_artifact(platform)))

    def portable_artifact(self, platform: str | None = None) -> bytes:
        """Return the program as a portable artifact, which every compiler of StableHLO reads.

        Args:
            platform: one of `platforms`; the first if None.

        Raises:
            UnsupportedError: for a platform that is not one of them.

        Example:
            >>> import functorch_like as ft
            >>> made = ft.export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct((3,), "float32"))
            >>> made.portable_artifact()[5:14]
            b'StableHLO'
        """
        return self._artifact.on(platform or self.platforms[0])

    def operation_counts(self, platform: str | None = None) -> dict[str, int]:
        """Return the number of uses of each operation in the program, by its name.

        Args:
            platform: one of `platforms`; the first if None.

        Raises:
            UnsupportedError: for a platform that is not one of them.
            ArgumentError: for a stored program that StableHLO cannot read.

        Example:
            >>> import functorch_like as ft
            >>> made = ft.export.export(ft.jit(lambda x: x * x))(ft.ShapeDtypeStruct((3,), "float32"))
            >>> made.operation_counts()
            {'stablehlo.multiply': 1}
        """
        from functorch_like.backends.xla import portable

        return portable.operation_counts(self.portable_artifact(platform))

    @api_boundary.public
    def serialize(self, vjp_order: int = 0) -> bytes:
        """Return the function as bytes, which `deserialize` reads in this version and later ones.

        Args:
            vjp_order: number of derivatives in reverse mode to store as well. `call` has as many where it is read.

        Raises:
            ArgumentError: for derivatives that it does not have.
            UnsupportedError: if arguments or results have containers other than dicts, lists, tuples and None.
        """
        stored = (self.in_tree, self.out_tree, self.in_avals, self.out_avals, self._artifact.programs, self.written_by)
        derivative = self.vjp().serialize(vjp_order - 1) if vjp_order > 0 else b""
        return file_format.pack(
            Contents(self.fun_name, self.stablehlo_version, *stored, derivative, self._artifact.split)
        )

    def __repr__(self) -> str:
        avals = ", ".join(map(repr, self.in_avals))
        devices = "" if self.mesh is None else f" on {self.nr_devices} devices"
        return f"<exported {self.fun_name}({avals}) for {', '.join(self.platforms)}{devices}>"


@api_boundary.public
def export(fun_jit: Any, *, platforms: Sequence[str] | None = None) -> Callable[..., Exported]:
    """Lower a jitted function to a program that can be stored, and called elsewhere.

    Closed-over values become part of the program; static arguments are compiled in; donation is not kept. A function of
    arrays on a mesh becomes a program for as many devices, which `Exported.in_shardings` places.
    The program has no compile options: those of the process that calls it apply, and so do its settings of `backends`
    (but settings that change the lowering have had their effect).

    Args:
        fun_jit: a jitted function.
        platforms: sequence of "cpu" and "gpu"; the platform of the default device if None.

    Returns:
        A function of the arguments (arrays, numbers or `ShapeDtypeStruct`s) that returns an `Exported`. For shapes with
        symbolic dimensions it returns a `SymbolicExported`, whose `at(b=3)` returns the `Exported` for some sizes.

    Raises:
        ArgumentError: for a function that is not jitted, or another platform.
        UnsupportedError: at the call, for programs that call Python, or foreign functions of this process.

    >>> import functorch_like as ft
    >>> made = ft.export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct((3,), "float32"))
    >>> made
    <exported <lambda>(f32[3]) for cpu>
    >>> "stablehlo.multiply" in made.mlir_module()
    True
    """
    if not hasattr(fun_jit, "trace") or not callable(fun_jit):
        raise ArgumentError(f"export takes a jitted function, got {fun_jit!r:.60}", fix="export(jit(f))(x)")
    requested = (xla.default_device().platform,) if platforms is None else tuple(platforms)
    names = tuple("gpu" if name == "cuda" else name for name in requested)
    if not names or not set(names) <= {"cpu", "gpu"}:
        raise ArgumentError(f"platforms={requested} are not known", fix='use "cpu", "gpu", or both')

    @api_boundary.public
    def exported(*args: Any, **kwargs: Any) -> Exported:
        from functorch_like.backends.xla import portable

        if any(map(is_symbolic, xla.flatten((args, kwargs))[0])):
            return exported_for(exported, args, kwargs, source_info.name_of(fun_jit))
        with _mesh_of(args, kwargs):
            traced = fun_jit.trace(*args, **kwargs)
            jaxpr = _with_constants(traced.jaxpr, traced.consts)
            partitioning = settle(jaxpr, [], traced.in_avals, traced.target)
        programs, version = [], ""
        for platform in names:
            lowered = lowering.lower(
                jaxpr,
                name=traced.spec.name,
                keep_unused=True,
                platform=platform,
                partitioning=partitioning,
                portable=True,
            )
            if lowered.calls_python or "ffi_call" in str(jaxpr):
                raise UnsupportedError(
                    f"{traced.spec.name} calls functions of this process, which are not there in another one",
                    fix="leave out callbacks, debug.print and ffi_call",
                )
            program, version = portable.written(lowered.module)
            programs.append((platform, program))
        avals = tuple(a.strong() for a in traced.in_avals), tuple(traced.jaxpr.out_avals)
        in_tree = _without_static(traced.in_tree, traced.statics, len(traced.in_avals))
        split = None if partitioning is None else _split(partitioning, len(avals[1]))
        artifact = Artifact(traced.spec.name, tuple(programs), *avals, split)
        mesh = None if partitioning is None else partitioning.mesh
        inputs = lambda: backward_avals(artifact, mesh)
        backward = functools.cache(lambda: export(jit(backward_of(jaxpr)), platforms=names)(*inputs()))
        return Exported(artifact, in_tree, traced.out_tree, version, backward=backward)

    return exported


@api_boundary.public
def deserialize(blob: bytes | bytearray) -> Exported:
    """Load a function that `Exported.serialize` wrote.

    Loading executes nothing, and unpickles nothing. MLIR parses the program at its first use. Its parser is not
    hardened against malicious bytes, so load files from trusted sources only. Programs with calls of functions that
    `export` does not write are refused.

    Args:
        blob: the bytes.

    Returns:
        The `Exported`; a `SymbolicExported` if it was exported with symbolic dimensions.

    Raises:
        ArgumentError: for bytes that `serialize` did not write, that are damaged, or of a later version.

    >>> import functorch_like as ft
    >>> stored = ft.export.export(ft.jit(lambda x: x + 1))(1.0).serialize()
    >>> float(ft.export.deserialize(stored).call(2.0))
    3.0
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise ArgumentError(
            f"deserialize takes bytes, got a {type(blob).__name__}", fix="read the file: Path(name).read_bytes()"
        )
    if bytes(blob[: len(MAGIC)]) == MAGIC:
        symbolic: Any = read(bytes(blob), deserialize)
        return symbolic
    stored = file_format.unpack(bytes(blob))
    artifact = Artifact(stored.name, stored.programs, stored.in_avals, stored.out_avals, stored.split)
    backward = functools.cache(lambda: deserialize(stored.derivative)) if stored.derivative else None
    return Exported(artifact, stored.in_tree, stored.out_tree, stored.stablehlo, stored.written_by, backward)


# ------------------------------------------------------------------------------------------------------------ arguments
def _checked(x: Any, aval: ShapedArray, place: Callable[[], str], name: str) -> Any:
    """Return an argument in the program's dtype; a weakly typed number is converted unless its kind is a higher one."""
    given = argument_aval(x)
    if given.shape == aval.shape and given.dtype == aval.dtype:
        return x if isinstance(x, (xla.ArrayImpl, Tracer)) else np.asarray(x, aval.dtype)
    number = given.weak_type and not aval.shape and not isinstance(x, (xla.ArrayImpl, Tracer))
    if number and _rank(given.dtype) <= _rank(aval.dtype):
        try:
            return np.asarray(x).astype(aval.dtype) if _rank(aval.dtype) > 1 else np.array(int(x), aval.dtype)
        except OverflowError as e:
            raise NumberError(f"{place()} = {x} does not fit {aval.dtype.name}, for which {name} was exported") from e
    what = "reshape it" if given.dtype == aval.dtype else f"convert it with astype({aval.dtype.name!r})"
    raise ArgumentError(
        f"{name} was exported for {aval!r} as {place()}, and is given {given!r}", fix=f"{what}, or export anew"
    )


def _rank(dtype: np.dtype[Any]) -> int:
    """Return the kind of a dtype as a number: 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return 0 if dtype == dtypes.bool_ else 1 if dtypes.is_integer(dtype) else 3 if dtypes.is_complex(dtype) else 2


@contextmanager
def _mesh_of(args: Any, kwargs: Any) -> Generator[None]:
    """Have the mesh without devices of shapes that are given as arguments in force, unless a mesh is."""
    meshes = (getattr(x.sharding, "mesh", None) for x in xla.flatten((args, kwargs))[0] if type(x) is ShapeDtypeStruct)
    abstract = next((m for m in meshes if isinstance(m, AbstractMesh) and not isinstance(m, Mesh)), None)
    with nullcontext() if abstract is None or current_mesh.value is not None else current_mesh.held(abstract):
        yield


def _split(partitioning: Any, count: int) -> Split:
    """Return how a program is split, for its file."""
    specs = lambda each: tuple(None if where is None else where.spec for where in each)
    outs = (None,) * count if partitioning.outs is None else partitioning.outs
    return Split(partitioning.mesh.shape_tuple, specs(partitioning.ins), specs(outs))


def _without_static(in_tree: Any, statics: Any, count: int) -> Any:
    """Return the structure of the arguments without static ones."""
    args, kwargs = in_tree.unflatten([0] * count)
    positions = {i for i, _ in statics[0]}
    return xla.structure((tuple(a for i, a in enumerate(args) if i not in positions), kwargs))


def _with_constants(jaxpr: Jaxpr, consts: Sequence[Any]) -> Jaxpr:
    """Return a jaxpr with its closed-over values as literals.

    Raises:
        UnsupportedError: for traced values among them.
    """
    if any(isinstance(c, Tracer) for c in consts):
        raise UnsupportedError(
            f"{jaxpr.name} closes over traced values", fix="export it outside of transformations, or pass the values"
        )
    n = len(consts)
    known = {v: Literal(np.asarray(c, v.aval.dtype), v.aval) for v, c in zip(jaxpr.inputs[:n], consts, strict=True)}
    read = lambda a: known.get(a, a) if type(a) is Var else a
    equations = [Equation(e.prim, [read(a) for a in e.inputs], e.params, e.outputs, e.source) for e in jaxpr.equations]
    return Jaxpr(jaxpr.inputs[n:], equations, [read(a) for a in jaxpr.outputs], jaxpr.name, jaxpr.origin)


if __name__ == "__main__":
    from functorch_like.exporting.command import main
    from functorch_like.interrupts import end_with_the_reader

    end_with_the_reader()
    raise SystemExit(main(lambda blob: one_of(deserialize(blob))))
