"""The control plane for real: processes, ports and files. Each test takes a few seconds."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from testbed import processes
from testbed.controlplane import ControlPlane
from testbed.errors import ControlPlaneError
from testbed.node_services import Hardware

pytestmark = pytest.mark.apiserver

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def name() -> Iterator[str]:
    unique = f"test-{uuid4().hex[:12]}"
    yield unique
    ControlPlane(unique).down()


@pytest.fixture(scope="module")
def shared() -> Iterator[ControlPlane]:
    """For tests that leave it as they found it."""
    with ControlPlane(f"test-{uuid4().hex[:12]}") as plane:
        yield plane


def command_lines_with(folder: Path) -> list[str]:
    """Found without the testbed's own means: every process that mentions the folder in its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in line:
                found.append(line.replace(b"\0", b" ").decode())
    return found


def assert_nothing_left(plane: ControlPlane) -> None:
    assert command_lines_with(plane.folder) == []
    assert processes.find(plane.folder) == []
    assert not plane.folder.exists()


def run_testbed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "testbed", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def kubectl(plane: ControlPlane, *arguments: str, user: str = "admin") -> subprocess.CompletedProcess[str]:
    command = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig_for(user)}", *arguments]
    # Its cache of what the server offers belongs into the instance's folder, not into the user's home.
    environment = os.environ | {"KUBECACHEDIR": str(plane.folder / "kubectl-cache")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def pid_of(plane: ControlPlane, component: str) -> int:
    return next(process.pid for process in processes.find(plane.folder) if process.component == component)


def test_two_side_by_side_do_not_see_each_other(shared: ControlPlane, name: str) -> None:
    with ControlPlane(name) as other:
        assert other.url != shared.url
        assert kubectl(other, "create", "namespace", "only-here").returncode == 0
        assert "only-here" in kubectl(other, "get", "namespaces", "-o", "name").stdout
        assert "only-here" not in kubectl(shared, "get", "namespaces", "-o", "name").stdout
        assert len(command_lines_with(other.folder)) == 3
    assert_nothing_left(other)
    assert all(status.healthy for status in shared.status())


def test_users_have_their_own_rights_and_names_in_the_audit_log(shared: ControlPlane) -> None:
    assert kubectl(shared, "get", "pods", user="fake-node").returncode == 0
    assert "Forbidden" in kubectl(shared, "get", "pods", user="paddle-operator").stderr
    events = [json.loads(line) for line in shared.audit_log.read_text().splitlines()]
    seen = {
        (event["user"]["username"], event["responseStatus"]["code"])
        for event in events
        if event["stage"] == "ResponseComplete" and event.get("objectRef", {}).get("resource") == "pods"
    }
    assert {("fake-node", 200), ("paddle-operator", 403)} <= seen
    assert {event["level"] for event in events} == {"Metadata"}
    with pytest.raises(ControlPlaneError, match="no user 'nobody'"):
        shared.kubeconfig_for("nobody")


def test_a_scheduler_that_comes_too_late_is_told(shared: ControlPlane) -> None:
    assert not ControlPlane(shared.name).up()
    with pytest.raises(ControlPlaneError, match=r"without kube-scheduler[\s\S]*down"):
        ControlPlane(shared.name, scheduler=True).up()


def test_a_real_node_that_comes_too_late_is_told_too(shared: ControlPlane) -> None:
    with pytest.raises(ControlPlaneError, match=r"without a real node[\s\S]*down"):
        ControlPlane(shared.name, node=Hardware()).up()
    assert all(status.healthy for status in shared.status()), "and nothing was ended for it"


def test_an_image_for_a_real_node_that_is_not_there_is_refused_before_it_is_built(
    shared: ControlPlane,
) -> None:
    refused = run_testbed("image", "tiny", "--name", shared.name)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"the testbed {shared.name!r} has no real node" in refused.stderr


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver"])
def test_a_component_that_is_away_comes_back_with_what_it_knew(shared: ControlPlane, component: str) -> None:
    kept = f"kept-{component}"
    assert kubectl(shared, "create", "namespace", kept).returncode == 0
    before = {status.component: status.pid for status in shared.status()}
    with shared.without(component):
        away = {status.component: status.pid for status in shared.status()}
        assert away == before | {component: None}, "and nobody else is"
        answer = kubectl(shared, "get", "namespace", kept, "--request-timeout=1s")
        assert answer.returncode == 1, answer
    after = {status.component: status.pid for status in shared.status()}
    assert {name for name in before if before[name] != after[name]} == {component}
    assert kubectl(shared, "get", "namespace", kept).returncode == 0


def test_a_component_is_started_again_also_if_something_fails_meanwhile(shared: ControlPlane) -> None:
    with pytest.raises(ZeroDivisionError), shared.without("kube-controller-manager"):
        raise ZeroDivisionError
    assert all(status.healthy for status in shared.status())
    with pytest.raises(ControlPlaneError, match="has no kube-scheduler"), shared.without("kube-scheduler"):
        pass


def test_secrets_are_private(shared: ControlPlane) -> None:
    assert stat.S_IMODE(shared.folder.stat().st_mode) == 0o700
    secret = [
        *shared.folder.rglob("*.key"),
        *shared.folder.glob("kubeconfigs/*"),
        shared.folder / "tokens.csv",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}


def test_the_default_service_account_is_there_so_pods_are_accepted(shared: ControlPlane) -> None:
    created = kubectl(shared, "run", "web", "--image=example.com/web", "--privileged")
    assert created.returncode == 0, created.stderr
    assert kubectl(shared, "delete", "pod", "web", "--now").returncode == 0


def test_the_command_line_from_up_to_down(name: str) -> None:
    plane = ControlPlane(name)
    assert run_testbed("status", "--name", name).returncode == 1
    assert "not up" in run_testbed("kubeconfig", "--name", name).stderr
    up = run_testbed("up", "--name", name, "--scheduler")
    assert up.returncode == 0, up.stderr
    again = run_testbed("up", "--name", name, "--scheduler")
    assert (again.returncode, "already up" in again.stdout) == (0, True)
    status = run_testbed("status", "--name", name)
    assert (status.returncode, status.stdout.count(" healthy\n")) == (0, 4)
    assert Path(run_testbed("kubeconfig", "--name", name).stdout.strip()) == plane.kubeconfig
    down = run_testbed("down", "--name", name)
    assert (down.returncode, "kube-scheduler" in down.stdout) == (0, True)
    assert_nothing_left(plane)
    nothing = run_testbed("down", "--name", name)
    assert (nothing.returncode, "nothing to remove" in nothing.stdout) == (0, True)


@pytest.mark.parametrize("moment", ["etcd", "kube-apiserver"])
def test_up_killed_half_way_leaves_nothing_after_down(name: str, moment: str) -> None:
    plane = ControlPlane(name)
    with subprocess.Popen(
        [sys.executable, "-m", "testbed", "up", "--name", name], cwd=REPOSITORY, stdout=subprocess.DEVNULL
    ) as up:
        wait_until(lambda: moment in {process.component for process in processes.find(plane.folder)})
        up.kill()
    assert command_lines_with(plane.folder) != []
    assert run_testbed("down", "--name", name).returncode == 0
    assert_nothing_left(plane)


def test_a_dead_component_is_noticed_repaired_by_up_and_removed_by_down(name: str) -> None:
    plane = ControlPlane(name)
    assert run_testbed("up", "--name", name).returncode == 0
    os.kill(pid_of(plane, "kube-apiserver"), signal.SIGKILL)
    wait_until(
        lambda: "kube-apiserver" not in {process.component for process in processes.find(plane.folder)}
    )
    status = run_testbed("status", "--name", name)
    assert (status.returncode, "not running" in status.stdout) == (1, True)
    assert plane.up()
    assert kubectl(plane, "get", "namespaces").returncode == 0
    os.kill(pid_of(plane, "etcd"), signal.SIGKILL)
    plane.down()
    assert_nothing_left(plane)


def test_a_component_that_fails_shows_its_log_and_nothing_keeps_running(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho no such flag >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    plane = ControlPlane(name)
    with pytest.raises(
        ControlPlaneError, match=rf"kube-apiserver.*ended[\s\S]*no such flag[\s\S]*down --name {name}"
    ):
        plane.up()
    assert command_lines_with(plane.folder) == []
    plane.down()
    assert_nothing_left(plane)


def test_processes_of_others_are_left_alone(name: str) -> None:
    """Somebody reads a log of the testbed: the folder is in the command line, but the process is not ours."""
    plane = ControlPlane(name)
    plane.folder.mkdir(parents=True)
    plane.folder.parent.chmod(0o700)
    log = plane.folder / "some.log"
    log.touch()
    with subprocess.Popen(["tail", "-f", log], stdout=subprocess.DEVNULL) as reader:
        plane.down()
        assert reader.poll() is None
        reader.terminate()
    assert_nothing_left(plane)


@pytest.mark.parametrize("bad", ["", "../up", "Upper", "-dash", "a" * 41])
def test_names_cannot_lead_out_of_the_folder(bad: str) -> None:
    with pytest.raises(ControlPlaneError, match="no name for a testbed"):
        ControlPlane(bad)
