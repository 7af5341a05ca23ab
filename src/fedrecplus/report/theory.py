"""The theorem beside a run."""

from __future__ import annotations

from typing import Any

from fedrecplus.report.elements import Section, bullets, details, plot, table
from fedrecplus.report.origins import made
from fedrecplus.theory.tables import HEADINGS, lemma_rows

_SYMBOLS = {
    "L": "L, smoothness along the path", "sigma_L": "σ_L, local variance", "sigma_G": "σ_G, dissimilarity",
    "A": "A, dissimilarity's slope", "rho": "ρ, rated rows against pseudo rows", "alpha": "α, share of rated rows",
    "chi_wp": "χ² of w against p", "chi_pw": "χ² of p against w", "f_0": "f₀", "f_star": "f_*, assumed",
    "f_last": "f at the end",
}  # fmt: skip


def theory_section(content: dict[str, Any]) -> Section:
    """Estimates, conditions, bound or the reason why there is none, rate, lemmas."""
    conditions = [[each["what"], "yes" if each["holds"] else "no", each["found"]] for each in content["conditions"]]
    marked = {(r, 1): "helps" if row[1] == "yes" else "harms" for r, row in enumerate(conditions)}
    estimates = [[_SYMBOLS.get(name, name), f"{value:.4g}"] for name, value in content["estimates"].items()]
    fit = content["fit"]
    about = (
        f"Fit: {fit['a']:.3g}/√t + {fit['b']:.3g}/t + {fit['c']:.3g}, R² = {fit['r_squared']:.3f}; "
        f"the theorem's floor 2χ²σ_G² is {fit['theorem_floor']:.3g}."
    )
    again = f"The rerun's table differs from the run's by at most {content['rerun_differs_by']:.2g}."
    parts = [
        bullets([*content["says"], about, again]),
        _curve(content),
        table(["condition", "holds", "found"], conditions, classes=marked),
        details("estimates", table(["estimate", "value"], estimates)),
        _gaussian(content["lemmas"]["gaussian"]),
        table(HEADINGS, lemma_rows(content["lemmas"])),
        made(content.get("made"), {"config": content["config"]}),
    ]
    ending = "the conditions hold" if content["applies"] else "the conditions do not hold"
    title = f"The theorem beside a run of {content['algorithm']} on {content['dataset']}: {ending}"
    return Section("theory", title, parts)


def _curve(content: dict[str, Any]) -> str:
    t = content["rounds"]
    traces = [
        {"type": "scatter", "mode": "markers", "name": "‖∇f‖², measured", "x": t, "y": content["gradient"]},
        {"type": "scatter", "mode": "lines", "name": "smallest so far", "x": t, "y": content["smallest"]},
        _dotted("fit", t, content["fit"]["curve"]),
    ]
    if content["bounds"]:
        bounds = [each["bound"] for each in content["bounds"]]
        traces.append({"type": "scatter", "mode": "lines", "name": "the theorem's bound", "x": t, "y": bounds})
    axes = {
        "xaxis": {"type": "log", "title": {"text": "T, rounds begun"}},
        "yaxis": {"type": "log", "title": {"text": "‖∇f‖²"}},
    }
    ending = "with the theorem's bound" if content["bounds"] else "without a bound, since the conditions do not hold"
    return plot(traces, axes, f"Squared gradient norm over rounds, {ending}.")


def _gaussian(found: dict[str, Any]) -> str:
    x, best = found["batch"], found["at_best"]
    traces = [
        {"type": "scatter", "mode": "lines+markers", "name": "batch gradients", "x": x, "y": found["distance"]},
        _dotted("normal draws", x, [best] * len(x)),
    ]
    axes = {
        "xaxis": {"type": "log", "title": {"text": "batch size B"}},
        "yaxis": {"type": "log", "title": {"text": "Kolmogorov distance"}},
    }
    slope = "too few points for a slope" if found["slope"] is None else f"slope {found['slope']:.2f}"
    return plot(
        traces, axes, f"How fast a batch's gradient becomes Gaussian: {slope}; −0.5 is the central limit.", height=340
    )


def _dotted(name: str, x: list[int], y: list[float]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": name, "line": {"dash": "dot"}, "x": x, "y": y}
