"""Signal processing, under SciPy's names."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.scipy.signal.convolutions import convolve as convolve
    from functorch_like.scipy.signal.convolutions import convolve2d as convolve2d
    from functorch_like.scipy.signal.convolutions import correlate as correlate
    from functorch_like.scipy.signal.convolutions import correlate2d as correlate2d
    from functorch_like.scipy.signal.convolutions import fftconvolve as fftconvolve
    from functorch_like.scipy.signal.spectra import csd as csd
    from functorch_like.scipy.signal.spectra import istft as istft
    from functorch_like.scipy.signal.spectra import stft as stft
    from functorch_like.scipy.signal.spectra import welch as welch
    from functorch_like.scipy.signal.trends import detrend as detrend
