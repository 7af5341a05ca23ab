"""What a notebook, a prompt and ``help`` show."""

from __future__ import annotations

import pytest

import fedrecplus as fr
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
CONFIG = fr.change(fr.preset("fedmf"), "server.rounds", 2)


def test_ratings_show_their_size() -> None:
    named = fr.Ratings(**{**vars(RATINGS), "name": "<mine>"})
    assert len(repr(named)) < 120
    assert "&lt;mine&gt;" in named._repr_html_()
    assert f"<td>{len(RATINGS):,}</td>" in named._repr_html_()


def test_a_run_shows_its_figures_and_no_arrays() -> None:
    run = fr.train(*fr.split(RATINGS, 0), CONFIG, fold=0)
    for shown in (repr(run), run._repr_html_()):
        assert f"{run.rmse:.4f}" in shown
        assert "fedmf" in shown
        assert "array" not in shown
    assert len(repr(run)) < 200
    assert len(repr(run.recommender)) < 120
    assert len(repr(run.recommender.client(0))) < 60
    assert "RMSE" not in repr(fr.train(RATINGS, None, CONFIG))


def test_a_comparison_is_its_table() -> None:
    found = fr.compare(RATINGS, [CONFIG], folds=2, workers=1)
    mean = f"{found.mean('fedmf'):.4f}"
    assert mean in repr(found)
    assert mean in found._repr_html_()
    frame = found.to_frame()
    assert frame.filter(frame["algorithm"] == "fedmf")["rmse"].mean() == pytest.approx(found.mean("fedmf"))


def test_an_audit_is_its_table_and_says_what_it_found() -> None:
    found = fr.run_audit(RATINGS, CONFIG, users=3, rounds=1, attacks=["popularity"], workers=1)
    assert found.rows[0]["scheme"] == "fedmf"
    assert all(sentence in repr(found) for sentence in found.says)
    assert found._repr_html_().count("<tr>") == 1 + len(found.rows)
    assert len(found.to_frame()) == len(found.rows)


def test_names_are_there_before_they_are_imported() -> None:
    assert set(fr.__all__) <= set(dir(fr))
    assert all(getattr(fr, name) is not None for name in fr.__all__)
