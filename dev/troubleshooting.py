"""Prints docs/en/troubleshooting.md: the table of ends and waits (paddlejob/ends.toml), by symptom.

    python dev/troubleshooting.py > docs/en/troubleshooting.md

`make generate` does this. The words between the tables are here.
"""

from collections.abc import Iterable

from paddle_operator.paddlejob.ends import Counts, Meaning, table
from paddle_operator.paddlejob.explain import LIMITS

CLASSES = {
    "OOM": "The container used more memory than it may.",
    "node": "The node gave up the pod. A restart puts it elsewhere, if there is room.",
    "preempted": "Somebody took the pod away, or told its processes to end. It did nothing wrong.",
    "image": "The image cannot be had. Pods wait for it for ever; only `startDeadlineSeconds` ends that.",
    "config": "The template, or the job, asks for what cannot be. A restart alone will not help.",
    "code": "The program ended with an error, or crashed. Its log tells more.",
    "rendezvous": "A process came back, or wants to, and its peers are not where they were.",
    "victim": "It failed only because another one did. It is named as the cause only if no other end was "
    "seen: look at its log, and at the network between the pods.",
}
WAITING_COLUMNS = ("reason", "class", "the pod", "what to do")
END_COLUMNS = ("reason or code", "of", "limit", "what happened: it", "what to do")
CODE_COLUMNS = ("code", "of", "class", "limit", "the process", "unless the reason is")

INTRODUCTION = """\
# Troubleshooting

<!-- Written by `make generate` from src/paddle_operator/paddlejob/ends.toml and dev/troubleshooting.py. -->

By symptom. What the operator knows about a job, it says in its status; begin there:

```shell
kubectl get pdj NAME -o wide                                  # phase, restarts, class of the last failure
kubectl describe pdj NAME                                     # conditions and events, in words
kubectl get pdj NAME -o jsonpath='{.status.failure}'          # the pod to look at, why, and what to do
kubectl logs POD -c CONTAINER                                 # --previous: before it was restarted in place
paddle-operator explain-exit 247                              # what an exit code or a reason means
```

What fields and conditions mean is in [paddlejob.md](paddlejob.md). The tables here are those by which the
operator itself goes. They are data: a row is added in `src/paddle_operator/paddlejob/ends.toml`.
"""

WAITS = """
## The job stays Pending or Starting

- Status and Mode are empty: no operator follows the job's namespace, or it
  [is not ready](#the-operator-itself).
- The condition `Created` is `False`: something stands in the way of its pods, and the message says what to
  do. All reasons are in [paddlejob.md](paddlejob.md).
- The condition `Running` is `False`: pods are there, and wait. The message names the pod of which most can be
  told, and the reason is one of those below. (Of several words for one thing the condition has the first.)
- No such condition, but pods that run: they are not ready. Look at the readiness probe of the template.

"""

AFTER_WAITS = """
A job waits as long as it takes. With `runPolicy.startDeadlineSeconds` it fails instead, and `status.failure`
has the class of what it waited for.
"""

NO_PROGRESS = """
## The job runs, but does not train

Paddle's processes wait for each other without any limit (`Waiting peer start...`, `master not ready`).

- Their ports are chosen at random: a NetworkPolicy must allow all ports between the pods of a job.
- A script that trains on some ranks only, or that ends early on one, lets the others wait.
- With gloo (no GPU) all fail when one of them is slower than 30 seconds between two collective operations.
- With parameter servers in geo mode (`a_sync`, `k_steps` above 0) workers now and then miss each other for
  ever in `fleet.init_worker()`, mostly on a busy machine: one says `InitSparse`, and none goes on. The first
  server of Paddle 3.0.0 then waits in its barrier for one that its peer has overtaken, with an operator or
  without. Suspend the job and resume it; `begin_in_turn` in
  [train.py](../../examples/04-wide-and-deep/train.py) does without that barrier.
- On CPUs, with gloo, workers of Paddle 3.0.0 now and then miss each other when they make one group after
  another, as `fleet.init` does, mostly on a busy machine: one ends with `pair.cc ... connect ...: Connection
  refused`, or none goes on. `runPolicy.backoffLimit` begins anew. Who trains with data parallelism alone
  needs only the first group: [train_fleet.py](../../examples/02-collective/train_fleet.py) sets
  `heter_ccl_mode`, and uses `paddle.DataParallel`.

`runPolicy.activeDeadlineSeconds` bounds what such a job costs.
"""

ENDS = """
## The job failed or restarts: look at status.failure.class

Of several pods that ended, one is named as the cause: that whose class comes first here, then the one that
its peers lost first, then the one that ended first. Those that only followed are in `status.failure.victims`.
Of several trainers in one pod `status.failure.localRank` is the one, where the end of the log tells it
([paddlejob.md](paddlejob.md)). An end that may be a consequence is held against nobody for 5 seconds; for a
minute if all that ended are victims and a pod still seems to run, which may be lost with its node.

A job's only pod is nobody's victim, and neither is one that ends with 241 while no other has ended: its
launcher stopped its trainers because one of them had failed. Beside others 241 is rather the cause than 250
or 134, which are those of trainers that lost a peer.

A pod's reason goes before the exit code of its container: a trainer that ran out of memory ends with 137,
under Paddle's launcher with 247, and is `OOMKilled` all the same. Of a pod that somebody deletes, and whose
end says nothing else, the reason is `PodLost`.

Pods of a job that has failed for good are kept with their logs, unless `cleanPodPolicy` says otherwise. Those
of a try that was followed by another are deleted, and their logs with them: have logs collected.
"""

CODES = """
## Exit codes at a glance

Paddle's launcher ends with the code of its trainer modulo 256, which is 256 less the signal that ended it; a
plain script with 128 and the signal. Where several rows hold, the first is used.

"""

COUNTING = """
## It restarts: what counts against which limit

| in `status` | limit in `spec.runPolicy` | left out | what counts |
| --- | --- | --- | --- |
| `failures` | `backoffLimit` | 0; 6 if a template says `restartPolicy: OnFailure` | {failures} |
| `disruptions` | `maxDisruptions` | 3 | {disruptions} |

The job fails for good with the end that goes beyond its limit. The condition `Restarting`, and `Failed` after
a restart, say how much is used up: `failures 1 (backoffLimit 2), disruptions 0 (maxDisruptions 3)`. A
restart is one of the whole job. Restarts in place (`restartPolicy: OnFailure`) count as failures, too; in
Collective mode, where everybody fails with the first, one that takes all pods along counts once. Details are
in [paddlejob.md](paddlejob.md).
"""

TERMINATING = """
## A pod stays Terminating

A new try begins only when all pods of the one before are gone: two that train at once would spoil each
other's files. If a pod is still there 30 seconds after its time, the condition `Restarting` (or `Suspended`)
says so, with the reason `PodStuck` and the node. Mostly that node does not answer, and nobody can know
whether the pod's processes have ended.

```shell
kubectl get pod POD -o wide                                   # its node
kubectl get node NODE                                         # NotReady?
kubectl get pod POD -o jsonpath='{.metadata.finalizers}'      # or somebody else holds it
```

- The node comes back: the pod goes, and the job goes on by itself.
- The node is surely down: `kubectl delete pod POD --force --grace-period=0`, or `kubectl delete node NODE`.
- `runPolicy.forceDeleteAfterSeconds` lets the operator delete such pods by force, so many seconds after their
  time. Choose it only where a node that does not answer is fenced, or where the old processes can do no harm
  (to checkpoints, say) if they still run.
"""

OPERATOR = """
## The operator itself

While no operator acts, running jobs go on, new ones have no status, and nothing restarts.

```shell
kubectl -n paddle-system get pods -l control-plane=controller-manager
kubectl -n paddle-system logs POD                             # --previous: of one that ended
kubectl -n paddle-system port-forward POD 8081 &
curl -s localhost:8081/readyz                                 # why it is ready, or is not
```

- The pod is in `ImagePullBackOff`: [build the image](install.md#an-image-of-your-own), or say where it is.
- It is in `CrashLoopBackOff`: the last line of its log names the option that is wrong. With `OOMKilled` as
  its last state, give it more memory.
- It runs and is not Ready: `/readyz` says why. A rolling update goes no further then, and the old operator
  stays.

| `/readyz` | what to do if it lasts |
| --- | --- |
| `leads`, `ready`, `stands by, NAME leads` | nothing: all is well |
| `starts` | look at its log: it has not seen the Lease yet |
| `waits for the lists of ...` | it cannot see what it should follow, and does nothing: look for \
`cannot follow` in its log |
| `cannot follow ...` | it could before, so what it knows may be old; look as above |
| `lease: ...` | it cannot read or write the Lease. The text is the server's; see below |

What its log says about that. `follows again` and `lease can be read and written again` tell that it is over.

| in the log | what it means | what to do |
| --- | --- | --- |
| `cannot follow`, `could not find the requested resource` (404) | the kind is not installed | \
`kubectl apply -f deploy/v1/crd.yaml` |
| `cannot follow`, `is forbidden` (403) | the account lacks rights in this namespace | \
its [Role](security.md#rights-of-the-manager) and RoleBinding must be in each namespace that `--namespace` \
names; for all, a ClusterRole ([install.md](install.md#other-namespaces)) |
| `cannot follow`, `Unauthorized` (401) | the server does not know the token: it expired, or the account was \
made anew | delete the pod; outside of a cluster, renew the kubeconfig |
| `cannot follow`, anything else | the server does not answer, or not in time | \
look at the API server, and at the network to it |
| `lease cannot be read or written` | with `is forbidden`: the account lacks rights; else the server does \
not answer | the Role `paddle-leader-election-role` must be in the namespace of the Lease and name it \
([configuration.md](configuration.md#which-of-several-leads)) |
| `leads no longer` | it could not renew the Lease in time, or another one took it. It stands by, and leads \
again when it can | once: nothing. Often: the API server is slow, or the pod gets no CPU; then raise \
`--lease-duration` and its like |
| `plan stopped` | a request for one job failed (`problem` has the server's words); it is tried again, at \
most a minute apart | `is forbidden: User ... cannot`: the roles are of an older version, apply \
`operator.yaml`. `exceeded quota`, or the words of an admission policy: see the job's condition `Created` |
"""


def page() -> str:
    rows = table()
    parts = (
        INTRODUCTION,
        WAITS,
        _table(WAITING_COLUMNS, map(_waiting_row, rows.waiting)),
        AFTER_WAITS,
        NO_PROGRESS,
        ENDS,
        *(_section(name) for name in rows.blame),
        CODES,
        _table(CODE_COLUMNS, (_code_row(row) for row in rows.end if row.codes)),
        COUNTING.format(failures=_counted(Counts.FAILURE), disruptions=_counted(Counts.DISRUPTION)),
        TERMINATING,
        OPERATOR,
    )
    return "".join(parts)


def _section(name: str) -> str:
    ends = [row for row in table().end if row.kind == name]
    waits = [row for row in table().waiting if row.kind == name]
    text = f"\n### `{name}`\n\n{CLASSES[name]}\n"
    if waits:
        text += f"\nPods that wait may have it, too (see above): {', '.join(map(_key, waits))}.\n"
    return f"{text}\n{_table(END_COLUMNS, map(_end_row, ends))}" if ends else text


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _waiting_row(row: Meaning) -> tuple[str, ...]:
    told = row.told({})
    return _key(row), f"`{row.kind}`", told.means, told.next


def _end_row(row: Meaning) -> tuple[str, ...]:
    told = row.told({})
    return _key(row), row.by, _limit(row), told.means, told.next


def _code_row(row: Meaning) -> tuple[str, ...]:
    unless = ", ".join(f"`{one}`" for one in row.unless)
    return _key(row), row.by, f"`{row.kind}`", _limit(row), row.told({}).means, unless


def _key(row: Meaning) -> str:
    return ", ".join([*(f"`{one}`" for one in row.reasons), *row.codes])


def _limit(row: Meaning) -> str:
    return f"`{LIMITS[row.counts]}`" if row.counts in LIMITS else "none: it is final"


def _counted(counts: Counts) -> str:
    """By class; where a class has both kinds, the rows that have this one."""
    told: list[str] = []
    for name in table().blame:
        rows = [row for row in table().end if row.kind == name and row.counts in LIMITS]
        such = [row for row in rows if row.counts is counts]
        told += [f"`{name}`"] if such == rows and rows else map(_key, such)
    return ", ".join(told)


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
