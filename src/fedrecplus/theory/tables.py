"""The lemmas as a table."""

from __future__ import annotations

from typing import Any

HEADINGS = ("lemma", "measured", "bound", "measured/bound")
_NAMES = {
    "wasserstein": "Wasserstein bound: D ≤ m Σ p²W",
    "gradient_distance": "gradient distance: ‖∇f − ∇f̃‖²",
    "local_updates": "local updates: mean ‖x_K − x‖²",
}


def lemma_rows(lemmas: dict[str, Any]) -> list[list[str]]:
    """A row per lemma: what was measured, what the lemma allows, and whether that holds."""
    return [*(_row(name, lemmas[key]) for key, name in _NAMES.items()), _gaussian(lemmas["gaussian"])]


def _row(name: str, found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [name, "", "", "no weights, so nothing to bound"]
    note = "" if found.get("applies", True) else " (its step-size condition does not hold)"
    note += ", does not hold" if found["ratio"] > 1.0 else ""
    measured = found.get("measured", found.get("distance"))
    return [name, f"{measured:.4g}", f"{found['bound']:.4g}", f"{found['ratio']:.3g}{note}"]


def _gaussian(found: dict[str, Any]) -> list[str]:
    first, last = (f"{found['distance'][end]:.3f} (B={found['batch'][end]})" for end in (0, -1))
    slope = "too few points for a slope" if found["slope"] is None else f"slope {found['slope']:.2f} in log B"
    name = "Gaussian updates: Kolmogorov distance"
    return [name, f"{first} to {last}", f"{found['at_best']:.3f} for normal draws", slope]
