"""`python -m benchmarks.libraries`."""

import sys

from benchmarks.libraries.run import main

sys.exit(main())
