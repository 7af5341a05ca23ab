"""Homomorphic encryption: the server adds ciphertexts and sees no number, not even a sum.

All clients hold one key, which the server doesn't have. Each encrypts its integers; the server adds ciphertexts of the
same rows and hands the sums back; every client decrypts them and takes the server's step by itself (it keeps the item
table, the last step and the optimizer's moments), so that all have the same new table. The simulation computes that
step once for everybody. The table is never sent: clients that missed a round fetch its sums.

Why the step is the clients': decrypted sums must not go back to the server unprotected. CKKS is approximate, and
whoever has a ciphertext and its exact decryption can solve for the key (Li and Micciancio 2021). Here nobody without
the key sees a decryption while training. What is published later, such as the finished table, is a function of sums
that were rounded to the integers they are, with noise far below half a unit (``_ckks.py``): as in an exact scheme, it
says nothing more than the sums.

Who learns what:

- the server: which clients take part, how many ciphertexts, and with ``rows = "blocks"`` which blocks of items a client
  has rows in. No sum and no table.
- every client: the cohort's sums and the table of each round. The audit shows what these give away.
- **one client together with the server: every upload**, since all hold the same key. That is the trust assumption: the
  server colludes with nobody, and no device gives its key away. ``secure`` needs less trust, and fewer bytes.

After: Chai, Wang, Chen, Yang 2020 (secure federated matrix factorisation)
Deviation: CKKS instead of Paillier, thousands of numbers to a ciphertext, and symmetric encryption, since whoever
encrypts also decrypts. The server there steps under encryption; this one's step divides, which sums of ciphertexts
can't. Uploading the rated items alone (PartText there) would be dearer than the whole table, since a ciphertext holds
rows of many items: ``blocks`` leaves out ciphertexts without a row of the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.channel._ckks import FOR_BITS, Adder, decrypt, encrypt, key_of, library, without_secret
from fedrecplus.parts.channel._ring import WEIGHT_BITS, RingLayout, RingVector, add_all, decode, zeros
from fedrecplus.parts.channel._summing import RingSettings, encoded
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload

Integers = NDArray[np.int64]


class Settings(RingSettings):
    """Options of the channel."""

    block_size: ClassVar[int] = 128
    """successive items of a block: as many as fill a ciphertext, 4,096 numbers of 32 bits"""


class HomomorphicEncryption(RingChannel[Settings]):
    """CKKS, with one key for all clients."""

    VIEW = "nothing"
    SIMULATION_ONLY = True

    def check_with(self, config: Any) -> None:
        """Refuse what encryption can't do, and a missing library before the first round."""
        super().check_with(config)
        if self.settings.rows == "rows":
            raise UserError(
                "channel.rule=he can't send single rows: a ciphertext holds the rows of many items",
                "set channel.rows=whole, or blocks to leave out ciphertexts without a row of the client",
            )
        if config.privacy.rule in ("central", "distributed"):
            raise UserError(
                f"privacy.rule={config.privacy.rule} with channel.rule=he: every client decrypts the sums before any "
                "noise, so that nothing is bounded",
                "set channel.rule=secure, or leave --epsilon out",
            )
        if self.settings.cryptography == "computed":
            library()

    def add_up(self, uploads: Sequence[Upload], message: Broadcast, seed: int) -> tuple[Sums, Traffic]:
        """The cohort's sums as every client decrypts them, and what ciphertexts cost. There is no noise: see above.

        After: Chai, Wang, Chen, Yang 2020
        """
        vectors_of, encoding = encoded(uploads, message, self.settings, seed)
        vectors, layout = list(vectors_of.values()), encoding.layout
        check_room(len(vectors), layout)
        summed = through_ciphertexts if self.settings.cryptography == "computed" else add_all
        return decode(summed(vectors, layout), encoding), traffic_of(vectors, message, layout)


def through_ciphertexts(vectors: Sequence[RingVector], layout: RingLayout) -> RingVector:
    """The ring sum, by way of everybody's ciphertexts."""
    keys = {bits: key_of(bits) for bits in (layout.bits, WEIGHT_BITS)}
    servers = {bits: Adder(without_secret(key)) for bits, key in keys.items()}
    for vector in vectors:
        for (name, block), (values, bits) in sections(vector, layout).items():
            for chunk, ciphertext in enumerate(encrypt(values, bits, keys[bits])):
                servers[bits].add((name, block, chunk), ciphertext)
    plain = {}
    for (name, block), (values, bits) in sections(zeros(layout), layout, every=True).items():
        chunks = -(-len(values) // FOR_BITS[bits].slots)
        sums = [servers[bits].total((name, block, chunk)) for chunk in range(chunks)]
        plain[name, block] = decrypt(sums, len(values), bits, keys[bits])
    return _joined(plain, layout)


def sections(
    vector: RingVector, layout: RingLayout, every: bool = False
) -> dict[tuple[str, int], tuple[Integers, int]]:
    """What a client encrypts: (section, block) → signed integers and the bits of their sum.

    Rows by block, those that hold an item of the client or ``every`` one; then weights and statistic, always whole.
    """
    size = layout.items if layout.whole else layout.block
    dense = zeros(layout)
    dense.add(vector)
    signed = dense.updates.view(f"<i{layout.bits // 8}").astype(np.int64)
    blocks = (
        range(-(-layout.items // size)) if every or vector.rows is None else np.unique(vector.rows // size).tolist()
    )
    rows = {("rows", block): (signed[block * size : (block + 1) * size].ravel(), layout.bits) for block in blocks}
    return {**rows, ("weights", 0): (dense.weights.view("<i4").astype(np.int64), WEIGHT_BITS)}


def _joined(plain: dict[tuple[str, int], Integers], layout: RingLayout) -> RingVector:
    """The ring vector of decrypted sections."""
    total = zeros(layout)
    updates = np.concatenate([values for (name, _), values in sorted(plain.items()) if name == "rows"])
    total.updates[:] = updates.reshape(total.updates.shape).astype(layout.dtype)
    total.weights[:] = plain["weights", 0].astype("<u4")
    return total


def check_room(clients: int, layout: RingLayout) -> None:
    """Refuse cohorts so large that the noise of their sum could reach half a unit."""
    most = min(FOR_BITS[bits].most_summands for bits in (layout.bits, WEIGHT_BITS))
    if clients > most:
        raise UserError(
            f"{clients:,} ciphertexts are too many for one sum, whose noise would reach the numbers",
            f"ask at most {most:,} clients at once: cohort.fraction",
        )


def traffic_of(vectors: Sequence[RingVector], message: Broadcast, layout: RingLayout) -> Traffic:
    """Ciphertexts of each client up; those of the sums down to each, instead of the table."""
    size = layout.items if layout.whole else layout.block
    rows, weights = FOR_BITS[layout.bits], FOR_BITS[WEIGHT_BITS]
    of_block = rows.size * -(-size * layout.columns // rows.slots)
    of_weights = weights.size * -(-len(zeros(layout).weights) // weights.slots)
    blocks = -(-layout.items // size)
    sent = sum(blocks if vector.rows is None else len(np.unique(vector.rows // size)) for vector in vectors)
    up = sent * of_block + len(vectors) * of_weights
    down = len(vectors) * (blocks * of_block + of_weights - message.bytes)
    return Traffic(up, down)
