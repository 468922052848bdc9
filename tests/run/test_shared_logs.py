"""Launchers of two pods that write into one folder are warned of, once."""

from paddle_operator.run.gather import Line
from paddle_operator.run.shared_logs import SharedLogs

SAYS = "LAUNCH INFO 2026-11-19 23:38:33,069 log_dir: {}"


def said(pod: str, folder: str) -> Line:
    return Line(pod, 0, SAYS.format(folder))


def test_two_pods_that_write_into_one_folder_are_named_with_the_remedy() -> None:
    logs = SharedLogs()
    assert logs.heed([said("a-worker-0", "log"), Line("a-worker-1", 1, "step=1 loss=2")]) == []
    (told,) = logs.heed([said("a-worker-1", "log"), said("a-worker-2", "log")])
    assert told.startswith(
        "a-worker-0 and a-worker-1 write the logs of their processes into one folder, log:"
    )
    assert '--log_dir "log/$RANK"' in told
    assert logs.heed([said("a-worker-3", "log")]) == [], "it has been said"


def test_folders_of_their_own_and_a_launcher_that_begins_anew_are_well() -> None:
    logs = SharedLogs()
    ours = "/tmp/run/pods/0001/launcher/paddle"
    lines = [said("a", "log/0"), said("b", "log/1"), said("a", "log/0"), said("c", ours), said("d", ours)]
    assert logs.heed(lines) == []
