"""Aggregation rules side by side where clients differ, err or lie."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.experiments.heterogeneity import tables as tables
    from fedrecplus.experiments.heterogeneity.study import (
        PAPER as PAPER,
        RULES as RULES,
        SCENARIOS as SCENARIOS,
        SHARE as SHARE,
        START as START,
        Study as Study,
        StudyCell as StudyCell,
        StudyExtent as StudyExtent,
        StudyTrial as StudyTrial,
        check_extent as check_extent,
        heterogeneity as heterogeneity,
    )

lazily(__name__)
