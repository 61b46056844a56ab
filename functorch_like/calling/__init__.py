"""From a Python call to flat leaves and back: signatures, the public API's boundary, eager kernels."""
