"""From the user's files to what is run."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make
import pytest
import yaml

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.schema_check import Problem
from paddle_operator.run.request import (
    DROPPED,
    Refused,
    Request,
    Source,
    dropped_variables_in,
    load,
    read_sources,
    refuse_where,
)

HERE = Path("/here")


def source(*documents: Manifest, name: str = "job.yaml") -> Source:
    return Source(name, yaml.safe_dump_all(documents), HERE)


def loaded(*sources: Source, **options: Any) -> Request:
    return load(list(sources), options.pop("namespace", "default"), **options)


def supply(kind: str, name: str = "it", **fields: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def refused(do: Callable[[], Any]) -> list[str]:
    with pytest.raises(Refused) as caught:
        do()
    return list(caught.value.lines)


# Reading.


def test_a_file_runs_in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "job.yaml").write_text("kind: gräben")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.yaml").symlink_to("deep/job.yaml")
    assert read_sources(["deep/job.yaml"]) == [Source("deep/job.yaml", "kind: gräben", tmp_path / "deep")]
    assert read_sources(["link.yaml"])[0].folder == tmp_path / "deep"


def test_a_folder_is_all_its_yaml_and_json_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "README.md", "script.py", ".yaml"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.yaml").mkdir()
    found = read_sources([str(tmp_path)])
    assert [one.text for one in found] == ["a.yml", "b.yaml", "c.json"]
    assert {one.folder for one in found} == {tmp_path}


def test_a_dash_is_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: x")))
    assert read_sources(["-"]) == [Source("standard input", "kind: x", tmp_path)]


def test_several_names_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("1")
    (tmp_path / "a").write_text("2")
    assert [one.text for one in read_sources([str(tmp_path / "b"), str(tmp_path / "a")])] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.yaml", "cannot be read: No such file or directory; name a YAML file, a folder of them, or -"),
        ("empty", "the folder has no file that ends in .json, .yaml, .yml"),
        ("latin.yaml", "byte 3 is not UTF-8 text; save the file as UTF-8"),
        ("latin.yaml/deep", "cannot be read: Not a directory"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes("grün".encode("latin-1"))
    (line,) = refused(lambda: read_sources([str(tmp_path / name)]))
    assert line.startswith(f"{tmp_path / name}: {words}")


# Understanding.


def test_what_a_file_holds_is_sorted_by_kind() -> None:
    found = loaded(
        source(
            make.manifest("one"),
            supply("ConfigMap", "map", data={"a": "1"}),
            supply("Secret", "secret", stringData={"a": "1"}),
            supply("PersistentVolumeClaim", "claim", spec={}),
            supply("Service", "front", spec={}),
            make.manifest("two"),
        )
    )
    assert [job.metadata.name for _, job in found.jobs] == ["one", "two"]
    assert [*found.config_maps] == [Key("default", "map")]
    assert [*found.secrets] == [Key("default", "secret")]
    assert found.passed_over == ("Service front is passed over: it has no meaning without a cluster",)


@pytest.mark.parametrize(
    ("written", "namespace"), [({}, "team"), ({"namespace": "other"}, "other"), ({"namespace": None}, "team")]
)
def test_a_namespace_that_is_not_written_is_the_one_of_the_command(written: Manifest, namespace: str) -> None:
    map_ = supply("ConfigMap", "map")
    map_["metadata"] |= written
    job = make.manifest("one")
    job["metadata"] |= written
    found = loaded(source(job, map_), namespace="team")
    assert found.jobs[0][1].metadata.namespace == namespace
    assert found.config_maps[Key(namespace, "map")]["metadata"]["namespace"] == namespace


def test_each_job_knows_its_file() -> None:
    first, second = source(make.manifest("one"), name="a"), source(make.manifest("two"), name="b")
    assert [(one.name, job.metadata.name) for one, job in loaded(first, second).jobs] == [
        ("a", "one"),
        ("b", "two"),
    ]


def test_a_change_is_made_before_the_check() -> None:
    def edit(document: Manifest) -> Manifest:
        return {**document, "spec": {"worker": {**document["spec"]["worker"], "replicas": 5}}}

    bad = make.manifest("one", workers=-1)
    assert loaded(source(bad), edit=edit).jobs[0][1].spec.worker.replicas == 5


def test_a_config_map_may_stand_in_a_file_of_its_own() -> None:
    found = loaded(source(supply("ConfigMap", "map"), name="a"), source(make.manifest("one"), name="b"))
    assert [*found.config_maps] == [Key("default", "map")]


# Refusing.


def test_all_files_are_looked_at_before_anything_is_refused() -> None:
    bad = make.manifest("one", workers=-1)
    lines = refused(
        lambda: loaded(
            source(bad, name="a"), source(make.manifest("one", workers=0), name="b"), source(bad, name="c")
        )
    )
    assert [line.split(":")[0] for line in lines] == ["a", "b", "c"]


SAME = "job one: a has one of that name; rename one"


@pytest.mark.parametrize(
    ("sources", "lines"),
    [
        ([source(make.manifest("one"), make.manifest("one"), name="a")], [f"a: {SAME}"]),
        ([source(make.manifest("one"), make.manifest("one", workers=3), name="a")], [f"a: {SAME}"]),
        ([source(make.manifest("one"), name="a"), source(make.manifest("one"), name="b")], [f"b: {SAME}"]),
        ([source(make.manifest("one"), name="a"), source(make.manifest("one"), name="a")], [f"a: {SAME}"]),
    ],
)
def test_two_jobs_of_one_name(sources: list[Source], lines: list[str]) -> None:
    assert refused(lambda: loaded(*sources)) == lines


def test_one_name_in_two_namespaces_is_two_jobs() -> None:
    other = make.manifest("one")
    other["metadata"]["namespace"] = "other"
    assert len(loaded(source(make.manifest("one"), other)).jobs) == 2


NO_BASE64 = "is no base64; encode it, or write it as it is under"


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (supply("ConfigMap", data={"a": 1}), "ConfigMap: data.a: must be text, not 1; write it in quotes"),
        (supply("ConfigMap", data=["a"]), "ConfigMap: data: must be an object, not a list"),
        (supply("ConfigMap", dat={}), "ConfigMap: dat: no such field; did you mean data?"),
        (supply("Secret", stringData={"a": []}), "Secret: stringData.a: must be text, not a list"),
        (supply("Secret", data={"a": "plain text"}), f"Secret: data.a: {NO_BASE64} stringData"),
        (supply("Secret", data={"a": "YWJ"}), f"Secret: data.a: {NO_BASE64} stringData"),
        (supply("ConfigMap", binaryData={"a": "ä"}), f"ConfigMap: binaryData.a: {NO_BASE64} data"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "ConfigMap: metadata: is required; add it"),
        (supply("Secret", metadata={}), "Secret: metadata.name: is required; add it"),
    ],
)  # fmt: skip
def test_a_bad_config_map_or_secret(document: Manifest, line: str) -> None:
    assert refused(lambda: loaded(source(make.manifest(), document))) == [f"job.yaml: {line}"]


@pytest.mark.parametrize(
    "document",
    [
        supply("ConfigMap"),
        supply("ConfigMap", data=None, immutable=True),
        supply("ConfigMap", data={"a": "not base64!"}, binaryData={"b": "YWJj"}),
        supply("Secret", type="Opaque", data={"a": "YWJj\nZGVm\n"}, stringData={"b": "!"}),
        supply("Secret", data={"a": ""}),
    ],
)
def test_a_good_config_map_or_secret(document: Manifest) -> None:
    found = loaded(source(make.manifest(), document))
    assert len(found.config_maps) + len(found.secrets) == 1


def test_what_is_found_wrong_later_names_file_and_job() -> None:
    request = loaded(source(make.manifest("one"), make.manifest("two"), name="a"))
    problem = Problem("spec.x", "is wrong; mend it")
    lines = refused(
        lambda: refuse_where(request, lambda job: [problem] if job.metadata.name == "two" else [])
    )
    assert lines == ["a: line 18: job two: spec.x: is wrong; mend it"]
    refuse_where(request, lambda _: [])


def test_variables_that_are_the_operators_own_are_said() -> None:
    env = [{"name": "PADDLE_TRAINER_ID", "value": "7"}, {"name": "MINE", "value": "1"}]
    mine = make.manifest("one", pod=make.template(make.container(env=env)))
    request = loaded(source(mine, make.manifest("two"), name="a"))
    assert dropped_variables_in(request) == [f"a: job one: PADDLE_TRAINER_ID: {DROPPED}"]
