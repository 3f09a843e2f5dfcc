import getpass
import platform
import subprocess

import pytest

import taxarbor
from taxarbor.bench._jobs import code_digest, commit, machine, write_settings


def test_equal_settings_are_equal_text():
    assert write_settings({"b": 1.0, "a": [0.9, 1.1]}) == write_settings(
        {"a": [0.9, 1.1], "b": 1.0}
    )
    assert write_settings({}) == "{}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of a few files in place of the real one."""
    for name in ("grow.py", "optim/_loss.py", "native/src/pair.cpp", "bench/_text.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    monkeypatch.setattr(taxarbor, "__file__", str(tmp_path / "__init__.py"))
    return tmp_path


def test_the_digest_is_of_the_code_that_matters(package):
    before = code_digest.__wrapped__()
    assert len(before) == 12
    assert code_digest.__wrapped__() == before
    for name in ("bench/_text.py", "cli/_app.py", "plot/_mpl.py", "data/animals.csv", "x.pyc"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("another", encoding="utf-8")
        assert code_digest.__wrapped__() == before
    for name in (
        "grow.py",
        "optim/_loss.py",
        "native/src/pair.cpp",
        "optim/_new.py",
        "bench/_methods.py",
        "bench/_variants.py",
    ):
        (package / name).write_text("another", encoding="utf-8")
        after = code_digest.__wrapped__()
        assert after != before
        before = after
    (package / "optim/_new.py").rename(package / "optim/_newer.py")
    assert code_digest.__wrapped__() != before


@pytest.mark.parametrize("error", [OSError(), subprocess.CalledProcessError(128, "git")])
def test_without_git_the_version_stands_for_the_commit(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert commit.__wrapped__() == taxarbor.__version__


def test_the_machine_is_told_without_names():
    told = machine()
    assert platform.python_version() in told
    for name in (platform.node(), getpass.getuser()):
        assert name not in told.split()
