"""Contracts: what a part of each kind promises, as tests for parts from outside. Needs pytest.

One class in a test file enrols a part::

    from fedrecplus.testing import PseudoItemsContract

    class TestMine(PseudoItemsContract):
        rule = "my_package.my_rule"
"""

import contextlib

with contextlib.suppress(ImportError):
    import pytest

    for _file in ("agreement", "aggregation", "attack", "channel", "contract", "model", "rules"):
        pytest.register_assert_rewrite(f"{__name__}.{_file}")  # failures then show the values that were compared

from fedrecplus.testing.aggregation import AggregationContract as AggregationContract
from fedrecplus.testing.agreement import assert_engines_agree as assert_engines_agree
from fedrecplus.testing.attack import AttackContract as AttackContract
from fedrecplus.testing.channel import ChannelContract as ChannelContract
from fedrecplus.testing.contract import Contract as Contract
from fedrecplus.testing.example import (
    example_config as example_config,
    example_problem as example_problem,
    example_round as example_round,
    small_ratings as small_ratings,
)
from fedrecplus.testing.model import ModelContract as ModelContract
from fedrecplus.testing.rules import (
    EncoderContract as EncoderContract,
    PrivacyContract as PrivacyContract,
    PseudoItemsContract as PseudoItemsContract,
    ServerOptimizerContract as ServerOptimizerContract,
    VirtualRatingsContract as VirtualRatingsContract,
)
