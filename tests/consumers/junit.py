"""Validates JUnit's XML against a schema, and reads it with junitparser: `junit.py SCHEMA FILE`. Prints what was read."""

import json
import sys

import junitparser
from lxml import etree


def main(schema, path):
    document = etree.parse(path)
    etree.XMLSchema(etree.parse(schema)).assertValid(document)
    suites = junitparser.JUnitXml.fromfile(path)
    cases = []
    for suite in suites:
        counted = {"tests": 0, "failures": 0, "skipped": 0}
        for case in suite:
            kinds = {junitparser.Failure: "failures", junitparser.Skipped: "skipped"}
            results = [(kinds[type(result)], result.message) for result in case.result]
            counted["tests"] += 1
            for kind, _ in results:
                counted[kind] += 1
            cases.append([case.classname, case.name, results])
        for name, count in counted.items():
            if getattr(suite, name) != count:
                sys.exit(f"{suite.name} says {name}={getattr(suite, name)} and has {count}")
    total = {name: getattr(suites, name) for name in ("tests", "failures", "skipped")}
    json.dump({"total": total, "cases": cases}, sys.stdout)


main(*sys.argv[1:])
