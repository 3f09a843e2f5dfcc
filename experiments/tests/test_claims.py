import pytest

from taxarbor.bench import Setup
from taxarbor.bench._claims import describe_claims, summarise_claims
from taxarbor.bench._plan import plan_sweep, plan_table
from taxarbor.bench._select import spread_out

ASP = "adjusted_shortest_path"


@pytest.fixture
def setup(tmp_path, made):
    for name in ("awa_attr", "awa_pca"):
        made.data(tmp_path, name)
    return Setup(tmp_path, n_seeds=1, strengths=(1.0,))


def claims(setup, made, markdown, make, *plans):
    """Return what came out and on how many it holds, by the beginning of the claim."""
    jobs = [job for plan in plans or (plan_table, plan_sweep) for job in plan(setup)]
    found = spread_out(made.fill(setup.folder, jobs, make).read(), setup)
    ((heading, _, *lines),) = markdown.check(describe_claims(found, setup))
    assert heading == ["the paper says", "here", "holds on"]
    return {line[0]: (line[1], line[2]) for line in lines}


@pytest.mark.parametrize(
    ("value", "step", "seconds", "told"),
    [(0.9, 0.001, 2.0, "2 of 2"), (0.1, 0.02, 0.5, "0 of 2")],
)
def test_all_hold_or_none_does(setup, made, markdown, value, step, seconds, told):
    def make(job):
        if job.method != "HMMC":
            return made.outcome(1.0)
        sp = value + step * (job.branching - 2 + job.n_clusters // 8)
        return made.outcome(seconds, shortest_path=sp, zero_weights=value, **{ASP: value})

    found = claims(setup, made, markdown, make)
    assert len(found) == 8
    assert {holds for _, holds in found.values()} == {told}


def test_what_came_out_is_named(setup, made, markdown):
    def make(job):
        better = {"HMMC": 0.75, "Ward": 0.7, "HMMC-G": 0.99}.get(job.method, 0.25)
        zeros = {"HMMC": 0.5, "HMMC-G": 0.25}.get(job.method, 0.75)
        sp = better + 0.0625 * (job.branching - 2)
        return made.outcome(shortest_path=sp, zero_weights=zeros, **{ASP: better - 0.1})

    found = claims(setup, made, markdown, make)
    here, holds = found["HMMC has the highest SP, of all but variants"]
    assert here.startswith("AWA-ATTR 75.0, Ward 70.0; AWA-PCA 75.0")
    assert holds == "2 of 2"
    here, holds = next(told for said, told in found.items() if said.startswith("bottom-up"))
    assert here.startswith("AWA-ATTR Ward 60.0, HMMC 65.0")
    here, holds = found["with alpha = beta = 1, HMMC is sparser than HMMC-G and HMMC-E"]
    assert here.startswith("AWA-ATTR 50.0, 25.0, 75.0 % zeros")
    assert holds == "0 of 2"
    by_clusters, by_children = (
        found[said] for said in found if said.startswith("SP is stable")
    )
    assert by_clusters == ("AWA-ATTR 75.0 to 75.0; AWA-PCA 75.0 to 75.0", "2 of 2")
    assert by_children[0].startswith("AWA-ATTR 75.0 to 93.8")
    assert by_children[1] == "0 of 2"


def test_in_short(setup, made):
    def make(job):
        ours = job.method == "HMMC"
        chosen = 0.9 if job.settings != "{}" else 0.1
        return made.outcome(shortest_path=0.9 * ours, **{ASP: chosen if ours else 0.5})

    jobs = spread_out(made.fill(setup.folder, plan_table(setup), make).read(), setup)
    told = summarise_claims(jobs, setup).splitlines()
    assert told[0] == "## In short"
    assert [line.rpartition("leads on ")[2] for line in told[2:]] == [
        "2 of 2 data sets.",
        "2 of 2 data sets.",
        "0 of 2 data sets.",
    ]


def test_what_is_missing_is_not_judged(setup, made, markdown):
    def alone(job):
        return made.outcome() if job.method == "HMMC" else None

    assert not claims(setup, made, markdown, alone, plan_table)

    def without_links(job):
        gone = job.method in {"SL", "AL", "CL"} or job.dataset == "awa_pca"
        return None if gone else made.outcome()

    found = claims(setup, made, markdown, without_links)
    here, holds = next(told for said, told in found.items() if said.startswith("bottom-up"))
    assert here == "AWA-ATTR Ward 50.0, HMMC 50.0"
    assert holds == "0 of 1"


def test_without_hmmc_or_stand_ins_there_is_nothing_to_say(tmp_path, setup, made, markdown):
    assert not claims(
        setup, made, markdown, lambda job: None if job.method == "HMMC" else made.outcome()
    )
    other = tmp_path / "other"
    other.mkdir()
    made.data(other, "some")
    assert not claims(Setup(other, n_seeds=1), made, markdown, lambda _: made.outcome())
