"""However a training is started, its processes find each other: all are in one world, and learn the same.

The whole table, all ways with all releases of Paddle in all networks, is printed by `make launchers`.
"""

from pathlib import Path

import pytest

from dev import paddles
from launchers import here, plain
from launchers.ways import BY_NAME, INTRANETS, WAYS, Process, Way, check, equal, read_results

ON_HOST = [BY_NAME[name] for name in ("script", "script, fleet.init", "launch", "recipe's command")]
"""Ways that find each other by other variables on the host network than elsewhere."""

CASES = [(way, intranet) for intranet in INTRANETS for way in WAYS]

every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
some_ways = pytest.mark.parametrize("way", ON_HOST, ids=lambda way: way.name)


def trains_together(way: Way, intranet: str, folder: Path, version: str = "") -> None:
    python = {"python": paddles.ensure(version)} if version else {}
    tried = here.run(way, intranet, folder, **python)
    assert tried.code == 0, tried.text
    check(way, tried.processes)


@pytest.mark.paddle
class TestEveryWayTrainsTogether:
    @pytest.mark.parametrize(("way", "intranet"), CASES, ids=lambda one: getattr(one, "name", one))
    def test_with_our_paddle(self, tmp_path: Path, way: Way, intranet: str) -> None:
        trains_together(way, intranet, tmp_path)


@pytest.mark.paddle
class TestOtherReleases:
    @every_way
    def test_the_oldest(self, tmp_path: Path, way: Way) -> None:
        trains_together(way, "PodIP", tmp_path, "2.6.2")

    @some_ways
    def test_the_oldest_on_the_host_network(self, tmp_path: Path, way: Way) -> None:
        trains_together(way, "Host", tmp_path, "2.6.2")

    @every_way
    def test_the_newest(self, tmp_path: Path, way: Way) -> None:
        trains_together(way, "Service", tmp_path, paddles.NEWEST)

    @some_ways
    def test_the_newest_on_the_host_network(self, tmp_path: Path, way: Way) -> None:
        trains_together(way, "Host", tmp_path, paddles.NEWEST)


@pytest.mark.paddle
class TestWithoutKubernetes:
    @pytest.mark.parametrize("name", ["script, fleet.init", "launch"])
    def test_on_the_host_network_of_two_nodes(self, tmp_path: Path, name: str) -> None:
        played = plain.play(BY_NAME[name], "Host", tmp_path, plain.on_two_nodes)
        assert played.codes == [0, 0], played.text
        check(BY_NAME[name], played.processes)

    def test_two_that_train_alone_are_seen(self, tmp_path: Path) -> None:
        """The variables of the original operator say nothing to a recipe: each of its pods is a whole job."""
        played = plain.play(BY_NAME["recipe, all deleted"], "PodIP", tmp_path, plain.go_operator)
        assert played.codes == [0, 0], played.text
        assert [one.world for one in played.processes] == [1, 1]
        assert not equal(played.processes)


@pytest.mark.parametrize(
    "processes",
    [
        [],
        [Process(2, 0, "a")],
        [Process(1, 0, "a"), Process(1, 0, "a")],
        [Process(2, 0, "a"), Process(2, 0, "a")],
        [Process(2, 0, "a"), Process(2, 1, "b")],
        [Process(3, 0, "a"), Process(3, 1, "a")],
    ],
    ids=["nobody", "one is missing", "alone", "one rank twice", "learned apart", "a third is awaited"],
)
def test_what_is_not_one_world_is_told(processes: list[Process]) -> None:
    with pytest.raises(AssertionError):
        check(BY_NAME["launch"], processes)


def test_results_are_read_by_rank(tmp_path: Path) -> None:
    for name, rank in (("a", 1), ("b", 0)):
        (tmp_path / name).write_text(f"world=2 rank={rank} parameters={'0' * 16}")
    processes = read_results(tmp_path)
    assert [one.rank for one in processes] == [0, 1]
    check(BY_NAME["launch"], processes)
