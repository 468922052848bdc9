"""The whole of `paddle-operator run`, with jobs that need no Paddle: real processes on this machine."""

import json
import os
import signal
import uuid
from pathlib import Path

import laptop
import pytest
import yaml
from typer.testing import CliRunner

from paddle_operator.cli import app


@pytest.fixture
def marker() -> str:
    """Stands in the command line of a test's own processes."""
    return f"marker-{uuid.uuid4().hex}"


def written(folder: Path, text: str, name: str = "job.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_job_runs_from_yaml_to_completed_and_every_rank_knows_its_peers(tmp_path: Path) -> None:
    script = 'echo "rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM at $POD_IP"; echo "step=1 loss=0.5"'
    ran = laptop.run(written(tmp_path, laptop.job("pair", script)), "--logs")
    assert ran.code == 0, ran
    assert "pair-worker-0 | rank 0 of 2 at 127." in ran.out
    assert "pair-worker-1 | rank 1 of 2 at 127." in ran.out
    assert "default/pair step 1 loss 0.5" in ran.out
    assert "default/pair Completed" in ran.out


def test_the_first_failing_rank_is_named_with_its_last_lines(tmp_path: Path) -> None:
    script = (
        '[ "$PADDLE_TRAINER_ID" = 0 ] && exec sleep 600; for i in $(seq 30); do echo "line $i"; done; exit 3'
    )
    ran = laptop.run(written(tmp_path, laptop.job("pair", script)))
    assert ran.code == 1
    assert "default/pair Failed" in ran.out
    assert "exit code 3" in ran.out
    assert "The last 20 lines of pair-worker-1 (rank 1):" in ran.out
    assert "  line 11\n" in ran.out
    assert "  line 30\n" in ran.out
    assert "line 10\n" not in ran.out


def test_the_final_object_is_all_that_stands_on_stdout(tmp_path: Path) -> None:
    file = written(tmp_path, laptop.job("one", "true", replicas=1))
    as_json = laptop.run(file, "-o", "json")
    assert json.loads(as_json.out)["status"]["phase"] == "Completed"
    as_yaml = laptop.run(file, "-o", "yaml")
    assert yaml.safe_load(as_yaml.out)["status"]["mode"] == "Single"
    assert "default/one Completed" in as_yaml.err


def test_files_folders_and_standard_input_are_read(tmp_path: Path) -> None:
    written(tmp_path, laptop.job("a", "true") + "---\n" + laptop.job("b", "true"), "two.yaml")
    written(tmp_path, laptop.job("c", "true"), "one.yml")
    ran = laptop.run(tmp_path, "-", "-n", "team", stdin=laptop.job("d", "true"))
    assert ran.code == 0, ran
    assert [f"team/{name} Completed" in ran.out for name in "abcd"] == [True] * 4


def test_settings_change_the_job_before_it_is_checked(tmp_path: Path) -> None:
    file = written(tmp_path, laptop.job("one", "echo $PADDLE_TRAINERS_NUM workers", replicas=1))
    ran = laptop.run(file, "--logs", "--set", "spec.worker.replicas=3")
    assert ran.code == 0
    assert "one-worker-2 | 3 workers" in ran.out


def test_what_is_kept_is_enough_to_look_into_it_later(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    ran = laptop.run(written(tmp_path, laptop.job("pair", "echo hello")), "--keep", keep)
    assert ran.code == 0
    assert (keep / "logs" / "default" / "pair-worker-1" / "paddle.log").read_text() == "hello\n"
    kinds = [document["kind"] for document in yaml.safe_load_all((keep / "objects.yaml").read_text())]
    assert {"PaddleJob", "Pod", "ConfigMap", "Event"} == set(kinds)
    assert "AllPodsSucceeded" in (keep / "operator.log").read_text()
    again = laptop.run(tmp_path / "job.yaml", "--keep", keep)
    assert again.code == 2
    assert "not empty; name a new folder" in again.err


def test_out_of_time_is_said_and_leaves_nothing(tmp_path: Path, marker: str) -> None:
    ran = laptop.run(written(tmp_path, laptop.job("pair", f"sleep 600; : {marker}")), "--timeout", "1s")
    assert ran.code == 124
    assert "out of time (--timeout)" in ran.out
    assert laptop.none_left([marker])


def test_a_claim_keeps_its_data_and_config_maps_and_secrets_of_the_file_are_mounted(tmp_path: Path) -> None:
    others = yaml.safe_dump_all(
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings"},
                "data": {"rate": "0.1"},
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "token"},
                "stringData": {"key": "sesame"},
            },
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}},
        ]
    )
    mounts = [
        {"name": "claim", "mountPath": "/no-such-path/data"},
        {"name": "settings", "mountPath": "/etc/settings"},
    ]
    volumes = [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    script = 'cat /no-such-path/data/*; echo "$(cat /etc/settings/rate) $KEY" >> /no-such-path/data/runs'
    key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}}
    more = {"volumeMounts": mounts, "env": [key]}
    text = laptop.job("one", script, replicas=1, pod={"volumes": volumes}, paddle=more) + "---\n" + others
    file, store = written(tmp_path, text), tmp_path / "volumes"
    first = laptop.run(file, "--volumes", store, "--logs")
    assert first.code == 0, first
    second = laptop.run(file, "--volumes", store, "--logs")
    assert "one-worker-0 | 0.1 sesame" in second.out
    assert (store / "default" / "data" / "runs").read_text() == "0.1 sesame\n" * 2


def test_two_runs_at_once_do_not_share_addresses_or_ports(tmp_path: Path) -> None:
    """Each waits for the other to have started, so they do run at the same time."""
    script = (
        f"echo told $PADDLE_TRAINER_ENDPOINTS; touch {tmp_path}/$PADDLE_JOB_ID; "
        f"until [ -e {tmp_path}/default-a ] && [ -e {tmp_path}/default-b ]; do sleep 0.05; done"
    )
    files = [written(tmp_path, laptop.job(name, script), f"{name}.yaml") for name in "ab"]
    told = []
    with laptop.started(files[0], "--logs") as one, laptop.started(files[1], "--logs") as other:
        for process in (one, other):
            out, _ = process.communicate(timeout=laptop.PATIENCE)
            assert process.returncode == 0, out
            told.append(next(line.partition("told ")[2] for line in out.splitlines() if "told " in line))
    addresses = [{endpoint.split(":")[0] for endpoint in one.split(",")} for one in told]
    ports = [{endpoint.split(":")[1] for endpoint in one.split(",")} for one in told]
    assert not addresses[0] & addresses[1]
    assert not ports[0] & ports[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_job_gracefully(tmp_path: Path, marker: str, number: signal.Signals) -> None:
    script = f"trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done; : {marker}"
    with laptop.started(written(tmp_path, laptop.job("pair", script)), "--logs") as process:
        laptop.wait_for(process, "pair-worker-0 | ready", "pair-worker-1 | ready")
        process.send_signal(number)
        out, _ = process.communicate(timeout=laptop.PATIENCE)
        assert process.returncode == 130
        assert "pair-worker-0 | saved" in out
        assert "pair-worker-1 | saved" in out
        assert laptop.none_left([marker], seconds=0)


def test_a_second_interrupt_kills_what_does_not_listen(tmp_path: Path, marker: str) -> None:
    script = f"trap '' TERM; while :; do sleep 0.1; done; : {marker}"
    pod = {"terminationGracePeriodSeconds": 600}
    with laptop.started(written(tmp_path, laptop.job("pair", script, pod=pod))) as process:
        laptop.wait_for(process, "Running: all 2 pods run")
        process.send_signal(signal.SIGINT)
        laptop.wait_for(process, "Ctrl-C again")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=laptop.PATIENCE)
        assert process.returncode == 130, out
        assert laptop.none_left([marker], seconds=0)


def test_nothing_survives_a_killed_operator_not_even_daemons(tmp_path: Path, marker: str) -> None:
    sleep = f"sh -c 'sleep 600; : {marker}'"
    script = f"setsid -f {sleep}; nohup {sleep} & echo ready; {sleep}; :"
    with laptop.started(written(tmp_path, laptop.job("pair", script)), "--logs") as process:
        laptop.wait_for(process, "pair-worker-0 | ready", "pair-worker-1 | ready")
        assert len(laptop.processes(marker)) >= 6
        process.kill()
        process.communicate(timeout=laptop.PATIENCE)
        assert laptop.none_left([marker])


def test_a_killed_worker_fails_the_job_with_its_signal(tmp_path: Path, marker: str) -> None:
    with laptop.started(
        written(tmp_path, laptop.job("pair", f"sleep 600; : $PADDLE_TRAINER_ID {marker}"))
    ) as process:
        laptop.wait_for(process, "Running: all 2 pods run")
        mains = [pid for pid in laptop.processes(marker) if Path(f"/proc/{pid}/comm").read_text() == "sh\n"]
        os.kill(mains[-1], signal.SIGKILL)
        out, _ = process.communicate(timeout=laptop.PATIENCE)
        assert process.returncode == 1
        assert "exit code 137" in out
        assert laptop.none_left([marker])


def test_a_job_that_fails_is_restarted_as_a_whole_and_says_why(tmp_path: Path) -> None:
    script = (
        f'echo "$PADDLE_TRAINER_ID at $PADDLE_TRAINER_ENDPOINTS"; [ -e {tmp_path}/crashed ] && exit 0; '
        f'[ "$PADDLE_TRAINER_ID" = 0 ] && touch {tmp_path}/ready && exec sleep 600; '
        f"until [ -e {tmp_path}/ready ]; do sleep 0.02; done; touch {tmp_path}/crashed; exit 3"
    )
    file = written(tmp_path, laptop.job("pair", script, runPolicy={"backoffLimit": 1}))
    ran = laptop.run(file, "--keep", tmp_path / "kept", "--logs")
    assert ran.code == 0, ran
    cause = (
        "worker 1 (pod pair-worker-1 on node localhost) ended with an error of its own: "
        "container paddle exited with 3 (Error)"
    )
    used = "failures 1 (backoffLimit 1), disruptions 0 (maxDisruptions 3)"
    before, _, after = ran.out.partition("default/pair try 0 failed")
    assert cause in before or after.startswith(f": {cause}; ")
    assert "; class: code; next step: look at the end of its log" in after.splitlines()[0]
    assert "pair-worker-1 | [try 1 begins]\n" in ran.out
    assert f"\n  restarts   1: {used}\n  try 0      {cause}\n" in after
    for rank in range(2):
        log = tmp_path / "kept" / "logs" / "default" / f"pair-worker-{rank}" / "paddle.log"
        first, mark, second = log.read_text().splitlines()
        assert mark == "[try 1 begins]"
        assert first.startswith(f"{rank} at 127."), first
        assert second.startswith(f"{rank} at 127."), second
        assert not set(first.split()[2].split(",")) & set(second.split()[2].split(",")), "new addresses"


def test_a_job_that_fails_for_good_tells_class_next_step_and_all_of_its_tries(tmp_path: Path) -> None:
    policy = {"backoffLimit": 1}
    script = f"[ -e {tmp_path}/failed ] && echo second; touch {tmp_path}/failed; exit 3"
    ran = laptop.run(written(tmp_path, laptop.job("one", script, replicas=1, runPolicy=policy)))
    assert ran.code == 1
    told = ran.out[ran.out.index("default/one Failed after") :].splitlines()
    assert "exited with 3" in told[0]
    assert [line.split("  ")[1] for line in told[1:5]] == ["class", "next step", "restarts", "try 0"]
    assert told[5:] == ["The last 1 lines of one-worker-0 (rank 0):", "  second"]
    assert "kubectl" not in ran.out


def test_a_job_that_is_deleted_after_its_end_is_reported_as_it_ended(tmp_path: Path) -> None:
    at_once = {"ttlSecondsAfterFinished": 0}
    jobs = [
        laptop.job("bad", "exit 3", runPolicy=at_once),
        laptop.job("good", "exit 0", runPolicy=at_once),
        laptop.job("slow", "sleep 1", runPolicy=at_once),
    ]
    ran = laptop.run(written(tmp_path, "---\n".join(jobs)), "-o", "json")
    assert ran.code == 1, ran
    assert "default/bad Failed after" in ran.err
    assert "default/slow Completed after" in ran.err
    ended = {one["metadata"]["name"]: one["status"]["phase"] for one in json.loads(ran.out)["items"]}
    assert ended == {"bad": "Failed", "good": "Completed", "slow": "Completed"}


STARTS_LATE = {"initContainers": [{"name": "first", "image": "any", "command": ["sleep", "600"]}]}


@pytest.mark.parametrize(
    ("policy", "pod", "message"),
    [
        (
            {"activeDeadlineSeconds": 1},
            {},
            "the job has not ended within 1 s (runPolicy.activeDeadlineSeconds)",
        ),
        (
            {"startDeadlineSeconds": 1},
            STARTS_LATE,
            "not all pods run after 1 s (runPolicy.startDeadlineSeconds)",
        ),
    ],
    ids=["to end", "to start"],
)
def test_deadlines_hold(
    tmp_path: Path, marker: str, policy: dict[str, int], pod: dict[str, object], message: str
) -> None:
    text = laptop.job("pair", f"sleep 600; : {marker}", pod=pod, runPolicy={"backoffLimit": 9, **policy})
    ran = laptop.run(written(tmp_path, text))
    assert ran.code == 1, ran
    assert f": {message}" in ran.out
    assert "\n  class " in ran.out
    assert "  next step  " in ran.out
    assert laptop.none_left([marker], seconds=0)


def test_all_that_was_printed_is_shown_however_fast_it_was(tmp_path: Path) -> None:
    script = "seq 100000; echo step=1 loss=0.5"  # more than is read at a time
    ran = laptop.run(written(tmp_path, laptop.job("one", script, replicas=1)), "--logs")
    assert ran.code == 0
    assert "one-worker-0 | 100000\n" in ran.out
    assert ran.out.count("one-worker-0 | ") == 100001
    assert "step    loss" in ran.out


def test_side_cars_and_init_containers_are_heard_too(tmp_path: Path) -> None:
    pod = {
        "initContainers": [{"name": "first", "image": "any", "command": ["echo", "I am the first"]}],
        "containers": [
            {"name": "paddle", "image": "any", "command": ["echo", "I train"]},
            {"name": "car", "image": "any", "command": ["echo", "I watch"]},
        ],
    }
    ran = laptop.run(written(tmp_path, laptop.job("one", "", replicas=1, pod=pod)), "--logs")
    assert ran.code == 0
    assert "one-worker-0/first | I am the first" in ran.out
    assert "one-worker-0 | I train" in ran.out
    assert "one-worker-0/car | I watch" in ran.out


def test_nohup_is_respected(tmp_path: Path, marker: str) -> None:
    script = f"echo ready; until [ -e {tmp_path}/go ]; do sleep 0.05; done; : {marker}"
    file = written(tmp_path, laptop.job("one", script, replicas=1))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with laptop.started(file, "--logs") as process:
            laptop.wait_for(process, "one-worker-0 | ready")
            process.send_signal(signal.SIGHUP)
            (tmp_path / "go").touch()
            out, _ = process.communicate(timeout=laptop.PATIENCE)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0, out


def test_one_interrupt_is_enough_once_the_job_is_over(tmp_path: Path) -> None:
    stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    pod = {
        "terminationGracePeriodSeconds": 600,
        "containers": [
            {"name": "paddle", "image": "any", "command": ["true"]},
            {"name": "car", "image": "any", "command": stubborn},
        ],
    }
    with laptop.started(written(tmp_path, laptop.job("one", "", replicas=1, pod=pod))) as process:
        laptop.wait_for(process, "Ctrl-C kills them")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=laptop.PATIENCE)
    assert process.returncode == 0, out


def refusal(*words: str | Path) -> str:
    """No process is needed for what ends before anything is started."""
    result = CliRunner().invoke(app, ["run", *map(str, words)])
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_a_job_that_would_wait_for_ever_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, laptop.job("one", "true", runPolicy={"suspend": True}))
    assert "job one: spec.runPolicy.suspend: a suspended job has no pods" in refusal(file)


@pytest.mark.parametrize("option", ["--keep", "--volumes"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, option: str) -> None:
    file = written(tmp_path, laptop.job("one", "true"))
    assert refusal(file, option, file / "folder").startswith(
        f"error: {option} {file}/folder: Not a directory"
    )


@pytest.mark.parametrize("work", ["echo on; ", ""], ids=["it prints on", "it is silent, and interrupted"])
def test_a_reader_that_goes_away_ends_the_job_gracefully(tmp_path: Path, marker: str, work: str) -> None:
    """As when a terminal is closed, or Ctrl-C takes `| tee` first: checkpoints are saved."""
    trap = f"trap 'touch {tmp_path}/saved; exit 0' TERM; echo ready"
    script = f"{trap}; while :; do {work}sleep 0.1; done; : {marker}"
    with laptop.started(written(tmp_path, laptop.job("one", script, replicas=1)), "--logs") as process:
        laptop.wait_for(process, "one-worker-0 | ready", "default/one Running")
        assert process.stdout is not None
        process.stdout.close()
        if not work:
            process.send_signal(signal.SIGINT)
        assert process.wait(laptop.PATIENCE) != 0
    assert (tmp_path / "saved").exists()
    assert laptop.none_left([marker])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--image", "typo:v1=true"), "error: --image typo:v1: no container has this image; there are any"),
        (("--set", "kind=Pod"), "error: --set kind=Pod: is no PATH=VALUE in metadata or spec"),
        (("--timeout", "soon"), "error: --timeout 'soon' is no time; write for example 90s, 10m or 1h30m"),
    ],
)
def test_what_would_change_nothing_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    assert refusal(written(tmp_path, laptop.job("one", "true")), *words).startswith(message)
