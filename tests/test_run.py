"""What the steps of a fit share."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from taxarbor.grow import Run


def test_results_come_in_order_and_from_several_threads():
    both = threading.Barrier(2, timeout=30)

    def work(item):
        if item < 2:
            both.wait()  # neither goes on before the other
        return item * item

    with ThreadPoolExecutor(2) as pool:
        assert list(Run(pool=pool).each(work, range(20))) == [n * n for n in range(20)]
    assert list(Run().each(abs, [-1, 2])) == [1, 2]


def test_a_single_item_runs_in_the_calling_thread():
    with ThreadPoolExecutor(2) as pool:
        threads = Run(pool=pool).each(lambda _: threading.get_ident(), [0])
        assert list(threads) == [threading.get_ident()]


@pytest.mark.parametrize("error", [MemoryError, ValueError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_for_its_result(error):
    def work(item):
        if item == 3:
            raise error
        return item

    with ThreadPoolExecutor(2) as pool:
        results = iter(Run(pool=pool).each(work, range(50)))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(error):
            next(results)
