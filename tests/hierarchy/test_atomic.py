import errno
import os

import pytest

from taxarbor.hierarchy import write_whole


def write(file):
    file.write(b"new")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def refuse_links(*_):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM), "draft")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("has_links", [False, True])
def test_a_new_file(target, monkeypatch, replace, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", refuse_links)
    write_whole(target, write, replace=replace)
    assert target.read_bytes() == b"new"
    assert names(target.parent) == ["target"]
    assert target.stat().st_nlink == 1


@pytest.mark.parametrize("has_links", [False, True])
def test_a_file_that_came_meanwhile_stays(target, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", refuse_links)

    def write_late(file):
        file.write(b"new")
        target.write_bytes(b"theirs")

    with pytest.raises(FileExistsError) as caught:
        write_whole(target, write_late, replace=False)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"theirs"
    assert names(target.parent) == ["target"]
    write_whole(target, write_late)
    assert target.read_bytes() == b"new"


def test_other_troubles_with_links_are_told(target, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "broken", "draft")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="broken"):
        write_whole(target, write, replace=False)
    assert names(target.parent) == []


@pytest.mark.parametrize("replace", [False, True])
def test_only_files_are_replaced(target, replace):
    os.mkfifo(target)
    with pytest.raises(OSError, match=r"is no regular file.*target"):
        write_whole(target, write, replace=replace)
    assert target.is_fifo()
    with pytest.raises(OSError, match="is no regular file"):
        write_whole("/dev/null", write, replace=replace)


@pytest.mark.parametrize("replace", [False, True])
def test_errors_name_the_path_that_was_given(tmp_path, monkeypatch, replace):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        write_whole("nowhere/target", write, replace=replace)
    assert caught.value.filename == "nowhere/target"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole("folder", write, replace=replace)
    assert caught.value.filename == "folder"
    with pytest.raises(OSError, match="too long") as caught:
        write_whole("m" * 300, write, replace=replace)
    assert caught.value.filename == "m" * 300


def test_what_the_writer_raises_passes(target):
    def fail(file):
        raise OSError(errno.ENOENT, "no such template", "template")

    with pytest.raises(FileNotFoundError) as caught:
        write_whole(target, fail)
    assert caught.value.filename == "template"
    assert names(target.parent) == []
