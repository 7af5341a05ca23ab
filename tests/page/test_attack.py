"""What the panel says a server reads is what the audit's attack on a single upload reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.audit.attacks import one_round
from fedrecplus.audit.transcript import Sent, Transcript
from tests.page.in_node import ROUNDS, run_in_node
from tests.page.test_client_step import asked_of, config_of, message_of, python_upload

READ = {
    "fedmf": ("fedmf", "fedrec+", "fedrec+private"),
    "mf": ("fedrec", "fedrec++"),
    "paper": ("fedrec+paper",),
    "biased-mf": ("fedmf-vanilla",),
    "half-stars": ("fedrec+",),
}
SCRIPT = """
print(rounds(({ upload }, message, preset) => {
  const guess = engine.oneRound(upload, message, preset, leaves.step);
  return { ratings: [...guess.ratings], evidence: [...guess.evidence] };
}));
"""


@pytest.mark.parametrize("name", READ)
def test_the_server_reads_what_the_audit_reads(
    name: str, run_of: Callable[[str], Path], site_of: Callable[[str], Path], tmp_path: Path
) -> None:
    model, people, given = asked_of(run_of(name), site_of(name), READ[name], (8, 30))
    found = run_in_node(tmp_path, ROUNDS + SCRIPT, given)
    for (items, ratings), guesses in zip(people, found, strict=True):
        for algorithm, mine in zip(READ[name], guesses, strict=True):
            config = config_of(algorithm, model)
            message, upload = message_of(model, config), python_upload(model, config, items, ratings)
            transcript = Transcript(config, model.public, model.scale.standard_step)
            transcript.broadcasts[message.round] = message
            wire = replace(upload, delta=upload.delta.astype(np.float32))
            transcript.sent[0] = [Sent(message.round, 0, wire)]
            (theirs,) = one_round.OneRound().attack(transcript, 0)
            assert mine["ratings"] == pytest.approx(theirs.ratings, abs=1e-9), algorithm
            assert mine["evidence"] == pytest.approx(theirs.rated, abs=1e-3, rel=1e-3), algorithm
