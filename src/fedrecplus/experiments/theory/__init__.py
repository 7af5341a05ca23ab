"""The paper's convergence theory beside what a run did: estimates, conditions, bound, lemmas."""
