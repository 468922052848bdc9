"""What somebody may do to a job at any moment of its life: edits, labels, deletions. Each is done once.

Most leave the end as it would have been; a deed says what in it may be otherwise. What is not there any more
at that moment is left alone, as a user would have to.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_INDEX, LABEL_JOB_UID, LABEL_ROLE
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource, Target
from paddle_operator.cluster import NotFound
from simulator.acts import Stage, is_suspended
from simulator.history import FINAL, NAMESPACE

# So long an edit stands before it is taken back.
STANDS_SECONDS = 3.0
LONG = 100_000
Thing = tuple[AnyResource, str]
"""A kind, and a name."""
JOB, A_POD = (PADDLE_JOBS, "resnet"), (PODS, "resnet-worker-0")
THE_MAP, A_SERVICE = (CONFIG_MAPS, "resnet"), (SERVICES, "resnet-worker-0")


def called(thing: Thing) -> str:
    """As in the end of a life (oracle.end_of)."""
    return "{} {}".format(*thing)


Fields = Mapping[str, frozenset[str]]
"""By the object that has them; those of the empty name, by every object."""
GENERATIONS: Fields = {called(JOB): frozenset({"generation", "observedGeneration"})}
# Of a job that went through one more try, and of all that was made for that.
TRIES: Fields = {
    called(JOB): GENERATIONS[called(JOB)] | {"attempt", "restarts", "disruptions", "failure", "conditions"},
    "": frozenset({LABEL_ATTEMPT}),
}
LABELS = frozenset({"labels"})
# All but paddle-res-name: by that a service finds its pod, so it is no lie but the truth.
LIES = {LABEL_JOB_UID: "somebody", LABEL_ROLE: "ps", LABEL_INDEX: "7"}
# After the end nobody asks by name for what has no labels any more. It goes with the job.
OUT_OF_SIGHT = frozenset({"children_are_cleaned_up_as_asked"})
# What has no number of its try, or a wrong one, is not of the try for which it is read.
OF_NO_TRY = frozenset({"no_container_starts_with_the_map_of_another_job"})
OF_THIS_TRY = (
    OUT_OF_SIGHT
    | OF_NO_TRY
    | {
        "nothing_of_a_try_is_deleted_before_the_next_is_written",
        "tries_do_not_overlap",
    }
)
# The map was under way when somebody took away a pod that it names.
WAS_THERE = frozenset({"peers_are_told_every_endpoint_in_the_order_of_ranks"})
# Whoever is never shown what he made, because it has lost its labels before, may ask for it once more.
UNSEEN = OUT_OF_SIGHT | {"nothing_known_to_exist_is_made_again"}
# It stood before the pod, until somebody took it away.
STANDS_FIRST = frozenset({"what_names_lead_to_stands_before_the_pod"})


@dataclass(frozen=True)
class Deed:
    do: Callable[[Stage], Awaitable[None]]
    to: Thing = JOB
    but: Fields = field(default_factory=dict)
    """What may be otherwise in the end; of conditions that say how a job ended only the words."""
    costs: bool = False
    """What it is done to may be missing in the end."""
    begins_anew: bool = False
    """The job has to be one that does in each try what it does in the first."""
    ends_it: bool = False
    """Nothing is left of the job."""
    waives: frozenset[str] = frozenset()
    """Invariants that the deed itself breaks, or that do not bind us after it."""

    @property
    def may_begin_anew(self) -> bool:
        """Always, or if the moment is a bad one: somebody has started, and somebody has not."""
        return self.begins_anew or "attempt" in self.but.get(called(JOB), ())


async def edit_the_clean_policy_and_back(stage: Stage) -> None:
    """To the one that keeps most: what is deleted meanwhile cannot come back."""
    old = stage.job["spec"].get("cleanPodPolicy")
    await stage.change_spec({"cleanPodPolicy": "Never"})
    await asyncio.sleep(STANDS_SECONDS)
    await stage.change_spec({"cleanPodPolicy": old})


async def edit_deadlines_and_back(stage: Stage) -> None:
    names = ("activeDeadlineSeconds", "startDeadlineSeconds", "ttlSecondsAfterFinished")
    old = stage.job["spec"].get("runPolicy", {})
    await stage.change_spec({"runPolicy": dict.fromkeys(names, LONG)})
    await asyncio.sleep(STANDS_SECONDS)
    await _put_back(stage, {name: old.get(name) for name in names})


async def _put_back(stage: Stage, old: Manifest) -> None:
    """Of the run policy; one in which nothing is left goes, whoever else has had a hand in it."""
    left = {**stage.job["spec"].get("runPolicy", {}), **old}
    is_empty = all(value is None for value in left.values())
    await stage.change_spec({"runPolicy": None if is_empty else old})


async def suspend_and_resume(stage: Stage) -> None:
    await stage.change_spec({"runPolicy": {"suspend": True}})
    while not is_suspended(stage) and stage.job.get("status", {}).get("phase") not in FINAL:
        await stage.history.reach(stage.history.version + 1)
    await asyncio.sleep(STANDS_SECONDS)
    await _put_back(stage, {"suspend": None})


async def delete_the_job(stage: Stage) -> None:
    job = await stage.memory.get(PADDLE_JOBS, Key(NAMESPACE, stage.name))
    await stage.memory.delete(Target.of(PADDLE_JOBS, job))


async def create_the_job_anew(stage: Stage) -> None:
    await delete_the_job(stage)
    await stage.create()


def delete(thing: Thing) -> Callable[[Stage], Awaitable[None]]:
    async def do(stage: Stage) -> None:
        resource, name = thing
        found = await stage.memory.get(resource, Key(NAMESPACE, name))
        await stage.memory.delete(Target.of(resource, found))

    return do


def label(thing: Thing, labels: Manifest) -> Callable[[Stage], Awaitable[None]]:
    async def do(stage: Stage) -> None:
        resource, name = thing
        found = await stage.memory.get(resource, Key(NAMESPACE, name))
        await stage.memory.patch(Target.of(resource, found), {"metadata": {"labels": labels}})

    return do


def unlabel(thing: Thing) -> Callable[[Stage], Awaitable[None]]:
    async def do(stage: Stage) -> None:
        resource, name = thing
        found = await stage.memory.get(resource, Key(NAMESPACE, name))
        await label(thing, dict.fromkeys(found.metadata.labels))(stage)

    return do


DEEDS = {
    "edit-the-clean-policy-and-back": Deed(edit_the_clean_policy_and_back, but=GENERATIONS),
    "edit-deadlines-and-back": Deed(edit_deadlines_and_back, but=GENERATIONS),
    "suspend-and-resume": Deed(suspend_and_resume, but=TRIES, begins_anew=True),
    # In a later try a pod without labels is taken for one of the first, and has to go.
    "unlabel-a-pod": Deed(
        unlabel(A_POD),
        A_POD,
        {called(A_POD): LABELS},
        costs=True,
        begins_anew=True,
        waives=UNSEEN | OF_NO_TRY,
    ),
    "lie-on-a-pod": Deed(label(A_POD, LIES), A_POD, {called(A_POD): LABELS}),
    # By its label it is not of this try, and has to go; who may label it may delete it as well.
    "lie-about-the-try-of-a-pod": Deed(
        label(A_POD, {LABEL_ATTEMPT: "9"}),
        A_POD,
        TRIES,
        costs=True,
        begins_anew=True,
        waives=OF_THIS_TRY | WAS_THERE,
    ),
    "delete-a-pod": Deed(delete(A_POD), A_POD, TRIES, costs=True, begins_anew=True, waives=WAS_THERE),
    # Without it who has not started cannot any more, where others have: that takes another try.
    "unlabel-the-map": Deed(
        unlabel(THE_MAP), THE_MAP, {**TRIES, called(THE_MAP): LABELS}, costs=True, waives=UNSEEN | OF_NO_TRY
    ),
    "delete-the-map": Deed(
        delete(THE_MAP), THE_MAP, {**TRIES, called(THE_MAP): LABELS}, costs=True, waives=STANDS_FIRST
    ),
    "unlabel-a-service": Deed(
        unlabel(A_SERVICE), A_SERVICE, {called(A_SERVICE): LABELS}, costs=True, waives=UNSEEN
    ),
    "delete-a-service": Deed(delete(A_SERVICE), A_SERVICE, costs=True, waives=STANDS_FIRST),
    "delete-the-job": Deed(delete_the_job, ends_it=True),
    "create-the-job-anew": Deed(create_the_job_anew, begins_anew=True),
}


async def do(deed: str, stage: Stage) -> None:
    with suppress(NotFound, KeyError):
        await DEEDS[deed].do(stage)
