"""The family's results as tables and sentences, from its JSON: for terminals, Markdown and the report alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.experiments.statistics import FoldMean
from fedrecplus.markdown import markdown_table

Table = tuple[Sequence[str], list[list[str]]]


def title(content: dict[str, Any]) -> str:
    """What was run."""
    settings = "each tuned by the same budget" if content["tuned"] else "every setting the same"
    return f"{content['dataset']}, model {content['model']}, {settings}"


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
