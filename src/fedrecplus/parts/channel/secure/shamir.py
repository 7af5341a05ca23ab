"""Shamir's secret sharing of 32-byte secrets, over the field of a prime just above 2^256.

After: Shamir 1979
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

PRIME = 2**256 + 297
"""the least prime above 2^256, so that every 32-byte secret is a number of the field"""
SECRET_BYTES = 32
SHARE_BYTES = 33
RandomBytes = Callable[[int], bytes]


def split(secret: bytes, holders: int, threshold: int, random_bytes: RandomBytes) -> list[bytes]:
    """Shares for holders 1 to n: any ``threshold`` of them give the secret, fewer tell nothing.

    A polynomial of degree threshold − 1 with random coefficients whose value at 0 is the secret.
    """
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= holders:
        raise ValueError(f"can't share {len(secret)} bytes among {holders} holders with a threshold of {threshold}")
    # 48 random bytes modulo a prime of 257 bits: the bias is below 2^-127
    coefficients = [int.from_bytes(random_bytes(48), "big") % PRIME for _ in range(threshold - 1)]
    shares = []
    for x in range(1, holders + 1):
        value = 0
        for coefficient in coefficients:
            value = (value + coefficient) * x % PRIME
        shares.append(((value + int.from_bytes(secret, "big")) % PRIME).to_bytes(SHARE_BYTES, "big"))
    return shares


def restore(shares: Mapping[int, bytes]) -> bytes:
    """The secret behind shares (holder number → share), all of which are used; a ``ValueError`` if there is none."""
    secret = value_at(0, shares)
    if secret >= 2 ** (8 * SECRET_BYTES):
        raise ValueError("these shares belong to no secret: one of them is wrong")
    return secret.to_bytes(SECRET_BYTES, "big")


def restore_checked(
    shares: Mapping[int, bytes], threshold: int, right: Callable[[bytes], bool]
) -> tuple[bytes | None, tuple[int, ...]]:
    """The secret that is ``right``, from shares of which some may be wrong, and the holders of wrong ones.

    Successive runs of ``threshold`` holders are tried, so one wrong share among threshold + 1 is always got round.
    """
    holders = sorted(shares)
    for first in range(len(holders) if len(holders) > threshold else 1):
        chosen = {x: shares[x] for x in (holders[(first + step) % len(holders)] for step in range(threshold))}
        try:
            secret = restore(chosen)
        except ValueError:
            continue
        if right(secret):
            others = [x for x in holders if x not in chosen] if first else ()
            return secret, tuple(x for x in others if not _fits(x, shares[x], chosen))
    return None, ()


def value_at(place: int, shares: Mapping[int, bytes]) -> int:
    """The polynomial through these shares, at a place. After: Lagrange."""
    points = {x: _number(x, share) for x, share in shares.items()}
    places = list(points)
    below = [_product(x - other for other in places if other != x) * (place - x) % PRIME for x in places]
    if place in points:
        return points[place]
    above = _product(place - x for x in places)
    return above * sum(points[x] * inverse for x, inverse in zip(places, _inverses(below), strict=True)) % PRIME


def _fits(place: int, share: bytes, chosen: Mapping[int, bytes]) -> bool:
    try:
        return _number(place, share) == value_at(place, chosen)
    except ValueError:
        return False


def _number(x: int, share: bytes) -> int:
    value = int.from_bytes(share, "big")
    if len(share) != SHARE_BYTES or value >= PRIME or x < 1:
        raise ValueError(f"holder {x} gave no share")
    return value


def _product(factors: Iterable[int]) -> int:
    product = 1
    for factor in factors:
        product = product * factor % PRIME
    return product


def _inverses(values: Sequence[int]) -> list[int]:
    """1/v of each: one inversion for all of them. After: Montgomery 1987"""
    before = [1]
    for value in values:
        before.append(before[-1] * value % PRIME)
    inverse, found = pow(before[-1], -1, PRIME), []
    for place in range(len(values) - 1, -1, -1):
        found.append(inverse * before[place] % PRIME)
        inverse = inverse * values[place] % PRIME
    return found[::-1]
