"""The six verbs over HTTP: paths, bodies, pages, lines; and objects that cannot be read."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from loopback import Server, bytes_answer, json_answer, serving, stream_answer
from scripted import key, pod

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Key, Manifest, Unreadable
from paddle_operator.api.resources import PADDLE_JOBS, PODS, AnyResource, Target
from paddle_operator.cluster import ApiError, Change, Conflict, Gone, Scope, Unreachable, Verb
from paddle_operator.kube.client import PAGE_SIZE, KubeCluster, path
from paddle_operator.kube.config import Credentials
from paddle_operator.kube.transport import Transport

BAD = "not a list"
EVERYTHING = Scope()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def cluster(server: Server) -> AsyncIterator[KubeCluster]:
    async with Transport(Credentials(server.address, None)) as transport:
        yield KubeCluster(transport)


def stored(name: str, version: Any = "5", **fields: Any) -> Manifest:
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": meta, **fields}


def page(*items: Any, version: Any = "9", more: str = "") -> Manifest:
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": list(items)}


def line(verb: str, thing: Any) -> bytes:
    return msgspec.json.encode({"type": verb, "object": thing}) + b"\n"


@pytest.mark.parametrize(
    ("resource", "rest", "expected"),
    [
        (PODS, ("team",), "/api/v1/namespaces/team/pods"),
        (PODS, ("",), "/api/v1/pods"),
        (PODS, ("team", "p"), "/api/v1/namespaces/team/pods/p"),
        (PADDLE_JOBS, ("",), "/apis/batch.paddlepaddle.org/v1/paddlejobs"),
        (
            PADDLE_JOBS,
            ("team", "j", "status"),
            "/apis/batch.paddlepaddle.org/v1/namespaces/team/paddlejobs/j/status",
        ),
    ],
)
def test_paths(resource: AnyResource, rest: tuple[str, ...], expected: str) -> None:
    assert path(resource, *rest) == expected


async def test_get(server: Server, cluster: KubeCluster) -> None:
    server.say(json_answer(stored("p", status={"phase": "Running"}, unknown={"to": "us"})))
    found = await cluster.get(PODS, key("p"))
    assert (found.metadata.uid, found.status.phase) == ("uid-p", "Running")
    assert (server.asked[0].method, server.asked[0].path) == ("GET", "/api/v1/namespaces/team/pods/p")


async def test_create(server: Server, cluster: KubeCluster) -> None:
    server.say(json_answer(stored("p"), 201))
    wanted = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"any": [1, None]}}
    made = await cluster.create(PODS, wanted)
    assert made.metadata.resource_version == "5"
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.json) == ("POST", "/api/v1/namespaces/team/pods", wanted)
    assert asked.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(("subresource", "tail"), [("", ""), ("status", "/status")])
async def test_patch(server: Server, cluster: KubeCluster, subresource: str, tail: str) -> None:
    server.say(json_answer(stored("p", "8")))
    body = {"metadata": {"uid": "uid-p", "labels": {"gone": None}}}
    done = await cluster.patch(Target.of(PODS, pod("p")), body, subresource=subresource)
    assert done.metadata.resource_version == "8"
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", f"/api/v1/namespaces/team/pods/p{tail}")
    assert asked.json == body
    assert asked.headers["Content-Type"] == "application/merge-patch+json"


async def test_delete_is_only_for_the_object_of_this_uid(server: Server, cluster: KubeCluster) -> None:
    server.say(json_answer({"kind": "Status"}), json_answer({"message": "another UID"}, 409))
    await cluster.delete(Target.of(PODS, pod("p")))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/namespaces/team/pods/p")
    assert asked.json == {"preconditions": {"uid": "uid-p"}, "propagationPolicy": "Background"}
    with pytest.raises(Conflict):
        await cluster.delete(Target.of(PODS, pod("p")))


@pytest.mark.parametrize(
    ("how", "more"),
    [
        ({"as_seen": True}, {"preconditions": {"uid": "uid-p", "resourceVersion": "3"}}),
        ({"force": True}, {"gracePeriodSeconds": 0}),
    ],
    ids=["as seen", "by force"],
)
async def test_delete_says_in_which_version_and_how_soon(
    server: Server, cluster: KubeCluster, how: dict[str, bool], more: Manifest
) -> None:
    """By force too it is for one UID: a namesake made later is never killed."""
    server.say(json_answer({"kind": "Status"}))
    await cluster.delete(Target.of(PODS, pod("p", 3)), **how)
    (asked,) = server.asked
    assert asked.json == {"preconditions": {"uid": "uid-p"}, "propagationPolicy": "Background"} | more


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b"{}", b'{"metadata": {"name": "\xff"}}', b"[" * 9999]
)
async def test_a_success_that_cannot_be_read_is_as_good_as_no_answer(
    server: Server, cluster: KubeCluster, answer: bytes
) -> None:
    server.say(bytes_answer(answer))
    wanted = {"metadata": {"name": "p", "namespace": "team"}}
    for attempt in (
        cluster.get(PODS, key("p")),
        cluster.create(PODS, wanted),
        cluster.patch(Target.of(PODS, pod("p")), {}),
        cluster.list(PODS, Scope()),
    ):
        with pytest.raises(Unreachable, match="answer"):
            await attempt


@pytest.mark.parametrize("version", ["", "abc", "1.5", "-1", "²"])
async def test_a_version_that_is_no_number_does_not_come_in(
    server: Server, cluster: KubeCluster, version: str
) -> None:
    server.say(json_answer(stored("p", version)))
    with pytest.raises(Unreachable, match="resourceVersion"):
        await cluster.get(PODS, key("p"))
    server.say(json_answer(page(version=version)))
    with pytest.raises(Unreachable, match="resourceVersion"):
        await cluster.list(PODS, Scope())
    for verb in ("ADDED", "BOOKMARK", "DELETED"):
        server.say(stream_answer(line(verb, stored("p", version))))
        with pytest.raises(Unreachable, match="resourceVersion"):
            await changes(cluster)


class TestList:
    async def test_goes_on_until_the_last_page(self, server: Server, cluster: KubeCluster) -> None:
        server.say(
            json_answer(page(stored("a"), stored("b"), version="7", more="to=ken+/1")),
            json_answer(page(stored("c"), version="7", more="token2")),
            json_answer(page(stored("d"), version="7")),
        )
        found = await cluster.list(PODS, Scope("team", "job=a,paddle"))
        assert [one.metadata.name for one in found.items] == ["a", "b", "c", "d"]
        assert found.resource_version == "7"
        common = {"limit": str(PAGE_SIZE), "labelSelector": "job=a,paddle"}
        assert [asked.query for asked in server.asked] == [
            common,
            common | {"continue": "to=ken+/1"},
            common | {"continue": "token2"},
        ]
        assert {asked.path for asked in server.asked} == {"/api/v1/namespaces/team/pods"}

    async def test_of_a_continuation_that_has_expired_gives_nothing_half(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        server.say(json_answer(page(stored("a"), more="token")), json_answer({"message": "expired"}, 410))
        with pytest.raises(Gone):
            await cluster.list(PODS, Scope())

    async def test_holds_no_more_of_each_than_is_kept(self, server: Server, cluster: KubeCluster) -> None:
        bad = stored("bad", "6", spec={"containers": BAD})
        server.say(json_answer(page(stored("a"), bad, stored("b"))))
        scope = Scope(keep=lambda pod: pod if pod.metadata.name == "b" else None)
        unreadable, kept = (await cluster.list(PODS, scope)).items
        assert (unreadable.metadata.name, kept.metadata.name) == ("bad", "b")

    @pytest.mark.parametrize("document", [page(), {"metadata": {"resourceVersion": "9"}}])
    async def test_may_be_empty(self, server: Server, cluster: KubeCluster, document: Manifest) -> None:
        server.say(json_answer(document))
        assert (await cluster.list(PODS, Scope())).items == ()

    async def test_passes_over_what_cannot_be_read(self, server: Server, cluster: KubeCluster) -> None:
        bad = stored("bad", "6", spec={"containers": BAD})
        server.say(json_answer(page(stored("a"), bad, stored("b"))))
        first, second, third = (await cluster.list(PODS, Scope())).items
        assert isinstance(first, Pod)
        assert isinstance(third, Pod)
        assert isinstance(second, Unreadable)
        assert (second.metadata.key, second.metadata.uid) == (Key("team", "bad"), "uid-bad")
        assert second.metadata.resource_version == "6"
        assert "spec.containers" in second.error

    async def test_knows_who_it_is_even_if_other_metadata_cannot_be_read(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        bad = stored("bad", "6")
        bad["metadata"] |= {"labels": 5, "creationTimestamp": "yesterday"}
        server.say(json_answer(page(bad)))
        (found,) = (await cluster.list(PODS, Scope())).items
        assert isinstance(found, Unreadable)
        assert found.metadata.name == "bad"

    @pytest.mark.parametrize("item", [42, None, {"metadata": {"name": 5}}])
    async def test_in_which_one_item_has_not_even_a_name_is_broken(
        self, server: Server, cluster: KubeCluster, item: Any
    ) -> None:
        server.say(json_answer(page(stored("a"), item)))
        with pytest.raises(Unreachable):
            await cluster.list(PODS, Scope())


async def changes(cluster: KubeCluster, since: str = "5", scope: Scope = EVERYTHING) -> list[Change[Pod]]:
    async with aclosing(cluster.watch(PODS, scope, since)) as stream:
        return [change async for change in stream]


class TestWatch:
    async def test_asks_from_a_version_on_and_for_bookmarks(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        server.say(stream_answer())
        assert await changes(cluster, "77", Scope("team", "job")) == []
        (asked,) = server.asked
        assert asked.path == "/api/v1/namespaces/team/pods"
        assert asked.query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "77",
            "timeoutSeconds": "300",
            "labelSelector": "job",
        }

    async def test_tells_each_change_with_its_version(self, server: Server, cluster: KubeCluster) -> None:
        text = b"".join(
            [
                line("ADDED", stored("p", "6")),
                line("MODIFIED", stored("p", "7")),
                line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "70"}, "spec": None}),
                line("DELETED", stored("p", "71")),
            ]
        )
        server.say(stream_answer(*(text[at : at + 50] for at in range(0, len(text), 50))))
        told = await changes(cluster)
        assert [(one.verb, one.resource_version) for one in told] == [
            (Verb.ADDED, "6"),
            (Verb.MODIFIED, "7"),
            (Verb.BOOKMARK, "70"),
            (Verb.DELETED, "71"),
        ]
        assert [one.object is not None for one in told] == [True, True, False, True]

    async def test_takes_an_object_of_more_than_a_mebibyte(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        server.say(stream_answer(line("ADDED", stored("p", "6", data="x" * 1_400_000))))
        assert len(await changes(cluster)) == 1

    async def test_drops_a_last_line_that_is_cut(self, server: Server, cluster: KubeCluster) -> None:
        server.say(stream_answer(line("ADDED", stored("p")), line("ADDED", stored("q"))[:40]))
        assert len(await changes(cluster)) == 1

    async def test_passes_over_what_cannot_be_read(self, server: Server, cluster: KubeCluster) -> None:
        bad = stored("bad", "6", spec={"containers": BAD})
        server.say(stream_answer(line("MODIFIED", bad), line("ADDED", stored("p", "7"))))
        first, second = await changes(cluster)
        assert isinstance(first.object, Unreadable)
        assert first.resource_version == first.object.metadata.resource_version == "6"
        assert isinstance(second.object, Pod)

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            ({"code": 410, "reason": "Expired", "message": "too old resource version"}, Gone),
            ({"code": 500, "message": "too old resource version"}, Unreachable),
            ({}, Unreachable),
            (["what"], Unreachable),
        ],
    )
    async def test_ends_with_the_error_that_the_server_tells(
        self, server: Server, cluster: KubeCluster, status: Any, kind: type[ApiError]
    ) -> None:
        server.say(stream_answer(line("ADDED", stored("p")), line("ERROR", status)))
        stream = cluster.watch(PODS, Scope(), "5")
        assert (await anext(stream)).verb is Verb.ADDED
        with pytest.raises(kind):
            await anext(stream)

    async def test_may_be_refused_as_too_old_before_it_begins(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        server.say(json_answer({"code": 410, "message": "too old"}, 410))
        with pytest.raises(Gone):
            await changes(cluster)

    @pytest.mark.parametrize(
        "text",
        [
            b"no json\n",
            b"[" * 9999 + b"\n",
            b'{"type":"\xff"}\n',
            line("SURPRISE", {}),
            b"{}\n",
            line("ADDED", 5),
        ],
    )
    async def test_that_makes_no_sense_is_as_good_as_a_broken_one(
        self, server: Server, cluster: KubeCluster, text: bytes
    ) -> None:
        server.say(stream_answer(text))
        with pytest.raises(Unreachable):
            await changes(cluster)

    async def test_that_ends_in_an_error_gives_the_connection_back_at_once(
        self, server: Server, cluster: KubeCluster
    ) -> None:
        server.say(stream_answer(line("ERROR", {"code": 410}), line("ADDED", stored("p"))))
        with pytest.raises(Gone):
            await anext(cluster.watch(PODS, Scope(), "5"))
        assert not cluster._transport._session.connector._acquired  # type: ignore[union-attr]
