"""Differential privacy: who adds the noise."""

from fedrecplus.parts.privacy._accounting import NEIGHBOURING, ZERO_OUT, Release, ReleasePlan, epsilon_of, planned
from fedrecplus.parts.privacy._checks import check_delta
from fedrecplus.parts.privacy._noise import Words, discrete_gaussian, os_words, seeded_gaussian, seeded_words
from fedrecplus.parts.privacy._statistics import Figures, contribution, figures, sensitivity
from fedrecplus.parts.privacy._suited import suited

__all__ = [
    "NEIGHBOURING",
    "ZERO_OUT",
    "Figures",
    "Release",
    "ReleasePlan",
    "Words",
    "check_delta",
    "contribution",
    "discrete_gaussian",
    "epsilon_of",
    "figures",
    "os_words",
    "planned",
    "seeded_gaussian",
    "seeded_words",
    "sensitivity",
    "suited",
]
