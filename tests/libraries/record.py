"""Record the results of programs on JAX, where it is installed: `python record.py programs/optax_regression.py ...`.

`--print` prints the results of one program instead, on the package that `import jax` gives.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

VALUES = Path(__file__).parent / "values.json"


def run(path):
    """Return the results of a program, as lists of numbers."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: np.asarray(value, np.float64).tolist() for name, value in module.main().items()}


if __name__ == "__main__" and sys.argv[1] == "--print":
    print(json.dumps(run(sys.argv[2])))
elif __name__ == "__main__":
    import jax

    known = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    for program in sys.argv[1:]:
        known[Path(program).stem] = {"jax": jax.__version__, "values": run(program)}
    VALUES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
