"""Exported programs with symbolic dimensions: stored for a few sizes, from which those of each call are made.

A file holds the programs for a few sizes, as portable artifacts. They are compared when the file is written and when it
is read: see `template.py`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray, ShapeDtypeStruct, is_symbolic
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary
from functorch_like.core import argument_aval
from functorch_like.errors import ArgumentError, CompileError, FtError, ShapeError, UnsupportedError
from functorch_like.exporting.checks import check
from functorch_like.exporting.dimensions import Dimension, Scope, solved
from functorch_like.exporting.format import argument_names, leaves_of
from functorch_like.exporting.shapes import concrete, size_at, symbols_of, too_few_sizes
from functorch_like.exporting.template import Polynomial, Template, polynomial, refusal, whole

MAGIC = b"functorch_like symbolic program\n"
_MOST = 256  # sizes of calls that are kept


def _dimension(size: Polynomial, scope: Scope) -> Any:
    """Return a size as a `Dimension`, or as an int if it does not depend on one."""
    divisor = math.lcm(*(c.denominator for c in size.values()))
    whole = {names: int(c * divisor) for names, c in size.items() if c}
    terms = ["*".join([*([str(c)] if c != 1 or not names else []), *names]) for names, c in whole.items()]
    if not any(whole):
        return int(terms[0]) if terms else 0
    text = " + ".join(terms).replace("+ -", "- ")
    text = text if divisor == 1 else f"({text}) // {divisor}"
    return Dimension(ast.unparse(ast.parse(text, mode="eval")), scope)  # without needless parentheses


class SymbolicExported:
    """A function as a program for arguments of any sizes of one pattern.

    Attributes:
        fun_name: of the function.
        platforms: for which it can be compiled.
        in_tree, out_tree: the structures of the arguments and of the result.
        in_shapes: shapes of the arguments, with `Dimension`s among their sizes.
        in_dtypes: their dtypes.
        constraints: on the dimensions.
        in_avals, out_avals: shapes, with `Dimension`s, and dtypes of the arguments and of the results.
        own: gives the function's own program for some sizes; None for a program that was read.
    """

    def __init__(
        self, samples: Sequence[tuple[dict[str, int], Any]], in_shapes: Sequence[Any], scope: Scope,
        own: Callable[[Mapping[str, int]], Any] | None = None,
    ) -> None:  # fmt: skip
        self.samples, self.in_shapes, self.scope, self.own = list(samples), tuple(in_shapes), scope, own
        first = samples[0][1]
        self.fun_name, self.platforms = first.fun_name, first.platforms
        self.in_tree, self.out_tree = first.in_tree, first.out_tree
        self.in_dtypes, self.constraints = tuple(a.dtype for a in first.in_avals), scope.constraints
        self.made: Cache[Any, Any] = Cache()
        self._out = [self._fitted([e.out_avals[i].shape for _, e in samples]) for i in range(len(first.out_avals))]

    @functools.cached_property
    def in_avals(self) -> tuple[ShapeDtypeStruct, ...]:
        """Shapes and dtypes of the arguments."""
        return tuple(map(ShapeDtypeStruct, self.in_shapes, self.in_dtypes))

    @functools.cached_property
    def out_avals(self) -> tuple[ShapeDtypeStruct, ...]:
        """Shapes and dtypes of the results."""
        shapes = [tuple(_dimension(size, self.scope) for size in sizes) for sizes in self._out]
        return tuple(
            ShapeDtypeStruct(shape, a.dtype) for shape, a in zip(shapes, self.samples[0][1].out_avals, strict=True)
        )

    @functools.cached_property
    def templates(self) -> dict[str, Template]:
        """The program for each platform; MLIR reads the stored ones at the first use."""
        sizes = [d for d, _ in self.samples]
        return {p: Template([e.mlir_module(p) for _, e in self.samples], sizes, self.fun_name) for p in self.platforms}

    def _fitted(self, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
        dimensions = [d for d, _ in self.samples]
        result = [polynomial([Fraction(n) for n in sizes], dimensions) for sizes in zip(*shapes, strict=True)]
        if any(f is None for f in result):
            raise refusal(self.fun_name, f"a result has shapes {', '.join(map(str, shapes))}")
        return result

    @api_boundary.public
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for the sizes of the arguments; it is compiled once for each.

        Args:
            args: as the function takes them, without static ones.
            kwargs: likewise.

        Raises:
            TreeError: for arguments of another structure.
            ShapeError: for shapes that it was not exported for.
        """
        leaves = leaves_of((args, kwargs), self.in_tree, self.fun_name)
        shapes = [argument_aval(x).shape for x in leaves]
        for k, (shape, expected) in enumerate(zip(shapes, self.in_shapes, strict=True)):
            if len(shape) != len(expected):
                raise ShapeError(
                    f"{self.fun_name} takes {argument_names(self.in_tree)[k]} of a shape {expected}, not {shape}",
                    fix="reshape the argument",
                )
        return self.at(**solved(self.in_shapes, shapes, self.fun_name)).call(*args, **kwargs)

    def at(self, **dimensions: int) -> Any:
        """The program for some values of the dimensions, as an `Exported`.

        Raises:
            ArgumentError: for other names.
            ShapeError: where they do not fulfil the constraints, or one is below 1.
            UnsupportedError: where the program has no meaning for them.
        """
        if set(dimensions) != set(self.samples[0][0]):
            raise ArgumentError(f"the dimensions are {', '.join(self.samples[0][0])}, not {', '.join(dimensions)}")
        for name, size in dimensions.items():
            if not isinstance(size, (int, np.integer)):
                raise ArgumentError(f"{name} = {size!r} is not a size", fix="give an int")
            if size < 1:
                raise ShapeError(f"{self.fun_name} is called with {name} = {size}", fix="use sizes of 1 and more")
        self.scope.check(dimensions, self.fun_name)
        key = tuple(sorted(dimensions.items()))
        result = self.made.get(key)
        if result is None:
            result = self._made(dimensions)
            self.made.keep(key, result, _MOST)
        return result

    def _made(self, dimensions: dict[str, int]) -> Any:
        from functorch_like.backends.xla import portable

        first = self.samples[0][1]
        try:
            programs = [(p, portable.written(xla.parse_module(t.at(dimensions)))[0]) for p, t in self.templates.items()]
        except CompileError as e:
            shown = ", ".join(f"{k} = {v}" for k, v in dimensions.items())
            raise UnsupportedError(
                f"the program of {self.fun_name} is not valid for {shown}",
                fix="pass other sizes, or export it with constraints that leave these out",
            ) from e
        shapes = [[size_at(d, dimensions) for d in shape] for shape in self.in_shapes]
        ins = tuple(ShapedArray(tuple(s), a.dtype, a.weak_type) for s, a in zip(shapes, first.in_avals, strict=True))
        outs = tuple(
            ShapedArray(tuple(whole(f, dimensions) for f in fits), a.dtype, a.weak_type)
            for fits, a in zip(self._out, first.out_avals, strict=True)
        )
        backward = (lambda: self.vjp().at(**dimensions)) if self.has_vjp() else None
        return first.of_shapes(tuple(programs), ins, outs, backward)

    def has_vjp(self) -> bool:
        """Return True if it has a derivative: if it was exported in this process, or stored with `vjp_order`."""
        return all(e.has_vjp() for _, e in self.samples)

    @functools.cached_property
    def _backward(self) -> SymbolicExported:
        cts = [a.shape for a in self.out_avals if dtypes.is_inexact(a.dtype)]
        own = self.own
        backward = None if own is None else lambda sizes: own(sizes).vjp()
        samples = [(d, e.vjp()) for d, e in self.samples]
        derivative = SymbolicExported(samples, [*self.in_shapes, *cts], self.scope, backward)
        derivative.compare()  # rules of derivatives have conditions of their own
        return derivative

    def compare(self) -> None:
        """Compare the program with the function's own at other sizes than those of the samples.

        Raises:
            UnsupportedError: where they compute something else.
        """
        if self.own is not None:
            self.templates  # noqa: B018 (compares the samples)
            check(self, self.own, self.scope, min((d for d, _ in self.samples), key=lambda d: math.prod(d.values())))

    def vjp(self) -> SymbolicExported:
        """Return the derivative in reverse mode, as `Exported.vjp` does.

        Raises:
            ArgumentError: where there is none; see `has_vjp`.
            UnsupportedError: where the derivatives for several sizes differ by more than sizes. They are compared at
                the same sizes as the function.
        """
        return self._backward

    @api_boundary.public
    def serialize(self, vjp_order: int = 0) -> bytes:
        """Return the programs as bytes, which `deserialize` reads in this version and later ones.

        Args:
            vjp_order: number of derivatives in reverse mode to store as well.

        Raises:
            ArgumentError: for derivatives that it does not have.
            UnsupportedError: for those that `vjp` refuses.
        """
        blobs = [e.serialize(vjp_order) for _, e in self.samples]
        program = self
        for _ in range(vjp_order):
            program = program.vjp()  # compares it
        about = {
            "format": 1,
            "dimensions": [d for d, _ in self.samples],
            "lengths": [len(b) for b in blobs],
            "in_shapes": [[str(d) for d in shape] for shape in self.in_shapes],
            "constraints": list(self.constraints),
        }
        header = json.dumps(about).encode()
        body = len(header).to_bytes(8, "little") + header + b"".join(blobs)
        return MAGIC + hashlib.sha256(body).digest() + body

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{d.name}[{','.join(map(str, s))}]" for d, s in zip(self.in_dtypes, self.in_shapes, strict=True)
        )
        return f"<exported {self.fun_name}({shown}) for {', '.join(self.platforms)}>"


def one_of(program: Any) -> Any:
    """Return a program for concrete sizes: the first sample of one with symbolic dimensions."""
    return program.samples[0][1] if isinstance(program, SymbolicExported) else program


def exported_for(exported: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """Export a function at some sizes of its symbolic dimensions, and compare the programs.

    Args:
        exported: exports it for concrete shapes.
        args: with symbolic ones.
        kwargs: likewise.
        name: of the function.

    Raises:
        UnsupportedError: where the programs differ by more than sizes.
        ArgumentError: where constraints leave too few sizes.
    """
    leaves, tree = xla.flatten((args, kwargs))
    specs = [leaf for leaf in leaves if is_symbolic(leaf)]
    _, names, scope = symbols_of(leaves)

    def exported_at(values: Mapping[str, int]) -> Any:
        inputs, named = tree.unflatten([concrete(leaf, values) for leaf in leaves])
        try:
            return exported(*inputs, **named)
        except FtError as e:
            e.add_note(f"export traced {name} at sizes {dict(values)}, to compare the programs of several")
            raise

    first: Exception | None = None
    for samples in scope.samples(names, 4 + len(names) - 1):
        solved([s.shape for s in specs], [concrete(s, samples[0]).shape for s in specs], name)
        try:
            made = [(values, exported_at(values)) for values in samples]
            if made[0][1].mesh is not None:
                raise UnsupportedError(
                    f"{name} runs on {made[0][1].mesh!r}, and sizes that vary are for programs on one device",
                    fix="export it for known sizes",
                )
            program = SymbolicExported(made, _patterns(made, specs), scope, exported_at)
            program.compare()
            return program
        except UnsupportedError as e:
            first = first or e
    raise first or too_few_sizes(scope, name)


def _patterns(made: Sequence[tuple[Mapping[str, int], Any]], specs: Sequence[Any]) -> list[Any]:
    """Return the shapes of the arguments: symbolic ones, in order, where the samples differ. Constraints fix others."""
    remaining = (s for s in specs if len({concrete(s, values).shape for values, _ in made}) > 1)
    avals = zip(*(e.in_avals for _, e in made), strict=True)
    return [of[0].shape if len({a.shape for a in of}) == 1 else next(remaining).shape for of in avals]


def read(blob: bytes, deserialize: Callable[[bytes], Any]) -> SymbolicExported:
    """Load a program that `SymbolicExported.serialize` wrote.

    Raises:
        ArgumentError: for damaged bytes, and those of a later version.
    """
    start = len(MAGIC) + 32
    body = blob[start:]
    if len(blob) < start + 8 or hashlib.sha256(body).digest() != blob[len(MAGIC) : start]:
        raise ArgumentError("the exported program is damaged: its checksum is another one", fix="store it again")
    length = int.from_bytes(body[:8], "little")
    try:
        about = json.loads(body[8 : 8 + length])
        if about["format"] > 1:
            raise ArgumentError(f"the program is stored in format {about['format']}", fix="update functorch_like")
        scope, at, samples = Scope(about["constraints"]), 8 + length, []
        for values, size in zip(about["dimensions"], about["lengths"], strict=True):
            samples.append(({str(k): int(v) for k, v in values.items()}, deserialize(body[at : at + size])))
            at += size
        shapes = [tuple(int(d) if d.isdigit() else Dimension(d, scope) for d in s) for s in about["in_shapes"]]
    except (KeyError, TypeError, ValueError) as e:
        if isinstance(e, ArgumentError):
            raise
        raise ArgumentError("the header of the exported program cannot be read", fix="store it again") from e
    return SymbolicExported(samples, shapes, scope)
