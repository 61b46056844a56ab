"""`python -m benchmarks.zoo`."""

from benchmarks.zoo.run import main

raise SystemExit(main())
