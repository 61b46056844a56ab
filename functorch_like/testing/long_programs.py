"""Random programs of many steps: loops, branches, indexing, products, custom rules, nested transformations.

Arrays are small and their shapes few, some of them empty, so that many programs are made of the same eager kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functorch_like.testing.choices import Choices
from functorch_like.testing.source_programs import Program, Value, Writer

_SHAPES = ((3,), (), (2, 3), (3, 3), (3, 2), (2,), (1, 3), (4, 3), (2, 3, 3), (0,), (2, 0), (0, 3))
#: Depths of nested transformations.
DEPTH = 4


class StepDrawer:
    """Generator of the steps of a function, and of the functions inside of it.

    Args:
        choices: what decides.
        writer: what they are written to.
        depth: how deep transformations may be nested in it.
    """

    def __init__(self, choices: Choices, writer: Writer, depth: int) -> None:
        self.c, self.w, self.depth = choices, writer, depth

    # ------------------------------------------------------------------------------------------------ operands
    def newest(self) -> Value:
        """One of the last floating values, or an argument."""
        values = [v for v in reversed(self.w.values) if v.inexact and v.size < 200]
        return self.c.pick(values[:3]) if values and not self.c.chance(6) else self.w.argument(self.c.pick(_SHAPES))

    def of_shape(self, shape: Sequence[int]) -> str:
        """A floating value of a shape: an earlier one that fits, or an argument."""
        shape = tuple(shape)
        fitting = [v.name for v in reversed(self.w.values) if v.shape == shape and v.inexact]
        if fitting and not self.c.chance(4):
            return self.c.pick(fitting[:3])
        return self.w.argument(shape).name

    def scalar(self) -> str:
        """A number made of a value."""
        v = self.newest()
        return v.name if not v.shape else f"fnp.sum({v.name})"

    # --------------------------------------------------------------------------------------------------- steps
    def steps(self, count: int) -> None:
        """Draw `count` operations."""
        kinds = [
            self._elementwise, self._binary, self._reduction, self._product, self._indexing, self._movement,
            self._selection, self._update, self._cast, self._sorted, self._convolution, self._scalar_math,
        ]  # fmt: skip
        nests = [self._mapped, self._slope, self._pushed, self._pulled, self._compiled, self._scan, self._counted,
                 self._while, self._branch, self._saved, self._custom_jvp, self._custom_vjp, self._matrix]  # fmt: skip
        for _ in range(count):
            # Functions inside of others hold more of them, so that all depths are met.
            if self.depth and self.c.chance(4 if self.w.outer is None else 2):
                self.c.pick(nests)()
            else:
                self.c.pick(kinds)()

    def _elementwise(self) -> Value | None:
        forms = (
            "fnp.sin({})",
            "-{}",
            "fnp.tanh({})",
            "fnp.cos({})",
            "fnp.exp(-fnp.square({}))",
            "nn.sigmoid({})",
            "fnp.abs({})",
            "nn.relu({})",
            "fnp.log1p(fnp.square({}))",
            "fnp.sqrt(1.0 + fnp.square({}))",
            "{} ** 3",
            "nn.gelu({})",
            "fnp.arctan({})",
            "lax.erf({})",
            "1.0 / (1.5 + fnp.tanh({}))",
            "fnp.floor({})",
            "fnp.sign({})",
        )
        return self.w.write(self.c.pick(forms).format(self.newest().name))

    def _binary(self) -> Value | None:
        v = self.newest()
        other = self.of_shape(v.shape[self.c.below(v.ndim + 1) :])
        forms = (
            "{} + {}",
            "{} * {}",
            "{} - {}",
            "fnp.maximum({}, {})",
            "{} / (1.5 + fnp.square({}))",
            "fnp.hypot(1.0 + fnp.abs({}), {})",
            "fnp.arctan2({}, 2.0 + fnp.square({}))",
        )
        return self.w.write(self.c.pick(forms).format(v.name, other))

    def _scalar_math(self) -> Value | None:
        v = self.newest()
        return self.w.write(f"{v.name} {self.c.pick(('*', '+', '-'))} {self.c.pick((self.scalar(), '0.5', '-2'))}")

    def _reduction(self) -> Value | None:
        v = self.newest()
        name = self.c.pick(
            ("sum", "mean", "max", "prod", "var", "logsumexp", "min", "argmax", "softmax", "cumsum", "norm")
        )
        axis = self.c.below(v.ndim) if v.ndim and self.c.below(3) else None
        empty = not (v.size if axis is None else v.shape[axis])
        if empty and name not in ("sum", "prod", "cumsum"):
            name = "sum"
        if name in ("softmax", "cumsum"):
            axis = axis or 0
            return (
                self.w.write(f"{'nn' if name == 'softmax' else 'fnp'}.{name}({v.name}, axis={axis})")
                if v.ndim
                else None
            )
        if name == "argmax":
            return self.w.write(f"fnp.argmax({v.name}, axis={axis}).astype(F)")
        form = {
            "logsumexp": "nn.logsumexp({}, axis={})",
            "norm": "fnp.sqrt(0.1 + fnp.sum(fnp.square({}), axis={}))",
            "prod": "fnp.prod(1.0 + 0.1 * fnp.tanh({}), axis={})",
        }.get(name, f"fnp.{name}({{}}, axis={{}})")
        return self.w.write(form.format(v.name, axis))

    def _product(self) -> Value | None:
        v = self.newest()
        if not v.ndim:
            return self.w.write(f"{v.name} * {self.of_shape((3,))}")
        n = self.c.pick((3, 2, 1, 0))
        right = self.c.pick(((v.shape[-1],), (v.shape[-1], n)))
        if self.c.chance(4) and v.ndim == 2:
            return self.w.write(f"fnp.einsum('ij,kj->ki', {v.name}, {self.of_shape((2, v.shape[1]))})")
        scale = "" if v.shape[-1] < 3 else " * 0.5"
        return self.w.write(f"({v.name} @ {self.of_shape(right)}){scale}")

    def _indexing(self) -> Value | None:
        v = self.newest()
        if not v.ndim or not v.shape[0]:
            return None
        n = v.shape[0]
        index = f"fnp.argmax({self.of_shape((3,))})"
        starts, sizes = ", 0" * (v.ndim - 1), "".join(f", {k}" for k in v.shape[1:])
        forms = [
            f"{v.name}[{self.c.below(n)}]",
            f"{v.name}[::-1]",
            f"{v.name}[np.array([{n - 1}, 0, 0])]",
            f"{v.name}[{index} % {n}]",
            f"lax.dynamic_slice({v.name}, [{index}{starts}], [{max(1, n - 1)}{sizes}])",
            f"fnp.take({v.name}, {index}, axis={self.c.below(v.ndim)}, mode='clip')",
            f"{v.name}[..., None]",
            f"{v.name}[1:]",
            f"{v.name}[:0]",
            f"fnp.take_along_axis({v.name}, fnp.argsort({v.name}, axis=0), axis=0)",
        ]
        return self.w.write(self.c.pick(forms))

    def _update(self) -> Value | None:
        v = self.newest()
        if not v.ndim or not v.shape[0]:
            return None
        row = self.of_shape(v.shape[1:])
        index = f"fnp.argmax({self.of_shape((3,))}) % {v.shape[0]}"
        how = self.c.pick(("set", "add", "multiply", "max"))
        if self.c.below(3) == 2:
            rows = self.of_shape((3, *v.shape[1:]))
            name = how if how != "set" else "add"
            return self.w.write(f"{v.name}.at[np.array([0, {v.shape[0] - 1}, 0])].{name}({rows})")
        if self.c.below(3) == 2:
            return self.w.write(f"lax.dynamic_update_slice({v.name}, {row}[None], ({index},{' 0,' * (v.ndim - 1)}))")
        return self.w.write(f"{v.name}.at[{self.c.pick(('0', index, '-1'))}].{how}({row})")

    def _movement(self) -> Value | None:
        v = self.newest()
        forms = [
            f"{v.name}.T",
            f"{v.name}.reshape(-1)",
            f"fnp.broadcast_to({v.name}, {(2, *v.shape)})",
            f"fnp.expand_dims({v.name}, 0)",
        ]
        if v.ndim:
            axis = self.c.below(v.ndim)
            forms += [
                f"fnp.concatenate([{v.name}, {self.of_shape(v.shape)}], axis={axis})",
                f"fnp.roll({v.name}, 1, axis={axis})",
                f"fnp.pad({v.name}, 1)",
                f"fnp.flip({v.name}, {axis})",
                f"fnp.stack([{v.name}, {v.name} * 2], axis={axis})",
                f"fnp.repeat({v.name}, 2, axis={axis})",
                f"fnp.tile({v.name}, 2)",
                f"fnp.tril(fnp.atleast_2d({v.name}))",
                f"fnp.moveaxis({v.name}, {axis}, 0)",
            ]
        return self.w.write(self.c.pick(forms))

    def _selection(self) -> Value | None:
        v = self.newest()
        test = self.c.pick((f"{v.name} > 0.1", f"{self.scalar()} < 0.2", f"{self.w.argument(v.shape, 'bool_').name}"))
        return self.w.write(f"fnp.where({test}, {v.name}, {self.of_shape(v.shape)})")

    def _cast(self) -> Value | None:
        v = self.newest()
        forms = (
            f"{v.name}.astype(H).astype(F)", f"({v.name} > 0).astype(F)", f"(8 * {v.name}).astype('int32').astype(F)",
            f"{self.w.argument(v.shape, self.c.pick(('int32', 'int8', 'uint8', 'int64'))).name} * {v.name}",
            f"fnp.abs({v.name} + 1j * {v.name}).astype(F) + {v.name}", f"fnp.real({v.name} * (1 + 2j)).astype(F)",
        )  # fmt: skip
        return self.w.write(self.c.pick(forms))

    def _sorted(self) -> Value | None:
        v = self.newest()
        if not v.ndim or 0 in v.shape:
            return None
        forms = (
            f"fnp.sort({v.name}, axis={self.c.below(v.ndim)})",
            f"fnp.argsort({v.name}, axis=0).astype(F)",
            f"lax.top_k({v.name}, 1)[0]",
            f"fnp.median({v.name})",
            f"fnp.cumprod(fnp.tanh({v.name}), axis=0)",
        )
        return self.w.write(self.c.pick(forms))

    def _convolution(self) -> Value | None:
        v = self.newest()
        if v.size < 3:
            return None
        x = f"{v.name}.reshape(1, 1, -1)"
        forms = (
            f"lax.conv_general_dilated({x}, {self.of_shape((2, 3))}[:, None], (1,), 'SAME')[0]",
            f"lax.conv_general_dilated({x}, {self.of_shape((3,))}[None, None], (2,), [(1, 1)])[0, 0]",
            f"fnp.convolve(fnp.ravel({v.name}), {self.of_shape((2,))})",
        )
        return self.w.write(self.c.pick(forms))

    # ---------------------------------------------------------------------------- functions under transformations
    def function(self, *shapes: Sequence[int], like: Sequence[int] | None = None) -> str:
        """Define a function of arrays of these shapes; its result has the shape `like`, if that is given."""
        inner = StepDrawer(self.c, self.w.inner(*shapes), self.depth - 1)
        inner.steps(self.c.between(1, 3))
        result = inner.newest() if like is None else inner.shaped(like)
        # Every parameter is live, and no value grows in loops.
        names = " + ".join(f"fnp.sum({a.name})" for a in inner.w.arguments)
        out = inner.w.write(f"fnp.tanh({result.name} + 0.1 * ({names}))")
        return self.w.define(inner.w, result.name if out is None else out.name)

    def total(self, *shapes: Sequence[int]) -> str:
        """Define a function with a scalar result."""
        return self.function(*shapes, like=())

    def shaped(self, shape: Sequence[int]) -> Value:
        """The newest value, converted to a shape."""
        shape, v = tuple(shape), self.newest()
        if v.shape == shape:
            return v
        form = f"fnp.sum({v.name})" if not shape else f"fnp.broadcast_to(fnp.sum({v.name}), {shape})"
        if v.size == math.prod(shape):
            form = f"{v.name}.reshape({shape})"
        made = self.w.write(form)
        assert made is not None, form
        return made

    def _mapped(self) -> Value | None:
        x = self.newest()
        if not x.ndim:
            return None
        axis = self.c.below(x.ndim)
        inner = (*x.shape[:axis], *x.shape[axis + 1 :])
        out = self.c.pick((0, -1))
        match self.c.below(4):
            case 0:
                return self.w.write(f"ft.vmap({self.function(inner)}, in_axes={axis}, out_axes={out})({x.name})")
            case 1:
                other = self.c.pick(_SHAPES[:6])
                f = self.function(inner, other)
                return self.w.write(
                    f"ft.vmap({f}, in_axes=({axis}, None), out_axes={out})({x.name}, {self.of_shape(other)})"
                )
            case 2:
                f = self.function(inner, inner)
                return self.w.write(f"ft.vmap({f}, in_axes={axis}, out_axes={out})({x.name}, {self.of_shape(x.shape)})")
            case _:
                return self.w.write(f"lax.map({self.function(x.shape[1:])}, {x.name})")

    def _slope(self) -> Value | None:
        x = self.newest()
        if self.c.below(2):
            f = self.total(x.shape, (3,))
            k = self.c.below(2)
            return self.w.write(f"ft.grad({f}, argnums={k})({x.name}, {self.of_shape((3,))})")
        f = self.total(x.shape)
        forms = ("ft.grad({f})({x})", "fnp.sum(ft.value_and_grad({f})({x})[1])", "fnp.sum(ft.hessian({f})({x}))")
        return self.w.write(self.c.pick(forms if x.size < 10 else forms[:2]).format(f=f, x=x.name))

    def _pushed(self) -> Value | None:
        x = self.newest()
        f, along = self.function(x.shape), self.of_shape(x.shape)
        forms = ("ft.jvp({f}, ({x},), ({t},))[1]", "ft.linearize({f}, {x})[1]({t})", "sum(ft.jvp({f}, ({x},), ({t},)))")
        return self.w.write(self.c.pick(forms).format(f=f, x=x.name, t=along))

    def _pulled(self) -> Value | None:
        x = self.newest()
        f = self.function(x.shape, like=x.shape)
        return self.w.write(f"ft.vjp({f}, {x.name})[1]({self.of_shape(x.shape)})[0]")

    def _matrix(self) -> Value | None:
        x = self.newest()
        if x.size > 6:
            return None
        return self.w.write(f"fnp.sum(ft.{self.c.pick(('jacrev', 'jacfwd'))}({self.function(x.shape)})({x.name}))")

    def _compiled(self) -> Value | None:
        x = self.newest()
        return self.w.write(f"ft.jit({self.function(x.shape)})({x.name})")

    def _saved(self) -> Value | None:
        x = self.newest()
        policy = self.c.pick(
            ("", ", policy=ft.checkpoint_policies.dots_saveable", ", policy=ft.checkpoint_policies.nothing_saveable")
        )
        return self.w.write(f"ft.checkpoint({self.function(x.shape)}{policy})({x.name})")

    def _scan(self) -> Value | None:
        carry, xs = self.newest(), self.newest()
        if not xs.ndim:
            return None
        f = self.function(carry.shape, xs.shape[1:], like=carry.shape)
        more = f", reverse={self.c.below(2) == 1}, unroll={self.c.pick((1, 2))}"
        step = f"lambda c, x: ({f}(c, x), fnp.sum(c) * x)"
        return self.w.write(f"lax.scan({step}, {carry.name}, {xs.name}{more})[{self.c.below(2)}]")

    def _counted(self) -> Value | None:
        x = self.newest()
        f = self.function(x.shape, like=x.shape)
        return self.w.write(
            f"lax.fori_loop(0, {self.c.pick((3, 1, 0))}, lambda i, y: {f}(y * (1 + 0.1 * i)), {x.name})"
        )

    def _while(self) -> Value | None:
        x = self.newest()
        f = self.function(x.shape, like=x.shape)
        loop = (
            f"lax.while_loop(lambda s: s[0] < {self.c.pick((2, 3))}, lambda s: (s[0] + 1, {f}(s[1])), (0, {x.name}))[1]"
        )
        return self.w.write(loop)

    def _branch(self) -> Value | None:
        x = self.newest()
        like = self.c.pick(((), (3,), x.shape))
        f, g = self.function(x.shape, like=like), self.function(x.shape, like=like)
        if self.c.below(2):
            return self.w.write(f"lax.switch(fnp.argmax({self.of_shape((3,))}), [{f}, {g}, {f}], {x.name})")
        return self.w.write(f"lax.cond({self.scalar()} > 0.1, {f}, {g}, {x.name})")

    def _custom_jvp(self) -> Value | None:
        """A custom rule that is the derivative, so that differences show against it."""
        x = self.newest()
        f = self.function(x.shape)
        rule = f"lambda p, t: ft.jvp({f}, p, t)"
        return self.w.write(f"(lambda g: (g.defjvp({rule}), g)[1])(ft.custom_jvp({f}))({x.name})")

    def _custom_vjp(self) -> Value | None:
        x = self.newest()
        f = self.function(x.shape)
        rules = f"lambda y: ({f}(y), y), lambda y, ct: ft.vjp({f}, y)[1](ct)"
        return self.w.write(f"(lambda g: (g.defvjp({rules}), g)[1])(ft.custom_vjp({f}))({x.name})")


def draw(choices: Choices) -> Program:
    """Draw a program of 5 to 40 operations.

    >>> from functorch_like.testing.choices import Choices
    >>> len(draw(Choices(1)).lines) > 3
    True
    """
    main = choices.pick(("float32",) * 5 + ("float64", "float64", "bfloat16", "float16"))
    narrow = main if main in ("bfloat16", "float16") else choices.pick(("bfloat16", "float16"))
    drawer = StepDrawer(choices, Writer(choices, main, narrow), choices.pick((2, 1, 3, DEPTH, DEPTH)))
    drawer.w.values.append(drawer.w.argument(choices.pick(_SHAPES[:8])))
    drawer.steps(choices.between(5, 40))
    values = [v.name for v in drawer.w.values[:0:-1] if v.inexact]
    return drawer.w.program(*(values[: choices.between(1, 8)] or [drawer.newest().name]))
