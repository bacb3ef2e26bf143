"""A process that is forked: what its forks answer, how they end, and when it refuses."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

FILE = """
import os, sys, threading
sys.path.insert(0, {package!r})
with open({imports!r}, "a") as file:
    file.write("once\\n")
import numpy as np
from kbench import serve, variant

@variant(of="scale", name="numpy", backend="serial")
def scale(x):
    return 2 * x

@variant(of="scale", name="raises", backend="serial")
def raises(x):
    raise ValueError("no luck")

@variant(of="scale", name="aborts", backend="serial")
def aborts(x):
    print("last words", flush=True)
    os.abort()

@variant(of="scale", name="leaves", backend="serial")
def leaves(x):
    sys.exit(7)

@variant(of="scale", name="hangs", backend="serial")
def hangs(x):
    while True:
        pass

{more}
serve({arguments})
"""


class Line:
    """A socket on which lines of JSON come and go."""

    def __init__(self, end):
        end.settimeout(20)
        self.socket, self._lines = end, end.makefile("r")

    def ask(self, request, **members):
        self.socket.sendall((json.dumps({"request": request, **members}) + "\n").encode())

    def hear(self):
        line = self._lines.readline()
        return json.loads(line) if line else None


class Forked:
    """One process that was forked."""

    def __init__(self, control, folder, **members):
        channel, theirs = socket.socketpair()
        lifeline, their_lifeline = socket.socketpair()
        self._output, output = os.pipe()
        message = json.dumps({"request": "fork", "group": os.getpgrp(), "memory": None, **members}) + "\n"
        socket.send_fds(control, [message.encode()], [theirs.fileno(), output, their_lifeline.fileno()])
        for end in (theirs, their_lifeline):
            end.close()
        os.close(output)
        self.channel, self.lifeline = Line(channel), Line(lifeline)
        self.told, self._folder = self.lifeline.hear(), folder

    def hold(self):
        path = os.path.join(self._folder, "data")
        Path(path).write_bytes(b"\0" * 8192)
        operands = [
            {"name": "x", "type": "f32", "length": 3, "offset": 0, "written": False},
            {"name": "y", "type": "f32", "length": 3, "offset": 4096, "written": True},
        ]
        self.channel.ask("begin", protocol=1, ordinal=0, off=False)
        self.channel.ask(
            "hold", data=1, kernel="demo::scale", type="f32", axes=[["n", 3]], in_place="no", file=path, operands=operands
        )
        return [self.channel.hear()["reply"] for _ in range(2)]

    def call(self, name):
        self.channel.ask("call", data=1, of="scale", variant=name, threads=None)
        return self.channel.hear()

    def printed(self):
        with open(self._output) as file:
            return file.read()


class Program:
    """A file of variants that kbench has started."""

    def __init__(self, test, more="", arguments=""):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.imports = os.path.join(self.folder, "imports")
        text = FILE.format(package=str(PACKAGE), imports=self.imports, more=more, arguments=arguments)
        file = os.path.join(self.folder, "variants.py")
        Path(file).write_text(text)
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen([sys.executable, file, "--worker"], stdin=theirs)
        theirs.close()
        self.control = Line(ours)
        test.addCleanup(self.end)

    def announce(self):
        self.control.ask("announce")
        answer = self.control.hear()
        while answer is not None and answer["reply"] in ("about", "variant"):
            answer = self.control.hear()
        return answer

    def fork(self, **members):
        return Forked(self.control.socket, self.folder, **members)

    def end(self):
        try:
            self.control.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        return self.process.wait(20)


class Forks(unittest.TestCase):
    def test_each_fork_serves_its_own_channel_and_nothing_is_imported_again(self):
        program = Program(self)
        self.assertEqual(program.announce(), {"reply": "done", "forks": True})
        first, second = program.fork(), program.fork()
        for fork in (first, second):
            self.assertEqual(fork.told, {"reply": "forked"})
            self.assertEqual(fork.hold(), ["done", "done"])
        for fork in (second, first, second):
            self.assertEqual(fork.call("numpy")["reply"], "called")
        first.channel.socket.shutdown(socket.SHUT_RDWR)
        self.assertEqual(first.lifeline.hear(), {"reply": "ended", "code": 0})
        self.assertEqual(second.call("numpy")["reply"], "called", "the other one goes on")
        self.assertEqual(Path(program.imports).read_text(), "once\n")
        self.assertEqual(program.end(), 0)
        self.assertIsNone(second.channel.hear(), "no fork outlives the program")

    def test_how_a_fork_ended_and_what_it_printed_is_told(self):
        program = Program(self)
        program.announce()
        raises = program.fork()
        raises.hold()
        self.assertEqual(raises.call("raises")["failure"], "raised ValueError: no luck")
        self.assertEqual(raises.call("numpy")["reply"], "called", "it goes on")
        for name, ended, words in (("aborts", {"signal": signal.SIGABRT}, "last words\n"), ("leaves", {"code": 7}, "")):
            fork = program.fork()
            fork.hold()
            self.assertIsNone(fork.call(name), name)
            self.assertEqual(fork.lifeline.hear(), {"reply": "ended", **ended})
            self.assertEqual(fork.printed(), words)

    def test_a_fork_that_is_not_needed_any_more_is_ended(self):
        program = Program(self)
        program.announce()
        fork = program.fork()
        fork.hold()
        fork.channel.ask("call", data=1, of="scale", variant="hangs", threads=None)
        fork.lifeline.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(fork.lifeline.hear(), {"reply": "ended", "signal": signal.SIGKILL})
        self.assertEqual(program.fork().told, {"reply": "forked"}, "there may be others")

    def test_a_fork_belongs_to_the_group_that_asked_for_it(self):
        program = Program(self)
        program.announce()
        other = subprocess.Popen(["sleep", "600"], start_new_session=False, preexec_fn=os.setpgrp)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        fork = program.fork(group=other.pid)
        fork.hold()
        os.killpg(other.pid, signal.SIGTERM)
        self.assertEqual(fork.lifeline.hear(), {"reply": "ended", "signal": signal.SIGTERM})
        refused = program.fork(group=2**30)
        self.assertEqual(refused.told["reply"], "failed")
        self.assertIsNone(refused.channel.hear())

    def test_memory_is_limited(self):
        program = Program(self, "big = variant(of='scale', name='big', backend='serial')(lambda x: np.ones(1 << 30)[:3])")
        program.announce()
        fork = program.fork(memory=1 << 30)
        fork.hold()
        self.assertIn("MemoryError", fork.call("big")["failure"])

    def test_what_cannot_be_forked_says_so_and_serves_as_it_is(self):
        cases = (
            ("", "fork=False"),
            ("threading.Thread(target=threading.Event().wait, daemon=True).start()", ""),
            ("import types; sys.modules['jax'] = types.ModuleType('jax')", ""),
            ("import ctypes; device = os.open('/dev/null', 0); real = os.readlink\n"
             "os.readlink = lambda path: '/dev/nvidia-uvm' if path.endswith(f'/{device}') else real(path)", ""),
        )  # fmt: skip
        for more, arguments in cases:
            program = Program(self, more, arguments)
            self.assertEqual(program.announce(), {"reply": "done", "forks": False}, more)
            program.control.ask("begin", protocol=1, ordinal=0, off=False)
            self.assertEqual(program.control.hear(), {"reply": "done"})

    def test_threads_that_nobody_stops_before_a_fork_are_noticed(self):
        # Those of a library, which Python does not know of.
        native = (
            "import ctypes; run = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)\n"
            "lib, thread = ctypes.CDLL(None), ctypes.c_ulong()\n"
            "pause = ctypes.cast(lib.pause, ctypes.c_void_p)\n"
            "assert lib.pthread_create(ctypes.byref(thread), None, pause, None) == 0"
        )
        program = Program(self, native)
        self.assertEqual(program.announce(), {"reply": "done", "forks": False})


if __name__ == "__main__":
    unittest.main()
