"""One side's worker: `PYTHON benchmarks/worker SIDE`. Reads lines {"case": ...}, and answers each with one sample.

It is started by path, so that of the source tree only this folder can be imported: the installed package is measured.
"""

import gc
import json
import os
import sys
import traceback


def main(side: str) -> None:
    """Answer requests until the input ends."""
    # Output of libraries goes to standard error: standard output is the channel to the runner.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(**what: object) -> None:
        print(json.dumps(what), file=answers, flush=True)

    cores = os.environ.get("FT_BENCH_CORES")
    if cores:  # before the number of cores is read
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    try:
        cases, about = load(side)
    except ImportError as error:
        return answer(error=str(error))
    answer(**about)
    samplers = {}
    for line in sys.stdin:
        case = json.loads(line)["case"]
        try:
            if case not in samplers:
                if case not in cases:
                    answer(error="")  # this side has no such case; no reason is needed
                    continue
                samplers[case] = cases[case]()
            gc.collect()
            answer(seconds=samplers[case]())
        except Exception as error:  # one case that fails must not end the others
            traceback.print_exc()
            answer(error=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")


def load(side: str) -> tuple[dict, dict]:
    """Return a side's cases, each a function that prepares and returns its sampler, and its versions."""
    if side in ("torch", "compiled"):
        import torch_side

        return torch_side.CASES if side == "torch" else torch_side.COMPILED_CASES, torch_side.ABOUT
    import calls
    import lowering
    import meshes
    import scaling
    import sides
    import startup
    import tracing
    import workloads

    api = sides.load(side)
    cases = {}
    for module in (startup, tracing, lowering, calls, workloads, meshes, scaling):
        for name, case in module.CASES.items():
            cases[name] = lambda case=case: case(api)
    return cases, api.about


main(sys.argv[1])
