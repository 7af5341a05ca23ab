"""What the server gets to see of a cohort's uploads."""

from fedrecplus.parts.channel._ring import (
    Encoding,
    Layout,
    OutOfBounds,
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

__all__ = [
    "Encoding",
    "Layout",
    "OutOfBounds",
    "RingVector",
    "add_all",
    "contributors",
    "decode",
    "encode",
    "encoding_of",
    "from_bytes",
    "of_steps",
    "zeros",
]
