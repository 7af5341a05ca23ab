"""The family's results as tables and sentences, from its JSON: for terminals, Markdown and the report alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.experiments.family import FEDREC, FEDREC_PLUS
from fedrecplus.experiments.statistics import FoldMean
from fedrecplus.markdown import markdown_table

Table = tuple[Sequence[str], list[list[str]]]
IDEAS = {
    "FedRec+ against FedRec, user average (Table I)": (FEDREC_PLUS, FEDREC),
    "the first idea alone: similar items, nearest ratings": ("FedRec+, similar items alone", FEDREC),
    "… of it, nearest ratings of random items": ("random items, nearest ratings", FEDREC),
    "the second idea alone: Wasserstein weights": ("FedRec+, Wasserstein weights alone", FEDREC),
    "the second idea beside the first": (FEDREC_PLUS, "FedRec+, similar items alone"),
    "FedRec+ against FedRec, hybrid filling": (FEDREC_PLUS, "FedRec, hybrid filling"),
    "FedRec+ against FedMF, which has no pseudo items": (FEDREC_PLUS, "FedMF"),
}
"""what the paper's ideas bring: one member against another"""


def title(content: dict[str, Any]) -> str:
    """What was run."""
    settings = "each tuned by the same budget" if content["tuned"] else "every setting the same"
    return f"{content['dataset']}, model {content['model']}, {settings}"


def column(content: dict[str, Any]) -> str:
    """What was run, in short."""
    return f"{content['model']}, {'tuned' if content['tuned'] else 'fixed'}"


def ideas_table(contents: Sequence[dict[str, Any]]) -> Table:
    """What each idea changes of the RMSE, a column per run of the family on one data set."""
    found = [{(claim["better"], claim["worse"]): claim for claim in content["claims"]} for content in contents]
    rows = [[idea, *(_change(of_run.get(pair)) for of_run in found)] for idea, pair in IDEAS.items()]
    return ("RMSE", *map(column, contents)), rows


def _change(claim: dict[str, Any] | None) -> str:
    if claim is None:
        return "–"
    doubt = " (no difference)" if claim["verdict"] == "no difference" else ""
    return f"{claim['difference']:+.4f}{doubt}"


def errors_table(content: dict[str, Any]) -> Table:
    """A row per member."""
    rows = []
    for member in content["members"]:
        mae, rmse, nmse = (FoldMean(**member["figures"][name]) for name in ("mae", "rmse", "nmse"))
        up = member["figures"]["bytes_up_per_client_round"]["mean"] / 1000
        rows.append([member["name"], str(mae), str(rmse), str(nmse), rmse.interval, f"{up:.1f}"])
    return ("member", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "KB up"), rows


def claims_table(content: dict[str, Any]) -> Table:
    """A row per claim."""
    rows = [
        [claim["says"], claim["verdict"], f"{claim['difference']:+.4f}", f"{claim['test']['p']:.2g}"]
        for claim in content["claims"]
    ]
    return ("claim", "here", "difference of RMSE", "p (Holm)"), rows


def findings(content: dict[str, Any]) -> list[str]:
    """Which claims hold, which don't, and by how much."""
    words = {"holds": "Holds", "fails": "The opposite holds", "no difference": "No difference is shown"}
    return [
        f"{words[claim['verdict']]}: {claim['says']} ({claim['difference']:+.4f}, p = {claim['test']['p']:.2g})."
        for claim in content["claims"]
    ]


def to_markdown(content: dict[str, Any]) -> str:
    """Both tables, with what they are about above them."""
    head = f"{title(content)}; {content['folds']} folds, mean ± standard deviation:\n\n"
    return f"{head}{markdown_table(*errors_table(content))}\n{markdown_table(*claims_table(content))}"
