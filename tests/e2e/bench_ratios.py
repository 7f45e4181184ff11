"""Two servers of one run of the benchmark beside each other, as ratios of what they took.

    python3 tests/e2e/bench_ratios.py OUT/results.jsonl mailyard-mbox dovecot-mbox [SUITE]
"""

import collections
import json
import pathlib
import statistics
import sys

# Processor time counts as a whole.
SUMS = {"cpu": ("cpu_user", "cpu_system")}
MEASURES = ["time", "cpu", "bytes_read", "bytes_written", "chars_read", "chars_written", "disk_written", "peak_memory", "peak_anonymous"]


def medians(records, suite):
    """{(test, state, server, measure): median} of one suite; samples without a value, or with a wrong answer, are left out."""
    values = collections.defaultdict(list)
    for record in records:
        if record["record"] == "sample" and record["suite"] == suite and record["value"] is not None:
            if record["verdict"]["verdict"] == "right":
                key = (record["test"], record.get("state"), record["server"], record["measure"])
                values[key].append((record["round"], record["value"]))
    found = {key: statistics.median(value for _, value in rounds) for key, rounds in values.items()}
    for name, parts in SUMS.items():
        for test, state, server, measure in list(found):
            if measure == parts[0]:
                both = [dict(values[test, state, server, part]) for part in parts]
                sums = [sum(one[number] for one in both) for number in both[0] if all(number in one for one in both)]
                found[test, state, server, name] = statistics.median(sums)
    return found


def ratios(records, ours, theirs, suite="mbox2004"):
    """{(test, state): {measure: (our median, their median, ours / theirs or None)}}"""
    found = medians(records, suite)
    table = collections.defaultdict(dict)
    for (test, state, server, measure), value in found.items():
        other = found.get((test, state, theirs, measure))
        if server == ours and other is not None:
            table[test, state][measure] = (value, other, value / other if other else None)
    return dict(table)


def text(table):
    """A line for each test and measure."""
    lines = []
    for (test, state), measures in table.items():
        for measure in MEASURES:
            if measure in measures:
                ours, theirs, ratio = measures[measure]
                shown = "-" if ratio is None else f"{ratio:.4f}"
                lines.append(f"{test:18} {state or '':5} {measure:15} {ours:16,.1f} {theirs:16,.1f} {shown:>9}")
    return "\n".join(lines)


def read(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


if __name__ == "__main__":
    print(text(ratios(read(sys.argv[1]), *sys.argv[2:])))
