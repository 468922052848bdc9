"""How many lives a second the simulator lives, on one core: `python -m benchmarks.simulator [HOW_MANY]`.

CPU time counts, not the clock on the wall: others may use the machine. Calm lives, which many seeds share,
are lived before.
"""

import sys
import time

sys.path.insert(0, "tests")


def main() -> None:
    from simulator.life import live  # noqa: PLC0415 (found by the line above)
    from simulator.random_lives import random_case  # noqa: PLC0415

    many = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    cases = [random_case(seed) for seed in range(many)]
    began = time.process_time()
    lives = [live(case.workload, case.faults, case.schedule) for case in cases]
    seconds = time.process_time() - began
    writes = sum(len(life.witness.writes) for life in lives)
    changes = sum(len(life.witness.changes) for life in lives)
    print(
        f"{many} random lives in {seconds:.1f} s: {many / seconds:.1f} lives, {writes / seconds:.0f} writes "
        f"of the manager and {changes / seconds:.0f} changes of the store a second"
    )


if __name__ == "__main__":
    main()
