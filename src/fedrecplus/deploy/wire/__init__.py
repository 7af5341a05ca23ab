"""What travels between server and nodes: packets, requests, replies, the catalogue, and the checks of them all."""

from fedrecplus.deploy.wire.catalogue import FEWEST, ITEMS, ItemCatalogue
from fedrecplus.deploy.wire.packet import VERSION, Packet, Refusal
from fedrecplus.deploy.wire.reply import RoundTerms, decode_reply, encode_refusal, encode_reply
from fedrecplus.deploy.wire.request import Request, check_deployable, decode_request, encode_request, fixed_settings

__all__ = [
    "FEWEST", "ITEMS", "VERSION", "ItemCatalogue", "Packet", "Refusal", "Request", "RoundTerms",
    "check_deployable", "decode_reply", "decode_request", "encode_refusal", "encode_reply", "encode_request",
    "fixed_settings",
]  # fmt: skip
