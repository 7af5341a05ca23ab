"""The page's first section: which of the paper's claims hold here, which don't, and by how much, in words.

Every sentence is made from the studies that the page was given. What is ours is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from fedrecplus.experiments import family
from fedrecplus.experiments.heterogeneity import PAPER
from fedrecplus.experiments.theory import weights_in_words
from fedrecplus.web.report.elements import PAPER_PRESET, Section, bullets, paragraph
from fedrecplus.web.report.inputs import Found

_WORDS = {
    "holds": "Hold, by the change of RMSE",
    "fails": "The opposite holds of",
    "mixed": "All ratings and the mean over clients disagree on",
    "no difference": "No difference is shown for",
}


def verdicts_section(inputs: Sequence[Found]) -> Section | None:
    """A sentence per claim; None where nothing of the paper's was run."""
    lines = [line for each in inputs for line in said(each.kind, each.content)]
    if not lines:
        return None
    apart = (
        "These are the paper's own algorithm and its equals, in the paper's model unless another is named.",
        "Our presets, which have another model and more, stand apart below, and prove nothing about the paper.",
    )
    return Section("verdicts", "The paper's claims, in words", [paragraph(*apart), bullets(lines)])


def said(kind: str, content: dict[str, Any]) -> list[str]:
    """A study's verdicts; none where it is not one of the paper's."""
    return _SAYS[kind](content) if kind in _SAYS else []


def _family(content: dict[str, Any]) -> list[str]:
    """The claims of one run of the family, by whether they hold."""
    settings = "each tuned" if content["tuned"] else "every setting the same"
    said = [f"{content['dataset']}, {content['model']}, {settings}."]
    for outcome, words in _WORDS.items():
        own = [_by(claim) for claim in content["claims"] if family.tables.verdict(claim) == outcome]
        said += [f"{words}: {'; '.join(own)}."] if own else []
    return [" ".join(said)] if content["claims"] else []


def _by(claim: dict[str, Any]) -> str:
    return f"{claim['says']} ({claim['difference']:+.4f})"


def _figure(content: dict[str, Any]) -> list[str]:
    """Whether more pseudo items cost more."""
    said = []
    for study in content["studies"]:
        if (study["study"], study["algorithm"]) == ("pseudo-items", PAPER_PRESET) and len(study["cells"]) > 1:
            errors = [cell["rmse"]["mean"] for cell in study["cells"]]
            ratios = [cell["settings"]["pseudo_items.ratio"] for cell in study["cells"]]
            rising = all(a < b for a, b in pairwise(errors))
            said.append(
                f"{study['dataset']}. The paper's figure, more pseudo items cost accuracy: "
                f"{'holds' if rising else 'does not hold at every step'}, RMSE {errors[0]:.4f} with {ratios[0]:g} "
                f"per rated item, {errors[-1]:.4f} with {ratios[-1]:g}."
            )
    return said


def _heterogeneity(content: dict[str, Any]) -> list[str]:
    """In how many scenarios the paper's own weights help."""
    own = [cell["verdict"] for cell in content["cells"] if cell["rule"] == PAPER]
    counts = {word: own.count(word) for word in ("helps", "harms")}
    if not own:
        return []
    return [
        f"{content['dataset']}. Wasserstein weights help where clients differ: the paper's own help in "
        f"{counts['helps']} of {len(own)} scenarios and harm in {counts['harms']}, against uniform weights."
    ]


def _theory(content: dict[str, Any]) -> list[str]:
    """Whether the theorem is about the run, and the corollary's rate."""
    failed = [each["what"] for each in content["conditions"] if not each["holds"]]
    limits = zip(content["bounds"] or [], content["smallest"], strict=False)
    bound = "holds" if all(limit["bound"] >= smallest for limit, smallest in limits) else "does not hold"
    fail = "fails" if len(failed) == 1 else "fail"
    applies = f"does not apply: {'; '.join(failed)} {fail}" if failed else f"applies, and its bound {bound}"
    rate = content.get("corollary")
    slope = f" With the corollary's steps the gradient falls as T^{rate['slope']:.2f}; it has −0.50." if rate else ""
    weights = f" {weights_in_words(content)}" if content["algorithm"] == PAPER_PRESET else ""
    return [f"{content['algorithm']} on {content['dataset']}. The theorem {applies}.{slope}{weights}"]


_SAYS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "family": _family,
    "ablation": _figure,
    "heterogeneity": _heterogeneity,
    "theory": _theory,
}
