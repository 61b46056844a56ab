"""From a jaxpr to StableHLO, compile options and cached executables."""
