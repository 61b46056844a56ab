"""Building blocks of displays: HTML for notebooks, coloured text for terminals. Nothing here knows an array."""
