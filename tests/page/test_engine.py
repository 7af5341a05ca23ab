"""The page's arithmetic is Python's: the same weights, predictions, lists and reasons over the same quantised rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.parts import recency_weights
from fedrecplus.training import ListOptions, Recommender, SharedModel
from fedrecplus.training.model_files import PrivateParts
from fedrecplus.training.recommender import Person
from fedrecplus.web.page.build import read_model, without_components
from fedrecplus.web.page.quantise import tables_of, with_tables
from tests.page.conftest import RUNS
from tests.page.in_node import run_in_node

NOBODY = PrivateParts(*(np.zeros(0) for _ in range(5)))
SCRIPT = """
const model = load(given.site);
print(given.people.map((ratings) => {
  const person = engine.foldIn(model, new Map(ratings));
  const seen = new Set(ratings.map(([item]) => item));
  return ["list", "rating"].map((by) => {
    const scores = engine.scores(person, by);
    const best = engine.top(scores, model.known.popularity, given.n, (item) => !seen.has(item));
    return { best, scores: best.map((item) => scores[item]), w: [...person.w], z: person.z && [...person.z],
      ratings: engine.predictedRatings(person, best),
      reasons: ratings.length ? engine.reasons(person, best, by) : [] };
  });
}));
"""


def people_of(model: SharedModel) -> list[list[tuple[int, float]]]:
    """Made-up people: nobody's ratings, one, a few, many; of more than 250 not all are asked for reasons."""
    rng = np.random.default_rng(1)
    count = len(model.item_ids)
    levels = model.scale.values(np.arange(model.scale.levels))
    sizes = (0, 1, 5, 20, 60) if count < 300 else (5, 290)
    return [[(int(i), float(rng.choice(levels))) for i in rng.choice(count, n, replace=False)] for n in sizes]


@pytest.mark.parametrize("name", RUNS)
def test_weights_predictions_lists_and_reasons_are_python_s(
    name: str, run_of: Callable[[str], Path], site_of: Callable[[str], Path], tmp_path: Path
) -> None:
    compare_with_python(read_model(run_of(name))[0], site_of(name), tmp_path)


def compare_with_python(exact: SharedModel, site: Path, folder: Path, n: int = 12) -> None:
    """Every figure of the page beside that of ``Recommender``, over the same rows."""
    model = with_tables(without_components(exact), tables_of(exact, 8))
    recommender, people = Recommender(model, NOBODY), people_of(model)
    found = run_in_node(folder, SCRIPT, {"site": str(site), "people": people, "n": n})
    for ratings, (by_list, by_rating) in zip(people, found, strict=True):
        person = recommender.fold_in({model.item_ids[item].item(): rating for item, rating in ratings})
        assert by_list["w"] == pytest.approx(person.w, abs=1e-6)
        assert (by_list["z"] is None) == (person.z is None)
        if person.z is not None:
            assert by_list["z"] == pytest.approx(ranking_weights(person), abs=1e-6)
        for by, one in (("list", by_list), ("rating", by_rating)):
            expected = person.top_list(ListOptions(n, by, why=True)).items
            compare_lists(one, expected, model)


def ranking_weights(person: Person) -> Any:
    """z of a list, which follows the order of ratings where the model does."""
    recency = recency_weights(np.arange(len(person.items))[::-1], person.model.decay)
    known = person.model.known[person.items]
    if recency is None or not known.any():
        return person.z
    return person.model.list_weights(person.w, person.items[known], person.ratings[known], recency[known])


def compare_lists(one: dict[str, Any], expected: Any, model: SharedModel) -> None:
    """Order, scores, predicted ratings and reasons."""
    places = {name: number for number, name in enumerate(model.item_ids.tolist())}
    assert one["best"] == [places[each.item] for each in expected]
    assert one["scores"] == pytest.approx([each.score for each in expected], abs=1e-6)
    assert one["ratings"] == pytest.approx([each.rating for each in expected], abs=1e-6)
    for mine, theirs in zip(one["reasons"], expected, strict=False):
        assert [why["contribution"] for why in mine] == pytest.approx(
            [why.contribution for why in theirs.because], abs=1e-6
        )
        strong = [place for place, why in enumerate(theirs.because) if why.contribution > 1e-6]
        assert [mine[place]["item"] for place in strong] == [places[theirs.because[place].item] for place in strong]
