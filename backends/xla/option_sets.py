"""Sets of compile options that are worth having, and the versions of XLA that each is for.

XLA:CPU can hand parts of a program to two libraries of kernels, YNNPACK and oneDNN. The choice holds for a
whole program, and changes its speed by a factor of 1.5 to 3 in either direction.

XLA:GPU times kernels while it compiles. For a product it has those of cuBLAS, and its own in dozens of forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functorch_like.backends.xla.jaxlib_api import VERSION

_YNN = "xla_cpu_experimental_ynn_fusion_type"


def ynn(*kinds: str) -> dict[str, Any]:
    """Return the options under which XLA hands these kinds of operations to YNNPACK."""
    return {_YNN: ",".join(f"LIBRARY_FUSION_TYPE_{kind}" for kind in kinds)}


#: Products alone, and reductions fused with the operations around them. Good for nearly all programs; `library_check`
#: finds those that it is wrong for.
PLAIN = ynn("REDUCE", "INDIVIDUAL_DOT")
#: Products fused with the operations around them, too. Most programs take 1 to 1.25 times as long on an AMD EPYC, some
#: less on a Xeon; and a product whose left operand depends on another one may be computed again and again.
FUSED_DOTS = ynn("REDUCE", "DOT")
#: Products alone: operands are arrays in memory, so that none is misread. XLA's own loops fuse a reduction with the
#: computation of its operand, which is good for short ones.
NO_FUSIONS = ynn("INDIVIDUAL_DOT")
#: True if YNNPACK is slow at many sums over the first dimension.
SLOW_COLUMNS = VERSION < (0, 11)
#: Nothing.
NONE = ynn()
#: Products to oneDNN, alone. Never with "LIBRARY_FUSION_TYPE_DOT" here: attention then crashes on 0.10.
ONEDNN = {
    **ynn("REDUCE"),
    "xla_cpu_use_onednn": True,
    "xla_cpu_experimental_onednn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
}
#: Nothing to oneDNN, whatever else was asked for.
NO_ONEDNN = {**PLAIN, "xla_cpu_use_onednn": False}
#: Convolutions that stand alone as well: depending on channels, window and processor, they take 0.6 to 1.6 times as
#: long as XLA's.
CONVOLUTIONS = ynn("REDUCE", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION")


def with_convolutions(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under which XLA hands convolutions, too, to YNNPACK.

    >>> with_convolutions(PLAIN) == CONVOLUTIONS
    True
    """
    kinds = {**PLAIN, **options}[_YNN]
    return {**options, _YNN: ",".join(filter(None, (kinds, "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION")))}


def without_products(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under which XLA hands no matrix products to YNNPACK.

    >>> without_products(PLAIN) == ynn("REDUCE")
    True
    """
    kinds = {**PLAIN, **options}[_YNN].split(",")
    return {**options, _YNN: ",".join(kind for kind in kinds if not kind.endswith("DOT"))}


#: Arithmetic in registers of 512 bits, which LLVM does not choose by itself: for integers, and functions of float64.
WIDE = {"xla_cpu_prefer_vector_width": 512}
#: Bytes that a loop may touch for XLA to make one kernel of it; XLA's own number is 1,024. Of the option of a backend.
SMALL_LOOPS = {"xla_cpu_small_while_loop_byte_threshold": "2048"}
#: Compiles 10 to 25 percent sooner, into slower programs.
UNOPTIMIZED = {"xla_backend_optimization_level": 0}
#: Compiles in a fifth of the time, from 0.11 on in half of it, into programs that are 1 to 40 times slower. Versions
#: from 0.11 on always compile loops by way of MLIR, which takes most of the time.
QUICK = {**UNOPTIMIZED, "xla_cpu_parallel_codegen_split_count": 1}
if VERSION < (0, 11):
    QUICK["xla_cpu_use_fusion_emitters"] = False
#: The same for programs with floats of 8 or 4 bits, or with very many operations in a row. TRAP: without fusion
#: emitters, XLA 0.10 converts to these floats by other code, which rounds 2.5000024 to float4 twice and makes NaN of
#: small negative numbers and 0 of 448 + 48.
QUICK_WITH_EMITTERS = {**QUICK, "xla_cpu_use_fusion_emitters": True} if VERSION < (0, 11) else QUICK


def is_quick(options: Mapping[str, Any]) -> bool:
    """Return True for the options of the quick tier on CPUs, of any program.

    >>> is_quick(QUICK), is_quick({})
    (True, False)
    """
    return any(quick.items() <= options.items() for quick in (QUICK, QUICK_WITH_EMITTERS))


#: For GPUs: products by cuBLAS alone. Training steps compile in 2 to 50 percent of the time, and run 1 to 1.7 times as
#: long. Without any timing they would compile little sooner, and convolutions would take four to eight times
#: as long.
CUBLAS = {"xla_gpu_enable_triton_gemm": False}
#: The options about the timing of kernels. A user who sets one has chosen how long compiling may take.
TIMING = frozenset(("xla_gpu_enable_triton_gemm", "xla_gpu_autotune_level"))
#: Kernels of a GPU recorded as one graph, however few they are.
GRAPHS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL",
    "xla_gpu_graph_min_graph_size": 1,
}
