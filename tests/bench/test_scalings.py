import pytest

from taxarbor.bench import SCALINGS, Setup
from taxarbor.bench._plan import SCALED, plan_scalings, plan_table
from taxarbor.bench._scalings import describe_scalings

MEANS = {"none": 0.5, "unit": 0.6, "standard": 0.7}


@pytest.fixture
def setup(tmp_path, made):
    made.data(tmp_path, "some")
    return Setup(tmp_path, n_seeds=2, strengths=(1.0,))


def test_the_plan_has_the_other_scalings_alone(setup):
    jobs = list(plan_scalings(setup))
    assert {job.scaling for job in jobs} == set(SCALINGS) - {"none"}
    assert {job.method for job in jobs} == set(SCALED)
    assert not set(jobs) & set(plan_table(setup))


def test_each_scaling_has_its_own_line(setup, made, markdown):
    store = made.fill(
        setup.folder,
        [*plan_table(setup), *plan_scalings(setup)],
        lambda job: made.outcome(
            shortest_path=MEANS[job.scaling] + 0.01 * job.seed + 0.1 * (job.method == "HKM-D"),
            height=8.0,
            chance_shortest_path=0.25,
        ),
    )
    ((heading, _, *lines),) = markdown.check(describe_scalings(store.read(), setup))
    assert heading[:4] == ["data, rows", "SP paper", "SP HMMC", "SP HKM-D"]
    assert [line[0] for line in lines] == ["some, none", "some, standard", "some, unit"]
    told = {line[0].split(", ")[1]: line for line in lines}
    for scaling, mean in MEANS.items():
        assert told[scaling][2] == f"{100 * mean + 0.5:.2f} ± 0.50"
        assert told[scaling][3] == f"{100 * mean + 10.5:.2f} ± 0.50"
        assert told[scaling][-2:] == ["8.0", "25.00 ± 0.00"]


def test_missing_results(setup, made, markdown):
    ((_, _, *lines),) = markdown.check(
        describe_scalings(made.fill(setup.folder, []).read(), setup)
    )
    assert {cell for line in lines for cell in line[1:]} == {"-"}
