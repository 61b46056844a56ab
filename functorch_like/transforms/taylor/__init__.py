"""Taylor mode: `jet`, its rules, and arithmetic of power series."""
