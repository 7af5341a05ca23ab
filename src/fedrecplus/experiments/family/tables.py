"""The family's results as tables and sentences, from its JSON: for terminals, Markdown and the report alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.experiments.comparison import Table, published
from fedrecplus.experiments.family.members import CLAIMS, FEDREC, verdict_of
from fedrecplus.experiments.statistics import FoldMean, PairedTest
from fedrecplus.markdown import markdown_table

_AUTHORS = {
    ("pmf", "FedMF"): "FedRec PMF, no filling",
    ("pmf", FEDREC): "FedRec PMF, user average, ρ=1",
    ("pmf", "FedRec, hybrid filling"): "FedRec PMF, hybrid filling, ρ=1",
    ("svdpp", "FedRec, hybrid filling"): "FedRec SVD++, hybrid filling, ρ=1",
}
"""model and member → the system of FedRec's authors"""


def title(content: dict[str, Any]) -> str:
    """What was run."""
    settings = "each tuned by the same budget" if content["tuned"] else "every setting the same"
    return f"{content['dataset']}, model {content['model']}, {settings}"


def table_column(content: dict[str, Any]) -> str:
    """What was run, in short."""
    return f"{content['dataset']}, {content['model']}, {'tuned' if content['tuned'] else 'fixed'}"


def ideas_table(contents: Sequence[dict[str, Any]]) -> Table:
    """Whether each claim holds and what it changes of the RMSE, a column per run of the family."""
    runs = [{claim["says"]: claim for claim in content["claims"]} for content in contents]
    rows = [[says, *(_outcome(run[says]) if says in run else "–" for run in runs)] for says, *_ in CLAIMS]
    return ("the claim, and the change of RMSE", *map(table_column, contents)), rows


def _outcome(claim: dict[str, Any]) -> str:
    return f"{verdict(claim)}, {claim['difference']:+.4f}"


def verdict(claim: dict[str, Any]) -> str:
    """Whether a claim holds."""
    return verdict_of(claim["difference"], PairedTest(**claim["test"]))


def _p(claim: dict[str, Any]) -> str:
    """Below the smallest number that a float holds, p is written as 0 there."""
    p = claim["test"]["p"]
    return f"{p:.2g}" if p > 0 else "< 1e-300"


def errors_table(content: dict[str, Any]) -> Table:
    """A row per member; in FedRec's models with what its authors have."""
    head = ["member", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "KB up"]
    known, rows = {row.system: row.rmse for row in published(content["dataset"])}, []
    authors = any(model == content["model"] for model, _ in _AUTHORS)
    for member in content["members"]:
        mae, rmse, nmse = (FoldMean(**member["figures"][name]) for name in ("mae", "rmse", "nmse"))
        up = member["figures"]["bytes_up_per_client_round"]["mean"] / 1000
        theirs = known.get(_AUTHORS.get((content["model"], member["name"]), ""))
        rows.append([member["name"], str(mae), str(rmse), str(nmse), rmse.interval, f"{up:.1f}"])
        rows[-1] += [f"{theirs:.4f}" if theirs else "–"] * authors
    return [*head, *["RMSE of FedRec's authors"] * authors], rows


def claims_table(content: dict[str, Any]) -> Table:
    """A row per claim."""
    rows = []
    for claim in content["claims"]:
        differences = [f"{claim['difference']:+.4f}", f"{claim['test']['difference']:+.4f}"]
        rows.append([claim["says"], verdict(claim), *differences, _p(claim)])
    return ("claim", "here", "difference of RMSE", "mean over clients", "p (Holm)"), rows


def to_markdown(content: dict[str, Any]) -> str:
    """Both tables, with what they are about above them."""
    head = f"{title(content)}; {content['folds']} folds, mean ± standard deviation:\n\n"
    claims = f"\n{markdown_table(*claims_table(content))}" if content["claims"] else ""
    return f"{head}{markdown_table(*errors_table(content))}{claims}"
