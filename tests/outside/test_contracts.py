"""Parts from outside keep the contracts, by the few lines that their authors would write."""

from __future__ import annotations

import pytest

from fedrecplus import testing


class TestPseudoItems(testing.PseudoItemsContract):
    rule = "my_rules.my_pseudo_items"


class TestVirtualRatings(testing.VirtualRatingsContract):
    rule = "my_rules.my_virtual_ratings"


class TestEncoder(testing.EncoderContract):
    rule = "my_rules.my_encoder"


class TestAggregation(testing.AggregationContract):
    rule = "my_rules.my_aggregation"


class TestServerOptimizer(testing.ServerOptimizerContract):
    rule = "my_rules.my_server_optimizer"


class TestChannel(testing.ChannelContract):
    rule = "my_rules.my_channel"


class TestModel(testing.ModelContract):
    rule = "my_rules.my_model"


@pytest.mark.whole
class TestNeuralModel(testing.ModelContract):
    rule = "my_rules.my_neural"
    rounds = 40
