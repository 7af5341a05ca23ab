"""What travels between server and nodes: packets, requests, replies, the catalogue, and the checks of them all."""

from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.reply import Refusal, RoundTerms, decode_reply, encode_refusal, encode_reply
from fedrecplus.deploy.wire.request import Request, broadcast_of, decode_request, encode_request
from fedrecplus.deploy.wire.rules import check_deployable, check_rules, fixed_settings
from fedrecplus.deploy.wire.version import VERSION

__all__ = [
    "VERSION", "ItemCatalogue", "Packet", "Refusal", "Request", "RoundTerms", "broadcast_of",
    "check_deployable", "check_rules", "decode_reply", "decode_request", "encode_refusal", "encode_reply",
    "encode_request", "fixed_settings",
]  # fmt: skip
