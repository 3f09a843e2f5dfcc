"""The progress bar of a fit, and Ctrl-C."""

import io
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

from taxarbor import HMMC, Taxarbor
from taxarbor.exchange import to_json

# ---- the bar ----


class Gone(io.StringIO):
    """A terminal that is gone."""

    def write(self, text):
        raise OSError(5, "Input/output error")


def test_long_fits_show_progress_if_verbose(X, capfd, monkeypatch, kind):
    for verbose in (0, 1):
        kind(6, random_state=0, verbose=verbose).fit(X)
        assert capfd.readouterr() == ("", "")  # short ones show nothing
    seconds = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    for verbose in (0, 1):
        kind(6, random_state=0, verbose=verbose).fit(X)
        out, err = capfd.readouterr()
        assert out == ""
        assert err.endswith(" s\n") if verbose else err == ""
        last = "6 of 6 leaves" if kind is HMMC else "16 of 16 leaves"  # more grow than are kept
        assert (last in err) == bool(verbose)
        assert (kind.__name__ in err) == bool(verbose)
    monkeypatch.setattr("sys.stderr", Gone())
    assert kind(6, random_state=0, verbose=1).fit(X).taxonomy_.tree.n_leaves == 6


# ---- Ctrl-C ----


class CallCounter:
    """Counts the calls of functions of taxarbor in this thread; presses Ctrl-C at one."""

    def __init__(self, press_at=None):
        self.n_calls, self.press_at = 0, press_at

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("taxarbor."):
            self.n_calls += 1
            if self.n_calls == self.press_at:
                signal.raise_signal(signal.SIGINT)

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


SHARES = (0.01, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.97)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize(
    ("model", "is_file", "shares"),
    [
        (Taxarbor(8), False, SHARES),
        (Taxarbor(8, n_jobs=2), False, SHARES),
        (Taxarbor(8, n_jobs=2), True, SHARES),
        (Taxarbor("auto"), False, (0.3, 0.9)),
        (HMMC(8), False, SHARES),
        (HMMC(8, n_jobs=2), False, SHARES),
    ],
)
def test_ctrl_c_leaves_the_estimator_as_it_was(X, model, is_file, shares, tmp_path):
    """In any step of a fit, also while other threads run."""
    rows = X[: 30 if model.n_clusters == "auto" else 120, :7]
    np.save(tmp_path / "rows.npy", rows)
    rows = tmp_path / "rows.npy" if is_file else rows
    with CallCounter() as counter:
        clone(model).set_params(random_state=0).fit(rows)
    fitted = clone(model).set_params(n_clusters=3, random_state=0).fit(X)
    before, n_threads = dict(vars(fitted)), threading.active_count()
    for share in shares:
        fitted.set_params(n_clusters=model.n_clusters)
        with pytest.raises(KeyboardInterrupt), CallCounter(int(share * counter.n_calls)):
            fitted.fit(rows)
        fitted.set_params(n_clusters=3)
        assert vars(fitted).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(fitted).items())
        deadline = time.monotonic() + 10.0  # threads of a pool may still be ending
        while threading.active_count() > n_threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() == n_threads
    assert fitted.set_params(n_clusters=8).fit(X).taxonomy_.tree.n_leaves == 8


def test_fit_in_another_thread(X, kind):
    model = kind(4, random_state=0)
    thread = threading.Thread(target=model.fit, args=(X,))
    thread.start()
    thread.join()
    assert to_json(model.taxonomy_) == to_json(kind(4, random_state=0).fit(X).taxonomy_)
