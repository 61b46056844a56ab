"""Products that sum over shared dimensions: dot_general, convolution, ragged_dot; and the FFT."""
