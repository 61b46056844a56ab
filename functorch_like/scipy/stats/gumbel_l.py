"""Gumbel's distribution of minima: the mirror image of that of maxima."""

from __future__ import annotations

from functorch_like.scipy.stats import gumbel_r
from functorch_like.scipy.stats.families import Family

_family = Family("Gumbel's distribution of minima", "0.5")

logpdf = _family.reflected(gumbel_r.logpdf, "logpdf", __name__)
pdf = _family.reflected(gumbel_r.pdf, "pdf", __name__)
cdf = _family.reflected(gumbel_r.sf, "cdf", __name__)
logcdf = _family.reflected(gumbel_r.logsf, "logcdf", __name__)
sf = _family.reflected(gumbel_r.cdf, "sf", __name__)
logsf = _family.reflected(gumbel_r.logcdf, "logsf", __name__)
ppf = _family.reflected(gumbel_r.isf, "ppf", __name__)
isf = _family.reflected(gumbel_r.ppf, "isf", __name__)
