"""Shamir's secret sharing of 32-byte secrets, over the field of a prime just above 2^256.

After: Shamir 1979
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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

    One wrong share beyond the threshold is always got round, and as many as half of those beyond it.
    """
    sound = {x: share for x, share in sorted(shares.items()) if _is_share(share)}
    for number, chosen in enumerate(_choices(sound, threshold)):
        if _restores(chosen, right):
            others = sorted(shares.keys() - (chosen if number else sound).keys())
            wrong = (x for x in others if x not in sound or value_at(x, chosen) != _number(x, sound[x]))
            return restore(chosen), tuple(wrong)
    return None, ()


def _choices(shares: Mapping[int, bytes], threshold: int) -> Iterator[dict[int, bytes]]:
    """Sets of ``threshold`` holders: successive ones, then such as most others agree with."""
    holders = sorted(shares)
    if len(holders) < threshold:
        return
    for first in range(len(holders) if len(holders) > threshold else 1):
        yield {x: shares[x] for x in (holders[(first + step) % len(holders)] for step in range(threshold))}
    f = _decoded({x: _number(x, share) for x, share in shares.items()}, threshold)
    agreed = [x for x in holders if f and _at(f, x) == _number(x, shares[x])]
    if len(agreed) >= threshold:
        yield {x: shares[x] for x in agreed[:threshold]}


def _restores(shares: Mapping[int, bytes], right: Callable[[bytes], bool]) -> bool:
    try:
        return right(restore(shares))
    except ValueError:
        return False


def _decoded(points: Mapping[int, int], size: int) -> list[int]:
    """The polynomial with ``size`` coefficients that most of the points are on; none where too many are not.

    After: Gao 2003 (decoding of Reed–Solomon codes by the extended Euclidean algorithm)
    """
    before, now = [1], list[int]()
    for x, y in points.items():  # Newton's interpolation; ``before`` becomes the product of all x − x_i
        gap = (y - _at(now, x)) * pow(_at(before, x), -1, PRIME) % PRIME
        now = _plus(now, [gap * c for c in before])
        before = _plus([0, *before], [-x * c for c in before])
    errors, last = list[int](), [1]
    while 2 * len(now) > len(points) + size:
        quotient, rest = _divided(before, now)
        before, now = now, rest
        errors, last = last, _plus(errors, [-c for c in _times(quotient, last)])
    f, rest = _divided(now, last)
    return [] if rest else f


def _at(f: Sequence[int], x: int) -> int:
    value = 0
    for c in reversed(f):
        value = (value * x + c) % PRIME
    return value


def _plus(f: Sequence[int], g: Sequence[int]) -> list[int]:
    total = [(a + b) % PRIME for a, b in itertools.zip_longest(f, g, fillvalue=0)]
    while total and total[-1] == 0:
        total.pop()
    return total


def _times(f: Sequence[int], g: Sequence[int]) -> list[int]:
    product = [0] * (len(f) + len(g))
    for i, a in enumerate(f):
        for k, b in enumerate(g):
            product[i + k] = (product[i + k] + a * b) % PRIME
    return _plus(product, [])


def _divided(f: Sequence[int], g: Sequence[int]) -> tuple[list[int], list[int]]:
    """Quotient and rest."""
    quotient, rest, inverse = [0] * max(len(f) - len(g) + 1, 0), list(f), pow(g[-1], -1, PRIME)
    while len(rest) >= len(g):
        place, factor = len(rest) - len(g), rest[-1] * inverse % PRIME
        quotient[place] = factor
        rest = _plus(rest, [0] * place + [-factor * c for c in g])
    return quotient, rest


def value_at(place: int, shares: Mapping[int, bytes]) -> int:
    """The polynomial through these shares, at a place. After: Lagrange."""
    points = {x: _number(x, share) for x, share in shares.items()}
    places = list(points)
    below = [_product(x - other for other in places if other != x) * (place - x) % PRIME for x in places]
    if place in points:
        return points[place]
    above = _product(place - x for x in places)
    return above * sum(points[x] * inverse for x, inverse in zip(places, _inverses(below), strict=True)) % PRIME


def _is_share(share: bytes) -> bool:
    return len(share) == SHARE_BYTES and int.from_bytes(share, "big") < PRIME


def _number(x: int, share: bytes) -> int:
    if not _is_share(share) or x < 1:
        raise ValueError(f"holder {x} gave no share")
    return int.from_bytes(share, "big")


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
    inverse, inverses = pow(before[-1], -1, PRIME), []
    for place in range(len(values) - 1, -1, -1):
        inverses.append(inverse * before[place] % PRIME)
        inverse = inverse * values[place] % PRIME
    return inverses[::-1]
