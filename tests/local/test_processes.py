"""Several processes a container: each has a log of its own, and nothing else that a launcher writes is kept.

The launcher is played by a shell.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from local.bench import Laptop, is_missing, powered, remade, until

from paddle_operator.api.resources import Target
from paddle_operator.local.process import can_isolate


@pytest.fixture
async def laptop(tmp_path: Path) -> AsyncIterator[Laptop]:
    async with powered(Laptop(tmp_path)) as laptop:
        yield laptop


LAUNCHER = (
    "cd $PADDLE_LOG_DIR; echo secret > envlog.0; for k in 0 1; do echo $0 says $k >> workerlog.$k; done"
)


def process_logs_of(laptop: Laptop, pod: Target) -> dict[str, str]:
    folder = laptop.folder / "logs" / pod.key.namespace / pod.key.name
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != "paddle.log"}


async def test_a_volume_that_hides_our_folders_hides_no_logs(tmp_path: Path) -> None:
    """As one at /tmp does; and other volumes, whose folders are there too, are mounted all the same."""
    probe = tmp_path / "probe"
    probe.mkdir()
    if not await can_isolate(probe):
        pytest.skip("this kernel gives us no namespaces")
    async with powered(Laptop(tmp_path, isolates=True)) as laptop:
        mounts = [
            {"name": "over", "mountPath": str(tmp_path)},
            {"name": "other", "mountPath": "/zzz-no-such-folder"},
        ]
        script = f"cd / && ls {tmp_path} && echo hello > /zzz-no-such-folder/file && {LAUNCHER}"
        container = {
            **laptop.container(script, volumeMounts=mounts),
            "workingDir": "/",
        }
        volumes = [{"name": one["name"], "emptyDir": {}} for one in mounts]
        pod = await laptop.create(container, volumes=volumes)
        await laptop.until_phase(pod, "Succeeded")
        assert process_logs_of(laptop, pod) == {
            f"paddle.workerlog.{k}": f"{laptop.marker} says {k}\n" for k in range(2)
        }
        assert laptop.log(pod).split() == ["logs", "pods"], "what we have there, and nothing else"


@pytest.mark.parametrize("env", [[], [{"name": "PADDLE_LOG_DIR", "value": "/tmp/shared"}]])
async def test_processes_of_pods_with_one_log_dir_have_logs_of_their_own(
    laptop: Laptop, env: list[dict[str, str]]
) -> None:
    """Also if the command or the template names one: the variable goes before the option."""
    pods = []
    for rank in range(2):
        command = ["sh", "-c", LAUNCHER, f"pod-{rank}", "--log_dir=shared"]
        container = {"name": "paddle", "image": "any", "command": command, "env": env}
        pods.append(await laptop.create(container, name=f"mnist-worker-{rank}"))
    for rank, pod in enumerate(pods):
        await laptop.until_phase(pod, "Succeeded")
        await laptop.memory.delete(pod)
        await until(partial(is_missing, laptop.folder / "pods" / pod.uid))
        assert process_logs_of(laptop, pod) == {
            f"paddle.workerlog.{k}": f"pod-{rank} says {k}\n" for k in range(2)
        }


async def test_logs_of_processes_go_on_in_the_next_try(laptop: Laptop) -> None:
    for attempt in range(2):
        pod = await remade(laptop, LAUNCHER, attempt)
        await laptop.until_phase(pod, "Succeeded")
        await laptop.memory.delete(pod)
        await laptop.until_gone(pod)
    said = [f"{laptop.marker} says {k}\n" for k in range(2)]
    assert process_logs_of(laptop, pod) == {
        f"paddle.workerlog.{k}": f"{text}[try 1 begins]\n{text}" for k, text in enumerate(said)
    }


async def test_a_script_without_a_launcher_has_one_log(laptop: Laptop) -> None:
    pod = await laptop.run("echo hello")
    await laptop.until_phase(pod, "Succeeded")
    assert process_logs_of(laptop, pod) == {}
