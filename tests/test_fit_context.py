"""What the steps of a fit share."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import ThreadpoolController

from taxarbor._fit_context import one_blas_thread
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


def blas_threads():
    assert np.linalg.eigvalsh(np.eye(2)).sum() == 2.0  # BLAS is loaded
    infos = ThreadpoolController().select(user_api="blas").info()
    return {info["num_threads"] for info in infos}


def test_the_last_of_overlapping_users_lifts_the_limit_of_blas():
    before = blas_threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    error = ZeroDivisionError()  # an error lifts it as well
    assert not second.__exit__(type(error), error, None)
    assert blas_threads() == before
