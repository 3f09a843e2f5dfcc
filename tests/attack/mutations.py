"""What the parts of the attack share: counts of outcomes, and random damage to bytes."""

import io
import re
import time
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORBIDDEN = "forbidden"
NUMBERS = (b"0", b"-1", b"1e308", b"nan", b"inf", b"2147483648", b"9223372036854775807")
NUMBERS += (
    b"99999999999999999999999",
    b"1e-320",
    b"",
    b"1.5",
    b"0x10",
    b"1_000",
    b"x",
    b"\xff",
)


class Outcomes(Counter):
    """Counts by outcome; ``forbidden`` describes each that must not happen."""

    def __init__(self):
        super().__init__()
        self.forbidden = []

    def forbid(self, description):
        """Count a forbidden outcome."""
        self[FORBIDDEN] += 1
        self.forbidden.append(description)


def run_part(part, seed, seconds):
    """Run a part; return the counts of its outcomes, its problems and its seconds."""
    begun = time.monotonic()
    outcomes = import_module(f"tests.attack.{part}").attack(seed, seconds)
    return dict(outcomes), outcomes.forbidden, time.monotonic() - begun


def flip(rng, data):
    """Flip some bits."""
    result = bytearray(data)
    for position in rng.integers(0, len(data), rng.integers(1, 9)):
        result[position] ^= 1 << int(rng.integers(8))
    return bytes(result)


def truncate(rng, data):
    """Remove the end, or the beginning."""
    position = int(rng.integers(0, len(data)))
    return data[:position] if rng.random() < 0.8 else data[position:]


def move_part(rng, data):
    """Insert a part again, overwrite another with it, or remove it."""
    first, last = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    position = int(rng.integers(0, len(data)))
    ends = (position, position + last - first)
    parts = (data[:position] + data[first:last] + data[end:] for end in ends)
    return [*parts, data[:first] + data[last:]][rng.integers(3)]


def change_numbers(rng, data):
    """Replace numbers, in text or a header, by extreme ones."""
    places = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data)][:200]
    if not places:
        return flip(rng, data)
    for at in sorted(rng.integers(0, len(places), rng.integers(1, 4)).tolist(), reverse=True):
        first, last = places[at]
        number = NUMBERS[rng.integers(len(NUMBERS))]
        number = b"9" * (last - first) if rng.random() < 0.4 else number
        data = data[:first] + number + data[last:]
    return data


MUTATIONS = (flip, truncate, move_part, change_numbers)


def mutate(rng, data):
    """Damage bytes in one of many ways."""
    return MUTATIONS[rng.integers(len(MUTATIONS))](rng, data or b"\0")


def mutate_member(rng, data, mutate=mutate):
    """Damage one member of a zip archive, which stays a valid archive."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w", 8) as new:
        names = old.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            member = old.read(name)
            new.writestr(name, mutate(rng, member) if name == chosen else member)
    return result.getvalue()
