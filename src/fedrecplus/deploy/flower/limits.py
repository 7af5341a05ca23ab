"""How much of the server a caller may take: request rates, bytes and sizes. Nothing here knows Flower."""

from __future__ import annotations

LONGEST = 32 * 2**20
"""bytes of a request that carries an object; Flower cuts arrays into chunks of 5 MB"""
SHORT = 16 * 2**10
"""bytes of any other request of a node, and of a reply without its objects: names and numbers"""
REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 30.0, 300.0
"""of one key; a round takes two, fifteen where objects come one by one, and a look for work one"""
BYTES_PER_SECOND, BYTES_AT_ONCE = 2.0 * 2**20, 512.0 * 2**20
"""that one key may store: a silo's largest answers come in one burst, and nobody fills the memory"""
