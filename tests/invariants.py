"""What must hold whatever goes wrong: reliability-performance.md section 3, all of it that applies today.

Each invariant is a function named like a sentence, with its number in the docstring, that says whether it
holds. 26 (the end is that of an undisturbed life) and 27 (also after lost watch events and a list) are in
oracle.py. Not here, because nothing does it yet: 10 (gangs), 12 (elastic), 18 (two leaders), 23 (SampleJob),
29 (edits).
"""

from invariants_at_rest import AT_REST
from invariants_of_changes import OF_A_CHANGE
from invariants_of_peers import OF_PEERS
from invariants_of_requests import OF_A_REQUEST, OF_AN_ANSWER
from witness import Invariants

ALL = Invariants(OF_A_REQUEST, OF_AN_ANSWER, (*OF_A_CHANGE, *OF_PEERS), AT_REST)
