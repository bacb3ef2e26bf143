"""Reads libtest's bench lines by the expressions of its two readers, which must agree. Prints names and values as JSON."""

import json
import re
import sys

# `extractCargoResult` of github-action-benchmark.
ACTION = re.compile(r"^test (.+)\s+\.\.\. bench:\s+([0-9,.]+) (\w+\/\w+) \(\+\/- ([0-9,.]+)\)$")
# The grammar of Bencher's `rust_bench`: a name up to the first blank, and nothing after the bracket.
BENCHER = re.compile(
    r"^test[ \t]+([^ ]+)[ \t]+\.\.\.[ \t]+bench:[ \t]+([0-9,.]+)[ \t]+(ps|ns|µs|us|ms|s)/iter[ \t]+\(\+/-[ \t]+([0-9,.]+)\)$"
)
RESULT = re.compile(
    r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out; "
    r"finished in \d+\.\d\ds$"
)


def main(path):
    lines = open(path, encoding="utf-8").read().split("\n")
    benches, words, results, running = {}, {"ok": 0, "FAILED": 0, "ignored": 0}, [], []
    for line in lines:
        action, bencher, result = ACTION.match(line), BENCHER.match(line), RESULT.match(line)
        if bool(action) != bool(bencher):
            sys.exit(f"only one of both reads {line!r}")
        if action:
            name, value, unit, spread = action.groups()
            if (name, value, spread) != tuple(bencher.group(1, 2, 4)) or unit != "ns/iter" or name in benches:
                sys.exit(f"read differently, or twice: {line!r}")
            benches[name] = [float(text.replace(",", "")) for text in (value, spread)]
        elif result:
            results.append([result[1], *map(int, result.groups()[1:])])
        elif line.startswith("test "):
            name, dots, word = line.removeprefix("test ").split(" ", 2)
            if dots != "..." or word.split(",")[0] not in words:
                sys.exit(f"no line of libtest: {line!r}")
            words[word.split(",")[0]] += 1
        elif match := re.match(r"^running (\d+) tests?$", line):
            running.append(int(match[1]))
    json.dump({"benches": benches, "words": words, "results": results, "running": running}, sys.stdout)


main(sys.argv[1])
