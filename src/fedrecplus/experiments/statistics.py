"""Whether a difference between two algorithms is one: means with intervals over folds, a paired test over clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from fedrecplus.arrays import Array


@dataclass(frozen=True)
class FoldMean:
    """A figure's mean over folds, with its uncertainty."""

    mean: float
    sd: float | None
    """sample standard deviation; None for a single fold, which says nothing of how folds differ"""
    low: float | None
    high: float | None
    """ends of the 95 % confidence interval of the mean; None for a single fold"""

    @property
    def interval(self) -> str:
        """The confidence interval as text."""
        return "–" if self.low is None else f"{self.low:.4f} – {self.high:.4f}"

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.sd is None else f"{self.mean:.4f} ± {self.sd:.4f}"


def fold_mean(values: Sequence[float]) -> FoldMean:
    """Mean, standard deviation and Student's 95 % interval.

    >>> print(fold_mean([0.91, 0.92, 0.93]))
    0.9200 ± 0.0100
    >>> print(fold_mean([0.91]))
    0.9100
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return FoldMean(mean, None, None, None)
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * sd / float(np.sqrt(len(values)))
    return FoldMean(mean, sd, mean - half, mean + half)


@dataclass(frozen=True)
class PairedTest:
    """Wilcoxon's signed-rank test of one algorithm against another, a pair per client."""

    baseline: str
    clients: int
    difference: float
    """mean over clients of the RMSE less the baseline's: negative is better than the baseline"""
    p: float
    """two-sided"""
    ranks: float | None = None
    """which way the ranks lean that p is of: those of positive differences less the others', over all, from −1 to 1;
    None in results of earlier versions"""

    @property
    def one_way(self) -> bool:
        """Whether mean and ranks lean the same way. Where few lose much and many gain little, p speaks for no mean."""
        return self.ranks is None or self.ranks * self.difference >= 0.0


def paired_test(errors: Array, baseline_errors: Array, baseline: str) -> PairedTest:
    """Compare clients' RMSEs, each already averaged over folds; clients without test ratings are not a number.

    After: Wilcoxon 1945; Kerby 2014 (the difference of rank sums).
    """
    both = np.isfinite(errors) & np.isfinite(baseline_errors)
    differences = errors[both] - baseline_errors[both]
    moved = differences[differences != 0.0]
    if not len(moved):
        return PairedTest(baseline, int(both.sum()), 0.0, 1.0, 0.0)
    ranks = stats.rankdata(np.abs(moved))
    leaning = float(np.sign(moved) @ ranks / ranks.sum())
    return PairedTest(
        baseline, len(differences), float(differences.mean()), float(stats.wilcoxon(differences).pvalue), leaning
    )


def holm(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """The same tests with p corrected for how many there are. After: Holm 1979.

    >>> [test.p for test in holm([PairedTest("fedrec", 9, -0.1, p) for p in (0.01, 0.04, 0.03)])]
    [0.03, 0.06, 0.06]
    """
    corrected, least = list(tests), 0.0
    for rank, place in enumerate(sorted(range(len(tests)), key=lambda place: tests[place].p)):
        least = min(1.0, max(least, (len(tests) - rank) * tests[place].p))
        corrected[place] = replace(tests[place], p=least)
    return corrected


def client_means(by_fold: Sequence[Array]) -> Array:
    """Each client's error averaged over the folds in which it has test ratings."""
    table = np.array(by_fold)
    present = np.isfinite(table)
    sums = np.where(present, table, 0.0).sum(axis=0)
    counts = present.sum(axis=0)
    means: Array = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means
