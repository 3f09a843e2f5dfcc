"""Build the kernels with AddressSanitizer and UBSan, and in plain C++; test and fuzz both.

Run by ``make sanitize``, from the root of a checkout. Nothing may be reported.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ["tests/native", "tests/rows", "tests/optim"]
SECONDS = os.environ.get("FUZZ_SECONDS", "60")

# An editable install would find its own build first: its finder is taken out.
START = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
import taxarbor.native._kernels as kernels
assert kernels.__file__.startswith({folder!r}), kernels.__file__
"""
RUN_TESTS = """
import pytest
sys.exit(pytest.main(["-q", "-m", "not long", "-p", "no:cacheprovider", *{tests!r}]))
"""
RUN_FUZZ = """
import runpy
sys.argv = ["fuzz.py", {seconds!r}, {seed!r}]
runpy.run_path("tests/native/fuzz.py", run_name="__main__")
"""


def build(name: str, option: str, *, quiet: bool = False) -> Path:
    """Compile the kernels and put them beside a copy of the package; return its folder."""
    folder = ROOT / "build" / name
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": scripts}
    settings = ["-DCMAKE_BUILD_TYPE=Release", f"-D{option}=ON", "-G", "Ninja"]
    python = f"-DPython_EXECUTABLE={sys.executable}"
    make = ["cmake", "-S", str(ROOT), "-B", str(folder), python, *settings]
    subprocess.run(make, check=True, env=env, stdout=subprocess.DEVNULL)
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(["cmake", "--build", str(folder)], check=True, env=env, stdout=output)
    package = folder / "python" / "taxarbor"
    shutil.rmtree(package, ignore_errors=True)
    ignore = shutil.ignore_patterns("*.so", "__pycache__", "src")
    shutil.copytree(ROOT / "src" / "taxarbor", package, ignore=ignore)
    for compiled in folder.glob("_kernels*.so"):
        shutil.copy(compiled, package / "native")
    return folder / "python"


def run(folder: Path, code: str, **env: str) -> None:
    """Run Python with the package in that folder; end if it fails."""
    start = START.format(folder=str(folder))
    full = {**os.environ, "PYTHONPATH": str(folder), **env}
    done = subprocess.run([sys.executable, "-c", start + code], check=False, env=full, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{folder.parent.name}: failed with status {done.returncode}")


def preload() -> str:
    """Return the libraries that must be loaded before Python: the sanitizers' and C++'s."""
    names = ["libasan.so", "libubsan.so", "libstdc++.so"]
    compiler = os.environ.get("CXX", "c++")
    ask = [[compiler, f"-print-file-name={name}"] for name in names]
    answers = [subprocess.run(line, check=True, capture_output=True, text=True) for line in ask]
    return " ".join(os.path.realpath(answer.stdout.strip()) for answer in answers)


def strict() -> dict[str, str]:
    """Return the environment in which sanitizers report what they find."""
    return {
        "LD_PRELOAD": preload(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def main() -> None:
    tests, fuzz = RUN_TESTS.format(tests=TESTS), RUN_FUZZ.format(seconds=SECONDS, seed="0")
    plain = build("portable", "TAXARBOR_PORTABLE")
    run(plain, RUN_TESTS.format(tests=TESTS[:2]))
    watched = {**strict(), "TAXARBOR_PORTABLE_BUILD": str(plain)}
    checked = build("sanitize", "TAXARBOR_SANITIZE")
    run(checked, fuzz, **watched)
    run(checked, tests, **watched)


if __name__ == "__main__":
    main()
