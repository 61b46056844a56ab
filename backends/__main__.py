"""`python -m functorch_like.backends`: everything that a bug report needs."""

from __future__ import annotations

from functorch_like.backends.report import main

main()
