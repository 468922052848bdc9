"""The examples, and the YAML of the original operator, train with real Paddle under `paddle-operator run`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import laptop
import pytest
import yaml

pytestmark = pytest.mark.paddle

TOP = Path(__file__).parents[2]
SINGLE, COLLECTIVE, CHECKPOINT, RECIPE, REPORT = (
    TOP / "examples" / name
    for name in ("01-single", "02-collective", "03-checkpoint", "06-recipe", "07-report")
)
SEED = TOP / "deploy" / "examples" / "resnet.yaml"
SECONDS = 180.0
"""A run takes 2 to 20; when two cores have more to do it may take longer, and a hanging one must end."""
ENOUGH = "50"
"""Steps after which the residual network has clearly learned: its loss is a quarter of the first."""


class Result(NamedTuple):
    """What the last line of a script says."""

    step: int
    loss: float
    parameters: str
    """A fingerprint of them all."""


@dataclass(frozen=True)
class Worker:
    """One that has ended, and what its lines say."""

    log: str

    @property
    def losses(self) -> list[float]:
        return [float(loss) for loss in re.findall(r"^step=\d+ loss=(\S+)$", self.log, re.MULTILINE)]

    @property
    def starts(self) -> list[int]:
        """After which steps it began; the launcher repeats the log of a trainer that failed."""
        steps = re.findall(r"begins after step (\d+)$", self.log, re.MULTILINE)
        return sorted(set(map(int, steps)))

    @property
    def done(self) -> Result:
        pattern = r"^done step=(\d+) loss=(\S+) parameters=([0-9a-f]{16})$"
        match = re.search(pattern, self.log, re.MULTILINE)
        assert match, self.log
        return Result(int(match[1]), float(match[2]), match[3])


def alone(example: Path, script: str, **variables: str) -> Worker:
    """By hand: `python train_single.py`."""
    done = subprocess.run(
        [sys.executable, script],
        cwd=example,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    return Worker(done.stdout)


def train(file: Path, folder: Path, *words: str, **variables: str) -> list[Worker]:
    """The job, to Completed; claims stay in the folder."""
    kept = folder / f"kept-{time.monotonic_ns()}"
    options = ["--keep", str(kept), "--volumes", str(folder / "volumes"), *words]
    ran = laptop.run(file, *options, limit=SECONDS, **variables)
    assert ran.code == 0, ran
    return workers(kept)


def workers(kept: Path) -> list[Worker]:
    logs = sorted(kept.glob("logs/default/*/paddle.log"))
    assert logs
    return [Worker(log.read_text()) for log in logs]


def restarts_of(kept: Path) -> tuple[str, int, int, int]:
    """How the one job of a run ended: phase, restarts, failures, disruptions."""
    documents = yaml.safe_load_all((kept / "objects.yaml").read_text())
    (status,) = (one["status"] for one in documents if one["kind"] == "PaddleJob")
    counts = (status.get(name, 0) for name in ("restarts", "failures", "disruptions"))
    return status["phase"], *counts


def until_saved(volumes: Path, process: subprocess.Popen[str]) -> None:
    """Training is under way, and there is a checkpoint."""
    while not (volumes / "default" / "checkpoints" / "latest.pdparams").exists():
        assert process.poll() is None
        time.sleep(0.005)


def result_of(ended: list[Worker]) -> Result:
    """All have the same parameters, to the last bit."""
    results = {worker.done for worker in ended}
    assert len(results) == 1, results
    return results.pop()


def lesson_of(ended: list[Worker]) -> Result:
    """And the loss has fallen."""
    first, *_, last = ended[0].losses
    assert last < first / 2, ended[0].losses
    return result_of(ended)


def test_one_worker_learns_and_every_run_is_the_same(tmp_path: Path) -> None:
    expected = alone(SINGLE, "train_single.py").done
    for intranet in ("PodIP", "Service", "Host"):
        ended = train(SINGLE / "job.yaml", tmp_path, "--set", f"spec.intranet={intranet}")
        assert lesson_of(ended) == expected, intranet


@pytest.fixture(scope="module")
def loss_of_one_process() -> float:
    return alone(COLLECTIVE, "train_fleet.py", STEPS=ENOUGH).done.loss


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What one process makes of the example with checkpoints when nothing happens to it."""
    return alone(CHECKPOINT, "train_checkpoint.py", CHECKPOINTS=str(tmp_path_factory.mktemp("alone"))).done


class TestCollective:
    @pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
    def test_two_workers_learn_what_one_process_learns(
        self, tmp_path: Path, loss_of_one_process: float, intranet: str
    ) -> None:
        """In every network: on the host's, where they share an address, each could be training alone."""
        ended = train(COLLECTIVE / "job.yaml", tmp_path, "--set", f"spec.intranet={intranet}", STEPS=ENOUGH)
        assert lesson_of(ended).loss == pytest.approx(loss_of_one_process, abs=1e-4)
        assert all("of 2 begins" in worker.log for worker in ended)
        # Another group of workers may miss each other, on CPUs.
        assert not any("comm group" in worker.log for worker in ended)

    def test_two_jobs_share_the_host_network(self, tmp_path: Path) -> None:
        words = ("--set", "spec.intranet=Host", "--keep")
        with (
            laptop.started(COLLECTIVE / "job.yaml", *words, tmp_path / "a", STEPS="10") as one,
            laptop.started(COLLECTIVE / "job.yaml", *words, tmp_path / "b", STEPS="10") as other,
        ):
            for process in (one, other):
                out, _ = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, out
        assert result_of(workers(tmp_path / "a")) == result_of(workers(tmp_path / "b"))

    def test_also_with_the_newest_paddle(
        self, tmp_path: Path, newest_paddle: Path, loss_of_one_process: float
    ) -> None:
        python = f"spec.worker.template.spec.containers[0].command[0]={newest_paddle}"
        result = lesson_of(train(COLLECTIVE / "job.yaml", tmp_path, "--set", python, STEPS=ENOUGH))
        assert result.loss == pytest.approx(loss_of_one_process, abs=1e-4)

    def test_three_workers_meet_too(self, tmp_path: Path) -> None:
        ended = train(COLLECTIVE / "job.yaml", tmp_path, "--set", "spec.worker.replicas=3", STEPS="10")
        assert len(ended) == 3
        assert result_of(ended).step == 10

    def test_the_yaml_of_the_original_operator_runs_as_it_is(self, tmp_path: Path) -> None:
        ended = train(SEED, tmp_path, STEPS="10")
        assert len(ended) == 2
        assert result_of(ended).step == 10


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_a_recipe_that_deletes_all_of_paddles_variables_learns_what_one_process_learns(
    tmp_path: Path, intranet: str
) -> None:
    ended = train(RECIPE / "job.yaml", tmp_path, "--set", f"spec.intranet={intranet}")
    assert len(ended) == 2
    assert all("of 2 begins" in worker.log for worker in ended)
    expected = alone(RECIPE, "train_recipe.py").done.loss
    assert lesson_of(ended).loss == pytest.approx(expected, abs=1e-4)


class TestCheckpoint:
    def test_two_runs_at_once_both_end_with_the_bits_of_one_process(
        self, tmp_path: Path, undisturbed: Result
    ) -> None:
        file, folders = CHECKPOINT / "job.yaml", [tmp_path / "a", tmp_path / "b"]
        words = [("--keep", folder / "kept", "--volumes", folder / "volumes") for folder in folders]
        with laptop.started(file, *words[0]) as one, laptop.started(file, *words[1]) as other:
            for process in (one, other):
                out, _ = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, out
        assert [lesson_of(workers(folder / "kept")) for folder in folders] == [undisturbed] * 2
        again = train(file, folders[0])
        assert [worker.starts for worker in again] == [[200], [200]], "nothing is left to do"
        assert result_of(again) == undisturbed

    @pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
    def test_after_a_crash_all_are_made_anew_and_resume(
        self, tmp_path: Path, undisturbed: Result, intranet: str
    ) -> None:
        """In every network: on the host's the same ports are taken again at once."""
        ended = train(CHECKPOINT / "job.yaml", tmp_path, "--set", f"spec.intranet={intranet}", CRASH_AT="50")
        assert [worker.starts for worker in ended] == [[0, 40], [0, 40]]
        assert result_of(ended) == undisturbed
        (kept,) = tmp_path.glob("kept-*")
        assert restarts_of(kept) == ("Completed", 1, 1, 0)

    def test_a_crash_can_restart_all_in_place_too(self, tmp_path: Path, undisturbed: Result) -> None:
        in_place = "spec.worker.template.spec.restartPolicy=OnFailure"
        ended = train(CHECKPOINT / "job.yaml", tmp_path, "--set", in_place, CRASH_AT="50")
        assert [worker.starts for worker in ended] == [[0, 40], [0, 40]]
        assert result_of(ended) == undisturbed
        (kept,) = tmp_path.glob("kept-*")
        assert restarts_of(kept)[:2] == ("Completed", 0)

    @pytest.mark.parametrize("rank", ["0", "1"])
    def test_after_a_kill_of_a_trainer_all_are_made_anew_and_resume(
        self, tmp_path: Path, undisturbed: Result, rank: str
    ) -> None:
        volumes, kept, marker = tmp_path / "volumes", tmp_path / "kept", f"marker-{uuid.uuid4().hex}"
        words = ("--volumes", volumes, "--keep", kept)
        with laptop.started(CHECKPOINT / "job.yaml", *words, MARKER=marker) as process:
            until_saved(volumes, process)
            (trainer,) = (
                pid
                for pid in trainers(marker)
                if b"PADDLE_TRAINER_ID=" + rank.encode() in environment_of(pid)
            )
            os.kill(trainer, signal.SIGKILL)
            out, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, out
        worker = rf"worker {rank} \(pod checkpoint-worker-{rank} on node localhost\), process 0"
        assert re.search(rf"{worker}( \(global rank {rank}\))? was killed \(SIGKILL\)", out), out
        assert restarts_of(kept) == ("Completed", 1, 1, 0)
        ended = workers(kept)
        assert all(0 < worker.starts[-1] < 200 for worker in ended), [worker.starts for worker in ended]
        assert result_of(ended) == undisturbed

    def test_after_a_kill_of_the_operator_the_next_run_resumes(
        self, tmp_path: Path, undisturbed: Result
    ) -> None:
        marker = f"marker-{uuid.uuid4().hex}"
        with laptop.started(
            CHECKPOINT / "job.yaml", "--volumes", tmp_path / "volumes", MARKER=marker
        ) as process:
            until_saved(tmp_path / "volumes", process)
            process.kill()
            process.communicate(timeout=SECONDS)
            assert laptop.none_left([marker])
            resumed = train(CHECKPOINT / "job.yaml", tmp_path)
            assert all(0 < start < 200 for worker in resumed for start in worker.starts)
            assert result_of(resumed) == undisturbed


class TestReport:
    def test_workers_say_that_they_trained_together(self, tmp_path: Path) -> None:
        assert lesson_of(train(REPORT / "job.yaml", tmp_path)).step == 60
        (kept,) = tmp_path.glob("kept-*")
        pods = (
            one for one in yaml.safe_load_all((kept / "objects.yaml").read_text()) if one["kind"] == "Pod"
        )
        ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
        processes = [process for end in ends for process in json.loads(end["message"])["processes"]]
        assert sorted((one["rank"], one["world"], one["step"]) for one in processes) == [
            (0, 2, 60),
            (1, 2, 60),
        ]

    @pytest.mark.parametrize("script", ["train_report.py", "../01-single/train_single.py"])
    def test_who_would_train_alone_fails_whether_the_script_says_so_or_only_its_launcher(
        self, script: str
    ) -> None:
        """The variables are taken away as recipes do it; then a launcher finds no peers."""
        unset = "unset PADDLE_TRAINER_ENDPOINTS PADDLE_MASTER PADDLE_NNODES"
        command = json.dumps(["sh", "-c", f"{unset}; python -m paddle.distributed.launch {script}"])
        setting = f"spec.worker.template.spec.containers[0].command={command}"
        ran = laptop.run(REPORT / "job.yaml", "--set", setting, limit=SECONDS)
        assert ran.code == 1
        assert "the workers did not train together" in ran.out
        assert "paddlepaddle.org/independent-ranks" in ran.out
        annotation = 'metadata.annotations={"paddlepaddle.org/independent-ranks":"true"}'
        if "single" in script:
            ran = laptop.run(REPORT / "job.yaml", "--set", setting, "--set", annotation, limit=SECONDS)
            assert ran.code == 0, ran


@pytest.mark.parametrize(
    ("of_the_launcher", "code"), [(True, "137"), (False, "(247|250)")], ids=["launcher", "trainer"]
)
def test_a_kill_of_one_process_fails_the_job_and_ends_all_others(
    tmp_path: Path, of_the_launcher: bool, code: str
) -> None:
    marker = f"marker-{uuid.uuid4().hex}"
    with laptop.started(COLLECTIVE / "job.yaml", STEPS="100000", MARKER=marker) as process:
        laptop.wait_for(process, "default/collective step ")
        victim = next(pid for pid in processes_of(marker) if is_launcher(pid) == of_the_launcher)
        os.kill(victim, signal.SIGKILL)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 1, out
        assert re.search(f"exit code {code}", out), out
        assert laptop.none_left([marker])


def processes_of(marker: str) -> list[int]:
    """Launchers and trainers."""
    return [pid for pid in laptop.processes(marker) if b"train_" in command_of(pid)]


def trainers(marker: str) -> list[int]:
    return [pid for pid in processes_of(marker) if not is_launcher(pid)]


def is_launcher(pid: int) -> bool:
    return b"paddle.distributed.launch" in command_of(pid)


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()
