"""The paper's convergence theory beside what a run did: estimates, conditions, bound, lemmas."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.experiments.theory import corollary as corollary, lemmas as lemmas
    from fedrecplus.experiments.theory.constants import Constants as Constants, weights_in_words as weights_in_words
    from fedrecplus.experiments.theory.lemmas import LEMMA_HEADINGS as LEMMA_HEADINGS, lemma_rows as lemma_rows
    from fedrecplus.experiments.theory.study import theory as theory

lazily(__name__)
