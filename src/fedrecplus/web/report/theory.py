"""The convergence theorem and its lemmas beside a run."""

from __future__ import annotations

from typing import Any

from fedrecplus.experiments.theory import conditions_table, horizons_table, lemmas_table, weights_in_words
from fedrecplus.web.report.elements import Section, axis, bullets, details, plot, table, trace
from fedrecplus.web.report.inputs import made

_SYMBOLS = {
    "L": "L, smoothness along the path", "sigma_L": "σ_L, local variance", "sigma_G": "σ_G, dissimilarity",
    "A": "A, dissimilarity's slope", "rho": "ρ, rated rows against pseudo rows", "alpha": "α, share of rated rows",
    "chi_wp": "χ² of w against p", "chi_pw": "χ² of p against w", "f_0": "f₀", "f_star": "f_*, assumed",
    "f_last": "f at the end",
}  # fmt: skip
_DOTTED = {"dash": "dot"}


def theory_section(content: dict[str, Any]) -> Section:
    """Estimates, conditions, bound or the reason why there is none, rate, lemmas."""
    marked = {(r, 1): "helps" if each["holds"] else "harms" for r, each in enumerate(content["conditions"])}
    estimates = [[_SYMBOLS.get(name, name), f"{value:.4g}"] for name, value in content["estimates"].items()]
    fit = content["fit"]
    about = (
        f"Fit: {fit['a']:.3g}/√t + {fit['b']:.3g}/t + {fit['c']:.3g}, R² = {fit['r_squared']:.3f}; "
        f"the theorem's floor 2χ²σ_G² is {fit['theorem_floor']:.3g}."
    )
    again = f"The rerun's table differs from the run's by at most {content['rerun_differs_by']:.2g}."
    parts = [
        bullets([*content["says"], weights_in_words(content), about, again]),
        _gradient_norm(content),
        table(*conditions_table(content), classes=marked),
        details("estimates", table(["estimate", "value"], estimates)),
        _gaussian(content["lemmas"]["gaussian"]),
        table(*lemmas_table(content["lemmas"])),
        *(_corollary(content["corollary"]) if "corollary" in content else []),
        made(content.get("made"), {"config": content["config"]}),
    ]
    hold = "hold" if content["applies"] else "do not hold"
    title = f"Convergence theorem, {content['algorithm']} on {content['dataset']}: the conditions {hold}"
    return Section("theory", title, parts)


def _gradient_norm(content: dict[str, Any]) -> str:
    t = content["rounds"]
    traces = [
        trace("‖∇f‖², measured", t, content["gradient"], "markers"),
        trace("smallest so far", t, content["smallest"]),
        trace("fit", t, content["fit"]["curve"], line=_DOTTED),
    ]
    if content["bounds"]:
        traces.append(trace("the theorem's bound", t, [each["bound"] for each in content["bounds"]]))
    layout = {"xaxis": axis("T, rounds begun", type="log"), "yaxis": axis("‖∇f‖²", type="log")}
    ending = "with the theorem's bound" if content["bounds"] else "without a bound, since the conditions do not hold"
    return plot(traces, layout, f"Squared gradient norm over rounds, {ending}.")


def _corollary(content: dict[str, Any]) -> list[str]:
    """The rate over numbers of rounds beside 1/√T, both through the first point."""
    T, smallest = ([each[name] for each in content["horizons"]] for name in ("rounds", "smallest"))
    rate = [smallest[0] * (T[0] / t) ** 0.5 for t in T]
    traces = [trace("min ‖∇f‖², measured", T, smallest, "lines+markers"), trace("1/√T", T, rate, line=_DOTTED)]
    layout = {"xaxis": axis("T, rounds of a training", type="log"), "yaxis": axis("min ‖∇f‖²", type="log")}
    caption = f"Trainings with the corollary's step sizes: slope {content['slope']:.2f}; 1/√T has −0.50."
    return [bullets(content["says"]), plot(traces, layout, caption, height=340), table(*horizons_table(content))]


def _gaussian(content: dict[str, Any]) -> str:
    x = content["batch"]
    traces = [
        trace("batch gradients", x, content["distance"], "lines+markers"),
        trace("normal draws", x, [content["at_best"]] * len(x), line=_DOTTED),
    ]
    layout = {"xaxis": axis("batch size B", type="log"), "yaxis": axis("Kolmogorov distance", type="log")}
    slope = "too few points for a slope" if content["slope"] is None else f"slope {content['slope']:.2f}"
    caption = f"How fast a batch's gradient becomes Gaussian: {slope}; −0.5 is the central limit."
    return plot(traces, layout, caption, height=340)
