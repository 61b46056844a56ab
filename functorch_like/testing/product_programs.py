"""Random programs of products, reductions and convolutions, with operands that compilers rewrite."""

from __future__ import annotations

import math
from collections.abc import Sequence

from functorch_like.testing.choices import Choices
from functorch_like.testing.source_programs import Program, Value, Writer

#: Sizes of axes on both sides of the sizes of registers and blocks.
_SIZES = (1, 2, 3, 4, 5, 8, 7, 16, 9, 12, 15, 17, 32, 24, 31, 33, 36, 64, 48, 63, 65, 128, 100, 256)
#: Elements of one array at most.
_MOST = 1 << 14


class Drawer:
    """Generator of one program.

    Args:
        choices: what decides.
        main: the dtype.
        narrow: a narrower one.
    """

    def __init__(self, choices: Choices, main: str, narrow: str) -> None:
        self.c = choices
        self.w = Writer(choices, main, narrow)

    # ------------------------------------------------------------------------------------------------- operands
    def shape(self, least: int = 0, most: int = 4, budget: int = _MOST) -> tuple[int, ...]:
        """A shape of bounded size."""
        sizes: list[int] = []
        for _ in range(self.c.between(least, most)):
            sizes.append(self.size(budget // max(1, math.prod(sizes))))
        return tuple(sizes)

    def size(self, budget: int = _MOST) -> int:
        """A size of an axis."""
        fitting = [n for n in _SIZES if n <= max(1, budget)]
        # Small sizes are as likely as all others together.
        return self.c.pick(fitting[:8]) if self.c.below(2) == 0 else self.c.pick(fitting)

    def operand(self, shape: Sequence[int], depth: int = 2) -> str:
        """The name of a value of a shape: an argument, or what is made of constants, arguments and earlier values."""
        shape = tuple(shape)
        expression = self._expression(shape, depth) if depth else self._argument(shape, depth)
        if expression.isidentifier():
            return expression
        value = self.w.write(expression)
        fits = value is not None and value.shape == shape and value.inexact
        return value.name if value is not None and fits else self.w.argument(shape).name

    def scalar(self) -> str:
        """The name of a number."""
        return self.w.argument(()).name

    def _expression(self, shape: tuple[int, ...], depth: int) -> str:
        c, inner = self.c, depth - 1
        kinds = [
            self._argument, self._earlier, self._ones, self._filled, self._spread_scalar, self._spread_row,
            self._spread_columns, self._iota, self._selected, self._scaled, self._padded, self._sliced,
            self._reshaped, self._transposed, self._reduced, self._concatenated, self._gathered, self._cast,
            self._unary, self._reversed, self._of_integers,
        ]  # fmt: skip
        repeated = [self._ones, self._filled, self._spread_scalar, self._spread_row, self._spread_columns]
        return c.pick(repeated if c.chance(4) else kinds)(shape, inner)

    def _argument(self, shape: tuple[int, ...], depth: int) -> str:
        return self.w.argument(shape).name

    def _earlier(self, shape: tuple[int, ...], depth: int) -> str:
        values = [v for v in self.w.values if v.inexact]
        if not values:
            return self.w.argument(shape).name
        v = self.c.pick(values[::-1])
        if v.shape == shape:
            return v.name
        size = math.prod(shape)
        if v.size == size:
            return f"{v.name}.reshape({shape})"
        if v.size > size:
            return f"fnp.ravel({v.name})[:{size}].reshape({shape})"
        return f"fnp.broadcast_to(fnp.sum({v.name}), {shape})"

    def _ones(self, shape: tuple[int, ...], depth: int) -> str:
        return f"fnp.{self.c.pick(('ones', 'zeros'))}({shape}, F)"

    def _filled(self, shape: tuple[int, ...], depth: int) -> str:
        return f"fnp.full({shape}, {self.c.pick((0.5, -1.25, 3.0))}, F)"

    def _spread_scalar(self, shape: tuple[int, ...], depth: int) -> str:
        return f"fnp.{self.c.pick((f'broadcast_to({self.scalar()}, {shape})', f'full({shape}, {self.scalar()})'))}"

    def _spread_row(self, shape: tuple[int, ...], depth: int) -> str:
        kept = self.c.below(len(shape) + 1)
        return f"fnp.broadcast_to({self.operand(shape[kept:], depth)}, {shape})"

    def _spread_columns(self, shape: tuple[int, ...], depth: int) -> str:
        ones = tuple(1 if self.c.below(2) else n for n in shape)
        return f"fnp.broadcast_to({self.operand(ones, depth)}, {shape})"

    def _iota(self, shape: tuple[int, ...], depth: int) -> str:
        axis = self.c.below(len(shape)) if shape else 0
        return f"lax.broadcasted_iota(F, {shape}, {axis}) * 0.1" if shape else self.scalar()

    def _selected(self, shape: tuple[int, ...], depth: int) -> str:
        other = self.c.pick(("0.0", "1.0")) if self.c.below(2) else self.operand(shape, depth)
        test = self.c.pick((f"{self.scalar()} > 0", f"{self.operand(shape, depth)} > 0.1"))
        return f"fnp.where({test}, {self.operand(shape, depth)}, {other})"

    def _scaled(self, shape: tuple[int, ...], depth: int) -> str:
        by = self.c.pick((self.scalar(), "0.5", f"fnp.full({shape}, 0.5, F)"))
        return f"{self.operand(shape, depth)} * {by}"

    def _padded(self, shape: tuple[int, ...], depth: int) -> str:
        before, smaller, after = [], [], []
        for n in shape:
            low = self.c.below(min(3, n))
            high = self.c.below(min(3, n - low))
            before.append(low), smaller.append(n - low - high), after.append(high)  # type: ignore[func-returns-value]
        widths = tuple(zip(before, after, strict=True))
        value = self.c.pick(("0.0", "1.5"))
        return f"fnp.pad({self.operand(smaller, depth)}, {widths}, constant_values={value})" if shape else self.scalar()

    def _sliced(self, shape: tuple[int, ...], depth: int) -> str:
        starts = [self.c.below(3) for _ in shape]
        steps = [1 + self.c.below(2) for _ in shape]
        larger = [s + n * t for s, n, t in zip(starts, shape, steps, strict=True)]
        if not shape or math.prod(larger) > 4 * _MOST:
            return self.w.argument(shape).name
        cuts = ", ".join(f"{s}:{s + n * t}:{t}" for s, n, t in zip(starts, shape, steps, strict=True))
        return f"{self.operand(larger, depth)}[{cuts}]"

    def _reshaped(self, shape: tuple[int, ...], depth: int) -> str:
        total, parts = math.prod(shape), []
        for n in (2, 3, 4):
            if total % n == 0 and self.c.below(2):
                parts.append(n)
                total //= n
        return f"{self.operand([*parts, total], depth)}.reshape({shape})"

    def _transposed(self, shape: tuple[int, ...], depth: int) -> str:
        order = self.c.order(len(shape))
        before = [0] * len(shape)
        for place, axis in enumerate(order):
            before[axis] = shape[place]
        return f"fnp.transpose({self.operand(before, depth)}, {tuple(order)})"

    def _reduced(self, shape: tuple[int, ...], depth: int) -> str:
        axis = self.c.below(len(shape) + 1)
        n = self.size(max(1, 2 * _MOST // max(1, math.prod(shape))))
        larger = [*shape[:axis], n, *shape[axis:]]
        return f"fnp.{self.c.pick(('sum', 'max', 'mean', 'min'))}({self.operand(larger, depth)}, axis={axis})"

    def _concatenated(self, shape: tuple[int, ...], depth: int) -> str:
        if not shape:
            return self.scalar()
        axis = self.c.below(len(shape))
        first = self.c.below(shape[axis] + 1)
        part = lambda n: self.operand([*shape[:axis], n, *shape[axis + 1 :]], depth)
        return f"fnp.concatenate([{part(first)}, {part(shape[axis] - first)}], axis={axis})"

    def _gathered(self, shape: tuple[int, ...], depth: int) -> str:
        if not shape:
            return self.scalar()
        axis = self.c.below(len(shape))
        n = self.c.between(1, 6)
        x = self.operand([*shape[:axis], n, *shape[axis + 1 :]], depth)
        return f"fnp.take({x}, np.arange({shape[axis]}) * 7 % {n}, axis={axis})"

    def _cast(self, shape: tuple[int, ...], depth: int) -> str:
        if self.c.below(2):
            return f"{self.w.argument(shape, 'H').name}.astype(F)"
        return f"{self.operand(shape, depth)}.astype(H).astype(F)"

    def _of_integers(self, shape: tuple[int, ...], depth: int) -> str:
        return f"{self.w.argument(shape, self.c.pick(('int8', 'int32', 'bool_'))).name}.astype(F)"

    def _unary(self, shape: tuple[int, ...], depth: int) -> str:
        return self._activation(self.operand(shape, depth))

    def _reversed(self, shape: tuple[int, ...], depth: int) -> str:
        return f"fnp.flip({self.operand(shape, depth)}, {self.c.below(len(shape))})" if shape else self.scalar()

    def _activation(self, x: str) -> str:
        forms = (
            "-{}",
            "fnp.tanh({})",
            "fnp.maximum({}, 0.0)",
            "fnp.exp(-fnp.square({}))",
            "fnp.abs({})",
            "nn.sigmoid({})",
        )
        return self.c.pick(forms).format(x)

    # -------------------------------------------------------------------------------------------------- steps
    def step(self, v: Value) -> Value | None:
        """One more operation on a value."""
        kinds = [
            self.matmul, self.product, self.reduction, self.around, self.convolution, self.normalised, self.product,
            self.reduced_product,
        ]  # fmt: skip
        kind = self.c.pick(kinds)
        made = kind(v)
        # XLA moves a reduction into the product that it follows.
        if made is not None and kind in (self.product, self.matmul, self.convolution) and self.c.chance(3):
            return self.reduction(made) or made
        return made

    def product(self, v: Value) -> Value | None:
        """A product of any layout."""
        c = self.c
        roles = [c.pick(("contracted", "free", "contracted", "free", "batch")) for _ in v.shape]
        if v.ndim and "contracted" not in roles and not c.chance(4):
            roles[-1] = "contracted"
        batch, contracted = [[k for k, r in enumerate(roles) if r == role] for role in ("batch", "contracted")]
        free_left = math.prod(v.shape[k] for k in range(v.ndim) if k not in batch and k not in contracted)
        many = math.prod(v.shape[k] for k in batch)
        depth = math.prod(v.shape[k] for k in contracted)
        free: list[int] = []
        for _ in range(c.pick((1, 0, 2))):
            free.append(
                self.size(min(_MOST // max(1, many * free_left), _MOST // max(1, many * depth)) // math.prod(free))
            )
        axes = [("b", k) for k in range(len(batch))] + [("c", k) for k in range(len(contracted))]
        axes += [("f", k) for k in range(len(free))]
        order = c.order(len(axes)) if c.below(2) else list(range(len(axes)))
        sizes = {"b": [v.shape[k] for k in batch], "c": [v.shape[k] for k in contracted], "f": free}
        placed = [axes[k] for k in order]
        shape = [sizes[role][k] for role, k in placed]
        right_batch = [placed.index(("b", k)) for k in range(len(batch))]
        right_contracted = [placed.index(("c", k)) for k in range(len(contracted))]
        x, y = v.name, self.operand(shape)
        dims = (tuple(contracted), tuple(right_contracted)), (tuple(batch), tuple(right_batch))
        if c.chance(3):
            x, y, dims = y, x, (dims[0][::-1], dims[1][::-1])
        kind = c.below(6)
        if kind == 5:
            return self.w.write(f"lax.dot_general({x}.astype(H), {y}.astype(H), {dims}, preferred_element_type=F)")
        if kind == 4:
            return self.w.write(f"lax.dot_general({x}.astype(H), {y}.astype(H), {dims}).astype(F)")
        return self.w.write(f"lax.dot_general({x}, {y}, {dims})")

    def matmul(self, v: Value) -> Value | None:
        """`v @ w` or `w @ v`, of vectors, matrices and stacks of them."""
        c = self.c
        if not v.ndim:
            return self.w.write(f"{v.name} * {self.operand(self.shape())}")
        depth = v.shape[-1]
        lead = v.shape[:-2] if c.below(2) else ()
        room = _MOST // max(1, v.size // max(1, depth), math.prod(lead) * depth)
        shape = (depth,) if c.below(4) == 3 else (*lead, depth, self.size(room))
        if c.below(3) == 2 and v.ndim >= 2:
            room = _MOST // max(1, v.size // max(1, v.shape[-2]), math.prod(lead) * v.shape[-2])
            return self.w.write(f"{self.operand((*lead, self.size(room), v.shape[-2]))} @ {v.name}")
        return self.w.write(f"{v.name} @ {self.operand(shape)}")

    def reduction(self, v: Value) -> Value | None:
        """A reduction over some axes."""
        c = self.c
        name = c.pick(("sum", "max", "mean", "min", "prod", "var", "logsumexp", "argmax", "sum of squares", "any"))
        if name == "argmax":
            axis = c.below(v.ndim) if v.ndim else None
            return self.w.write(f"fnp.argmax({v.name}, axis={axis}).astype(F)")
        some = c.subset(v.ndim)
        axes = None if not some and c.below(2) else tuple(some)
        keep = c.below(2) == 1
        form = {
            "logsumexp": "nn.logsumexp({}, axis={}, keepdims={})",
            "sum of squares": "fnp.sum(fnp.square({}), axis={}, keepdims={})",
            "any": "fnp.sum(fnp.where({} > 0.1, 1.0, 0.0), axis={}, keepdims={}).astype(F)",
            "prod": "fnp.prod(1.0 + 0.01 * fnp.tanh({}), axis={}, keepdims={})",
        }.get(name, f"fnp.{name}({{}}, axis={{}}, keepdims={{}})")
        return self.w.write(form.format(v.name, axes, keep))

    def reduced_product(self, v: Value) -> Value | None:
        """A reduction of elementwise products, most of whose factors repeat along some dimensions."""
        c = self.c
        shape = v.shape if v.ndim > 1 else self.shape(2, 4)
        factors = [self._spread_columns(shape, c.below(2)) for _ in range(c.pick((2, 2, 3)))]
        if v.shape == shape and c.chance(3):
            factors.append(v.name)
        form = c.pick(("fnp.sum({})", "fnp.sum({})", "fnp.mean({})", "fnp.max({})"))
        axes = tuple(c.subset(len(shape))) or (c.below(len(shape)),)
        made = self.w.write(form.format(f"{' * '.join(factors)}, axis={axes}, keepdims=True"))
        if made is None or c.below(2):
            return made
        return self.w.write(f"{v.name if v.shape == shape else self.operand(shape)} * {made.name}")

    def normalised(self, v: Value) -> Value | None:
        """A reduction whose result is combined with its operand again."""
        if not v.ndim:
            return self.around(v)
        axis = self.c.below(v.ndim)
        forms = (
            "nn.softmax({x}, axis={a})",
            "nn.log_softmax({x}, axis={a})",
            "{x} - fnp.mean({x}, axis={a}, keepdims=True)",
            "{x} / (1.0 + fnp.sum(fnp.abs({x}), axis={a}, keepdims=True))",
            "fnp.cumsum({x}, axis={a})",
            "{x} * lax.rsqrt(fnp.var({x}, axis={a}, keepdims=True) + 0.1)",
        )
        return self.w.write(self.c.pick(forms).format(x=v.name, a=axis))

    def around(self, v: Value) -> Value | None:
        """Elementwise operations and movements of elements around a product."""
        c = self.c
        kind = c.below(8)
        if kind == 0:
            return self.w.write(f"{v.name} {c.pick(('+', '*', '-'))} {self.operand(v.shape[c.below(v.ndim + 1) :])}")
        if kind == 1:
            return self.w.write(self._activation(v.name))
        if kind == 2 and v.ndim:
            return self.w.write(f"fnp.transpose({v.name}, {tuple(c.order(v.ndim))})")
        if kind == 3:
            return self.w.write(f"{v.name} {c.pick(('+', '*', '-'))} {c.pick((self.scalar(), '0.5'))}")
        if kind == 4 and v.ndim:
            cuts = ", ".join(f"{c.below(min(2, n))}:" for n in v.shape)
            return self.w.write(f"{v.name}[{cuts}]")
        if kind == 5 and v.ndim:
            return self.w.write(f"fnp.pad({v.name}, 1, constant_values={c.pick(('0.0', '1.0'))})")
        if kind == 6:
            return self.w.write(f"fnp.concatenate([fnp.atleast_1d({v.name})] * 2, axis={c.below(max(1, v.ndim))})")
        return self.w.write(f"{v.name}.reshape(-1)") if v.ndim != 1 else self.w.write(f"{v.name}[:, None]")

    def convolution(self, v: Value) -> Value | None:
        """A convolution of any kind."""
        c = self.c
        rank = c.pick((2, 1, 3))
        each = {1: (8, 3, 5, 16, 33, 1), 2: (5, 3, 8, 1, 4, 12), 3: (3, 2, 4, 1)}[rank]
        space = [c.pick(each) for _ in range(rank)]
        kernel = [c.pick((1, 2, 3, 5)) for _ in range(rank)] if c.below(3) else [1] * rank
        groups, batch_groups = c.pick((1, 1, 2, 4, 3)), 1
        per, out = c.pick((1, 2, 3, 4, 8)), c.pick((1, 2, 3, 4, 8))
        if c.below(12) == 11:
            groups, batch_groups = 1, 2
        features, batch = groups * per, c.pick((1, 2, 3, 4)) * batch_groups
        kernels = groups * out * batch_groups
        strides = [c.pick((1, 1, 1, 2, 3)) for _ in range(rank)]
        spread = [c.pick((1, 1, 1, 1, 2)) for _ in range(rank)]
        dilated = [c.pick((1, 1, 1, 2)) for _ in range(rank)]
        padding = c.pick(("'SAME'", "'VALID'", "explicit"))
        if padding == "explicit" or any(s > 1 for s in spread):
            least = c.pick((0, 0, -2))
            padding = str([(c.between(least, 2), c.between(least, 2)) for _ in range(rank)])
        letters = "DHW"[3 - rank :]
        if c.below(2):
            lhs_layout, lhs = f"N{letters}C", (batch, *space, features)
        else:
            lhs_layout, lhs = f"NC{letters}", (batch, features, *space)
        if c.below(2):
            rhs_layout, rhs = f"{letters}IO", (*kernel, per, kernels)
        else:
            rhs_layout, rhs = f"OI{letters}", (kernels, per, *kernel)
        if v.shape == lhs or v.size >= math.prod(lhs):
            x = v.name if v.shape == lhs else f"fnp.ravel({v.name})[:{math.prod(lhs)}].reshape({lhs})"
        else:
            x = self.operand(lhs)
        return self.w.write(
            f"lax.conv_general_dilated({x}, {self.operand(rhs)}, {tuple(strides)}, {padding}, "
            f"lhs_dilation={tuple(spread)}, rhs_dilation={tuple(dilated)}, "
            f"dimension_numbers={(lhs_layout, rhs_layout, lhs_layout)}, "
            f"feature_group_count={groups}, batch_group_count={batch_groups})"
        )


def draw(choices: Choices) -> Program:
    """Draw a program.

    >>> from functorch_like.testing.choices import Choices
    >>> print(draw(Choices(replay=[])))
    # F = float32, H = bfloat16; a0: float32[1], a1: float32[1, 1]
    def f(a0, a1):
        v0 = a0 @ a1
        return v0
    """
    main = choices.pick(("float32",) * 7 + ("float64", "bfloat16", "float16"))
    narrow = choices.pick(("bfloat16", "float16"))
    if main != "float32" and main != "float64":
        narrow = main
    d = Drawer(choices, main, narrow)
    v = d.w.argument(d.shape(1, 5))
    if choices.below(3) == 2:
        v = Value(d.operand(v.shape), v.shape, True)
    results: list[str] = []
    for _ in range(choices.between(1, 5)):
        new = d.step(v)
        if new is None or new.size > 4 * _MOST or not new.inexact:
            continue
        if choices.below(5) == 4:
            results.append(v.name)
        v = new
    if choices.below(3) == 2:
        v = d.reduction(v) or v
    results.append(v.name)
    total = choices.pick((None, None, "fnp.sum({})", "fnp.sum(fnp.square({}))", "fnp.mean(fnp.tanh({}))"))
    if total is not None:
        results = [results[-1]]
    return d.w.program(*dict.fromkeys(results), total=total)
