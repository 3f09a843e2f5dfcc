"""One thread for BLAS, for as long as anyone needs it."""

import numpy as np
from threadpoolctl import ThreadpoolController

from taxarbor._run import one_blas_thread


def threads():
    assert np.linalg.eigvalsh(np.eye(2)).sum() == 2.0  # BLAS is loaded
    infos = ThreadpoolController().select(user_api="blas").info()
    return {info["num_threads"] for info in infos}


def test_the_last_of_overlapping_users_lifts_the_limit():
    before = threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert threads() == {1}
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_the_limit_is_lifted_after_an_error():
    before = threads()
    try:
        with one_blas_thread():
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert threads() == before
