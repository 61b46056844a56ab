"""Solutions of equations, differentiated by the implicit function theorem: custom_root, custom_linear_solve."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.caches import Cache
from functorch_like.calling import traced_function
from functorch_like.calling.call_signature import FlatCall, Static
from functorch_like.calling.traced_function import TracedFunction, structure_diff_table
from functorch_like.core import EVALUATE, aval_of, state
from functorch_like.errors import DtypeError, FtError, ShapeError, TreeError
from functorch_like.ir.jaxpr import evaluate
from functorch_like.lax.operands import error
from functorch_like.primitives.elementwise.arithmetic import neg
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.primitives.higher_order.custom.linear_solve import linear_solve
from functorch_like.primitives.structural import convert_element_type
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.custom_jvp import custom_jvp
from functorch_like.transforms.jvp_vjp import jvp
from functorch_like.transforms.linear_transpose import linear_transpose

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import Aux, T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


Function = Callable[..., Any]


@overload
def custom_linear_solve(
    matvec: Callable[[T], T],
    b: T,
    solve: Callable[[Callable[[T], T], T], T],
    transpose_solve: Callable[[Callable[[T], T], T], T] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_linear_solve(
    matvec: Callable[[T], T],
    b: T,
    solve: Callable[[Callable[[T], T], T], tuple[T, Aux]],
    transpose_solve: Callable[[Callable[[T], T], T], tuple[T, Aux]] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[T, Aux]: ...
def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` for x, with derivatives that do not depend on the solver.

    Write A for `matvec`. The tangent of x is the solution of A dx = db - dA x, and the cotangent of b is the solution
    of the transposed system. `solve` itself is never differentiated: it may loop until it converges.

    Args:
        matvec: a linear function from pytrees like `b` to the same. Values that it closes over have derivatives.
        b: the right-hand side, a pytree of arrays.
        solve: `(matvec, b) -> x`.
        transpose_solve: `(vecmat, b) -> x`, which solves the transposed system; needed for reverse mode.
        symmetric: whether `matvec` is its own transpose (for complex numbers, without conjugation), so that `solve`
            solves the transposed system too.
        has_aux: whether `solve` and `transpose_solve` return `(x, aux)`; aux has no derivative.

    Returns:
        x, a pytree like `b`; with `has_aux` a pair `(x, aux)`.

    Raises:
        TreeError, ShapeError, DtypeError: where a function returns a pytree that is not like `b`.
        DifferentiationError: in reverse mode, where the transposed system cannot be solved.

    >>> import functorch_like as ft
    >>> divide = lambda a, b: lax.custom_linear_solve(lambda x: a * x, b, lambda f, b: b / f(1.0), symmetric=True)
    >>> divide(4.0, 2.0).item(), ft.grad(divide)(4.0, 2.0).item()  # -b / a**2
    (0.5, -0.125)
    """
    call = traced_function.arguments((b,))
    system = _System(
        traced_function.staged(matvec, call, "custom_linear_solve"), call, tree.structure(b), name_of(matvec)
    )
    system.check(system.body, f"matvec {name_of(matvec)}", False)
    solver = system.solver(solve, has_aux)
    back, back_solver = None, None
    if symmetric or transpose_solve is not None:
        back = system if symmetric else system.transpose()
        back_solver = back.solver(solve if transpose_solve is None else transpose_solve, has_aux)
    parts = (system.body, back and back.body, solver, back_solver)
    consts = [[] if p is None else p.consts for p in parts]
    outs = linear_solve(
        *(c for group in consts for c in group),
        *traced_function.operands(call),
        functions=tuple(p and p.jaxpr for p in parts),
        counts=tuple(map(len, consts)),
    )
    return solver.out_tree.unflatten(outs)


@overload
def custom_root(
    f: Callable[[Array], ArrayLike],
    initial_guess: ArrayLike,
    solve: Callable[[Callable[[Array], Array], Array], ArrayLike],
    tangent_solve: Callable[[Callable[[Array], Array], Array], ArrayLike],
    has_aux: Literal[False] = False,
) -> Array: ...
@overload
def custom_root(
    f: Callable[[T], T],
    initial_guess: T,
    solve: Callable[[Callable[[T], T], T], T],
    tangent_solve: Callable[[Callable[[T], T], T], T],
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_root(
    f: Callable[[T], T],
    initial_guess: T,
    solve: Callable[[Callable[[T], T], T], tuple[T, Aux]],
    tangent_solve: Callable[[Callable[[T], T], T], T],
    *,
    has_aux: Literal[True],
) -> tuple[T, Aux]: ...
def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """Find a root x of `f`, `f(x) = 0`, with derivatives that do not depend on the solver.

    By the implicit function theorem the tangent of x solves `J dx = -df`. Here J is the Jacobian of `f` at x, and df is
    the tangent of `f(x)` with respect to the values that `f` closes over. `solve` itself is never differentiated: it
    may loop until it converges.

    Args:
        f: a function from pytrees like `initial_guess` to pytrees like it. Values that it closes over have derivatives.
        initial_guess: a pytree of float or complex arrays. The derivative with respect to it is zero.
        solve: `(f, initial_guess) -> x`.
        tangent_solve: `(g, y) -> x` with `g(x) = y`, for a linear function g and y like `initial_guess`; linear in y.
            For scalars `lambda g, y: y / g(1.0)`; for vectors
            `lambda g, y: fnp.linalg.solve(ft.jacobian(g)(y), y)`, or `custom_linear_solve`. It may close over traced
            values.
        has_aux: whether `solve` returns `(x, aux)`; aux has no derivative.

    Returns:
        x, a pytree like `initial_guess`; with `has_aux` a pair `(x, aux)`.

    Raises:
        TreeError, ShapeError, DtypeError: where `f` or `solve` returns a pytree that is not like `initial_guess`.

    >>> import functorch_like as ft
    >>> def newton(f, x):
    ...     for _ in range(6):
    ...         x = x - f(x) / ft.grad(f)(x)
    ...     return x
    >>> sqrt = lambda a: lax.custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0))
    >>> round(sqrt(9.0).item(), 4), round(ft.grad(sqrt)(9.0).item(), 4)
    (3.0, 0.1667)
    """
    call = traced_function.arguments((initial_guess,))
    system = _System(traced_function.staged(f, call, "custom_root"), call, tree.structure(initial_guess), name_of(f))
    system.check(system.body, f"function {name_of(f)}", False)
    solver = system.solver(solve, has_aux)
    count = len(call.leaves)
    tangents_body = None if state.trace is EVALUATE else system.tangents(tangent_solve)
    tangent_consts = [] if tangents_body is None else list(tangents_body.consts)

    @custom_jvp
    def root(consts: Any, solver_consts: Any, tangent_consts: Any, guess: Any) -> Any:
        return apply(solver.jaxpr, solver_consts, guess, CallSpec("custom_root"))

    @root.defjvp
    def implicit(primals: Any, tangents: Any) -> Any:
        consts, _, own, _ = primals
        outs = root(*primals)
        x = outs[:count]
        pushed = jvp(lambda c: system.closing_over(c).flat(x), (consts,), (tangents[0],))[1]
        right = [neg(t) for t in pushed]
        if tangents_body is None:
            moved = tangent_solve(system.closing_over(consts).along(x), system.structure.unflatten(right))
        else:
            moved = evaluate(tangents_body.jaxpr, [*own, *consts, *x, *right])
        return outs, [*tree.leaves(moved), *[None] * (len(outs) - count)]

    outs = root(list(system.body.consts), list(solver.consts), tangent_consts, traced_function.operands(call))
    return solver.out_tree.unflatten(outs)


class _System:
    """A traced function whose equation is solved, and its solvers.

    Args:
        body: the function.
        call: its arguments; the results are like them.
        structure: structure of the arguments.
        name: name of the user's function.
    """

    def __init__(self, body: TracedFunction, call: FlatCall, structure: Any, name: str) -> None:
        self.body, self.call, self.structure, self.name = body, call, structure, name

    def __call__(self, x: Any) -> Any:
        """Apply the function to a pytree."""
        leaves, structure = tree.flatten(x)
        if structure != self.structure:
            raise error(
                TreeError, f"{self.name} takes {self.structure}, got {structure}", "pass a pytree of that structure"
            )
        return self.structure.unflatten(self.flat(leaves))

    def flat(self, leaves: Sequence[Any]) -> list[Any]:
        """Apply the function to leaves."""
        strong = [_like(leaf, aval) for leaf, aval in zip(leaves, self.call.avals, strict=True)]
        return evaluate(self.body.jaxpr, [*self.body.consts, *strong])

    def closing_over(self, consts: Sequence[Any]) -> _System:
        """Return the same function with other closed-over values."""
        return _System(self.body._replace(consts=list(consts)), self.call, self.structure, self.name)

    def along(self, x: Sequence[Any]) -> Function:
        """Return the derivative of the function at leaves, as a linear function of pytrees."""
        return lambda v: self.structure.unflatten(jvp(self.flat, (list(x),), (tree.leaves(v),))[1])

    def tangents(self, tangent_solve: Function) -> TracedFunction:
        """Stage `tangent_solve`, as a function of closed-over values, the leaves of a root, and a right-hand side."""
        like = [ShapeDtypeStruct(a.shape, a.dtype) for a in map(aval_of, self.body.consts)]
        leaves = [ShapeDtypeStruct(a.shape, a.dtype) for a in self.call.avals]

        def solve(consts: Any, x: Any, right: Any) -> Any:
            return tangent_solve(self.closing_over(consts).along(x), self.structure.unflatten(right))

        solve.__name__ = name_of(tangent_solve)
        call = FlatCall(Static((), ()), (like, leaves, leaves), {}, abstract=True)
        return traced_function.staged(solve, call, "custom_root", Cache())

    def transpose(self) -> _System:
        """Return the transposed function."""
        like = self.structure.unflatten([ShapeDtypeStruct(a.shape, a.dtype) for a in self.call.avals])

        def transposed(ct: Any) -> Any:
            return linear_transpose(self, like)(ct)[0]

        cache = self.body.jaxpr.memo("transposed map", Cache)
        body = traced_function.staged(transposed, self.call, "custom_linear_solve", cache)
        return _System(body, self.call, self.structure, f"the transpose of {self.name}")

    def solver(self, how: Function, has_aux: bool) -> TracedFunction:
        """Return `how`, traced as a solver for this function; the function's jaxpr caches it."""

        def solve(b: Any) -> Any:
            return how(self, b)

        solve.__name__ = name_of(how)
        # Held weakly: the solver may close over the function that it solves for.
        solvers: weakref.WeakKeyDictionary[Any, Cache[Any, TracedFunction]] = self.body.jaxpr.memo(
            "solvers", weakref.WeakKeyDictionary
        )
        cache = solvers.setdefault(how, Cache())
        body = traced_function.staged(solve, self.call, "custom_linear_solve", cache)
        self.check(body, f"solver {name_of(how)}", has_aux)
        return body

    def check(self, body: TracedFunction, role: str, has_aux: bool) -> None:
        """Raise where a function's results differ from the arguments in structure, shape or dtype."""
        out_tree = body.out_tree
        if has_aux:
            parts = out_tree.children() if out_tree.node_data() and out_tree.node_data()[0] is tuple else []
            if len(parts) != 2:
                raise error(
                    TreeError,
                    f"the {role} returned {out_tree}, which is not a pair",
                    "return (x, aux), or leave out has_aux",
                )
            out_tree = parts[0]
        avals = body.jaxpr.out_avals[: out_tree.num_leaves]
        in_avals = self.call.avals
        if out_tree == self.structure and all(
            a.shape == w.shape and a.dtype == w.dtype for a, w in zip(avals, in_avals, strict=True)
        ):
            return
        kind: type[FtError] = DtypeError
        if out_tree != self.structure:
            kind = TreeError
        elif any(a.shape != w.shape for a, w in zip(avals, in_avals, strict=True)):
            kind = ShapeError
        table = structure_diff_table(["takes", "gives"], [self.structure, out_tree], [in_avals, avals])
        raise error(
            kind,
            f"the results of the {role} differ from its operands:\n{table}",
            "return the structure, shapes and dtypes that it takes",
        )


def _like(x: Any, aval: ShapedArray) -> Any:
    """Convert a number to the dtype of the array in whose place it stands."""
    actual = aval_of(x)
    if not actual.weak_type or actual.dtype == aval.dtype:
        return x
    return convert_element_type(x, new_dtype=aval.dtype, weak_type=False)
