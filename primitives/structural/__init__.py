"""Primitives that move data and compute nothing, and what is made of them: `structural.reshape(x, shape=(2, 3))`."""

from __future__ import annotations

from functorch_like.primitives.base.shapes import broadcast_in_dim as broadcast_in_dim
from functorch_like.primitives.base.shapes import check_sizes as check_sizes
from functorch_like.primitives.base.shapes import full as full
from functorch_like.primitives.base.shapes import full_like as full_like
from functorch_like.primitives.base.shapes import move as move
from functorch_like.primitives.base.shapes import reduce_sum as reduce_sum
from functorch_like.primitives.base.shapes import reshape as reshape
from functorch_like.primitives.base.shapes import transpose as transpose
from functorch_like.primitives.base.shapes import widen as widen
from functorch_like.primitives.base.shapes import zeros as zeros
from functorch_like.primitives.elementwise.conversion import convert_element_type as convert_element_type
from functorch_like.primitives.structural.data_movement import concatenate as concatenate
from functorch_like.primitives.structural.data_movement import copy as copy
from functorch_like.primitives.structural.data_movement import iota as iota
from functorch_like.primitives.structural.data_movement import materialize as materialize
from functorch_like.primitives.structural.data_movement import rev as rev
from functorch_like.primitives.structural.data_movement import stop_gradient as stop_gradient
from functorch_like.primitives.structural.pad_and_slice import pad as pad
from functorch_like.primitives.structural.pad_and_slice import slice as slice
