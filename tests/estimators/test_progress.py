import importlib
import io
import signal
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from taxarbor._events import GrowthEvent

from taxarbor import HMMC, MMC, HierarchicalKMeans, InterruptedFitWarning
from taxarbor.estimators._progress import ProgressBar, observe_all
from taxarbor.hierarchy import HierarchyBuilder

needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on"
)


def draw(*events, **settings):
    stream = io.StringIO()
    bar = ProgressBar("HMMC", stream, **settings)
    answers = [bar(event) for event in events]
    bar.close()
    assert answers == [False] * len(events)
    return stream.getvalue()


# The bar


def test_bar_draws_and_ends_its_line():
    text = draw(GrowthEvent(2, 8, 3), patience=0)
    assert text.startswith("\rHMMC: [")
    assert text.endswith("2 of 8 leaves, 0 s\n")
    assert text.count("#") == round(ProgressBar.WIDTH / 4)
    assert text.count("\n") == 1


def test_bar_is_full_at_the_end():
    assert "[" + "#" * ProgressBar.WIDTH + "] 8 of 8" in draw(GrowthEvent(8, 8, 9), patience=0)


def test_bar_counts_leaves_where_no_number_was_asked_for():
    assert draw(GrowthEvent(5, 0, 7), patience=0) == "\rHMMC: 5 leaves, 0 s\n"


def test_bar_is_patient():
    assert draw(GrowthEvent(2, 8, 3), GrowthEvent(3, 8, 4)) == ""


def test_bar_spares_the_terminal(monkeypatch):
    ticks = iter([0.0, 1.0, 1.05, 1.2])
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    monkeypatch.setattr(ProgressBar, "_tick", lambda self: None)
    text = draw(*[GrowthEvent(n, 8, n) for n in (2, 3, 4)], patience=0.5)
    assert text.count("\r") == 2
    assert "3 of 8" not in text


def test_bar_without_events_stays_silent():
    assert draw() == ""


def test_bar_goes_on_while_one_node_is_solved():
    stream = io.StringIO()
    bar = ProgressBar("HMMC", stream, patience=0)
    deadline = time.monotonic() + 20.0
    while stream.getvalue().count("\r") < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    bar.close()
    assert stream.getvalue().count("HMMC: 1 leaves") >= 2


def test_observers_all_hear_and_any_stops():
    heard = []

    def listen(answer):
        def observe(event):
            heard.append(answer)
            return answer

        return observe

    event = GrowthEvent(1, 2, 1)
    assert observe_all(listen(True), None, listen(False))(event)
    assert heard == [True, False]
    assert not observe_all(None, listen(False))(event)
    assert not observe_all()(event)


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("estimator", [HMMC, MMC])
def test_short_fits_are_silent(X, capfd, estimator, verbose):
    estimator(4, random_state=0, verbose=verbose).fit(X)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [0, 1])
def test_long_fits_show_progress_if_asked(X, capfd, monkeypatch, way, verbose):
    seconds = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    HMMC(6, random_state=0, verbose=verbose, **way).fit(X)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.endswith(" s\n") if verbose else err == ""
    assert ("6 of 6 leaves" in err) == bool(verbose)


# scikit-learn's callbacks


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
@pytest.mark.parametrize(
    ("model", "most"),
    [
        (HMMC(5, random_state=0), 5),
        (HMMC(7, branching=3, random_state=0), 7),
        (HMMC(None, max_depth=2, random_state=0), None),
        (HMMC(5, refine=False, random_state=0), 5),
        (HMMC(7, refine=False, branching=3, random_state=0), 7),
        (HMMC(None, refine=False, max_depth=2, random_state=0), None),
        (MMC(4, random_state=0), 4),
    ],
)
def test_callbacks_hear_of_every_leaf(X, model, most):
    recorder = Recorder()
    plain = clone(model).fit(X)
    model.set_callbacks(recorder).fit(X)
    assert model.hierarchy_.to_json() == plain.hierarchy_.to_json()
    tasks = [
        (what, "leaf", number)
        for number in range(model.hierarchy_.n_leaves - 1)
        for what in ("begin", "end")
    ]
    assert recorder.heard == [
        ("setup", "fit", most),
        ("begin", "fit", 0),
        *tasks,
        ("end", "fit", 0),
        ("teardown", "fit", most),
    ]


@needs_callbacks
def test_callback_that_answers_true_stops(X, way):
    model = HMMC(8, random_state=0, **way)
    model.set_callbacks(Recorder(), Recorder(stop_at=3)).fit(X)
    assert model.hierarchy_.n_leaves == 3
    assert set(model.predict(X)) == {0, 1, 2}
    assert model._skl_callbacks[1].heard[-1][0] == "teardown"
    finished = HMMC(8, random_state=0, **way).fit(X).hierarchy_
    np.testing.assert_array_equal(model.labels_, finished.cut(3))


@needs_callbacks
def test_callbacks_survive_cloning(X):
    recorder = Recorder()
    clone(HMMC(4, random_state=0).set_callbacks(recorder)).fit(X)
    assert recorder.leaves == 3


@needs_callbacks
def test_callbacks_on_a_step_of_a_pipeline(X):
    recorder = Recorder()
    step = HMMC(4, random_state=0).set_callbacks(recorder)
    pipeline = make_pipeline(StandardScaler(), step).fit(X)
    assert recorder.leaves == 3
    assert [what for what, *_ in recorder.heard].count("teardown") == 1
    assert pipeline[-1].hierarchy_.n_leaves == 4


@needs_callbacks
def test_callbacks_propagated_by_a_pipeline(X):
    recorder = Propagated()
    pipeline = make_pipeline(StandardScaler(), HMMC(4, random_state=0))
    pipeline.set_callbacks(recorder).fit(X)
    assert recorder.leaves == 3
    assert pipeline[-1].hierarchy_.n_leaves == 4
    assert [what for what, *_ in recorder.heard].count("setup") == 1


@needs_callbacks
@pytest.mark.parametrize(
    "model", [HMMC(5), HMMC(5, refine=False), HMMC(None, max_depth=2), MMC(3)]
)
def test_progress_bar_of_scikit_learn(X, capfd, model):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar as TheirBar

    model.set_callbacks(TheirBar()).fit(X)
    assert type(model).__name__ in capfd.readouterr().out


@needs_callbacks
def test_failing_callback_is_torn_down_and_the_old_tree_kept(X, way):
    model = HMMC(5, random_state=0, **way).fit(X)
    tree, recorder = model.hierarchy_, Raising(fail)
    with pytest.raises(OSError, match="no space left"):
        model.set_callbacks(recorder).fit(X)
    assert recorder.heard[-1][0] == "teardown"
    assert model.hierarchy_ is tree


# Ctrl-C


@pytest.fixture
def ctrl_c():
    """Make sure that Ctrl-C raises KeyboardInterrupt, whoever runs these tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@needs_callbacks
@pytest.mark.parametrize("action", [interrupt, press_ctrl_c])
def test_interrupted_fit_keeps_the_tree(X, ctrl_c, way, action):
    recorder = Raising(action)
    model = HMMC(8, random_state=0, **way).set_callbacks(recorder)
    with pytest.warns(InterruptedFitWarning, match="tree grown so far, of 3 leaves, is kept"):
        model.fit(X)
    assert recorder.heard[-1][0] == "teardown"
    assert model.hierarchy_.n_leaves == 3
    finished = HMMC(8, random_state=0, **way).fit(X).hierarchy_
    np.testing.assert_array_equal(model.labels_, finished.cut(3))
    assert set(model.predict(X)) == {0, 1, 2}
    assert all(model.hierarchy_.rules[node] for node in set(model.hierarchy_.parents[1:]))


@needs_callbacks
def test_interruption_is_reported_at_the_caller(X, way):
    model = HMMC(8, random_state=0, **way).set_callbacks(Raising(interrupt))
    with pytest.warns(InterruptedFitWarning) as record:
        model.fit(X)
    assert record[0].filename == __file__


def test_interrupted_before_the_first_split(X, monkeypatch, way):
    monkeypatch.setattr("taxarbor.grow._Growth._split", lambda *_: interrupt())
    with pytest.warns(InterruptedFitWarning, match="of 1 leaf, is kept"):
        model = HMMC(8, random_state=0, **way).fit(X)
    assert model.hierarchy_.n_nodes == 1
    assert not model.labels_.any()


def test_interrupted_while_the_tree_changes(X, monkeypatch, ctrl_c, way):
    add_split = HierarchyBuilder.add_split
    pressed = []

    def add_and_interrupt(self, *arguments):
        if not pressed:
            pressed.append(True)
            press_ctrl_c()
        return add_split(self, *arguments)

    monkeypatch.setattr(HierarchyBuilder, "add_split", add_and_interrupt)
    with pytest.warns(InterruptedFitWarning, match="of 2 leaves"):
        model = HMMC(8, random_state=0, **way).fit(X)
    assert model.hierarchy_.n_leaves == 2
    assert model.hierarchy_.rules[0].n_features_used > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def is_interrupted(model, X):
    """Say whether a fit ends by an interrupt; one that escapes would end the tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        return True
    return False


WHOLE, BASE = "taxarbor.refine._whole", "taxarbor.estimators._base"
REFINED = [(WHOLE, "fit_leaves"), (WHOLE, "move_rows"), (WHOLE, "_explain")]
REST = [*REFINED, (BASE, "with_means")]


def press_before(monkeypatch, where, times):
    """Press Ctrl-C so many times when a part of what follows growth begins."""
    module, name = importlib.import_module(where[0]), where[1]
    part = getattr(module, name)

    def press_and_go_on(*arguments, **options):
        for _ in range(times):
            press_ctrl_c()
        return part(*arguments, **options)

    monkeypatch.setattr(module, name, press_and_go_on)


@pytest.mark.parametrize("where", REST)
def test_what_follows_growth_is_finished(X, monkeypatch, ctrl_c, where):
    finished = HMMC(8, random_state=0).fit(X)
    press_before(monkeypatch, where, times=1)
    with pytest.warns(InterruptedFitWarning, match="the whole tree is kept") as record:
        model = HMMC(8, random_state=0).fit(X)
    assert len(record) == 1
    assert record[0].filename == __file__
    assert model.hierarchy_.to_json() == finished.hierarchy_.to_json()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("make", [MMC, HierarchicalKMeans])
def test_means_are_finished_where_nothing_is_refined(X, monkeypatch, ctrl_c, make):
    finished = make(3, random_state=0).fit(X)
    press_before(monkeypatch, REST[-1], times=1)
    with pytest.warns(InterruptedFitWarning, match="the whole tree is kept"):
        model = make(3, random_state=0).fit(X)
    assert model.hierarchy_.to_json() == finished.hierarchy_.to_json()


@pytest.mark.parametrize("where", [*REST, (WHOLE, "find_rule")])
def test_a_second_interrupt_ends_the_fit(X, monkeypatch, ctrl_c, where):
    """Nothing of an earlier fit is lost."""
    model = HMMC(3, random_state=0).fit(X)
    tree = model.hierarchy_
    press_before(monkeypatch, where, times=2)
    assert is_interrupted(model.set_params(n_clusters=8), X)
    assert model.hierarchy_ is tree
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("later", REST[1:])
def test_interrupts_are_counted_over_all_that_follows_growth(X, monkeypatch, ctrl_c, later):
    model = HMMC(3, random_state=0).fit(X)
    tree = model.hierarchy_
    press_before(monkeypatch, REST[0], times=1)
    press_before(monkeypatch, later, times=1)
    assert is_interrupted(model.set_params(n_clusters=8), X)
    assert model.hierarchy_ is tree


def test_fit_in_another_thread(X, way):
    model = HMMC(4, random_state=0, **way)
    thread = threading.Thread(target=model.fit, args=(X,))
    thread.start()
    thread.join()
    here = HMMC(4, random_state=0, **way).fit(X)
    assert model.hierarchy_.to_json() == here.hierarchy_.to_json()
