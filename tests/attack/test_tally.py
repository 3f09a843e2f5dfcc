"""What counts as refused, and what does not."""

from taxarbor import TaxarborError
from tests.attack import names
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
