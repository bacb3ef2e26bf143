"""One process that has imported everything, and its forks: each launch of kbench gets one, and waits for no import."""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
import threading
import warnings
from typing import Any, Optional

#: Files that a process has open after a library has begun to use a device.
DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/")
#: The longest request.
LONGEST = 1 << 16


def obstacle() -> Optional[str]:
    """Why this process cannot be forked; None if it can."""
    if sys.platform != "linux":
        return "libraries of this system do not survive a fork"
    if "jax" in sys.modules:
        return "JAX does not survive a fork"
    if threading.active_count() > 1:
        return "the program has started threads"
    try:
        opened = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd")]
        if any(path.startswith(DEVICES) for path in opened):
            return "a device is in use"
        _fork_once()
        # A library that stops its threads before a fork, as OpenBLAS does, has none now.
        return "a library has started threads" if len(os.listdir("/proc/self/task")) > 1 else None
    except OSError as error:
        return str(error)


def _fork_once() -> None:
    _flush()
    with warnings.catch_warnings():
        # Whether there are threads is what is to be found out.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _flush() -> None:
    """Prints what waits to be printed: a fork would print it once more."""
    sys.stdout.flush()
    sys.stderr.flush()


class Server:
    """Forks a process for each request that comes with descriptors, and tells how each process ends."""

    def __init__(self, control: socket.socket):
        self._control = control
        #: Sockets by process: each closes when its process is not needed any more, and is told how the process ended.
        self._lifelines: dict[int, socket.socket] = {}
        self._awake, self._wake = socket.socketpair()
        self._selector = selectors.PollSelector()

    def serve(self) -> Optional[socket.socket]:
        """Returns in each fork, with the channel that the fork is to serve; and here with None, after the last request."""
        for end in (self._awake, self._wake):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno())
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._awake, selectors.EVENT_READ)
        # Forks share the memory of what is there already; collecting garbage would write to it.
        gc.freeze()
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    message, descriptors, _, _ = socket.recv_fds(self._control, LONGEST, 3, socket.MSG_CMSG_CLOEXEC)
                    if not message:
                        self._end()
                        return None
                    channel = self._asked(message, descriptors)
                    if channel is not None:
                        return channel
                elif key.fileobj is self._awake:
                    self._awake.recv(LONGEST)
                    self._reap()
                elif key.data in self._lifelines:
                    self._selector.unregister(self._lifelines[key.data])
                    os.kill(key.data, signal.SIGKILL)

    def _asked(self, message: bytes, descriptors: list[int]) -> Optional[socket.socket]:
        """Forks. Gives the channel to the fork, and None here."""
        if len(descriptors) != 3:
            for descriptor in descriptors:
                os.close(descriptor)
            _tell(self._control, {"reply": "failed", "failure": "this process forks, and does nothing else"})
            return None
        request = json.loads(message)
        group, memory = request["group"], request.get("memory")
        channel, output, lifeline = *descriptors[:2], socket.socket(fileno=descriptors[2])
        _flush()
        child = -1
        try:
            child = os.fork()
            if child == 0:
                lifeline.close()
                self._leave()
                _confine(memory)
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                return socket.socket(fileno=channel)
            os.setpgid(child, group)
        except OSError as error:
            if child == 0:
                raise
            if child > 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            _tell(lifeline, {"reply": "failed", "failure": f"cannot fork: {error}"})
            lifeline.close()
        else:
            self._lifelines[child] = lifeline
            self._selector.register(lifeline, selectors.EVENT_READ, child)
            _tell(lifeline, {"reply": "forked"})
        os.close(channel)
        os.close(output)
        return None

    def _leave(self) -> None:
        """Gives up everything that is the server's, in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for end in (self._control, self._awake, self._wake, *self._lifelines.values()):
            end.close()

    def _reap(self) -> None:
        """Tells how processes have ended."""
        for child, lifeline in list(self._lifelines.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                continue
            code = os.waitstatus_to_exitcode(status)
            _tell(lifeline, {"reply": "ended", "signal": -code} if code < 0 else {"reply": "ended", "code": code})
            if lifeline in self._selector.get_map():
                self._selector.unregister(lifeline)
            lifeline.close()
            del self._lifelines[child]

    def _end(self) -> None:
        """Ends the processes that are left."""
        for child, lifeline in self._lifelines.items():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lifeline.close()


def _tell(to: socket.socket, answer: dict[str, Any]) -> None:
    try:
        to.sendall((json.dumps(answer) + "\n").encode())
    except OSError:
        pass  # it is not needed any more


def _confine(memory: Optional[int]) -> None:
    """Lets this process have no more bytes of data than this, and be the first that the system ends when memory is short."""
    if memory is None:
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory if most == resource.RLIM_INFINITY else min(memory, most), most))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # the system ends nobody here
