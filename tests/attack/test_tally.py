"""What counts as refused, and what does not."""

import io
import zipfile
from types import SimpleNamespace

import numpy as np

from taxarbor import TaxarborError
from tests.attack import models, names
from tests.attack.bombs import archive_of_packed, packed_zeros
from tests.attack.tally import FORBIDDEN, Tally, ran_out


def caught(*errors, hide=False):
    """Return the last of these errors, each raised while the one before was handled."""
    found = None
    for error in errors:
        try:
            try:
                if found is not None:
                    raise found
            except Exception as cause:
                raise error from (None if hide else cause)
            else:
                raise error
        except Exception as last:
            found = last
    return found


def test_what_ran_out_of_memory_was_not_refused():
    assert ran_out(MemoryError())
    assert ran_out(caught(MemoryError(), OSError(), TaxarborError("too large")))
    assert ran_out(caught(MemoryError(), TaxarborError("too large"), hide=True))
    assert not ran_out(caught(OSError(), TaxarborError("damaged")))


def test_names_are_refused_by_the_fit_or_not_at_all():
    def by_fit(case, folder):
        raise TaxarborError("such names")
        yield

    def by_output(case, folder):
        yield "fit", None
        raise TaxarborError("such names")

    tally = Tally()
    names._attack(by_fit, None, None, tally, "again")
    assert dict(tally) == {"refused": 1}
    names._attack(by_output, None, None, tally, "again")
    assert dict(tally) == {"refused": 1, "harmless": 1, FORBIDDEN: 1}
    assert "after fit: TaxarborError: such names" in tally.found[0]


def test_bombs_are_sound_archives():
    members = {"zeros.npy": packed_zeros((3, 500_000), np.dtype("<f8"))}
    fixed = SimpleNamespace(choice=lambda values: values[0])
    text = np.array('{"notes": []}')
    members["meta.npy"] = models.packed_text(fixed, text)
    data = archive_of_packed(members, b"x" * 1000)
    assert len(data) < 100_000
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        zeros = np.load(archive.open("zeros.npy"))
        assert str(np.load(archive.open("meta.npy"))).startswith('{"notes": [[],[],')
    assert zeros.shape == (3, 500_000)
    assert not zeros.any()
