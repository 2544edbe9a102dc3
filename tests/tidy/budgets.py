#!/usr/bin/env python3
"""Reads what ctest printed: sums the tests, and fails when a label took over twice its budget.

Usage: budgets.py count LOG...     prints "N passed, N failed" over all logs, in its last line
       budgets.py check LOG        checks label times (of a build without sanitizers)
"""

import re
import sys

# Seconds of work that a label may take, of the 25 minutes that everything has.
BUDGETS_S = {"unit": 10, "conformance": 60, "golden": 60, "sim": 120, "fuzz": 120, "e2e": 420,
             "package": 30, "gpu": 30}
SLACK = 2.0


def label_times(log):
    return {label: float(time) for label, time in
            re.findall(r"^(\w+)\s+=\s+([0-9.]+) sec\*proc", log, re.M)}


def over_budget(log):
    problems = []
    for label, time_s in label_times(log).items():
        if label not in BUDGETS_S:
            problems.append(f"label {label} has no budget in tests/tidy/budgets.py")
        elif time_s > SLACK * BUDGETS_S[label]:
            problems.append(f"label {label} took {time_s:.1f} s, its budget is "
                            f"{BUDGETS_S[label]} s (twice that fails)")
    return problems


def counts(log):
    passed = failed = 0
    for bad, total in re.findall(r"(\d+) tests? failed out of (\d+)", log):
        failed += int(bad)
        passed += int(total) - int(bad)
    return passed - skipped(log), failed


def skipped(log):
    """Tests whose hardware is not there; ctest counts them as passed."""
    return len(re.findall(r"^ *\d+/\d+ Test +#\d+: .*\*\*\*Skipped ", log, re.M))


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("count", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    logs = ""
    for path in arguments[1:]:
        with open(path, encoding="utf-8", errors="replace") as file:
            logs += file.read()
    if arguments[0] == "count":
        if skipped(logs) != 0:
            print(f"{skipped(logs)} skipped: they say which hardware is missing")
        print("{} passed, {} failed".format(*counts(logs)))
        return 0
    problems = over_budget(logs)
    for problem in problems:
        print(f"budget: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
