"""Reads Go's benchmark format as strictly as golang.org/x/perf/benchfmt does, and more so: what benchstat would silently
ignore is an error here. Prints what it understood as JSON."""

import json
import re
import sys

LONGEST_LINE = 64 * 1024
# What benchstat knows the better side of.
KNOWN = {"ns/op", "B/s", "B/op", "allocs/op"}
# `extractGoResult` of github-action-benchmark.
ACTION = re.compile(
    r"""^(?P<name>Benchmark\w+[\w()$%^&*-=|,[\]{}"#]*?)(?P<procs>-\d+)?\s+(?P<times>\d+)\s+(?P<rest>.+)$""",
    re.ASCII,
)


def fail(number, line, why):
    sys.exit(f"line {number}: {why}: {line[:200]!r}")


def main(path):
    config, units, results = {}, {}, {}
    with open(path, encoding="utf-8", newline="") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if len(line.encode()) >= LONGEST_LINE:
                fail(number, line, "too long for bufio.Scanner")
            if not line or line.startswith("#"):
                continue
            if line.startswith("Benchmark"):
                fields = line.split()
                if len(fields) < 4 or len(fields) % 2:
                    fail(number, line, "no pairs of value and unit")
                name, iterations, pairs = fields[0], fields[1], fields[2:]
                if not re.match(r"Benchmark[A-Z]", name):
                    fail(number, line, "no capital letter after `Benchmark`")
                if re.search(r"-\d+$", name):
                    fail(number, line, "the name ends like a GOMAXPROCS")
                if int(iterations) < 1:
                    fail(number, line, "no iterations")
                values = {unit: float(value) for value, unit in zip(pairs[::2], pairs[1::2])}
                if pairs[1] != "ns/op" or len(values) * 2 != len(pairs):
                    fail(number, line, "the time is not first, or a unit is there twice")
                for unit in values:
                    if unit not in KNOWN and unit not in units:
                        fail(number, line, f"nobody said which side of {unit} is better")
                keys = [part.split("=", 1) for part in name.split("/")[1:]]
                if any(len(key) != 2 for key in keys) or len({key for key, _ in keys}) != len(keys):
                    fail(number, line, "parts of the name are no keys, or the same key twice")
                match = ACTION.match(line)
                if not match or match["name"] != name:
                    fail(number, line, "github-action-benchmark reads another name")
                result = results.setdefault(name, {"keys": dict(keys), "times": []})
                result["times"].append(values["ns/op"])
            elif line.startswith("Unit "):
                unit, *settings = line.split()[1:]
                for setting in settings:
                    if setting not in ("better=higher", "better=lower", "assume=exact", "assume=nothing"):
                        fail(number, line, "no setting of a unit")
                if unit in units:
                    fail(number, line, "a unit twice")
                units[unit] = settings
            else:
                match = re.fullmatch(r"([a-z][^\sA-Z:]*):(?:[ \t]+(\S.*))?", line)
                if not match:
                    fail(number, line, "neither a result, nor a key, nor a comment")
                config[match[1]] = match[2]
    json.dump({"config": config, "units": units, "results": results}, sys.stdout)


main(sys.argv[1])
