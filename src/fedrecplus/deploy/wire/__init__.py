"""What travels between server and nodes: packets, requests, replies, the catalogue, and the checks of them all."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.deploy.wire.catalogue import FEWEST as FEWEST, ITEMS as ITEMS, ItemCatalogue as ItemCatalogue
    from fedrecplus.deploy.wire.identities import identity_number as identity_number, read_identities as read_identities
    from fedrecplus.deploy.wire.log import (
        LogHead as LogHead,
        leaf_hash as leaf_hash,
        leaf_subject as leaf_subject,
        root_of as root_of,
        round_leaf as round_leaf,
        split_leaves as split_leaves,
    )
    from fedrecplus.deploy.wire.packet import (
        PROTOCOL as PROTOCOL,
        VERSION as VERSION,
        Packet as Packet,
        Refusal as Refusal,
        one_line as one_line,
    )
    from fedrecplus.deploy.wire.reply import (
        RoundTerms as RoundTerms,
        decode_reply as decode_reply,
        encode_refusal as encode_refusal,
        encode_reply as encode_reply,
    )
    from fedrecplus.deploy.wire.request import (
        Request as Request,
        check_deployable as check_deployable,
        decode_request as decode_request,
        encode_request as encode_request,
        grouping_of as grouping_of,
        is_secure as is_secure,
        told_tables as told_tables,
    )
    from fedrecplus.deploy.wire.ring import (
        STATISTICS_ROUND as STATISTICS_ROUND,
        SumTerms as SumTerms,
        check_vector as check_vector,
        deployed_budget as deployed_budget,
        persons_bound as persons_bound,
        statistics_ring as statistics_ring,
        sum_layout as sum_layout,
        sum_terms as sum_terms,
    )
    from fedrecplus.deploy.wire.settings import fixed_settings as fixed_settings
    from fedrecplus.deploy.wire.stages import (
        FIRST as FIRST,
        LARGEST_MESSAGE as LARGEST_MESSAGE,
        SESSION_BYTES as SESSION_BYTES,
        Stage as Stage,
        decode_stage_reply as decode_stage_reply,
        decode_stage_request as decode_stage_request,
        encode_stage as encode_stage,
        is_later_stage as is_later_stage,
        longest_message as longest_message,
        mask_context as mask_context,
        message_of as message_of,
    )
    from fedrecplus.deploy.wire.steps import (
        as_told as as_told,
        first_state as first_state,
        grown_state as grown_state,
        is_possible as is_possible,
        next_state as next_state,
        of_run as of_run,
        sum_arrays as sum_arrays,
        sum_digest as sum_digest,
        sums_told as sums_told,
        told_digest as told_digest,
    )
    from fedrecplus.deploy.wire.task import LONGEST_TASK as LONGEST_TASK, Task as Task

lazily(__name__)
