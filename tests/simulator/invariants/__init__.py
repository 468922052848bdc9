"""What must hold whatever goes wrong: the rules of rules.py, all of them that apply today.

Each invariant is a function named like a sentence, that says whether it holds; its docstring begins with the
numbers of its rules. Rules without a function are compared in the end of each life, or are groups of lives.

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
