"""Speed against the peers, as ratios measured in one run. `python -m benchmarks --help`; README.md has the rest."""
