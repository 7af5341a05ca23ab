"""Everything a report can be made of, small: run folders, a comparison, studies, theory, an audit."""

from __future__ import annotations

import json
from pathlib import Path

from fedrecplus.cli.main import exit_code_of

DATA = "synthetic:clients=50,items=30,ratings_per_client=8"
AUDIT_ROW = {
    "scheme": "fedrec+private", "attack": "one-round", "pseudo_ratio": 1.0, "local_epochs": 5, "rmse": 0.93,
    "bytes_up_per_client_round": 15_000.0, "rating_exact": 0.4, "rating_floor": 0.34, "precision": 0.5, "recall": 0.5,
    "f1": 0.5, "auc": 0.52, "tpr_at_1pct_fpr": 0.01, "chance": 0.5,
}  # fmt: skip


def small_inputs(folder: Path) -> Path:
    """A folder like the one that ``make paper`` fills."""
    quick = ["--dataset", DATA, "--set", "server.rounds=4", "--set", "evaluation.every=1"]
    for command in (
        ["compare", *quick, "--algorithms", "fedrec,fedrec+", "--folds", "2", "--out", f"{folder}/table"],
        ["ablate", *quick, "--folds", "2", "--json", f"{folder}/ablation.json"],
        ["ablate", "heterogeneity", *quick, "--rules", "wasserstein mean-own τ=1,krum", "--json", f"{folder}/h.json"],
        ["theory", f"{folder}/table/fedrec+/fold-0", "--looks", "4", "--json", f"{folder}/theory.json"],
    ):
        assert exit_code_of(command) == 0
    rows = [AUDIT_ROW, {**AUDIT_ROW, "scheme": "fedmf", "attack": "two-round", "auc": 1.0}]
    (folder / "audit.json").write_text(json.dumps({"rows": rows}))
    return folder
