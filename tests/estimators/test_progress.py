"""The progress bar of a fit, and Ctrl-C."""

import io
import signal
import sys
import threading
import time
from functools import partial

import pandas as pd
import pytest

from taxarbor import HMMC, Taxarbor
from taxarbor._progress import ProgressBar
from taxarbor._run import GrowthEvent
from taxarbor.estimators import _base, _sweeping
from taxarbor.exchange import to_json
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine import _clusters, _rules
from taxarbor.split import GapSplitter, MaxMarginSplitter


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


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


# ---- Ctrl-C ----


def press_at(monkeypatch, owner, name, at=1):
    """Press Ctrl-C when a part of a fit begins for the n-th time."""
    part, calls = getattr(owner, name), []

    def press_and_go_on(*arguments, **options):
        calls.append(name)
        if len(calls) == at:
            press_ctrl_c()
        return part(*arguments, **options)

    monkeypatch.setattr(owner, name, press_and_go_on)


def is_interrupted(model, X):
    """Say whether a fit ends by an interrupt; one that escapes would end the tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        return True
    return False


LAST = [(HierarchyBuilder, "means"), (HierarchyBuilder, "freeze")]
GROWTH = {Taxarbor: (GapSplitter, "find"), HMMC: (MaxMarginSplitter, "split")}
RULES = [(_clusters, "compete"), (_rules, "find_rule"), (HierarchyBuilder, "freeze")]
RULES += [(_sweeping, name) for name in ("_send", "_add_up", "measured", "scored")]
LATER = {
    "decide": [(_clusters, "link_leaves"), (_rules, "decide"), *RULES],
    "describe": [(_rules, "describe"), (HierarchyBuilder, "explain"), *RULES],
}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_during_growth_leaves_the_estimator_as_it_was(
    X, monkeypatch, ctrl_c, kind, n_jobs
):
    """In the first split, and in a later one that another thread may try."""
    model = kind(3, random_state=0, n_jobs=n_jobs).fit(X)
    tree, labels, n_threads = model.hierarchy_, model.labels_, threading.active_count()
    model.set_params(n_clusters=8)
    for at in (1, 4):
        with monkeypatch.context() as patch:
            press_at(patch, *GROWTH[kind], at)
            assert is_interrupted(model, X[:, :7])
        assert model.hierarchy_ is tree
        assert model.labels_ is labels
        assert model.n_features_in_ == X.shape[1]
        assert threading.active_count() == n_threads


def test_later_ctrl_c_leaves_the_estimator_as_it_was(X, monkeypatch, ctrl_c):
    makers = [(partial(Taxarbor, rules=rules), places) for rules, places in LATER.items()]
    for make, places in (*makers, (HMMC, LAST)):
        model = make(3, random_state=0).fit(X)
        tree, labels = model.hierarchy_, model.labels_
        before = threading.active_count()
        for place in places:
            for n_jobs in (1, 2):
                with monkeypatch.context() as patch:
                    press_at(patch, *place)
                    model.set_params(n_clusters=8, n_jobs=n_jobs, verbose=1)
                    assert is_interrupted(model, X[:, :7])
                assert model.hierarchy_ is tree
                assert model.labels_ is labels
                assert model.n_features_in_ == X.shape[1]
                assert threading.active_count() == before
        assert model.fit(X).hierarchy_.n_leaves == 8
        assert threading.active_count() == before


class Interrupter:
    """Interrupts a function before the n-th of the lines that it runs."""

    def __init__(self, code, at):
        self.code, self.left = code, at

    def __call__(self, frame, event, _):
        if frame.f_code is not self.code:
            return self
        self.left -= event == "line"
        if self.left < 0:
            raise KeyboardInterrupt
        return self


def test_a_fit_is_finished_in_one_step(X, kind):
    """At whichever line it is interrupted, all attributes are of one fit."""
    frame = pd.DataFrame(X[:90]).add_prefix("f")
    at, seen, is_over = 0, set(), False
    while not is_over:
        model = kind(3, random_state=0).fit(frame)
        old = {name: value for name, value in vars(model).items() if name.endswith("_")}
        before = sys.gettrace()
        sys.settrace(Interrupter(_base.finish.__code__, at))
        try:
            is_over = not is_interrupted(model, X[:80, :7])
        finally:
            sys.settrace(before)
        at += 1
        is_old = model.hierarchy_ is old["hierarchy_"]
        seen.add(is_old)
        if is_old:
            assert {name: vars(model)[name] for name in old} == old
        else:
            assert model.n_features_in_ == 7
            assert len(model.labels_) == 80
            assert "feature_names_in_" not in vars(model)
    assert seen == {True, False}


def test_fit_in_another_thread(X, kind):
    model = kind(4, random_state=0)
    thread = threading.Thread(target=model.fit, args=(X,))
    thread.start()
    thread.join()
    here = kind(4, random_state=0).fit(X)
    assert to_json(model.hierarchy_) == to_json(here.hierarchy_)
