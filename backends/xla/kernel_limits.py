"""Largest sizes of operations that become part of one kernel of XLA:CPU, together with many others.

Such a kernel runs on one thread. Three things have kernels of their own: small parts of programs (`small_parts.py`),
loops, and whole programs (`functorch_like/compiler/one_kernel.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of one kind of kernel.

    Attributes:
        operations: operations of the kernel. LLVM's time to optimise a function grows faster than the function's size.
        reduced: elements that one reduction reads.
        multiplications: multiplications of one product, which a kernel computes by plain loops.
        side: the longest side of the matrices of a product, unless another one is 1.
        elements: elements that one operation computes.
    """

    operations: int
    reduced: int
    multiplications: int
    side: float
    elements: int = 2048

    def admit_product(
        self, left: Sequence[int], right: Sequence[int], batched: Iterable[int], contracted: Iterable[int]
    ) -> bool:
        """Return True if a product of matrices is small.

        Args:
            left, right: shapes of the operands.
            batched, contracted: dimensions of the left operand that the right one has, too: those that the result
                keeps, and those that are summed over.
        """
        many, k = (math.prod(left[d] for d in dimensions) for dimensions in (batched, contracted))
        m, n = (math.prod(shape) // max(1, many * k) for shape in (left, right))
        if many * m * n > self.elements or many * m * n * k > self.multiplications:
            return False
        return 1 in (m, n, k) or max(m, n, k) <= self.side


#: YNNPACK takes sums of 4,096 elements and products with a side of 8, and its kernels cannot be part of another one.
LOOPS = Limits(operations=128, reduced=1024, multiplications=2048, side=7)
PARTS = Limits(operations=512, reduced=2048, multiplications=2048, side=7)
#: Compiled under options that hand nothing to YNNPACK.
PROGRAMS = Limits(operations=512, reduced=2048, multiplications=4096, side=math.inf)
