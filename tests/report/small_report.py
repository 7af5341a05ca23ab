"""Everything a report can be made of, small: run folders, a comparison, studies, theory, an audit."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from fedrecplus.cli.main import exit_code_of

DATA = "synthetic:clients=50,items=30,ratings_per_client=8"


def typed(command: list[str]) -> int:
    """Run a command as if it had been typed: what it writes names it."""
    with patch.object(sys, "argv", ["fedrecplus", *command]):
        return exit_code_of(command)


def small_inputs(folder: Path) -> Path:
    """A folder like the one that ``make paper`` fills."""
    quick = ["--dataset", DATA, "--set", "server.rounds=4", "--set", "evaluation.every=1"]
    few = ["--users", "6", "--rounds", "3", "--attacks", "popularity,one-round"]
    for command in (
        ["compare", *quick, "--algorithm", "fedrec,fedrec+", "--folds", "2", "--out", f"{folder}/table"],
        ["family", "run", *quick, "--folds", "2", "--workers", "1", "--json", f"{folder}/family.json"],
        ["ablate", *quick, "--folds", "2", "--json", f"{folder}/ablation.json"],
        ["ablate", "heterogeneity", *quick, "--rules", "wasserstein table τ=1,krum", "--json", f"{folder}/h.json"],
        ["audit", "--algorithm", "fedmf,fedrec+", *quick[:4], *few, "--workers", "1", "--json", f"{folder}/audit.json"],
        ["theory", f"{folder}/table/fedrec/fold-0", "--looks", "4", "--json", f"{folder}/theory.json"],
    ):
        assert typed(command) == 0
    return folder
