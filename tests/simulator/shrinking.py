"""A case that is broken, made as small as it can be, and told in a few lines: who wrote what, what broke."""

import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from enum import Enum
from textwrap import wrap
from typing import Any

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import PADDLE_JOBS
from simulator.cases import NOT_STRUCK, Case, broken_in, different, innermost, tried, violations_in
from simulator.exhaustive import Order
from simulator.faults import Fault, Faults
from simulator.life import Life, Workload
from simulator.oracle import ANOTHER_END, differences
from simulator.schedule import Priorities, Steady
from simulator.witness import Change, Request, Scene

# Of the story, besides all faults; and of what is different in the end.
LAST_LINES, DIFFERENCES = 24, 4
# What has just happened when something breaks is told whole, on several lines if need be.
WHOLE_LINES = 3
LONGEST_LINE = 160
HANGING = " " * 13
# To fill caches: what came of it shows in what is done next.
READS = {"list", "watch"}
# Of a status these say least about what has happened.
DULL = ("conditions", "refs", "Time", "observedGeneration")


def what_is_broken(case: Case) -> str:
    """In a word, as of a verdict. Empty: all is well."""
    return tried(case).broken


def shrink(case: Case, is_broken: Callable[[Case], bool] | None = None) -> Case:
    """The simplest case that is found by one step after the other and is still broken in the same way."""
    if is_broken is None:
        way = what_is_broken(case)
        # Where a fault has not struck, nothing is broken but the case.
        is_broken = lambda one: way not in {"", NOT_STRUCK} and what_is_broken(one) == way  # noqa: E731
    while (next_one := next(filter(is_broken, simpler(case)), None)) is not None:
        case = next_one
    return case


def simpler(case: Case) -> Iterator[Case]:
    """With one thing less, the largest first."""
    if isinstance(case, Order):
        yield from case.simpler()
        return
    planned = case.faults.all
    for left_out in range(len(planned)):
        yield replace(case, faults=Faults((*planned[:left_out], *planned[left_out + 1 :])), strikes=0)
    if not case.schedule.is_calm:
        yield replace(case, schedule=Steady())
    if isinstance(case.schedule, Priorities) and case.schedule.depth:
        yield replace(case, schedule=Priorities(case.schedule.seed, case.schedule.depth - 1))
    for workload in simpler_workloads(case.workload):
        yield replace(case, workload=workload)


def simpler_workloads(workload: Workload) -> Iterator[Workload]:
    nothing = Workload(workload.manifest)
    for name in ("others", "misfits", "recreation", "in_place", "run_seconds", "exit_codes"):
        if getattr(workload, name):
            yield replace(workload, **{name: getattr(nothing, name)})
    for left_out in range(len(workload.acts)):
        yield replace(workload, acts=(*workload.acts[:left_out], *workload.acts[left_out + 1 :]))
    for spec in simpler_specs(workload.manifest["spec"]):
        yield replace(workload, manifest={**workload.manifest, "spec": spec})


def simpler_specs(spec: Manifest) -> Iterator[Manifest]:
    for name in spec.keys() - {"worker"}:
        yield {key: value for key, value in spec.items() if key != name}
    for name in spec.get("runPolicy", {}):
        policy = {key: value for key, value in spec["runPolicy"].items() if key != name}
        yield {**spec, "runPolicy": policy}
    for role in ("ps", "worker"):
        if spec.get(role, {"replicas": 0})["replicas"] > 1:
            yield {**spec, role: {**spec[role], "replicas": spec[role]["replicas"] - 1}}


def tell(case: Case) -> str:
    """What is broken, in what life, by what faults; and of its story what came last before."""
    try:
        life = case.lived()
        broken = broken_in(life, case)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this case's)
        said = "".join(traceback.format_exception(innermost(error))).splitlines()
        return "\n".join([*_whole(f"broken: {said[-1]}"), _scenery(case), *said[-LAST_LINES:]])
    violations = violations_in(life, case)
    until = violations[0].told_until if violations else None
    meaning = [row for line in _meaning(life, case, broken) for row in _whole(line)]
    return "\n".join([f"broken: {broken or 'nothing'}", *meaning, _scenery(case), *_last(life, until)])


def _meaning(life: Life, case: Case, broken: str) -> list[str]:
    if broken == NOT_STRUCK:
        return [in_words(Faults(tuple(one for one in case.faults.all if one not in life.witness.struck)))]
    if broken == ANOTHER_END:
        return sorted(different(life, case), key=len)[:DIFFERENCES]
    if not broken:
        return []
    return str(violations_in(life, case)[0].invariant.__doc__).splitlines()


def _scenery(case: Case) -> str:
    workload = case.workload
    spec = {
        name: value["replicas"] if name in {"ps", "worker"} else value
        for name, value in workload.manifest["spec"].items()
    }
    lives = {
        name: getattr(workload, name)
        for name in ("exit_codes", "run_seconds", "in_place", "recreation")
        if getattr(workload, name)
    }
    besides = [one["metadata"]["name"] for one in (*(one for _, one in workload.others), *workload.misfits)]
    acts = [act.do.__qualname__.partition(".")[0] for act in workload.acts]
    parts = {"job": spec, "pods": lives, "besides": besides, "acts": acts}
    lines = [f"  {what}: {said}" for what, said in parts.items() if said]
    return "\n".join([*lines, f"  faults: {in_words(case.faults)}", f"  schedule: {case.schedule}"])


def in_words(faults: Faults) -> str:
    return " and ".join(map(_fault_in_words, faults.all)) or "none"


def _fault_in_words(fault: Fault) -> str:
    """As in: crash at (write 10, moment without reply)."""
    values = {one.name: getattr(fault, one.name) for one in fields(fault)}
    said = [f"{name} {_in_a_word(value)}".replace("_", " ") for name, value in values.items()]
    return f"{re.sub('(?<!^)(?=[A-Z])', ' ', type(fault).__name__).lower()} ({', '.join(said)})"


def _in_a_word(value: object) -> str:
    return value.name.lower() if isinstance(value, Enum) else str(value)


def _last(life: Life, until: int | None) -> list[str]:
    """All faults, of alike ones the last, and the last lines."""
    scenes = [one for one in life.witness.scenes[:until] if not _is_dull(one)]
    told = [*_told(scenes)]
    struck = {line.partition("fault:")[2]: position for position, line in enumerate(told) if "fault:" in line}
    kept = [*sorted({*struck.values(), *range(max(0, len(told) - LAST_LINES), len(told))})]
    lines: list[str] = []
    for before, position in zip([-1, *kept], kept, strict=False):
        if position > before + 1:
            lines.append(f"       ...  {position - before - 1} more")
        lines += _whole(told[position]) if position >= len(told) - WHOLE_LINES else _cut(told[position])
    return lines


def _whole(line: str) -> list[str]:
    return wrap(line, LONGEST_LINE, subsequent_indent=HANGING, break_on_hyphens=False)


def _cut(line: str) -> list[str]:
    return wrap(line, LONGEST_LINE, max_lines=1, placeholder=" ...", break_on_hyphens=False)


def _is_dull(scene: Scene) -> bool:
    return isinstance(scene.what, Request) and scene.what.verb in READS


def _told(scenes: list[Scene]) -> Iterator[str]:
    """A request and the change that it makes are one line."""
    effects = {
        id(one.what.request): one.what for one in scenes if isinstance(one.what, Change) and one.what.request
    }
    for scene in scenes:
        what = scene.what
        if isinstance(what, Change) and what.request is not None:
            continue
        line = f"{scene.at:9.3f} s  {scene.who}: {what}{_moved(what)}"
        effect = effects.get(id(what))
        yield f"{line} -> {_effect(effect)}" if effect is not None else line


def _effect(change: Change) -> str:
    if change.entry.after is None:
        return "gone"
    return ("changed" if change.entry.before else "made") + _moved(change)


def _moved(what: Any) -> str:
    """What is new in the status of a job: its phase, and then the shortest first, as counters are."""
    if not isinstance(what, Change) or what.entry.resource != PADDLE_JOBS or not what.entry.after:
        return ""
    before = (what.entry.before or {}).get("status", {})
    moved = differences(what.entry.after.get("status", {}), before)
    telling = [one.lstrip(".") for one in moved if not any(word in one.partition(" is ")[0] for word in DULL)]
    telling.sort(key=lambda one: (not one.startswith("phase "), len(one)))
    return f" ({'; '.join(telling)})" if telling else ""
