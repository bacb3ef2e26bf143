"""From the raw samples of a run document and its CSV, with nothing but what the documentation says: Welch's test on the
medians of launches, which must be the document's own; and figures of both files, which must be the same."""

import csv
import json
import math
import statistics
import sys

from scipy import stats


def medians(row, is_device):
    """Per launch, the median logarithm of the time: against the sentinel on a processor, in nanoseconds on a device."""
    found = []
    for samples, chains, sweeps in zip(row["samples"], row["chains"], row["sweeps"]):
        values = []
        for number, block in enumerate(samples):
            sentinels = sweeps[number] if sweeps else chains[number]
            for sample, sentinel in zip(block, sentinels):
                values.append(math.log(sample) - (0.0 if is_device else math.log(sentinel)))
        if values:
            found.append(statistics.median(values))
    return found


def main(document, table):
    run = json.load(open(document, encoding="utf-8"))
    rows = run["rows"] + run["searched"]
    tested = []
    for row in run["rows"]:
        is_base = lambda other: other["is_base"] and all(row[k] == other[k] for k in ("kernel", "type", "size"))
        base = next(filter(is_base, run["rows"]), None)
        # Blocks on a busy machine do not count, and which they are is for kbench to say.
        if row["welch_p"] is None or base is None or row["launches"] < 2 or row["contaminated"] or base["contaminated"]:
            continue
        # Clocks are noted where a device did the timing; no sentinel speaks for that.
        is_device = "clocks" in row
        test = stats.ttest_ind(medians(base, is_device), medians(row, is_device), equal_var=False)
        tested.append({"name": row["name"], "mode": row["mode"], "p": test.pvalue, "welch_p": row["welch_p"],
                       "t": test.statistic, "welch_t": row["welch_t"]})
    with open(table, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    if len(lines) != len(rows):
        sys.exit(f"{len(lines)} lines for {len(rows)} rows")
    compared = 0
    for row, line in zip(rows, lines):
        for name, written in line.items():
            # Lists have no place in a table, and a verdict on a threshold is in words there.
            if name in row and not isinstance(row[name], (bool, list)) and name != "threshold_verdict":
                value = "" if row[name] is None else row[name]
                is_number = isinstance(value, (int, float))
                if (float(written) if is_number else written) != value:
                    sys.exit(f"{row['name']}: {name} is {written!r} in the table and {value!r} in the document")
                compared += 1
    json.dump({"tested": tested, "compared": compared}, sys.stdout)


main(*sys.argv[1:])
