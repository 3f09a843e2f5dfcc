"""The progress bar of a fit, and Ctrl-C."""

import io
import signal
import threading
import time

import pytest

from taxarbor import HMMC, Taxarbor
from taxarbor._progress import ProgressBar
from taxarbor._run import GrowthEvent
from taxarbor.estimators import _base, _taxarbor
from taxarbor.exchange import to_json
from taxarbor.split import MaxMarginSplitter
from taxarbor.split._gap import GapSplitter
from taxarbor.tree import TreeBuilder


@pytest.fixture(params=[Taxarbor, HMMC])
def kind(request):
    return request.param


# ---- the bar ----


def draw(*events, **settings):
    stream = io.StringIO()
    bar = ProgressBar("HMMC", stream, **settings)
    for event in events:
        bar(event)
    bar.close()
    return stream.getvalue()


def test_bar_draws_and_ends_its_line():
    text = draw(GrowthEvent(2, 8, 3), patience=0)
    assert text.startswith("\rHMMC: [")
    assert text.endswith("2 of 8 leaves, 0 s\n")
    assert text.count("#") == round(ProgressBar.WIDTH / 4)
    assert text.count("\n") == 1
    assert "[" + "#" * ProgressBar.WIDTH + "] 8 of 8" in draw(GrowthEvent(8, 8, 9), patience=0)
    assert draw(GrowthEvent(5, 0, 7), patience=0) == "\rHMMC: 5 leaves, 0 s\n"


def test_bar_is_patient():
    assert draw(GrowthEvent(2, 8, 3), GrowthEvent(3, 8, 4)) == ""
    assert draw() == ""


def test_bar_spares_the_terminal(monkeypatch):
    ticks = iter([0.0, 1.0, 1.05, 1.2])
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    text = draw(*[GrowthEvent(n, 8, n) for n in (2, 3, 4)], patience=0.5)
    assert text.count("\r") == 2
    assert "3 of 8" not in text


def test_bar_goes_on_while_one_node_is_solved():
    stream = io.StringIO()
    bar = ProgressBar("HMMC", stream, patience=0)
    bar.start()
    deadline = time.monotonic() + 20.0
    while stream.getvalue().count("\r") < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    bar.close()
    assert stream.getvalue().count("HMMC: 1 leaves") >= 2


def test_bar_on_a_terminal_that_is_gone():
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(5, "Input/output error")

    bar = ProgressBar("HMMC", Gone(), patience=0)
    bar(GrowthEvent(2, 8, 3))
    bar.close()
    assert bar._stream.getvalue() == ""


def test_long_fits_show_progress_if_asked(X, capfd, monkeypatch, kind):
    for verbose in (0, 1):
        kind(6, random_state=0, verbose=verbose).fit(X)
        assert capfd.readouterr() == ("", "")  # short ones do not
    seconds = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    for verbose in (0, 1):
        kind(6, random_state=0, verbose=verbose).fit(X)
        out, err = capfd.readouterr()
        assert out == ""
        assert err.endswith(" s\n") if verbose else err == ""
        assert ("6 of 6 leaves" in err) == bool(verbose)
        assert (kind.__name__ in err) == bool(verbose)


# ---- Ctrl-C ----


def press_at(monkeypatch, owner, name, at=1):
    """Press Ctrl-C when a part of a fit begins for the n-th time."""
    part, calls = getattr(owner, name), []

    def press_and_go_on(*arguments, **options):
        calls.append(name)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return part(*arguments, **options)

    monkeypatch.setattr(owner, name, press_and_go_on)


def is_interrupted(model, X):
    """Say whether a fit ends by an interrupt; one that escapes would end the tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        return True
    return False


LAST = [(TreeBuilder, "freeze", 1), (_base, "score_rows", 1), (_base, "regroup", 1)]
STEPS = {
    Taxarbor: [
        *((GapSplitter, "find", at) for at in (1, 4)),
        *((_taxarbor, name, 1) for name in ("find_outliers", "find_clusters", "find_rules")),
        *((_taxarbor, name, 1) for name in ("route", "route_all")),
        (TreeBuilder, "freeze", 1),
    ],
    HMMC: [*((MaxMarginSplitter, "split", at) for at in (1, 4)), *LAST],
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", STEPS)
def test_ctrl_c_leaves_the_estimator_as_it_was(X, monkeypatch, ctrl_c, kind, n_jobs):
    """In any step of a fit, in the first split and in one that another thread may try."""
    model = kind(3, random_state=0, n_jobs=n_jobs).fit(X)
    before, n_threads = dict(vars(model)), threading.active_count()
    for step in STEPS[kind]:
        with monkeypatch.context() as patch:
            press_at(patch, *step)
            model.set_params(n_clusters=8, verbose=1)
            assert is_interrupted(model, X[:, :7]), step
        model.set_params(n_clusters=3, verbose=0)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        deadline = time.monotonic() + 10.0  # threads of a pool may still be ending
        while threading.active_count() > n_threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() == n_threads
    assert model.set_params(n_clusters=8).fit(X).taxonomy_.tree.n_leaves == 8


def test_fit_in_another_thread(X, kind):
    model = kind(4, random_state=0)
    thread = threading.Thread(target=model.fit, args=(X,))
    thread.start()
    thread.join()
    here = kind(4, random_state=0).fit(X)
    assert to_json(model.taxonomy_) == to_json(here.taxonomy_)
