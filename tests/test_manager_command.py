"""The options of the manager: words, variables, the spellings of Go, and what is said of bad ones."""

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from paddle_operator import manager as process
from paddle_operator import manager_command
from paddle_operator.api.meta import Key
from paddle_operator.api.rights import LEASE_NAME
from paddle_operator.cli import app, manager_main
from paddle_operator.manager import Options
from paddle_operator.manager_command import from_go
from paddle_operator.paddlejob.observed import Settings
from paddle_operator.runtime.lease import LeaseTiming
from paddle_operator.serve.endpoints import Address, CannotListen

KUBECONFIG = """
current-context: one
contexts: [{name: one, context: {cluster: one, user: one, namespace: ours}}]
clusters: [{name: one, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: one, user: {token: t}}]
"""
BY_DEFAULT = Options(metrics_address=Address("", 8080), health_address=Address("", 8081))


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    return file


@pytest.fixture(autouse=True)
def no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would go to a stream that is closed after the test, in all that follow."""
    monkeypatch.setattr(manager_command, "configure", lambda *_: None)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options with which a manager would run."""
    found = []

    async def note(_: object, options: Options) -> None:
        found.append(options)

    monkeypatch.setattr(process, "run_manager", note)
    return found


def run(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(app, ["manager", *words], env={"COLUMNS": "200", "TERM": "dumb", **variables})


def test_by_default_it_follows_all_namespaces_and_does_not_ask_who_leads(
    kubeconfig: Path, started: list[Options]
) -> None:
    assert run("--kubeconfig", str(kubeconfig)).exit_code == 0
    assert started == [BY_DEFAULT]


def test_garbage_is_collected_again_once_all_is_loaded(kubeconfig: Path, started: list[Options]) -> None:
    assert run("--kubeconfig", str(kubeconfig)).exit_code == 0
    assert started
    assert gc.isenabled()


def test_each_option_has_its_effect(kubeconfig: Path, started: list[Options]) -> None:
    words = (
        "--kubeconfig", str(kubeconfig), "--namespace=a, b,a", "--workers=3", "--initImage=alpine:3",
        "--scheduling=volcano", "--etcd-server=etcd:2379", "--leader-elect", "--lease-duration=1m",
        "--lease-renew-deadline=30s", "--lease-retry-period=3s", "--lease-name=l", "--lease-namespace=n",
        "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:1", "--log-format=json",
    )  # fmt: skip
    with capture_logs() as log:
        result = run(*words)
    assert result.exit_code == 0
    (options,) = started
    election = options.election
    assert election is not None
    assert replace(options, election=None) == Options(
        ("a", "b"), Settings("alpine:3", "volcano"), 3, None, None, Address("127.0.0.1", 1)
    )
    assert (election.lease, election.timing) == (Key("n", "l"), LeaseTiming(60, 30, 3))
    assert [line["log_level"] for line in log] == ["warning", "warning"]
    assert "gang scheduling is not served yet" in log[0]["event"]
    assert "elastic training is not served yet" in log[1]["event"]


def test_each_option_may_be_a_variable(kubeconfig: Path, started: list[Options]) -> None:
    variables = {
        "NAMESPACE": "a",
        "WORKERS": "3",
        "LEADER_ELECT": "true",
        "INIT_IMAGE": "i",
        "METRICS_BIND_ADDRESS": "0",
    }
    result = run(
        KUBECONFIG=str(kubeconfig), **{f"PADDLE_OPERATOR_{name}": value for name, value in variables.items()}
    )
    assert result.exit_code == 0
    (options,) = started
    assert (options.namespaces, options.workers, options.settings.init_image) == (("a",), 3, "i")
    assert options.metrics_address is None
    assert options.election is not None
    assert options.election.lease == Key("ours", LEASE_NAME)


def test_no_two_managers_have_the_same_identity(kubeconfig: Path, started: list[Options]) -> None:
    for _ in range(2):
        run("--kubeconfig", str(kubeconfig), "--leader-elect")
    first, second = (options.election for options in started)
    assert first is not None
    assert second is not None
    assert first.identity != second.identity


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--namespace=Team", "--namespace: 'Team' is no name of a namespace"),
        ("--namespace=a,b_c", "--namespace: 'b_c' is no name"),
        ("--namespace=,", "--namespace: ',' names none; leave it out"),
        ("--scheduling=yarn", "--scheduling: 'yarn' is not known; volcano is"),
        ("--metrics-bind-address=8080", "--metrics-bind-address: '8080' is no address; write :8080"),
        ("--health-probe-bind-address=x:y", "--health-probe-bind-address: 'x:y' is no address"),
        ("--lease-duration=soon", "--lease-duration 'soon' is no time; write for example 90s"),
        ("--lease-duration=4s", "--lease-duration (4s) has to be longer than --lease-renew-deadline (5s)"),
        ("--lease-retry-period=5s", "longer than --lease-retry-period (5s)"),
        ("--lease-retry-period=0s", "longer than --lease-retry-period (0s)"),
    ],
)
def test_bad_options_are_refused_by_name(words: str, complaint: str, started: list[Options]) -> None:
    result = run(words)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert not started


def test_an_address_that_is_taken_is_named_with_the_remedy(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise CannotListen(":8080: address already in use")

    monkeypatch.setattr(process, "run_manager", refuse)
    result = run("--kubeconfig", str(kubeconfig))
    assert result.exit_code == 2
    assert "cannot listen on :8080: address already in use; choose another" in result.stderr


@pytest.mark.parametrize(
    ("go", "ours"),
    [
        ("--leader-elect", "--leader-elect"),
        ("-leader-elect", "--leader-elect"),
        ("--leader-elect=true", "--leader-elect"),
        ("-leader-elect=false", "--no-leader-elect"),
        ("--namespace=x", "--namespace=x"),
        ("-namespace=x", "--namespace=x"),
        ("-namespace", "--namespace"),
        ("--initImage=a=b", "--initImage=a=b"),
        ("x", "x"),
        ("--", "--"),
        ("-", "-"),
    ],
)
def test_the_spellings_of_go(go: str, ours: str) -> None:
    assert from_go([go]) == [ours]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-namespace=x", "--leader-elect=true"], ["manager", "--namespace=x", "--leader-elect"]),
        (["--version"], ["--version"]),
        (["--zap-devel", "-zap-log-level=debug", "--namespace=x"], ["manager", "--namespace=x"]),
        (["--zap-log-level", "debug", "--zap-devel", "--namespace", "x"], ["manager", "--namespace", "x"]),
        ([], ["manager"]),
    ],
)
def test_the_program_of_the_image_is_the_one_command(
    words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr("sys.argv", ["/manager", *words])
    monkeypatch.setattr("paddle_operator.cli.main", lambda: given.append(True))
    manager_main()
    assert sys.argv[1:] == expected
    assert given
