"""The paper's family of algorithms under equal settings, and the search for settings of each."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.experiments.family import tables as tables, tuning as tuning
    from fedrecplus.experiments.family.members import (
        CLAIMS as CLAIMS,
        FEDREC as FEDREC,
        FEDREC_PLUS as FEDREC_PLUS,
        MEMBERS as MEMBERS,
        STARTS as STARTS,
        family as family,
        member_config as member_config,
        members_in as members_in,
        own_settings as own_settings,
        shipped_settings as shipped_settings,
        start as start,
        verdict_of as verdict_of,
    )

lazily(__name__)
