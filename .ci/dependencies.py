"""Checks licences, duplicates and sources of the crates in the three lock files against deny.toml.

    .ci/dependencies.py [CONFIGURATION]

These are cargo-deny's checks of the same names, by the same file, from what the manifests say. cargo-deny takes minutes to
build and this script seconds to run. What it leaves out is the comparison of licence texts with the manifests. A key of
deny.toml that this script does not know is an error.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ["Cargo.toml", "fuzz/Cargo.toml", "tests/downstream/Cargo.toml"]
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
# Keys, and the value where only one is understood.
KNOWN = {
    "graph": {"exclude": None, "all-features": True, "targets": None},
    "advisories": {"unmaintained": None, "unsound": None, "yanked": None, "ignore": None},
    "licenses": {
        "allow": None,
        "confidence-threshold": None,
        "exceptions": None,
        "private": {"ignore": True},
        "unused-allowed-license": "deny",
    },
    "bans": {"multiple-versions": "deny", "wildcards": "deny", "allow-wildcard-paths": True, "skip": None, "skip-tree": None},
    "sources": {"unknown-registry": "deny", "unknown-git": "deny"},
}


def unknown_settings(configuration):
    """Settings that cargo-deny obeys and this script would not."""
    for section, settings in configuration.items():
        for key, value in settings.items():
            if key not in KNOWN.get(section, {}) or KNOWN[section][key] not in (None, value):
                yield f"`{key} = {value!r}` in [{section}] is not known to .ci/dependencies.py"


class Graph:
    """The crates that one lock file brings to the targets of deny.toml, by name and version.

    `cargo metadata` describes crates, and counts optional ones that nothing turns on; `cargo tree` says which are built.
    """

    def __init__(self, manifest, settings):
        def cargo(command, *arguments):
            command = ["cargo", command, "--quiet", "--locked", "--all-features", "--manifest-path", manifest, *arguments]
            return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

        targets = settings["targets"]
        metadata = json.loads(cargo("metadata", "--format-version=1", *(f"--filter-platform={target}" for target in targets)))
        described = {(package["name"], package["version"]): package for package in metadata["packages"]}
        excluded = [f"--exclude={name}" for name in settings["exclude"] if any(name == known for known, _ in described)]
        self.edges = defaultdict(set)
        chosen = [*(f"--target={target}" for target in targets), "--workspace", *excluded]
        self.add(cargo("tree", "--prefix=depth", "--format= {p}", *chosen))
        self.packages = {crate: described[crate] for crate in self.edges}

    def add(self, tree):
        """Adds crates and what each depends on directly, from lines of `DEPTH NAME vVERSION …`."""
        path = []
        for line in filter(None, tree.splitlines()):
            depth, name, version, *_ = line.split()
            crate = (name, version.removeprefix("v"))
            path[int(depth) :] = [crate]
            self.edges[crate] |= set()
            if len(path) > 1:
                self.edges[path[-2]].add(crate)

    def below(self, roots):
        """The given crates and all that they depend on."""
        found, waiting = set(), list(roots)
        while waiting:
            crate = waiting.pop()
            if crate not in found:
                found.add(crate)
                waiting += self.edges[crate]
        return found


def is_allowed(expression, is_licence_allowed):
    """Whether one way to read an SPDX expression needs allowed licences alone."""
    words = re.findall(r"[()/]|[^\s()/]+", expression)

    def alternatives():
        allowed = conjunction()
        # A slash is the old way to write OR.
        while words and words[0] in ("OR", "/"):
            words.pop(0)
            allowed = conjunction() or allowed
        return allowed

    def conjunction():
        allowed = licence()
        while words and words[0] == "AND":
            words.pop(0)
            allowed = licence() and allowed
        return allowed

    def licence():
        name = words.pop(0)
        if name == "(":
            allowed = alternatives()
            words.pop(0)
            return allowed
        if words and words[0] == "WITH":
            name = f"{name} WITH {words[1]}"
            del words[:2]
        return is_licence_allowed(name)

    return alternatives()


class Licences:
    """The licences of deny.toml, and which of them were met."""

    def __init__(self, settings):
        self.allowed = settings["allow"]
        self.exceptions = {exception["crate"]: exception["allow"] for exception in settings.get("exceptions", [])}
        self.met = set()

    def errors(self, graph):
        for package in graph.packages.values():
            if package["publish"] == []:
                continue
            exceptions = self.exceptions.get(package["name"], [])

            def is_licence_allowed(name):
                self.met.add(name)
                return name in self.allowed or name in exceptions

            if not package["license"]:
                yield f"{title(package)} names no licence in its manifest"
            elif not is_allowed(package["license"], is_licence_allowed):
                yield f"{title(package)} has the licence `{package['license']}`, which deny.toml does not allow"

    def unused(self):
        for name in [*self.allowed, *(name for names in self.exceptions.values() for name in names)]:
            if name not in self.met:
                yield f"deny.toml allows the licence `{name}`, which no crate has"


def matches(package, entry):
    """Whether an entry of deny.toml (`name` or `name@version`) means a crate."""
    name, _, version = entry["crate"].partition("@")
    return package["name"] == name and f"{package['version']}.".startswith(f"{version}." if version else "")


def bans(graph, settings):
    """Crates in several versions, and dependencies on any version."""
    def named(entries):
        return {crate for crate, package in graph.packages.items() if any(matches(package, entry) for entry in entries)}

    skipped = named(settings["skip"]) | graph.below(named(settings["skip-tree"]))
    versions = defaultdict(list)
    for crate, package in graph.packages.items():
        if crate not in skipped:
            versions[package["name"]].append(package["version"])
        for dependency in package["dependencies"]:
            # A path has no version; only a crate that is never published may do without.
            is_private_path = dependency.get("path") and (package["publish"] == [] or dependency["kind"] == "dev")
            if dependency["req"] == "*" and not is_private_path:
                yield f"{title(package)} depends on any version of {dependency['name']}"
    for name, found in versions.items():
        if len(found) > 1:
            yield f"{name} is there in {len(found)} versions: {', '.join(sorted(found))}"


def unused_skips(graphs, settings):
    for entry in [*settings["skip"], *settings["skip-tree"]]:
        if not any(matches(package, entry) for graph in graphs for package in graph.packages.values()):
            yield f"deny.toml skips {entry['crate']}, which is no dependency"


def sources(graph):
    """Crates that come neither from this repository nor from crates.io."""
    for package in graph.packages.values():
        if package["source"] not in (None, CRATES_IO):
            yield f"{title(package)} comes from {package['source']}"


def title(package):
    return f"{package['name']} {package['version']}"


def main():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "deny.toml"
    configuration = tomllib.loads(path.read_text(encoding="utf-8"))
    errors = list(unknown_settings(configuration))
    licences = Licences(configuration["licenses"])
    graphs = {manifest: Graph(manifest, configuration["graph"]) for manifest in MANIFESTS}
    for manifest, graph in graphs.items():
        found = [*licences.errors(graph), *bans(graph, configuration["bans"]), *sources(graph)]
        errors += [f"{manifest}: {error}" for error in found]
        print(f"{manifest}: {len(graph.packages)} crates")
    errors += licences.unused()
    errors += unused_skips(graphs.values(), configuration["bans"])
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
