"""What travels between server and nodes: packets, requests, replies, the catalogue, and the checks of them all."""

from fedrecplus.deploy.wire.catalogue import FEWEST, ITEMS, ItemCatalogue
from fedrecplus.deploy.wire.identities import identity_number, read_identities
from fedrecplus.deploy.wire.log import LogHead, leaf_hash, leaf_subject, root_of, round_leaf, split_leaves
from fedrecplus.deploy.wire.packet import VERSION, Packet, Refusal
from fedrecplus.deploy.wire.reply import RoundTerms, decode_reply, encode_refusal, encode_reply
from fedrecplus.deploy.wire.request import (
    Request,
    check_deployable,
    decode_request,
    encode_request,
    grouping_of,
    is_secure,
    told_tables,
)
from fedrecplus.deploy.wire.ring import (
    STATISTICS_ROUND,
    SumTerms,
    check_vector,
    deployed_budget,
    persons_bound,
    statistics_ring,
    sum_layout,
    sum_terms,
)
from fedrecplus.deploy.wire.settings import fixed_settings
from fedrecplus.deploy.wire.stages import (
    FIRST,
    LARGEST_MESSAGE,
    SESSION_BYTES,
    Stage,
    decode_stage_reply,
    decode_stage_request,
    encode_stage,
    is_later_stage,
    longest_message,
    mask_context,
    message_of,
)
from fedrecplus.deploy.wire.steps import (
    as_told,
    first_state,
    grown_state,
    next_state,
    sum_arrays,
    sum_digest,
    sums_told,
    told_digest,
)
from fedrecplus.deploy.wire.task import LONGEST_TASK, Task

__all__ = [
    "FEWEST", "FIRST", "ITEMS", "LARGEST_MESSAGE", "LONGEST_TASK", "SESSION_BYTES", "STATISTICS_ROUND", "VERSION",
    "ItemCatalogue", "LogHead", "Packet", "Refusal", "Request", "RoundTerms", "Stage", "SumTerms", "Task", "as_told",
    "check_deployable", "check_vector", "decode_reply", "decode_request", "decode_stage_reply", "decode_stage_request",
    "deployed_budget", "encode_refusal", "encode_reply", "encode_request", "encode_stage", "first_state",
    "fixed_settings", "grouping_of", "grown_state", "identity_number", "is_later_stage", "is_secure", "leaf_hash",
    "leaf_subject", "longest_message", "mask_context", "message_of", "next_state", "persons_bound",
    "read_identities", "root_of", "round_leaf", "split_leaves", "statistics_ring", "sum_arrays", "sum_digest",
    "sum_layout", "sum_terms", "sums_told", "told_digest", "told_tables",
]  # fmt: skip
