"""Random programs of the primitives that have fast lowerings, at sizes below and above the limits of these."""

from __future__ import annotations

from functorch_like.testing.choices import Choices
from functorch_like.testing.product_programs import Drawer
from functorch_like.testing.source_programs import Program, Value

_LENGTHS = (3, 1, 2, 7, 12, 13, 31, 32, 33, 64, 65, 100, 255, 256, 257, 1025, 2047, 2048, 2049)
_FOLDED = (*_LENGTHS, 2050, 2055, 2056, 2057, 4096, 4097)
_SORTED = (*_LENGTHS, 511, 512, 513, 1023, 8191, 8192, 8200)
_FLAT = (3, 8192, 2560, 8193, 2559, 8192, 8191)
_ELEMENTWISE = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "cbrt", "sin", "cos")
_DOUBLE = (
    "fnp.sin({0})", "fnp.cos(9.0 * {0})", "fnp.arcsin(0.9 * fnp.tanh({0}))", "fnp.arccos(0.9 * fnp.tanh({0}))",
    "fnp.arctan({0})", "fnp.arctan2({0}, {1})", "fnp.log(fnp.abs({0}) + 0.1)", "fnp.log1p(fnp.abs({0}))",
    "fnp.exp2({0})", "fnp.expm1({0})", "fnp.tanh({0})", "lax.erf_inv(0.9 * fnp.tanh({0}))",
    "lax.rem(10.0 * {0}, {1} + 2.5)", "lax.lgamma(fnp.abs({0}) + 0.1)", "lax.digamma(fnp.abs({0}) + 0.1)",
    "fnp.power(fnp.abs({0}) + 0.1, {1})", "fnp.exp({0})", "fnp.cbrt({0})", "fnp.tan({0})", "lax.erf({0})",
    "fnp.arcsinh({0})", "fnp.arccosh(1.1 + fnp.abs({0}))", "fnp.arctanh(0.9 * fnp.tanh({0}))",
    "ft.scipy.special.polygamma(1, fnp.abs({0}) + 0.1)",
)  # fmt: skip
_CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")


class LoweringDrawer(Drawer):
    """Generator of a program around one primitive with a fast lowering."""

    def central(self) -> Value | None:
        """The primitive."""
        kinds = [
            self._cumulative, self._sorted, self._sorted_together, self._elementwise, self._quotient, self._integers,
            self._small_products, self._many_rows, self._windows, self._reduced_rows, self._reduced_columns,
            self._factorized, self._pointwise_convolution, self._whole_windows, self._patches, self._depthwise,
            self._grouped, self._pooled_gradient, self._halves, self._elementwise, self._greatest,
            self._many_features, self._quantile, self._by_columns, self._special, self._recurrent, self._long,
            self._complex, self._folded_integers, self._placed, self._placed, self._with_holes, self._true,
            self._ragged, self._sorted, self._by_columns, self._greatest, self._skipping, self._tiled,
            self._stepped, self._placed, self._traces, self._small_systems,
            *[self._double] * 6,
        ]  # fmt: skip
        return self.c.pick(kinds)()

    def rows(self, length: int, most: int = 1 << 16) -> tuple[tuple[int, ...], int]:
        """A shape with an axis of a length, and the axis."""
        others = [self.c.pick((2, 1, 3)) for _ in range(self.c.below(3))] if length <= most // 9 else []
        axis = self.c.below(len(others) + 1)
        return (*others[:axis], length, *others[axis:]), axis

    def _cumulative(self) -> Value | None:
        shape, axis = self.rows(self.c.pick(_FOLDED))
        x, name = self.operand(shape, 1), self.c.pick(_CUMULATIVE)
        if name == "cumprod":
            x = f"1.0 + 0.01 * fnp.tanh({x})"
        return self.w.write(f"lax.{name}({x}, axis={axis}, reverse={self.c.below(2) == 1})")

    def _placed(self) -> Value | None:
        """The place of an extreme element, as a number."""
        shapes = (
            ((16_384,), 0),
            ((64, 256), 1),
            ((3, 6, 1000), 2),
            ((2, 8220), 1),
            ((256, 64), 0),
            ((5, 1031), 1),
            ((2, 8209), 1),
            ((1031, 7), 1),
            ((700, 2, 3), 2),
        )
        shape, axis = self.c.pick(shapes)
        x = self.operand(shape, 1) if self.c.below(2) else self.w.argument(shape, "int32").name
        return self.w.write(f"fnp.{self.c.pick(('argmax', 'argmin'))}({x}, axis={axis}).astype(F)")

    def _traces(self) -> Value | None:
        """Sums of diagonals of matrices, few of which are so large that only the diagonal is read."""
        shape = self.c.pick(((32, 33), (31, 33), (1, 2000), (3, 20, 20)))
        return self.w.write(f"fnp.trace({self.operand(shape, 1)}, {self.c.pick((0, -3, 1))}, -2, -1)")

    def _skipping(self) -> Value | None:
        """An extreme that skips NaN, of which there are none: programs with NaN are refused."""
        shape, axes = self.c.pick((((5, 1031), 1), ((4096,), 0), ((9, 511), 1), ((3, 70, 65), (1, 2)), ((1031, 5), 0)))
        return self.w.write(f"fnp.{self.c.pick(('nanmax', 'nanmin'))}({self.operand(shape, 1)}, axis={axes})")

    def _tiled(self) -> Value | None:
        shapes = (
            ((64,), (64,)),
            ((33, 40), (1, 4)),
            ((31,), (200,)),
            ((3, 50), (10, 3)),
            ((1030,), (4,)),
            ((70, 3), (2, 40)),
        )
        shape, reps = self.c.pick(shapes)
        return self.w.write(f"fnp.tile({self.operand(shape, 1)}, {reps})")

    def _stepped(self) -> Value | None:
        """Padding between elements, by itself or as the gradient of a slice."""
        shape, steps = self.c.pick((((1400,), (3,)), ((37, 1, 31), (2, 1, 3)), ((4096,), (2,)), ((64, 9), (8, 1))))
        if self.c.below(2):
            config = tuple((self.c.pick((0, 1, -1)), self.c.pick((step, 1, -1)), step - 1) for step in steps)
            return self.w.write(f"lax.pad({self.operand(shape, 1)}, fnp.zeros((), F), {config})")
        whole = tuple(n * step for n, step in zip(shape, steps, strict=True))
        index = ", ".join(f"{self.c.below(step)}::{step}" for step in steps)
        return self.w.write(f"ft.grad(lambda y: fnp.sum(fnp.sin(y[{index}])))({self.operand(whole, 1)})")

    def _true(self) -> Value | None:
        """Positions of the true elements of rows, fewer than there are or more."""
        n = self.c.pick((100, 1, 3, 257, 2049))
        form = f"lambda y: fnp.flatnonzero(y, size={self.c.pick((3, 1, n, n + 2))}, fill_value=-1)"
        x = f"{self.w.argument((n, 2), 'int32').name} > 0"
        form = self.c.pick((f"({form})", f"ft.vmap({form}, 1)"))
        return self.w.write(f"{form}({x}).astype(F)")

    def _long(self) -> Value | None:
        shapes = (
            ((65, 4097), 1),
            ((300_000,), 0),
            ((1_048_650,), 0),
            ((1100, 3, 80), 0),
            ((16, 65), 1),
            ((3, 15, 40), 2),
            ((21, 1025), 1),
        )
        shape, axis = self.c.pick(shapes)
        x, name = self.operand(shape, 1), self.c.pick(_CUMULATIVE)
        if name == "cumprod":
            x = f"1.0 + 0.001 * fnp.tanh({x})"
        return self.w.write(f"lax.{name}({x}, axis={axis}, reverse={self.c.below(2) == 1})")

    def _recurrent(self) -> Value | None:
        """The gradient of a running product, or of a running logarithm of a sum."""
        shape, axis = self.rows(self.c.pick(_LENGTHS))
        x, name = self.operand(shape, 1), self.c.pick(("cumprod", "cumlogsumexp"))
        form = "1.0 + 0.01 * fnp.tanh(y)" if name == "cumprod" else "y"
        fold = f"lax.{name}({form}, axis={axis}, reverse={self.c.below(2) == 1})"
        return self.w.write(f"ft.grad(lambda y: fnp.sum(fnp.sin({fold})))({x})")

    def _special(self) -> Value | None:
        n = self.c.pick(_FLAT)
        x, y = self.operand((n,), 1), self.operand((n,), 1)
        forms = (
            "fnp.exp2({0})", "lax.lgamma(fnp.abs({0}) + 0.1)", "lax.digamma(fnp.abs({0}) + 0.1)",
            "lax.zeta(fnp.abs({0}) + 1.5, fnp.abs({1}) + 0.5)",
        )  # fmt: skip
        return self.w.write(self.c.pick(forms).format(x, y))

    def _sorted(self) -> Value | None:
        shape, axis = self.rows(self.c.pick(_SORTED))
        return self.w.write(f"fnp.{self.c.pick(('sort', 'argsort'))}({self.operand(shape, 1)}, axis={axis}).astype(F)")

    def _sorted_together(self) -> Value | None:
        shape, axis = self.rows(self.c.pick(_SORTED))
        key = self.operand(shape, 1)
        if self.c.below(2):
            key = f"(10 * {key}).astype({self.c.pick(('int8', 'int32', 'int16', 'bool'))!r})"
        which = self.c.pick((1, 2))
        others = ", ".join(self.operand(shape, 1) for _ in range(which))
        return self.w.write(
            f"lax.sort(({key}, {others}), dimension={axis}, num_keys={self.c.pick((1, 1, 2))})[{which}]"
        )

    def _quantile(self) -> Value | None:
        shape, axis = self.rows(self.c.pick(_SORTED))
        return self.w.write(f"fnp.quantile({self.operand(shape, 1)}, {self.c.pick((0.5, 0.0, 0.3, 1.0))}, axis={axis})")

    def _greatest(self) -> Value | None:
        n = self.c.pick((8192, 100, 8191, 8193, 16390))
        x, k = self.operand((*self.c.pick(((), (2,))), n), 1), self.c.pick((5, 1, 16, 31, 32, 33, 64))
        which = self.c.pick(("[0]", "[1].astype(F)"))
        return self.w.write(f"lax.top_k({x}, {k}){which}")

    def _elementwise(self) -> Value | None:
        name, by = self.c.pick(_ELEMENTWISE), self.c.pick(("", "30.0 * ", "1e6 * "))
        x = self.operand((self.c.pick((8192, 8191, 8193) if name in ("sin", "cos") else _FLAT),), 1)
        form = {"arcsin": "0.9 * fnp.tanh({})", "arccos": "0.9 * fnp.tanh({})"}.get(name, by + "{}")
        return self.w.write(f"fnp.{name}({form.format(x)})")

    def _double(self) -> Value | None:
        n = self.c.pick((2559, 2560, 2561))
        x, y = (f"({self.operand((n,), 1)}).astype('float64')" for _ in range(2))
        return self.w.write(f"({self.c.pick(_DOUBLE).format(x, y)}).astype(F)")

    def _quotient(self) -> Value | None:
        n = self.c.pick(_FLAT)
        x, y = self.operand((n,), 1), self.operand((n,), 1)
        forms = (
            "lax.rsqrt(fnp.abs({0}) + 0.1)",
            "(fnp.abs({0}) + 0.1) ** {1}",
            "(fnp.abs({0}) + 0.1) ** 1.7",
            "fnp.arctan2({0}, {1})",
            "lax.rem(10 * {0}, {1} + 2.5)",
            "fnp.mod({0}, 0.3)",
            "fnp.power(fnp.abs({0}) + 0.1, {1})",
        )
        return self.w.write(self.c.pick(forms).format(x, y))

    def _integers(self) -> Value | None:
        n = self.c.pick((5, 1, 8191, 8193))
        x, y = self.w.argument((n,), "int32").name, self.w.argument((n,), "int32").name
        forms = (
            "lax.div({0} * 123457, {1})",
            "lax.rem({0} * 123457, {1})",
            "{0} // {1}",
            "{0} % {1}",
            "{0} * 49 // (49 * {1}[0])",
            "{0} ** ({1} & 31)",
        )
        return self.w.write(f"({self.c.pick(forms).format(x, y)}).astype(F)")

    def _folded_integers(self) -> Value | None:
        shape, axis = self.c.pick((((4097,), 0), ((4095,), 0), ((64, 65), 1), ((70, 2, 64), (0, 2)), ((80, 63), 1)))
        x = f"{self.w.argument(shape, 'int32').name}.astype({self.c.pick(('int32', 'int64'))!r})"
        return self.w.write(f"fnp.{self.c.pick(('max', 'min', 'sum'))}({x} * 1237, axis={axis}).astype(F)")

    def _small_products(self) -> Value | None:
        c = self.c
        stack, depth = c.pick((16, 1, 15, 17, 64)), c.pick((2, 1, 3, 4, 6, 7))
        left, right = c.pick((8, 3, 64, 65, 16)), c.pick((8, 1, 3, 65, 33))
        return self.w.write(f"{self.operand((stack, left, depth), 1)} @ {self.operand((stack, depth, right), 1)}")

    def _by_columns(self) -> Value | None:
        """A product whose left operand is contracted before its free dimensions."""
        terms, rows = self.c.pick((64, 256, 255, 300, 33)), self.c.pick((256, 64, 128, 255, 63))
        columns = self.c.pick((2, 64, 1, 10, rows // 4, rows // 2, 63, 128))
        x, y = self.operand((terms, rows), 1), self.operand((terms, columns), 1)
        forms = (
            "{0}.T @ {1}",
            "lax.dot_general({0}, {1}, (((0,), (0,)), ((), ())))",
            "fnp.tensordot({0}, {1}, (0, 0))",
        )
        return self.w.write(self.c.pick(forms).format(x, y))

    def _complex(self) -> Value | None:
        rows, depth, columns = (self.c.pick(sizes) for sizes in ((48, 3, 65), (48, 47, 64), (48, 1, 47)))
        x, y = (self.operand((rows, depth), 1) for _ in range(2))
        v, w = (self.operand((depth, columns), 1) for _ in range(2))
        part = self.c.pick(("real", "imag"))
        return self.w.write(f"fnp.{part}(({x} + 1j * {y}) @ ({v} + 1j * {w})).astype(F)")

    def _ragged(self) -> Value | None:
        """Products of groups of rows; the groups may have more rows than there are, or fewer."""
        c = self.c
        rows, groups = c.pick((40, 1, 7, 300)), c.pick((3, 1, 2, 8))
        depth, columns = c.pick((4, 1, 33)), c.pick((5, 1, 32))
        sizes = f"fnp.abs({self.w.argument((groups,), 'int32').name}) % {rows // groups + 2}"
        x = self.operand((rows, depth), 1)
        if c.below(2):
            return self.w.write(f"lax.ragged_dot({x}, {self.operand((groups, depth, columns), 1)}, {sizes})")
        dims = "lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())"
        return self.w.write(f"lax.ragged_dot_general({x}, {self.operand((rows, columns), 1)}, {sizes}, {dims})")

    def _many_rows(self) -> Value | None:
        c = self.c
        depth = c.pick((2, 3, 6, 7))
        left, right = c.pick((1024, 1023, 1025, 2048)), c.pick((8, 1, 31, 32, 33))
        return self.w.write(f"{self.operand((left, depth), 1)} @ {self.operand((depth, right), 1)}")

    def _halves(self) -> Value | None:
        c = self.c
        depth = c.pick((8, 3, 32, 65))
        x, y = self.operand((c.pick((4, 1, 33)), depth), 1), self.operand((depth, c.pick((5, 1, 32, 31))), 1)
        return self.w.write(f"({x}.astype(H) @ {y}.astype(H)).astype(F)")

    def _windows(self) -> Value | None:
        c = self.c
        wide = c.pick((2, 1, 3, 4, 5, 9))
        stride = c.pick((wide, 1, 2, wide))
        space = c.pick((8, 5, 4, 12, 33, 50))
        x = self.operand((c.pick((2, 1)), space, c.pick((space, 7)), c.pick((3, 1))), 1)
        name = c.pick(("max", "min", "add"))
        start = {"max": "-np.inf", "min": "np.inf", "add": "0.0"}[name]
        padding = c.pick(("VALID", "SAME"))
        sizes = f"(1, {wide}, {wide}, 1), (1, {stride}, {stride}, 1)"
        return self.w.write(f"lax.reduce_window({x}, {start}, lax.{name}, {sizes}, '{padding}')")

    def _pooled_gradient(self) -> Value | None:
        c = self.c
        wide, space = c.pick((2, 1, 3, 4, 9)), c.pick((4, 8, 12, 19))
        high, stride, padding = c.pick((1, wide)), c.pick((wide, 1, 2, 3)), c.pick(("VALID", "SAME"))
        x = self.operand((2, space, space, c.pick((1, 3))), 1)
        start, fold = c.pick((("-np.inf", "max"), ("np.inf", "min"), ("0.0", "add")))
        sizes = f"(1, {wide}, {high}, 1), (1, {stride}, {c.pick((high, 1))}, 1)"
        pool = f"lax.reduce_window(y, {start}, lax.{fold}, {sizes}, {padding!r})"
        return self.w.write(f"ft.grad(lambda y: fnp.sum(fnp.square({pool})))({x})")

    def _reduced_rows(self) -> Value | None:
        c = self.c
        if c.pick((True, False, False)):
            shape = (c.pick((31, 32, 64)), c.pick((8, 9)), c.pick((3, 16, 17)))
            return self.w.write(f"fnp.{c.pick(('sum', 'mean', 'var'))}({self.operand(shape, 1)}, axis=(0, 2))")
        shape = (c.pick((5, 1, 100, 33)), c.pick((12, 11, 13, 2, 1, 64, 1000)))
        return self.w.write(f"fnp.{c.pick(('sum', 'mean', 'max', 'var'))}({self.operand(shape, 1)}, axis=-1)")

    def _reduced_columns(self) -> Value | None:
        c = self.c
        columns = c.pick((32, 31, 33, 1, 8, 32767, 32768, 32769))
        shape = (c.pick((5, 13, 12, 100)) if columns < 1000 else c.pick((2, 3)), columns)
        return self.w.write(f"fnp.{c.pick(('sum', 'mean', 'max'))}({self.operand(shape, 1)}, axis=0)")

    def _factorized(self) -> Value | None:
        if self.w.main not in ("float32", "float64"):
            return None
        n, many = self.c.pick((2, 1, 3, 4)), self.c.pick((1024, 1023, 5))
        x = self.w.argument((many, n, n)).name
        return self.w.write(f"lax.linalg.cholesky({x} @ fnp.swapaxes({x}, -1, -2) + 2.0 * fnp.eye({n}, dtype=F))")

    def _small_systems(self) -> Value | None:
        """Solutions of many small systems, and determinants."""
        if self.w.main not in ("float32", "float64"):
            return None
        n, many = self.c.pick((2, 3, 1, 4)), self.c.pick((64, 63, 300))
        x, y = self.w.argument((many, n, n)).name, self.w.argument((many, n, self.c.pick((1, 3, 4)))).name
        heavy = f"({x} + 3.0 * fnp.eye({n}, dtype=F))[:, ::-1]"
        solved = f"fnp.linalg.solve({heavy}, {y})"
        triangle = f"lax.linalg.triangular_solve({x} + 3.0 * fnp.eye({n}, dtype=F), {y}, left_side=True, lower=True)"
        forms = (solved, f"fnp.linalg.inv({heavy})", f"fnp.linalg.slogdet({heavy})[1]", triangle)
        return self.w.write(self.c.pick(forms))

    def _convolved(self, x: tuple[int, ...], kernel: tuple[int, ...], more: str) -> Value | None:
        layout = ("NCHW", "OIHW", "NCHW") if self.c.below(2) else ("NHWC", "HWIO", "NHWC")
        if layout[0] == "NHWC":
            x, kernel = (x[0], *x[2:], x[1]), (*kernel[2:], kernel[1], kernel[0])
        operands = f"{self.operand(x, 1)}, {self.operand(kernel, 1)}"
        return self.w.write(f"lax.conv_general_dilated({operands}, {more}, dimension_numbers={layout})")

    def _pointwise_convolution(self) -> Value | None:
        c = self.c
        features = c.pick((3, 1, 16))
        stride = c.pick((1, 1, 2))
        return self._convolved(
            (c.pick((2, 1)), features, c.pick((5, 1)), 4),
            (c.pick((4, 1, 17)), features, 1, 1),
            f"({stride}, {stride}), 'VALID'",
        )

    def _whole_windows(self) -> Value | None:
        c = self.c
        rows, features, outputs = c.pick((2, 1)), c.pick((3, 1, 16)), c.pick((4, 1, 17))
        if c.below(2):
            return self._convolved((rows, features, 5, 4), (outputs, features, 5, c.pick((4, 3))), "(1, 1), 'VALID'")
        around = c.pick((3, 3, 2))
        left, right = (rows, features, 1, 1), (outputs, features, 3, 4)
        return self._convolved(left, right, f"(1, 1), ((2, 2), ({around}, 3))")

    def _patches(self) -> Value | None:
        c = self.c
        wide, space = c.pick((3, 2, 5, 6)), c.pick((24, 12, 40))
        left, right = (c.pick((8, 7, 1)), 1, space, space), (c.pick((4, 1, 9)), 1, wide, wide)
        return self._convolved(left, right, "(1, 1), 'SAME'")

    def _many_features(self) -> Value | None:
        wide, padding = self.c.pick(((3, "SAME"), (14, "VALID"), (2, "VALID"), (13, "VALID"), (6, "SAME")))
        return self._convolved((2, 8, 16, 16), (8, 8, wide, wide), f"(1, 1), {padding!r}")

    def _with_holes(self) -> Value | None:
        wide, holes = self.c.pick((3, 2, 1)), self.c.pick(((2, 2), (1, 3), (3, 2)))
        padding = self.c.pick((((1, 2), (2, 1)), ((0, 3), (-1, 2))))
        return self._convolved((2, 8, 9, 9), (8, 8, wide, wide), f"(1, 1), {padding}, lhs_dilation={holes}")

    def _depthwise(self) -> Value | None:
        c = self.c
        features, space, wide = c.pick((4, 2, 33)), c.pick((6, 3, 5, 9)), c.pick((3, 1, 2, 5, 6))
        stride = c.pick((1, 2))
        return self._convolved(
            (2, features, space, space), (features * c.pick((1, 2)), 1, wide, wide),
            f"({stride}, {stride}), 'SAME', feature_group_count={features}",
        )  # fmt: skip

    def _grouped(self) -> Value | None:
        c = self.c
        groups, per, space = c.pick((2, 3, 16, 17, 32)), c.pick((2, 1, 4)), c.pick((4, 1, 2, 6, 7))
        wide = c.pick((3, 1, 2))
        return self._convolved(
            (2, groups * per, space, space), (groups * c.pick((2, 1)), per, wide, wide),
            f"(1, 1), 'SAME', feature_group_count={groups}",
        )  # fmt: skip


def draw(choices: Choices) -> Program:
    """Draw a program.

    >>> from functorch_like.testing.choices import Choices
    >>> print(draw(Choices(replay=[])))
    # F = float32, H = bfloat16; ...
    """
    main = choices.pick(("float32",) * 6 + ("float64", "float64", "bfloat16", "float16"))
    narrow = main if main in ("bfloat16", "float16") else choices.pick(("bfloat16", "float16"))
    d = LoweringDrawer(choices, main, narrow)
    v = d.central()
    while v is None:
        v = d.central()
    for _ in range(choices.below(3)):
        new = d.around(v) if choices.below(2) else d.reduction(v)
        v = new if new is not None and new.inexact and new.size < 1 << 18 else v
    total = choices.pick((None, "fnp.sum({})", "fnp.sum(fnp.square({}))"))
    return d.w.program(v.name, total=total)
