"""Showing a growing tree, hearing of it, and ending it early."""

import io
import signal
import sys
import threading
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, MMC, HierarchicalKMeans, InterruptedFitWarning, Taxarbor
from taxarbor._progress import ProgressBar
from taxarbor._run import GrowthEvent
from taxarbor.estimators import _base, _sweeping
from taxarbor.estimators._progress import observe_all
from taxarbor.exchange import to_json
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine import _clusters, _rules
from taxarbor.split import GapSplitter, MaxMarginSplitter

needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on"
)


@pytest.fixture(params=[Taxarbor, HMMC])
def kind(request):
    return request.param


# ---- the bar ----


def draw(*events, **settings):
    stream = io.StringIO()
    bar = ProgressBar("HMMC", stream, **settings)
    answers = [bar(event) for event in events]
    bar.close()
    assert answers == [False] * len(events)
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
    assert not bar(GrowthEvent(2, 8, 3))
    bar.close()


def test_observers_all_hear_and_any_stops():
    heard = []

    def listen(answer):
        return lambda event: heard.append(answer) or answer

    event = GrowthEvent(1, 2, 1)
    assert observe_all(listen(True), None, listen(False))(event)
    assert heard == [True, False]
    assert not observe_all(None, listen(False))(event)
    assert not observe_all()(event)


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


# ---- scikit-learn's callbacks ----


class Recorder:
    """Notes what it hears, and answers True once there are so many leaves."""

    def __init__(self, stop_at=None):
        self.heard, self.stop_at = [], stop_at

    def setup(self, estimator, context):
        self.heard.append(("setup", context.task_name, context.max_subtasks))

    def teardown(self, estimator, context):
        self.heard.append(("teardown", context.task_name, context.max_subtasks))

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.heard.append(("end", context.task_name, context.task_id))
        return self.leaves + 1 == self.stop_at

    @property
    def leaves(self):
        return sum(what == "end" and name == "leaf" for what, name, _ in self.heard)


class Propagated(Recorder):
    max_propagation_depth = None


class Raising(Recorder):
    """Raises, or interrupts, at the end of the second leaf's task."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if context.task_name == "leaf" and self.leaves == 2:
            self.action()


def interrupt():
    raise KeyboardInterrupt


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def fail():
    raise OSError("no space left")


@needs_callbacks
def test_callbacks_hear_of_every_leaf(X):
    for model, most in (
        (Taxarbor(5, random_state=0), 5),
        (Taxarbor(7, branching=3, random_state=0), 7),
        (Taxarbor(None, max_depth=2, random_state=0), None),
        (HMMC(5, random_state=0), 5),
        (HMMC(None, max_depth=2, random_state=0), None),
        (MMC(4, random_state=0), 4),
    ):
        recorder = Recorder()
        plain = clone(model).fit(X)
        model.set_callbacks(recorder).fit(X)
        assert to_json(model.hierarchy_) == to_json(plain.hierarchy_)
        numbers = range(model.hierarchy_.n_leaves - 1)
        tasks = [(what, "leaf", number) for number in numbers for what in ("begin", "end")]
        assert recorder.heard == [
            ("setup", "fit", most),
            ("begin", "fit", 0),
            *tasks,
            ("end", "fit", 0),
            ("teardown", "fit", most),
        ]


@needs_callbacks
def test_callback_that_answers_true_stops(X, kind):
    model = kind(8, random_state=0)
    model.set_callbacks(Recorder(), Recorder(stop_at=3)).fit(X)
    n_leaves = 6 if kind is Taxarbor else 3  # ours grows twice as many, and links them
    assert model.hierarchy_.n_leaves == n_leaves
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model._skl_callbacks[1].heard[-1][0] == "teardown"
    if kind is HMMC:
        finished = kind(8, random_state=0).fit(X).hierarchy_
        np.testing.assert_array_equal(model.labels_, finished.cut(3))


@needs_callbacks
def test_callbacks_survive_cloning_and_pipelines(X):
    recorder = Recorder()
    clone(Taxarbor(4, random_state=0).set_callbacks(recorder)).fit(X)
    assert recorder.leaves == 3
    recorder = Recorder()
    step = Taxarbor(4, random_state=0).set_callbacks(recorder)
    make_pipeline(StandardScaler(), step).fit(X)
    assert recorder.leaves == 3
    assert [what for what, *_ in recorder.heard].count("teardown") == 1
    recorder = Propagated()
    pipeline = make_pipeline(StandardScaler(), Taxarbor(4, random_state=0))
    pipeline.set_callbacks(recorder).fit(X)
    assert recorder.leaves == 3
    assert [what for what, *_ in recorder.heard].count("setup") == 1


@needs_callbacks
def test_progress_bar_of_scikit_learn(X, capfd):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar as TheirBar

    for model in (Taxarbor(5), HMMC(5), Taxarbor(None, max_depth=2), MMC(3)):
        model.set_callbacks(TheirBar()).fit(X)
        assert type(model).__name__ in capfd.readouterr().out


@needs_callbacks
def test_failing_callback_is_torn_down_and_the_old_tree_kept(X, kind):
    model = kind(5, random_state=0).fit(X)
    tree, recorder = model.hierarchy_, Raising(fail)
    with pytest.raises(OSError, match="no space left"):
        model.set_callbacks(recorder).fit(X)
    assert recorder.heard[-1][0] == "teardown"
    assert model.hierarchy_ is tree


# ---- Ctrl-C ----


@needs_callbacks
@pytest.mark.parametrize("action", [interrupt, press_ctrl_c])
def test_interrupted_growth_keeps_the_tree(X, ctrl_c, kind, action):
    recorder = Raising(action)
    model = kind(8, random_state=0).set_callbacks(recorder)
    told = "the fit was interrupted; the tree is what was grown so far"
    with pytest.warns(InterruptedFitWarning, match=told) as record:
        model.fit(X)
    assert record[0].filename == __file__
    assert recorder.heard[-1][0] == "teardown"
    n_leaves = 6 if kind is Taxarbor else 3
    assert model.hierarchy_.n_leaves == n_leaves
    if kind is HMMC:
        finished = kind(8, random_state=0).fit(X).hierarchy_
        np.testing.assert_array_equal(model.labels_, finished.cut(3))
    assert set(model.predict(X)) == {*range(n_leaves)}
    assert all(model.hierarchy_.rules[node] for node in set(model.hierarchy_.parents[1:]))


def press_at(monkeypatch, owner, name, at=1):
    """Press Ctrl-C when a part of a fit begins for the n-th time."""
    part, calls = getattr(owner, name), []

    def press_and_go_on(*arguments, **options):
        calls.append(name)
        if len(calls) == at:
            press_ctrl_c()
        return part(*arguments, **options)

    monkeypatch.setattr(owner, name, press_and_go_on)


def test_ctrl_c_during_growth_keeps_the_tree(X, monkeypatch, ctrl_c, kind):
    """In the first split, in a later one that another thread tries, and as one is applied."""
    place = (GapSplitter, "find") if kind is Taxarbor else (MaxMarginSplitter, "split")
    for n_jobs in (1, 2):
        for at, n_leaves in ((1, 1), (4, 3)):
            with monkeypatch.context() as patch:
                press_at(patch, *place, at)
                with pytest.warns(InterruptedFitWarning, match="what was grown so far"):
                    model = kind(8, random_state=0, n_jobs=n_jobs).fit(X)
            assert model.hierarchy_.n_leaves == n_leaves
            if kind is HMMC:
                finished = kind(8, random_state=0).fit(X).hierarchy_
                np.testing.assert_array_equal(model.labels_, finished.cut(n_leaves))
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    press_at(monkeypatch, HierarchyBuilder, "cut", 2)
    with pytest.warns(InterruptedFitWarning, match="what was grown so far"):
        model = kind(8, random_state=0).fit(X)
    assert model.hierarchy_.rules[0].n_features_used > 0


def is_interrupted(model, X):
    """Say whether a fit ends by an interrupt; one that escapes would end the tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        return True
    return False


LAST = [(HierarchyBuilder, "means"), (HierarchyBuilder, "freeze")]
RULES = [(_clusters, "compete"), (_rules, "find_rule"), (HierarchyBuilder, "freeze")]
RULES += [(_sweeping, name) for name in ("_send", "_add_up", "measured", "scored")]
LATER = {
    "decide": [(_clusters, "link_leaves"), (_rules, "decide"), *RULES],
    "describe": [(_rules, "describe"), (HierarchyBuilder, "explain"), *RULES],
}


def test_later_ctrl_c_is_a_plain_interrupt(X, monkeypatch, ctrl_c):
    """It ends the fit, and leaves the estimator as it was."""
    makers = [(partial(Taxarbor, rules=rules), places) for rules, places in LATER.items()]
    for make, places in (*makers, (HMMC, LAST), (HierarchicalKMeans, LAST)):
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
