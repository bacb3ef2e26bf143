"""A worker's end of the channel: what kbench asks for, one line of JSON after the other."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any, Optional

from . import libraries
from .calls import Site, Subject
from .cuda import Stopwatch
from .data import Data
from .declare import VARIANTS, Declined, Variant, find
from .fork import Server, obstacle

PROTOCOL = 1


def serve(fork: bool = True) -> None:
    """The last thing in a file of variants: where kbench has started it, it is served; for anybody else, they are listed.

    kbench imports the file once and forks the process for every launch, unless JAX, threads or a device are in use by now.
    fork=False lets every launch import the file.
    """
    if sys.argv[1:] != ["--worker"]:
        for variant in VARIANTS:
            types = "all types" if variant.types is None else ", ".join(variant.types)
            print(f"{variant.of}/{variant.name}  {variant.backend}, {types}")
        print(f"\nkbench calls these: cargo bench -- --worker NAME='python3 {sys.argv[0]}'")
        return
    channel = socket.socket(fileno=os.dup(0))
    # What is there is not meant for variants.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    Worker(channel, may_fork=fork).serve()


class Failure(Exception):
    """Something that is to be said as it is; `ends` tells that this process is of no use any more."""

    def __init__(self, text: str, ends: bool = False):
        super().__init__(text)
        self.ends = ends


class Worker:
    """Answers requests until there are no more."""

    def __init__(self, channel: socket.socket, may_fork: bool = False):
        self._may_fork = may_fork
        self._lines = channel.makefile("r", encoding="utf-8", newline="\n")
        self._channel = channel
        self._device: Optional[int] = None
        self._ordinal = 0
        self._instruments: Optional[str] = None
        self._watches: dict[str, Stopwatch] = {}
        self._data: dict[int, Data] = {}
        self._sites: dict[tuple[int, str, Optional[int]], Site] = {}
        self._subjects: dict[tuple[int, str, str], Subject] = {}

    def serve(self) -> None:
        for line in self._lines:
            request = json.loads(line)
            try:
                answer = getattr(self, "_" + request["request"])(request) or {"reply": "done"}
            except Declined as reason:
                answer = {"reply": "declined", "reason": str(reason)}
            except Failure as failure:
                answer = {"reply": "failed", "failure": str(failure), "ends": failure.ends}
            except Exception as error:  # noqa: BLE001: whatever goes wrong is the row's, and not the run's
                answer = self._failed(error)
            self._say(answer)
            if answer.get("forks"):
                # Whatever comes next has descriptors beside it, which a reader of lines would lose.
                self._lines.close()
                channel = Server(self._channel).serve()
                return None if channel is None else Worker(channel).serve()

    def _say(self, answer: dict[str, Any]) -> None:
        self._channel.sendall((json.dumps(answer) + "\n").encode())

    def _failed(self, error: Exception) -> dict[str, Any]:
        opened = list(libraries._OPENED.values())
        if any(library.is_out_of_memory(error) for library in opened):
            for library in opened:
                library.trim()
            return {"reply": "declined", "reason": f"there is too little memory for it: {libraries.first_line(error)}"}
        text = f"raised {type(error).__name__}: {libraries.first_line(error)}"
        return {"reply": "failed", "failure": text, "ends": any(library.is_broken() for library in opened)}

    # Requests.

    def _begin(self, request: dict[str, Any]) -> None:
        if request["protocol"] != PROTOCOL:
            raise Failure(f"kbench speaks version {request['protocol']} of the protocol, this package {PROTOCOL}")
        self._ordinal = request["ordinal"]
        self._device = None if request["off"] else request["ordinal"]

    def _announce(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._say({"reply": "about", "text": libraries.versions()})
        for variant in VARIANTS:
            self._say(variant.announcement())
        return {"reply": "done", "forks": self._may_fork and obstacle() is None}

    def _equip(self, request: dict[str, Any]) -> None:
        self._instruments = request["instruments"]
        self._watches.clear()

    def _hold(self, request: dict[str, Any]) -> None:
        self._data[request["data"]] = Data(request)

    def _release(self, request: dict[str, Any]) -> None:
        number = request["data"]
        self._subjects = {key: subject for key, subject in self._subjects.items() if key[0] != number}
        libraries_used = {site.library for key, site in self._sites.items() if key[0] == number}
        self._sites = {key: site for key, site in self._sites.items() if key[0] != number}
        data = self._data.pop(number, None)
        if data is not None:
            data.close()
        for library in libraries_used:
            library.trim()

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        subject = self._subject(request)
        returned, changed = subject.call()
        parts, offset = [], subject.data.end
        for element, content in returned:
            parts.append({"type": element, "offset": offset, "bytes": len(content)})
            offset = subject.data.append(offset, content)
        return {"reply": "called", "returned": parts, "changed_input": bool(changed)}

    def _sample(self, request: dict[str, Any]) -> dict[str, Any]:
        subject = self._subject(request)
        if request.get("poisoned"):
            subject.poison()
        per_batch, batches, mode = request["per_batch"], request["batches"], request["mode"]
        if subject.variant.backend != "cuda":
            return {"reply": "sampled", "nanoseconds": subject.on_host(per_batch, batches)}
        if mode == "end-to-end":
            return {"reply": "sampled", "nanoseconds": subject.end_to_end(per_batch, batches)}
        watch = self._watch(subject.library)
        return {"reply": "sampled", **subject.on_device(watch, mode, per_batch, batches)}

    def _fetch(self, request: dict[str, Any]) -> dict[str, Any]:
        changed = self._subject(request).fetch(request.get("inputs", False))
        return {"reply": "done", "changed_input": bool(changed)}

    # What they are about.

    def _subject(self, request: dict[str, Any]) -> Subject:
        number = request["data"]
        data = self._data[number]
        variant = find(request["of"], request["variant"], data.element)
        library = libraries.library(variant.arrays, self._place(variant))
        library.threads(request.get("threads"), variant.backend)
        key = (number, variant.of, variant.name)
        if key not in self._subjects:
            site = self._sites.setdefault((number, library.name, library.device), Site(data, library))
            self._subjects[key] = Subject(variant, site)
        return self._subjects[key]

    def _place(self, variant: Variant) -> Optional[int]:
        if variant.backend != "cuda":
            return None
        if self._device is None:
            raise Declined("all GPUs are left alone")
        return self._device

    def _watch(self, library: libraries.Library) -> Stopwatch:
        if self._instruments is None:
            raise Declined("kbench has no device code to time it with: was it built with its feature `cuda`?")
        if library.name not in self._watches:
            with library.on_stream():
                self._watches[library.name] = Stopwatch(self._ordinal, self._instruments, library.stream)
        return self._watches[library.name]
