"""Stand-in for a jax installed beside the package: libraries that look for jax find it, and importing it fails."""

raise AssertionError("jax was imported")
