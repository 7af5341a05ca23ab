"""The paper's convergence theory beside what a run did: estimates, conditions, bound, lemmas."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.experiments.theory import corollary as corollary
    from fedrecplus.experiments.theory.constants import Constants as Constants, weights_in_words as weights_in_words
    from fedrecplus.experiments.theory.corollary import horizons_table as horizons_table
    from fedrecplus.experiments.theory.lemmas import lemmas_table as lemmas_table
    from fedrecplus.experiments.theory.study import conditions_table as conditions_table, theory as theory

lazily(__name__)
