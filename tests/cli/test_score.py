"""``taxarbor score``."""

import pytest

from taxarbor import Hierarchy
from taxarbor.data import read_table
from taxarbor.metrics import score_hierarchy

CLASSES = ("score", "model.taxarbor", "customers.csv", "--label-column", "class")
TRUTH = "((student,family),(senior,business));"


@pytest.fixture
def labels(folder):
    return read_table(folder / "customers.csv", label_column="class").labels


def test_without_a_tree(run, run_json, folder, labels):
    expected = score_hierarchy(Hierarchy.load(folder / "model.taxarbor"), labels)
    told = run_json(*CLASSES)
    assert told == {"n_groups": 6, "n_classes": 4, "scores": expected, "notes": []}
    lines = run(*CLASSES).stdout.splitlines()
    assert lines[0] == "6 groups, 4 classes in class; 1 is perfect, 0 is chance"
    (line,) = [line for line in lines if line.startswith("adjusted rand ")]
    assert f" {expected['adjusted_rand']:.3f} " in line


@pytest.mark.parametrize("name", ["tree.nwk", "tree.json"])
def test_with_a_tree(run, run_json, folder, labels, name):
    nested = (
        '{"children": [{"name": "a", "children": [{"name": "student"}, {"name": "family"}]},'
    )
    nested += '{"name": "b", "children": [{"name": "senior"}, {"name": "business"}]}]}'
    (folder / name).write_text(nested if name.endswith("json") else TRUTH, encoding="utf-8")
    expected = score_hierarchy(Hierarchy.load(folder / "model.taxarbor"), labels, TRUTH)
    assert run_json(*CLASSES, "--truth", name)["scores"] == expected
    assert "adjusted shortest path" in run(*CLASSES, "--truth", name).stdout


def test_bad_input_is_one_line(refused, folder):
    (folder / "bad.nwk").write_text("((student,\nfamily);", encoding="utf-8")
    (folder / "few.nwk").write_text("(student,family);", encoding="utf-8")
    refused("bad.nwk", *CLASSES, "--truth", "bad.nwk")
    refused("no leaves of the true tree", *CLASSES, "--truth", "few.nwk")
    refused("nowhere.nwk: No such file", *CLASSES, "--truth", "nowhere.nwk")
    refused("did you mean 'class'", *CLASSES[:-1], "clas")
    text = (folder / "customers.csv").read_text(encoding="utf-8")
    (folder / "gaps.csv").write_text(text.replace("Bern,senior", "Bern,"), encoding="utf-8")
    refused("10 rows without a label in 'class'", *CLASSES[:2], "gaps.csv", *CLASSES[3:])
