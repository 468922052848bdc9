"""Warns of launchers of several pods that write into one folder, which pods here share.

Where Paddle's launcher writes is ours to say, unless a script has unset the variable. Then two of them may
write into one file: each shows what the other has printed, and nobody can tell who failed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .gather import Line

# Of what the launcher says of its configuration.
_FOLDER = re.compile(r"LAUNCH INFO \S+ \S+ log_dir: (?P<folder>.+)$")
_OURS = re.compile(r"/launcher/[^/]+$")
ADVICE = (
    "{} and {} write the logs of their processes into one folder, {}: their lines are mixed, and the wrong "
    'one may be blamed. Let the script name another --log_dir for each pod, --log_dir "log/$RANK" say.'
)


@dataclass
class SharedLogs:
    _writers: dict[str, str] = field(default_factory=dict)
    """Of each folder, the first pod that writes there."""
    _told: set[str] = field(default_factory=set)

    def heed(self, lines: Iterable[Line]) -> list[str]:
        """What is new."""
        found = (
            (line.source, match["folder"].strip()) for line in lines if (match := _FOLDER.match(line.text))
        )
        return [told for pod, folder in found if (told := self._heed(pod, folder))]

    def _heed(self, pod: str, folder: str) -> str:
        if _OURS.search(folder):
            return ""
        first = self._writers.setdefault(folder, pod)
        if first == pod or folder in self._told:
            return ""
        self._told.add(folder)
        return ADVICE.format(first, pod, folder)
