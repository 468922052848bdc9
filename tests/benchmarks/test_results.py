"""From the lines of a results file to figures, bars, tables and pages."""

import json
from typing import Any

import pytest

from benchmarks.bars import judge, ratio_to_peers
from benchmarks.chart import chart
from benchmarks.pages import CHINESE, NONE_FAILED, NOTHING, PLACE, TEXTS, contents, filled, in_chinese
from benchmarks.report import beside_peers, report, table
from benchmarks.results import CPU, CREATED, OWN_PEAK, Results
from benchmarks.workloads import BY_NAME, FLOOR, GO, OURS, POD_IP, SERVER, SERVICE, TUNED

ABOUT = {
    "commit": "abc",
    "versions": {"kubernetes": "v1.2.3"},
    "processor": "quick",
    "cores": 2,
    "memory_gib": 24,
    "began": "now",
    "workloads": ["1x256"],
}


def about(**changes: Any) -> str:
    return json.dumps({"about": ABOUT | changes})


def key(operator: str, *, workload: str = "1x256", mode: str = POD_IP, repeat: int = 0) -> dict[str, Any]:
    where = {"workload": workload, "mode": mode, "operator": operator, "repeat": repeat}
    return where | {"wall_seconds": 12.0}


def run(operator: str, *, created: float = 1.0, cpu: float = 1.0, requests: int = 700, **others: Any) -> str:
    where = {name: others.pop(name) for name in ("workload", "mode", "repeat") if name in others}
    measured = {
        "times": {"created": created, "running": 2.0, "completed_lag": 0.05, "cleaned_after_end": 1.0},
        "cpu": {"operator": cpu, "kube-apiserver": 5.0, "node": 4.0, "others": 0.0},
        "seconds": 10.0,
        "most_pods": 256,
        "peak_resident_mib": 50.0,
        "requests": requests,
    }
    return json.dumps(key(operator, **where) | measured | others)


def failed(operator: str, **where: Any) -> str:
    return json.dumps(key(operator, **where) | {"error": "it broke |\nwholly"})


def test_a_figure_is_the_median_of_the_runs_of_one_operator() -> None:
    lines = [run(OURS, created=seconds, repeat=place) for place, seconds in enumerate((3.0, 1.0, 2.0))]
    figure = Results([*lines, run(FLOOR, created=9.0)]).figure("1x256", POD_IP, OURS, CREATED)
    assert figure is not None
    assert (figure.median, figure.least, figure.most) == (2.0, 1.0, 3.0)


def test_a_failure_is_told_until_it_is_measured_after_all() -> None:
    assert [one["operator"] for one in Results([failed(OURS), failed(FLOOR), run(OURS)]).failures] == [FLOOR]
    assert Results([failed(OURS), failed(OURS)]).count == 0
    assert len(Results([failed(OURS), failed(OURS)]).failures) == 1


def test_a_peer_that_could_be_had_later_is_not_missing() -> None:
    missing = json.dumps({"missing": "go", "why": "no network"})
    assert Results([about(), missing]).missing == {"go": "no network"}
    assert Results([about(), missing, about()]).missing == {}


def test_a_run_that_was_gone_on_with_took_its_parts_together() -> None:
    part, rest = [run(OURS, wall_seconds=60.0)], [failed(GO), run(FLOOR, wall_seconds=108.0)]
    told = contents(Results([about(), *part, about(commit="def", began="later"), *rest]))["ABOUT"]
    assert "| begun | now, later |" in told
    assert "| minutes | 3 |" in told
    assert "| commit | abc, def |" in told


@pytest.mark.parametrize(("others", "disturbed"), [(0.9, 0), (1.1, 1)])
def test_a_tenth_of_a_core_disturbs(others: float, disturbed: int) -> None:
    line = json.loads(run(OURS))
    line["cpu"]["others"] = others
    assert Results([json.dumps(line)]).disturbed == disturbed


@pytest.mark.parametrize(("node", "limited"), [(8.9, 0), (9.1, 1)])
def test_a_node_that_has_no_rest_limits(node: float, limited: int) -> None:
    line = json.loads(run(OURS))
    line["cpu"]["node"] = node
    assert Results([json.dumps(line)]).limited == limited


def test_we_are_put_beside_the_best_peer_of_whatever_mode() -> None:
    lines = [
        run(OURS, created=3.0, cpu=0.1),
        run(GO, created=6.0, cpu=0.3),
        run(TUNED, created=4.0, cpu=0.1, mode=SERVICE),
        run(FLOOR, created=1.0),
    ]
    results, workload = Results(lines), BY_NAME["1x256"]
    assert ratio_to_peers(results, workload, POD_IP, CREATED) == 0.75
    assert ratio_to_peers(results, workload, POD_IP, CPU) is None, "too little to be compared"
    assert ratio_to_peers(results, workload, SERVICE, CREATED) is None, "we were not measured"
    assert "| 1x256 | PodIP | 0.75x | 1.00x |" in beside_peers(results)


def verdicts(*lines: str) -> dict[str, tuple[str, str]]:
    """Of mode PodIP."""
    judged = judge(Results([about(), *lines]))
    return {one.metric: (one.figure, one.verdict) for one in judged if one.mode == POD_IP}


@pytest.mark.parametrize(
    ("ours", "metric", "expected"),
    [
        pytest.param(run(OURS, created=1.3), "all created, s", ("1.30x", "met"), id="a ratio"),
        pytest.param(run(OURS, created=1.4), "all created, s", ("1.40x", "MISSED"), id="too slow"),
        pytest.param(run(OURS, cpu=2.1), "operator CPU, s", ("2.10x", "MISSED"), id="too dear"),
        pytest.param(run(OURS, requests=783), "requests", ("783", "met"), id="one request for each child"),
        pytest.param(run(OURS, requests=784), "requests", ("784", "MISSED"), id="and one more"),
        pytest.param(failed(OURS), "requests", ("", "not measured"), id="it failed"),
    ],
)
def test_bars(ours: str, metric: str, expected: tuple[str, str]) -> None:
    assert verdicts(run(FLOOR), ours)[metric] == expected


def test_without_the_floor_a_ratio_is_not_measured() -> None:
    assert verdicts(run(OURS))["all created, s"] == ("", "not measured")


def test_of_what_was_not_to_be_measured_nothing_is_judged() -> None:
    assert judge(Results([about(workloads=["1x64"])])) == []


@pytest.mark.parametrize(("most_pods", "expected"), [(10_000, 50.0), (9_999, None)])
def test_the_memory_for_10000_pods_is_that_of_10000_at_once(most_pods: int, expected: float | None) -> None:
    results = Results([run(OURS, workload="1000x10", most_pods=most_pods)])
    figure = results.figure("1000x10", POD_IP, OURS, OWN_PEAK)
    assert (figure and figure.median) == expected


def test_many_pods_are_compared_with_the_servers_own_time() -> None:
    who = {SERVER: 10.0, OURS: 13.0, FLOOR: 1.0}
    lines = [run(one, created=seconds, workload="1000x10", most_pods=10_000) for one, seconds in who.items()]
    judged = judge(Results([about(workloads=["1000x10"]), *lines]))
    assert [(one.figure, one.limit) for one in judged] == [("1.30x", "1.4x the pods alone"), ("50", "80")]


@pytest.mark.parametrize(
    ("floor", "cell"),
    [
        pytest.param(0.19, "0.50", id="rounding"),
        pytest.param(0.2, "0.50, 2.5x", id="enough"),
    ],
)
def test_no_ratio_of_a_little_cpu(floor: float, cell: str) -> None:
    text = table(Results([run(FLOOR, cpu=floor), run(OURS, cpu=0.5)]), BY_NAME["1x256"], POD_IP)
    head, _, _, ours = (line.split(" | ") for line in text.splitlines())
    assert ours[head.index(CPU.title)] == cell


def test_the_report_tells_what_failed_in_one_line() -> None:
    text = report([about(), run(OURS), failed(FLOOR, mode=SERVICE)])
    assert "### 1x256, PodIP" in text
    assert "| 1x256 | Service | floor | 0 | it broke / wholly |" in text


def test_while_nothing_is_measured_the_page_says_so() -> None:
    found = contents(Results([]))
    assert {found[word] for word in ("ABOUT", "BARS", "PEERS", "FAILED", "TABLES")} == {NOTHING}
    assert found["COUNT"] == "0"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_pages_have_a_place_for_all_that_is_found(language: str) -> None:
    text = (TEXTS / f"{language}.md").read_text()
    found = contents(Results([about(), run(FLOOR), run(OURS)]))
    assert set(PLACE.findall(text)) == found.keys()
    assert not PLACE.findall(filled(text, found))
    assert found["FAILED"] == NONE_FAILED


def test_whole_cells_and_lines_are_put_into_chinese() -> None:
    text = f"| floor | a floor |\n{NOTHING}"
    assert in_chinese(text) == f"| {CHINESE['floor']} | a floor |\n{CHINESE[NOTHING]}"


def test_all_titles_of_tables_and_bars_have_chinese_words() -> None:
    found = contents(Results([about(), run(FLOOR), failed(OURS)]))
    heads = [text.split("| ---")[0] for text in (found["BARS"], found["PEERS"], found["FAILED"])]
    heads.append(found["TABLES"].split("\n\n")[1].split("| ---")[0])
    cells = {cell.strip() for head in heads for cell in head.strip().strip("|").split("|")} - {""}
    assert cells <= {*CHINESE, "operator"}


def test_the_picture_shows_who_was_measured() -> None:
    picture = chart([run(OURS), run("go", mode=SERVICE)])
    assert "ours, PodIP" in picture
    assert "Go, Service" in picture
    assert "training-operator" not in picture
