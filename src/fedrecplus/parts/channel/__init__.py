"""What the server gets to see of a cohort's uploads."""

from fedrecplus.parts.channel._ring import (
    Encoding,
    OutOfBounds,
    RingLayout,
    RingVector,
    add_all,
    contributors,
    decode,
    encode,
    encoding_of,
    from_bytes,
    of_steps,
    zeros,
)
from fedrecplus.parts.channel._summing import RingSettings, encoding_for, layout_of, rounding_keys, senders_of, too_few

__all__ = [
    "Encoding",
    "OutOfBounds",
    "RingLayout",
    "RingSettings",
    "RingVector",
    "add_all",
    "contributors",
    "decode",
    "encode",
    "encoding_for",
    "encoding_of",
    "from_bytes",
    "layout_of",
    "of_steps",
    "rounding_keys",
    "senders_of",
    "too_few",
    "zeros",
]
