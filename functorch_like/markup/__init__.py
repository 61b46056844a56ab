"""Building blocks of displays: HTML for notebooks, coloured text for terminals. Nothing here depends on arrays."""
