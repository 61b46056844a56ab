"""Tables of samples: medians, ratios, budgets."""

from collections.abc import Callable
from statistics import median

from benchmarks.budgets import CASES, LINEAR_WITHIN, NOISE, SCALING


def table(results: dict, sides: list[str]) -> str:
    """Return a table with a line for each case: medians, ratios to the peers, the budget and the verdict.

    Each ratio of medians is followed by that of the least samples, which noise disturbs less.
    """
    peers = [side for side in sides if side != "ours"]
    header = ["case", *sides, *(text for peer in peers for text in (f"ours/{peer}", "least")), "budget", ""]
    verdict = verdicts(results)
    lines, notes = [header], []
    for case, row in results.items():
        ratios = [ratio(row, "ours", peer, of) for peer in peers for of in (median, min)]
        budget = CASES[case].budget
        lines.append(
            [
                CASES[case].what,
                *(duration(middle(row, side)) for side in sides),
                *("" if value is None else f"{value:.2f}" for value in ratios),
                "" if budget is None else f"{budget:.2f}",
                verdict.get(case, ""),
            ]
        )
        notes += [f"{CASES[case].what.strip()}: {side}: {reason}" for side, reason in failures(row)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = ["  ".join(f"{cell:{'<' if i == 0 else '>'}{widths[i]}}" for i, cell in enumerate(line)) for line in lines]
    text.insert(1, "-" * len(text[0]))
    return "\n".join([*text, "", *growth(results, sides), *notes])


def verdicts(results: dict) -> dict[str, str]:
    """Judge each case with a budget and a ratio: "ok", "close" where the difference may be chance, or "over".

    Noise only adds time, to either side, so the smaller of the two ratios is judged.
    """
    both = {case: [ratio(row, "ours", "jax", of) for of in (median, min)] for case, row in results.items()}
    judged = {case: (None if None in two else min(two), CASES[case].budget) for case, two in both.items()}
    return {
        case: "ok" if value <= budget else "close" if value <= budget * NOISE else "over"
        for case, (value, budget) in judged.items()
        if value is not None and budget is not None
    }


def growth(results: dict, sides: list[str]) -> list[str]:
    """Report the change of the cost of tracing one operation as the program grows."""
    small, few, large, many = SCALING
    if small not in results or large not in results:
        return []
    lines = []
    for side in sides:
        before, after = middle(results[small], side), middle(results[large], side)
        if before and after:
            drift = (after / many) / (before / few)
            shape = "linear" if drift <= LINEAR_WITHIN else "NOT linear"
            each = f"{duration(before / few)} each of {few:,}, {duration(after / many)} each of {many:,}"
            lines.append(f"tracing grows, {side}: {each}: x {drift:.2f}, {shape}")
    return lines


def middle(row: dict, side: str, of: Callable = median) -> float | None:
    """Return the median or the least of a side's samples, or None if it has none."""
    samples = row.get(side)
    return of(samples) if isinstance(samples, list) and samples else None


def ratio(row: dict, side: str, peer: str, of: Callable = median) -> float | None:
    """Return the ratio of two medians, or of the least samples, if both sides have samples."""
    above, below = middle(row, side, of), middle(row, peer, of)
    return above / below if above is not None and below else None


def failures(row: dict) -> list[tuple[str, str]]:
    """Return the sides that could not run a case, with the reasons; a side without such a case is left out."""
    return [(side, reason) for side, reason in row.items() if isinstance(reason, str) and reason]


def duration(seconds: float | None) -> str:
    """Return seconds as text, in s, ms, us or ns."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
