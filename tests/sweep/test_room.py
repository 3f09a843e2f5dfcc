import math
import resource
import subprocess
import sys

import pytest

from taxarbor._errors import InputError, InputTypeError
from taxarbor.sweep import _room
from taxarbor.sweep._room import available, room, size_of


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        (2_000_000_000, 2_000_000_000),
        (2e9, 2_000_000_000),
        ("2GB", 2_000_000_000),
        ("500 MB", 500_000_000),
        (" 1.5gb ", 1_500_000_000),
        (".5 GiB", 2**29),
        ("3g", 3_000_000_000),
        ("4096 KiB", 2**22),
        ("2000000", 2_000_000),
    ],
)
def test_limits(limit, size):
    assert size_of(limit) == size


@pytest.mark.parametrize(
    "limit",
    ["", "GB", "2 XB", "-2GB", "2,5GB", "two", "1e9", "2", 2, 0, -1, math.nan, math.inf],
)
def test_limits_that_are_none(limit):
    with pytest.raises(InputError, match=r"^memory_limit must be a number of bytes or a text"):
        room(limit)


@pytest.mark.parametrize("limit", [True, b"2GB", [1], {}])
def test_limits_of_another_type(limit):
    with pytest.raises(InputTypeError, match=r"^memory_limit must be"):
        room(limit)


def test_what_is_used_already_is_not_to_be_had():
    assert room("10MB") == 0
    assert 0 < room("900GB") < 900e9 - 10e6
    assert room("900GB", n_threads=4) + 2 * _room.IN_FLIGHT < room("900GB")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return what writes files of a machine with 8 GB available and no other limits."""
    monkeypatch.setattr(_room, "PROC", tmp_path / "proc")
    monkeypatch.setattr(_room, "CGROUPS", tmp_path / "cgroup")
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: unlimited)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    return write


def test_half_of_the_machine_is_left_to_others(machine):
    assert available() == 8_000_000 * 1024
    assert room(None) == 8_000_000 * 1024 // 2 - _room.IN_FLIGHT


def test_groups_of_processes_have_limits(machine):
    machine("proc/self/cgroup", "0::/user/app\n")
    machine("cgroup/user/app/memory.max", "max\n")
    machine("cgroup/user/memory.max", "3000000000\n")
    machine("cgroup/user/memory.current", "2500000000\n")
    machine("cgroup/user/memory.stat", "anon 900000000\ninactive_file 1500000000\n")
    assert available() == 2_000_000_000  # what is cached can go
    machine("cgroup/user/app/memory.max", "1000000000\n")
    machine("cgroup/user/app/memory.current", "400000000\n")
    assert available() == 600_000_000
    machine("cgroup/user/app/memory.current", "1400000000\n")
    assert available() == room(None) == 0


def test_older_groups_have_limits(machine):
    machine("proc/self/cgroup", "4:cpu:/x\n3:memory,hugetlb:/not/there/in/a/container\n")
    machine("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    machine("cgroup/memory/memory.usage_in_bytes", "5\n")
    assert available() == 8_000_000 * 1024
    machine("cgroup/memory/memory.limit_in_bytes", "2000000000\n")
    machine("cgroup/memory/memory.stat", "total_inactive_file 1\n")
    assert available() == 2_000_000_000 - 4


def test_machines_that_say_nothing(machine, tmp_path, monkeypatch):
    (tmp_path / "proc/meminfo").unlink()
    assert available() > 0
    monkeypatch.delattr("os.sysconf")
    assert available() == _room.UNKNOWN
    assert available(_room.UNLIMITED) == _room.UNLIMITED
    machine("proc/self/cgroup", "0::/\n")
    machine("cgroup/memory.max", "5000000000\n")
    machine("cgroup/memory.current", "0\n")
    assert available(_room.UNLIMITED) == 5_000_000_000
    assert room("900GB") < 900e9  # by its peak


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep to it")
def test_a_limit_on_addresses():
    code = (
        "import resource; from taxarbor.sweep._room import available, _pages\n"
        "most = _pages(0) + 300_000_000\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "print(available())"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    assert 200_000_000 < int(done.stdout) <= 300_000_000
