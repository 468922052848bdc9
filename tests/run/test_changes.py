"""`--set PATH=VALUE`."""

from copy import deepcopy
from typing import Any

import make
import pytest

from paddle_operator.api.documents import BadDocument
from paddle_operator.run.changes import Setting

CONTAINERS = "spec.worker.template.spec.containers"


def document() -> dict[str, Any]:
    return {
        "metadata": {"name": "mnist", "annotations": {"a.b/c": "old"}},
        "spec": {"worker": {"replicas": 2}, "list": [{"name": "one"}, {"name": "two"}], "words": ["a", "b"]},
    }


def changed(*written: str) -> dict[str, Any]:
    result = document()
    for one in written:
        result = Setting.of(one).apply(result)
    return result


def at(tree: Any, *path: str | int) -> Any:
    for part in path:
        tree = tree[part]
    return tree


@pytest.mark.parametrize(
    ("written", "path", "value"),
    [
        ("spec.worker.replicas=3", ("spec", "worker", "replicas"), 3),
        (".spec.worker.replicas=3", ("spec", "worker", "replicas"), 3),  # as jsonpath writes it
        ("spec.new.deep.er=x", ("spec", "new"), {"deep": {"er": "x"}}),
        ("metadata.name=other", ("metadata", "name"), "other"),
        ("spec.list[1].name=2nd", ("spec", "list"), [{"name": "one"}, {"name": "2nd"}]),
        ("spec.list[0].more.deep=1", ("spec", "list", 0), {"name": "one", "more": {"deep": 1}}),
        ("spec.words[0]=c", ("spec", "words"), ["c", "b"]),
        ("metadata.annotations['a.b/c']=new", ("metadata", "annotations"), {"a.b/c": "new"}),
        ("metadata.annotations['x.y']=1", ("metadata", "annotations"), {"a.b/c": "old", "x.y": 1}),
        ("metadata.labels['x']=1", ("metadata", "labels"), {"x": 1}),
        # Values are YAML, as in the file.
        ("spec.a=true", ("spec", "a"), True),
        ("spec.a='3'", ("spec", "a"), "3"),
        ("spec.a=1.5", ("spec", "a"), 1.5),
        ("spec.a=[p, q]", ("spec", "a"), ["p", "q"]),
        ("spec.a={b: {c: 1}}", ("spec", "a"), {"b": {"c": 1}}),
        ("spec.a=b=c", ("spec", "a"), "b=c"),
        ("spec.a=''", ("spec", "a"), ""),
        ("spec.a=two words", ("spec", "a"), "two words"),
        ("spec.worker={replicas: 1}", ("spec", "worker"), {"replicas": 1}),
        # null takes away.
        ("spec.worker.replicas=null", ("spec", "worker"), {}),
        ("spec.list[0]=null", ("spec", "list"), [{"name": "two"}]),
        ("spec.list[1].name=null", ("spec", "list", 1), {}),
    ],
)
def test_a_change(written: str, path: tuple[str | int, ...], value: Any) -> None:
    assert at(changed(written), *path) == value


@pytest.mark.parametrize("written", ["spec.none=null", "spec.none.deep.er=null", "spec.none[3]=null"])
def test_nothing_is_made_to_take_it_away(written: str) -> None:
    assert changed(written) == document()


def test_changes_come_one_after_the_other_and_the_rest_stays() -> None:
    expected = document()
    expected["spec"]["worker"] = {"replicas": 4, "x": 1}
    assert changed("spec.worker.replicas=3", "spec.worker.x=1", "spec.worker.replicas=4") == expected


def test_the_document_that_was_read_is_not_touched() -> None:
    before = document()
    kept = deepcopy(before)
    Setting.of("spec.list[0].name=x").apply(before)
    assert before == kept


def test_a_whole_job() -> None:
    result = Setting.of(f"{CONTAINERS}[0].image=my/image:v2").apply(make.manifest())
    assert at(result, *CONTAINERS.split("."), 0, "image") == "my/image:v2"


@pytest.mark.parametrize(
    "written",
    [
        "", "=", "=3", "spec.worker.replicas", "spec..x=1", "spec.=1", "[0]=1", "spec[x]=1", "spec[0=1",
        "spec[-1]=1", "spec.a[0]b=1", "spec.['']=1", "spec['a]=1",
    ],
)  # fmt: skip
def test_what_is_no_path(written: str) -> None:
    with pytest.raises(BadDocument) as caught:
        Setting.of(written)
    advice = "is no PATH=VALUE in metadata or spec; write for example --set spec.worker.replicas=3"
    assert [str(one) for one in caught.value.problems] == [f"--set {written}: {advice}"]


@pytest.mark.parametrize("written", ["spec.a=[1", "spec.a={a: 1, a: 2}", "spec.a='x"])
def test_what_is_no_value(written: str) -> None:
    with pytest.raises(BadDocument) as caught:
        Setting.of(written)
    assert [one.field for one in caught.value.problems] == [f"--set {written}"]
    assert caught.value.problems[0].message.startswith("the value cannot be read: ")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("spec.list[2].name=x", "[2] is not there; the list has 2 entries"),
        ("spec.new[0]=x", "[0] is not there; the list has 0 entries"),
        ("metadata.name.deep=x", "'deep' is no field of a str"),
        ("spec.words.a=x", "'a' is no field of a list"),
    ],
)
def test_what_does_not_fit_the_document(written: str, words: str) -> None:
    with pytest.raises(BadDocument) as caught:
        changed(written)
    assert [str(one) for one in caught.value.problems] == [f"--set {written}: {words}"]
