"""The command line as people meet it: help, exit codes, data on stdout, words on stderr, no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import make
import pytest
import yaml
from cases import FILES, FOLDER, REFUSED, Case, job_in_yaml, job_with
from typer.testing import CliRunner, Result

import paddle_operator
from paddle_operator.api.documents import read_documents
from paddle_operator.cli import app

POD = "spec.worker.template.spec"


def run(*arguments: str, stdin: bytes | str | None = None, **environment: str) -> Result:
    wide = {"COLUMNS": "200", "TERM": "dumb", "KUBECONFIG": "", **environment}
    return CliRunner().invoke(app, arguments, input=stdin, env=wide)


def documents(result: Result) -> list[Any]:
    assert (result.exit_code, result.stderr) == (0, "")
    return list(yaml.safe_load_all(result.stdout))


def complaints(result: Result) -> list[str]:
    """The lines of a refusal: exit code 2, nothing on stdout, each line an error."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit)
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines)
    return lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(job_in_yaml(), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["manager", "render", "crd", "--version"]),
        (("--help",), ["manager", "render", "crd", "--version"]),
        (
            ("manager", "--help"),
            ["--kubeconfig", "--namespace", "--log-level", "--log-format", "kubectl apply -f -", "SIGTERM"],
        ),
        (("render", "--help"), ["YAML file", "--namespace", "-n", "standard input", "Needs no cluster"]),
        (("crd", "--help"), ["kubectl apply -f -"]),
    ],
)
def test_help_teaches(arguments: tuple[str, ...], words: list[str]) -> None:
    result = run(*arguments)
    assert [word for word in words if word not in result.output] == []


def test_no_arguments_show_the_help_and_are_an_error() -> None:
    assert run().exit_code == 2
    assert run("--help").exit_code == 0


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{paddle_operator.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [("paint",), ("render",), ("render", "--colour", "x"), ("crd", "extra")]
)
def test_a_wrong_command_line_is_explained(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr


def test_the_crd_is_printed() -> None:
    (crd,) = documents(run("crd"))
    assert crd["metadata"]["name"] == "paddlejobs.batch.paddlepaddle.org"


def test_a_job_is_rendered_as_its_pods_and_then_its_config_map(file: Path) -> None:
    names = [(made["kind"], made["metadata"]["name"]) for made in documents(run("render", str(file)))]
    assert names == [("Pod", "resnet-worker-0"), ("Pod", "resnet-worker-1"), ("ConfigMap", "resnet")]


def test_what_only_a_cluster_knows_stands_in_angle_brackets(file: Path) -> None:
    *pods, config_map = documents(run("render", str(file)))
    owners = [made["metadata"]["ownerReferences"][0]["uid"] for made in (*pods, config_map)]
    assert set(owners) == {"<uid of the job>"}
    assert (
        config_map["data"]["PADDLE_TRAINERS"] == "<address of resnet-worker-0>,<address of resnet-worker-1>"
    )


def test_a_file_is_read_from_stdin_when_it_is_called_dash() -> None:
    assert len(documents(run("render", "-", stdin=job_in_yaml()))) == 3


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read() -> None:
    text = job_in_yaml().replace("\n", "\r\n")
    assert len(documents(run("render", "-", stdin=b"\xef\xbb\xbf" + text.encode()))) == 3


def test_several_jobs_are_rendered_one_after_the_other() -> None:
    other = job_in_yaml(replicas="1").replace("name: resnet", "name: other")
    made = documents(run("render", "-", stdin=f"{job_in_yaml()}---\n{other}"))
    assert [one["kind"] for one in made] == ["Pod", "Pod", "ConfigMap", "Pod", "ConfigMap"]


@pytest.mark.parametrize("flag", ["--namespace", "-n"])
def test_the_namespace_is_for_jobs_that_name_none(flag: str) -> None:
    own = job_with("metadata.namespace", "own")
    namespaces = [
        {made["metadata"]["namespace"] for made in documents(run("render", flag, "team", "-", stdin=text))}
        for text in (job_in_yaml(), own)
    ]
    assert namespaces == [{"team"}, {"own"}]


def test_a_status_in_the_file_does_not_reach_the_pods() -> None:
    pod, *_ = documents(run("render", "-", stdin=job_with("status", {"attempt": 7})))
    assert pod["metadata"]["labels"]["paddlepaddle.org/attempt"] == "0"


def test_an_empty_restart_policy_becomes_never() -> None:
    pod, *_ = documents(run("render", "-", stdin=job_with(f"{POD}.restartPolicy", "")))
    assert pod["spec"]["restartPolicy"] == "Never"


WORDS = ["y", "No", "1e3", "0o17", "08", "1_000", "1:30", "2026-11-18", "=", "null", "", "<<", ".5", "飞桨",
         "a: b", "# a", "two\nlines\n", " a ", "\x07", "\N{PARTY POPPER}"]  # fmt: skip


def test_text_stays_text_for_every_reader_of_the_render() -> None:
    result = run("render", "-", stdin=job_with(f"{POD}.containers.0.args", WORDS))
    for read in (list(yaml.safe_load_all(result.stdout)), read_documents(result.stdout)):
        assert read[0]["spec"]["containers"][0]["args"] == WORDS


def test_a_script_is_rendered_as_people_write_it() -> None:
    script = "import os\nprint(os.environ)\n"
    result = run("render", "-", stdin=job_with(f"{POD}.containers.0.args", [script]))
    assert "    - |\n      import os\n      print(os.environ)\n" in result.stdout


def test_a_variable_of_the_user_that_is_not_used_is_a_warning() -> None:
    env = [{"name": "PADDLE_TRAINER_ID", "value": "7"}, {"name": "MINE", "value": "1"}]
    result = run("render", "-", stdin=job_with(f"{POD}.containers.0.env", env))
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: standard input: job resnet: PADDLE_TRAINER_ID: ")
    assert "MINE" not in result.stderr
    assert "value: '7'" not in result.stdout


@pytest.mark.parametrize("case", REFUSED[::5], ids=lambda case: case.title)
def test_a_bad_file_is_refused_with_file_line_field_and_remedy(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(case.text, encoding="utf-8")
    lines = complaints(run("render", str(file)))
    where = f"error: {file}: line {case.line}: " if case.line else f"error: {file}: "
    field = "" if case.field == "line" else f"{case.field}: "
    assert any(line.startswith(where) and field in line and case.remedy in line for line in lines), lines


def test_to_run_a_bad_file_says_what_to_render_it_says() -> None:
    files = [str(FOLDER / f"{case.title}.yaml") for case in FILES if case.title.startswith("roles/")]
    said = complaints(run("render", *files))
    assert complaints(run("run", *files)) == said
    assert len(said) >= 10


def test_what_is_not_served_yet_is_refused_by_field_and_job() -> None:
    text = json.dumps(make.manifest(heter=make.role(1), elastic=1))
    first, second = complaints(run("render", "-", stdin=text))
    assert first.startswith(
        "error: standard input: line 1: job resnet: spec.heter: heterogeneous training is not served"
    )
    assert second.startswith("error: standard input: line 1: job resnet: spec.elastic: ")


def test_a_thousand_mistakes_do_not_fill_the_screen() -> None:
    text = job_with(f"{POD}.containers.0.args", list(range(1000)))
    lines = complaints(run("render", "-", stdin=text))
    assert (len(lines), lines[-1]) == (21, "error: and 980 more")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (line,) = complaints(run("render", str(tmp_path / "none.yaml")))
    assert line.startswith(f"error: {tmp_path / 'none.yaml'}: cannot be read: No such file or directory; ")


def test_a_folder_without_yaml_is_named(tmp_path: Path) -> None:
    (line,) = complaints(run("render", str(tmp_path)))
    assert line == f"error: {tmp_path}: the folder has no file that ends in .json, .yaml, .yml"


@pytest.mark.parametrize("content", [b"\xff\xfea\0", b"name: caf\xe9\n"])
def test_a_file_that_is_not_utf8_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    for result in (run("render", str(file)), run("render", "-", stdin=content)):
        (line,) = complaints(result)
        assert "save the file as UTF-8" in line


KUBECONFIGS = {
    "empty": "",
    "a list": "[]",
    "not YAML": "a: b: c\n\t- d",
    "not text": b"\xff\xfe\x00",
    "no context": "apiVersion: v1\nkind: Config\n",
    "an unknown context": "current-context: a\ncontexts: []\n",
    "an unknown cluster": "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n",
}


@pytest.mark.parametrize("content", KUBECONFIGS.values(), ids=KUBECONFIGS)
def test_a_manager_with_a_broken_kubeconfig_says_so_in_one_line(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for result in (run("manager", "--kubeconfig", str(file)), run("manager", KUBECONFIG=str(file))):
        (line,) = complaints(result)
        assert str(file) in line


def test_a_manager_with_a_missing_kubeconfig_says_how_to_name_one(tmp_path: Path) -> None:
    (line,) = complaints(run("manager", "--kubeconfig", str(tmp_path / "none")))
    assert line == (
        f"error: {tmp_path / 'none'}: no such file; name a kubeconfig with --kubeconfig or $KUBECONFIG"
    )


def test_a_manager_with_a_folder_for_a_kubeconfig_says_so(tmp_path: Path) -> None:
    (line,) = complaints(run("manager", "--kubeconfig", str(tmp_path)))
    assert "Is a directory" in line


@pytest.mark.parametrize("option", ["--log-level", "--log-format"])
def test_a_wrong_word_for_an_option_lists_the_right_ones(option: str) -> None:
    result = run("manager", option, "loud")
    assert result.exit_code == 2
    assert "'loud' is not one of" in result.stderr


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "paddle_operator", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def test_a_reader_that_goes_away_sees_no_traceback() -> None:
    with start("crd") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""


def test_text_beyond_ascii_is_printed_on_a_terminal_that_claims_ascii(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(job_in_yaml(value="飞桨"), encoding="utf-8")
    with start("render", str(file), PYTHONIOENCODING="ascii", PYTHONUTF8="0") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert "飞桨" in out.decode()


def test_rendering_does_not_pay_for_the_way_to_a_server(file: Path) -> None:
    program = (
        "import sys; from paddle_operator.cli import app; app(standalone_mode=False); print(*sys.modules)"
    )
    command = [sys.executable, "-c", program, "render", str(file)]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert "aiohttp" not in modules.split()


def test_the_manager_does_not_pay_for_what_colours_tracebacks() -> None:
    program = (
        "import sys; from paddle_operator.log import import_without_rich; import_without_rich(); "
        "import paddle_operator.cli, paddle_operator.manager; print(*sys.modules)"
    )
    command = [sys.executable, "-c", program]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "structlog" in modules
    assert not {"rich", "pygments"} & {*modules}
