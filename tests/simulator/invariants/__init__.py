"""What must hold whatever goes wrong: reliability-performance.md section 3, all of it that applies today.

Each invariant is a function named like a sentence, with its number in the docstring, that says whether it
holds. Seven of the 29 numbers have no function:

- 26 (the end is that of an undisturbed life) and 27 (also after lost watch events and a list) are what
  cases.py compares in the end of each life.
- 18 (two leaders) and 29 (an edit that is taken back) are groups of sweeps.py, after which all of these have
  to hold, but for what a case waives, and the end has to be the same.
- 10 (gangs), 12 (elastic) and 23 (SampleJob): nothing does it yet.

Of 20 there is no terminating namespace and no missing CRD here; of 21 no odd object, of which tests/corpus is
full; of 28 no more than what a life of an hour shows.
"""

from simulator.invariants.at_rest import AT_REST
from simulator.invariants.of_changes import OF_A_CHANGE
from simulator.invariants.of_peers import OF_PEERS
from simulator.invariants.of_refusals import OF_REFUSALS
from simulator.invariants.of_requests import OF_A_REQUEST, OF_AN_ANSWER
from simulator.witness import Invariants

ALL = Invariants(OF_A_REQUEST, OF_AN_ANSWER, (*OF_A_CHANGE, *OF_PEERS), (*AT_REST, *OF_REFUSALS))
