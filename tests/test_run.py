"""Threads of a fit: order, errors, and Ctrl-C at any moment."""

import gc
import subprocess
import sys
import threading
import weakref

import pytest

from taxarbor import HMMC, _blas, _run
from taxarbor._run import Crew, Run

INTERRUPTED = """
import random, signal, time
from taxarbor._run import Crew

def stop(*told):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
random.seed(0)
n, end = 0, time.monotonic() + 2.0
while time.monotonic() < end or n < 20:
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 4e-3 * random.random())
        crew = Crew(2)
        try:
            while True:
                list(crew.map(abs, range(8)))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            crew.close()
    except KeyboardInterrupt:
        n += 1
print("ended", n)
"""


def test_results_come_in_order_and_from_several_threads():
    both = threading.Barrier(2, timeout=30)

    def work(item):
        if item < 2:
            both.wait()  # neither goes on before the other
        return item * item

    with Crew(2) as crew:
        assert list(Run(pool=crew).each(work, range(20))) == [n * n for n in range(20)]


@pytest.mark.parametrize("error", [MemoryError, ValueError, KeyboardInterrupt])
def test_an_error_is_raised_where_it_is_waited_for(error):
    def work(item):
        if item == 3:
            raise error
        return item

    with Crew(2) as crew:
        found = iter(crew.map(work, range(50)))
        assert [next(found) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(error):
            next(found)
        assert list(crew.map(work, [5, 6])) == [5, 6]


def test_what_nobody_has_begun_is_forgotten():
    begun, gate = [], threading.Event()

    def work(item):
        begun.append(item)
        gate.wait(30)

    crew = Crew(1)
    crew.map(work, range(1000))
    threading.Timer(0.1, gate.set).start()
    crew.close()
    assert len(begun) <= 1


def test_without_room_for_threads_the_work_is_done_here(monkeypatch):
    def refuse(*told):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_run, "start_new_thread", refuse)
    with Crew(4) as crew:
        assert list(crew.map(abs, [-3, 2])) == [3, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="no timer signals")
def test_interrupts_at_any_moment_leave_nobody_waiting():
    how = {"capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, **how)
    assert done.stdout.startswith("ended"), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of the address space")
def test_too_little_address_space_is_a_memory_error(monkeypatch):
    monkeypatch.setattr(_blas, "ROOM", 1 << 60)
    with pytest.raises(MemoryError, match="MB of memory are left"):
        HMMC(2, n_jobs=2).fit([[0.0], [1.0], [5.0], [6.0]])


def test_results_that_are_asked_for_after_the_end():
    with Crew(1) as crew:
        gate = threading.Event()
        found = crew.map(lambda item: gate.wait(30), range(3))
        threading.Timer(0.05, gate.set).start()
        crew.close()
        with pytest.raises(RuntimeError, match="closed before this was begun"):
            list(found)
        assert list(crew.map(abs, [-3])) == [3]


def test_threads_are_started_as_tasks_come(monkeypatch):
    begun, start = [], _run.start_new_thread
    monkeypatch.setattr(
        _run, "start_new_thread", lambda *told: begun.append(told) or start(*told)
    )
    with Crew(64) as crew:
        assert not begun
        for n_tasks, n_threads in ((2, 2), (2, 2), (5, 5), (100, 64)):
            assert list(crew.map(abs, range(n_tasks))) == [*range(n_tasks)]
            assert len(begun) == n_threads


def test_a_thread_that_was_not_counted_ends_too():
    """As after an interrupt between its start and the count."""
    crew = Crew(2)
    assert list(crew.map(abs, [1, 2])) == [1, 2]
    ends, crew._n_threads = [*crew._ends], 1
    assert list(crew.map(abs, [1, 2])) == [1, 2]
    crew.close()
    assert all(end.locked() for end in ends)  # by who waited for them
    crew.close()


def test_an_error_does_not_hold_itself():
    class FailureError(Exception):
        """Unlike those of the language, it may have weak references."""

    def work(item):
        raise FailureError(item)

    gc.disable()
    try:
        with Crew(1) as crew, pytest.raises(FailureError) as caught:
            list(crew.map(work, [3]))
        told = weakref.ref(caught.value)
        del caught
        assert told() is None
    finally:
        gc.enable()


def test_workers_are_traced_and_profiled():
    traced, profiled = set(), set()

    def work(item):
        return item

    def trace(frame, event, arg):
        traced.add(frame.f_code)

    def profile(frame, event, arg):
        profiled.add(frame.f_code)

    usual = threading.gettrace(), threading.getprofile()
    threading.settrace(trace)
    threading.setprofile(profile)
    try:
        with Crew(2) as crew:
            assert list(crew.map(work, [1, 2])) == [1, 2]
    finally:
        threading.settrace(usual[0])
        threading.setprofile(usual[1])
    assert work.__code__ in traced & profiled
