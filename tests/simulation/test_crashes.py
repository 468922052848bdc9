"""Crash at every write, look at the world through late watches: the end is that of an undisturbed life."""

from typing import Any

import make
import pytest
from simulated import CrashAt, Life, Moment, live

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, AnyResource

pytestmark = pytest.mark.looptime

COMPLETES: dict[str, Any] = {"manifest": make.manifest(workers=2, cleanPodPolicy="Never")}
CLEANS: dict[str, Any] = {"manifest": make.manifest(workers=2)}
FAILS: dict[str, Any] = {
    "manifest": make.manifest(workers=2, cleanPodPolicy="Always"),
    "exit_codes": {"resnet-worker-1": 3},
}
LIVES = {"completes": COMPLETES, "is cleaned": CLEANS, "fails": FAILS}
# Undisturbed, each of these lives makes this many writes; crash points beyond them would test nothing.
MOST_WRITES = 13


def end_of(life: Life) -> Manifest:
    """What must be the same whatever happened on the way: not UIDs, versions, times.

    Nor whether the job was seen running: who looks late, or is dead meanwhile, does not see it.
    """
    status = life.job()["status"]
    conditions = [one for one in status["conditions"] if one["type"] != "Running"]
    return {
        "phase": status["phase"],
        "failure": status.get("failure", {}).get("pod"),
        "conditions": {one["type"]: (one["status"], one["reason"]) for one in conditions},
        # When one fails, it is a matter of moments whether another had ended well.
        "succeeded": status["worker"].get("succeeded", 0) if status["phase"] == "Completed" else None,
        "pods": {name: pod["status"]["phase"] for name, pod in life.pods().items()},
    }


def check_invariants(life: Life) -> None:
    status = life.job()["status"]
    assert status.get("startTime", "") <= status["completionTime"]
    told = list(life.kubelet.told.values())
    # All ranks of the one attempt were told the same list, of the right length.
    assert len({data["PADDLE_TRAINER_ENDPOINTS"] for data in told}) <= 1
    assert all(len(data["PADDLE_TRAINERS"].split(",")) == 2 for data in told)
    # No slot was ever filled twice.
    assert len(life.kubelet.told) <= 2


_undisturbed: dict[str, Life] = {}


async def undisturbed_life(name: str) -> Life:
    if name not in _undisturbed:
        _undisturbed[name] = await live(**LIVES[name])
    return _undisturbed[name]


async def test_the_number_of_writes_is_known() -> None:
    counts = {name: len((await undisturbed_life(name)).writes) for name in LIVES}
    assert max(counts.values()) == MOST_WRITES, counts


@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
@pytest.mark.parametrize("write", range(1, MOST_WRITES + 1))
async def test_a_crash_at_any_write_changes_nothing_in_the_end(name: str, moment: Moment, write: int) -> None:
    undisturbed = await undisturbed_life(name)
    life = await live(**LIVES[name], crash=CrashAt(write, moment))
    expected = write <= len(undisturbed.writes)
    assert life.crashes == expected or (moment is Moment.AFTER and write == len(undisturbed.writes))
    assert end_of(life) == end_of(undisturbed)
    check_invariants(life)


@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize("lag", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("late", [PADDLE_JOBS, PODS, CONFIG_MAPS], ids=str)
async def test_a_watch_that_is_late_changes_nothing_in_the_end(
    name: str, late: AnyResource, lag: float
) -> None:
    undisturbed = await undisturbed_life(name)
    life = await live(**LIVES[name], lag_seconds={late: lag})
    assert end_of(life) == end_of(undisturbed)
    check_invariants(life)
    # Nothing was made twice because its making had not been seen yet.
    creates = [write for write in life.writes if write.startswith("create")]
    assert len(creates) == len(set(creates))
