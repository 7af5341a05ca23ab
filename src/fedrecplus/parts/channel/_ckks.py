"""Integers under homomorphic encryption: packed, encrypted, added and decrypted by TenSEAL's CKKS.

CKKS is approximate: a decrypted number is off by the noise of its ciphertext, and that noise depends on the key.
Whoever holds a ciphertext and sees its decryption to the last bit can solve for the key (Li and Micciancio 2021). So
only integers are encrypted, with room to spare between noise and half a unit, and what is decrypted is rounded before
anybody uses it: the result is then a function of the plaintexts alone, as in an exact scheme.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError

Integers = NDArray[np.int64]
_NOISE = 3.2
"""standard deviation of a fresh ciphertext's error, in every coefficient (the homomorphic encryption standard)"""
_MARGIN = 12.0
"""standard deviations between the noise of a sum and half a unit"""


@dataclass(frozen=True)
class Parameters:
    """Of the scheme, for integers below 2^(bits − 1). All have at least 128 bits of security (Albrecht et al. 2018)."""

    degree: int
    primes: tuple[int, ...]
    """bits of each prime of the modulus; the last one is for key switching, which sums never do"""
    scale: float
    """an integer times this is what is encrypted"""
    size: int
    """bytes of one ciphertext as it is sent, at most"""

    @property
    def slots(self) -> int:
        """Numbers in a ciphertext."""
        return self.degree // 2

    @property
    def most_summands(self) -> int:
        """Ciphertexts that can be added before noise could reach half a unit."""
        per_slot = _NOISE * math.sqrt(self.degree) / self.scale
        return int((0.5 / (_MARGIN * per_slot)) ** 2)


FOR_BITS = {
    16: Parameters(4096, (40, 40), 2.0**22, 49_500),
    32: Parameters(8192, (60, 60), 2.0**26, 131_300),
}
"""a narrow ring needs a narrow modulus, hence half the bytes"""


def library() -> Any:
    """TenSEAL; an error that names the extra where it isn't installed."""
    try:
        return importlib.import_module("tenseal")
    except ImportError:
        raise UserError(
            "homomorphic encryption needs tenseal, which is not installed",
            "pip install 'fedrecplus[he]', or set channel.cryptography=skipped to simulate its sums and bytes alone",
        ) from None


@functools.cache
def key_of(bits: int) -> Any:
    """The key that all clients hold, drawn from the operating system once per process.

    Symmetric: everybody who encrypts may decrypt. A ciphertext then has a twentieth of the noise of a public-key one
    and takes half the time.
    """
    tenseal, parameters = library(), FOR_BITS[bits]
    key = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, parameters.degree, -1, list(parameters.primes), tenseal.ENCRYPTION_TYPE.SYMMETRIC
    )
    key.global_scale = parameters.scale
    return key


def without_secret(key: Any) -> Any:
    """What the server needs to add ciphertexts: the parameters, and no key."""
    parts = ("save_public_key", "save_secret_key", "save_galois_keys", "save_relin_keys")
    return library().context_from(key.serialize(**dict.fromkeys(parts, False)))


def encrypt(values: Integers, bits: int, key: Any) -> list[bytes]:
    """Ciphertexts of so many numbers each, the last one filled up with zeros."""
    slots = FOR_BITS[bits].slots
    padded = np.zeros(slots * -(-len(values) // slots))
    padded[: len(values)] = values
    return [library().ckks_vector(key, chunk).serialize() for chunk in padded.reshape(-1, slots)]


class Adder:
    """The server: it adds ciphertexts of the same place, one after another, and has no key."""

    def __init__(self, parameters: Any) -> None:
        self._parameters = parameters
        self._totals: dict[Any, Any] = {}

    def add(self, place: Any, ciphertext: bytes) -> None:
        """One more ciphertext of a place."""
        each = library().ckks_vector_from(self._parameters, ciphertext)
        self._totals[place] = self._totals[place].add_(each) if place in self._totals else each

    def total(self, place: Any) -> bytes | None:
        """The sum of what was sent for a place; None where nothing was."""
        return self._totals[place].serialize() if place in self._totals else None


def decrypt(sums: Sequence[bytes | None], size: int, bits: int, key: Any) -> Integers:
    """The integers behind sums of ciphertexts, on a device; sums of nothing are zeros.

    Noise beyond a quarter of a unit is an error: rounding would then say something about the key.
    """
    slots, chunks = FOR_BITS[bits].slots, []
    for data in sums:
        plain = np.zeros(slots) if data is None else np.array(library().ckks_vector_from(key, data).decrypt())
        whole = np.rint(plain)
        if float(np.abs(plain - whole).max(initial=0.0)) >= 0.25:
            raise ArithmeticError("the noise of a sum of ciphertexts is near half a unit: too many were added")
        chunks.append(whole.astype(np.int64))
    return np.concatenate([np.zeros(0, np.int64), *chunks])[:size]
