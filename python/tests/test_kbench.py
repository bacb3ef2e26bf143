"""The package by itself: declarations, data, and calls as kbench asks for them."""

import inspect
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402

from kbench import Declined, declare, variant  # noqa: E402
from kbench.calls import Site, Subject  # noqa: E402
from kbench.cuda import Span  # noqa: E402
from kbench.data import PIECE, Data, same_bits  # noqa: E402
from kbench.libraries import Library  # noqa: E402
from kbench.serve import PROTOCOL, Worker  # noqa: E402

PAGE = 4096


class Workshop:
    """A worker on a thread, asked as kbench asks it, about y = s x for x of three numbers."""

    def __init__(self, in_place="no", element="f32", content=None):
        declare.VARIANTS.clear()
        ours, theirs = socket.socketpair()
        self._channel, self._lines = ours, ours.makefile("r")
        threading.Thread(target=Worker(theirs).serve, daemon=True).start()
        x = np.array([1, 2, 3], np.float32) if content is None else content
        self._file = tempfile.NamedTemporaryFile()
        for offset, value in ((0, x), (PAGE, np.float32(2)), (2 * PAGE, np.full(3, np.nan, np.float32))):
            os.pwrite(self._file.fileno(), value.tobytes(), offset)
        os.ftruncate(self._file.fileno(), 3 * PAGE)
        operands = [
            {"name": "x", "type": element, "length": 3, "offset": 0, "written": False},
            {"name": "s", "type": "f32", "length": None, "offset": PAGE, "written": False},
            {"name": "y", "type": "f32", "length": 3, "offset": 2 * PAGE, "written": True},
        ]
        self.hold = {
            "request": "hold", "data": 1, "kernel": "demo::scale", "type": element, "axes": [["n", 3]],
            "in_place": in_place, "file": self._file.name, "operands": operands,
        }  # fmt: skip

    def ask(self, request, **members):
        message = request if isinstance(request, dict) else {"request": request, **members}
        self._channel.sendall((json.dumps(message) + "\n").encode())
        return json.loads(self._lines.readline())

    def begin(self):
        assert self.ask("begin", protocol=PROTOCOL, ordinal=0, off=False)["reply"] == "done"
        assert self.ask(self.hold)["reply"] == "done"
        return self

    def call(self, name="numpy", request="call", **members):
        return self.ask(request, data=1, of="scale", variant=name, threads=None, **members)

    def sample(self, name="numpy", calls=5, mode="warm"):
        return self.call(name, "sample", mode=mode, per_batch=calls, batches=2)

    def bytes(self, offset, count):
        return os.pread(self._file.fileno(), count, offset)

    @property
    def y(self):
        return list(struct.unpack("3f", self.bytes(2 * PAGE, 12)))


class Declarations(unittest.TestCase):
    def setUp(self):
        declare.VARIANTS.clear()

    def test_mistakes_are_named(self):
        for arguments, reason in (
            ({"backend": "gpu"}, "is not one of serial, parallel, cuda"),
            ({"backend": "serial", "types": "f32"}, "give a list"),
            ({"backend": "serial", "arrays": "cupy"}, "is not one of numpy, torch, jax"),
        ):
            with self.assertRaisesRegex(ValueError, reason):
                variant(of="scale", name="numpy", **arguments)(lambda x: x)
        with self.assertRaisesRegex(ValueError, "is not an ordinary one"):
            variant(of="scale", name="numpy", backend="serial")(lambda *x: x)

    def test_a_name_is_used_once_for_every_type(self):
        variant(of="scale", name="numpy", backend="serial", types=["f32"])(lambda x: x)
        variant(of="scale", name="numpy", backend="serial", types=["f16"])(lambda x: x)
        with self.assertRaisesRegex(ValueError, "one of that name already"):
            variant(of="scale", name="numpy", backend="serial", types=["f16", "f64"])(lambda x: x)

    def test_an_announcement_has_what_the_function_takes(self):
        function = lambda x, s: x  # noqa: E731
        variant(of="scale", name="numpy", backend="serial", types=["f32"], tolerance=1e-3)(function)
        told = declare.VARIANTS[0].announcement()
        self.assertEqual((told["of"], told["parameters"], told["types"]), ("scale", ["x", "s"], ["f32"]))
        self.assertTrue(told["place"]["file"].endswith("test_kbench.py"))


class Calls(unittest.TestCase):
    def test_results_are_returned_or_written(self):
        workshop = Workshop()
        variant(of="scale", name="numpy", backend="serial")(lambda x, s: np.float32(s) * x)
        variant(of="scale", name="out", backend="serial")(lambda x, s, y: np.multiply(x, np.float32(s), out=y) is None or None)
        workshop.begin()
        for name in ("numpy", "out"):
            answer = workshop.call(name)
            self.assertEqual((answer["reply"], workshop.y), ("called", [2, 4, 6]), answer)
            os.pwrite(workshop._file.fileno(), b"\0" * 12, 2 * PAGE)
            self.assertGreaterEqual(workshop.sample(name)["nanoseconds"], 0)
            self.assertEqual(workshop.call(name, "fetch")["reply"], "done")
            self.assertEqual(workshop.y, [2, 4, 6])
        self.assertEqual(workshop.ask("release", data=1)["reply"], "done")

    def test_an_input_that_a_sample_changes_is_told_if_asked_for(self):
        workshop = Workshop()

        def spoil(x, y):
            y[:] = x
            x.base[1] = 7  # what is handed over cannot be written to

        variant(of="scale", name="numpy", backend="serial")(spoil)
        workshop.begin().sample()
        self.assertFalse(workshop.call(request="fetch", inputs=False)["changed_input"])
        self.assertTrue(workshop.call(request="fetch", inputs=True)["changed_input"])
        self.assertFalse(workshop.call(request="fetch", inputs=True)["changed_input"], "it was put right")

    def test_every_bit_of_an_array_counts(self):
        for count in (0, 1, 3, 8, 2 * PIECE + 5):
            array = np.arange(count, dtype=np.float32)
            self.assertTrue(same_bits(array, array.copy()), count)
            for place in {0, count // 2, count - 1} if count else ():
                other = array.copy()
                other.view(np.uint32)[place] ^= 1
                self.assertFalse(same_bits(array, other), (count, place))
        self.assertFalse(same_bits(np.zeros(2), np.zeros(3)))
        self.assertFalse(same_bits(np.zeros(3), -np.zeros(3)))

    def test_what_is_no_operand_is_appended_to_the_file(self):
        workshop = Workshop()
        variant(of="scale", name="numpy", backend="serial")(lambda x, y: (y * 0, x.sum(), np.arange(4, dtype=np.uint32)))
        workshop.begin()
        first, second = workshop.call()["returned"]
        self.assertEqual((first["type"], first["bytes"], second["type"]), ("f32", 4, "u32"))
        self.assertEqual(struct.unpack("f", workshop.bytes(first["offset"], 4)), (6.0,))
        self.assertEqual(struct.unpack("4I", workshop.bytes(second["offset"], 16)), (0, 1, 2, 3))

    def test_every_call_of_a_fresh_kernel_gets_fresh_data(self):
        for in_place, expected in (("fresh", 1.0), ("reuse", 5.0)):
            workshop = Workshop(in_place=in_place)
            os.pwrite(workshop._file.fileno(), b"\0" * 12, 2 * PAGE)

            def add(y):
                y += 1

            variant(of="scale", name="numpy", backend="serial")(add)
            workshop.begin()
            workshop.call("numpy", "sample", mode="warm", per_batch=5, batches=1)
            workshop.call(request="fetch")
            self.assertEqual(workshop.y, [expected] * 3, in_place)

    def test_shapes_axes_and_what_is_prepared(self):
        workshop = Workshop()
        seen = {}

        def prepare(x, n):
            return {"table": x * n}

        def function(x, table, n):
            seen.update(shape=x.shape, table=table.tolist(), n=n)
            return x + 1

        variant(of="scale", name="numpy", backend="serial", shapes={"x": "1 n"}, prepare=prepare)(function)
        workshop.begin()
        workshop.call()
        self.assertEqual(seen, {"shape": (1, 3), "table": [[3, 6, 9]], "n": 3})
        data = Data({**workshop.hold, "axes": [["n", 6], ["m", 2]]})
        self.assertEqual(data.shape(data.operands[0], ("n/m",)), (3,))
        with self.assertRaisesRegex(ValueError, "no axis of the kernel"):
            data.shape(data.operands[0], ("k",))
        with self.assertRaisesRegex(ValueError, "has 3 elements"):
            data.shape(data.operands[0], ("n",))
        data.close()

    def test_mistakes_cost_a_call_and_say_what_is_wrong(self):
        def declines(x):
            raise Declined("too small")

        def raises(x):
            raise KeyError("no luck")

        def writes_input(x):
            x += 1

        cases = (
            ("double", lambda x: x.astype(np.float64), "gives float64 where f32 is expected in `y`"),
            ("short", lambda x: 2 * x[:2], "gives 2 element"),
            ("nothing", lambda x: None, "returned None, and does not take `y`"),
            ("raises", raises, "raised KeyError: 'no luck'"),
            ("unknown", lambda z: z, "takes `z`, which is no axis"),
            ("input", lambda x: x, "in the memory of `x`"),
            ("view", lambda x: x[::-1], "in the memory of `x`"),
            ("spread", lambda x: np.broadcast_to(x[:1] * 2, 3), "share memory"),
            ("writes", writes_input, "read-only"),
        )
        workshop = Workshop()
        for name, function, _ in cases:
            variant(of="scale", name=name, backend="serial")(function)
        variant(of="scale", name="declines", backend="serial")(declines)
        variant(of="scale", name="gpu", backend="cuda", arrays="numpy")(lambda x: x)
        variant(of="scale", name="numpy", backend="serial")(lambda x: 2 * x)
        workshop.begin()
        for name, _, reason in cases:
            answer = workshop.call(name)
            self.assertEqual((answer["reply"], answer.get("ends")), ("failed", False), answer)
            self.assertIn(reason, answer["failure"])
        self.assertEqual(workshop.call("declines"), {"reply": "declined", "reason": "too small"})
        self.assertIn("not on a GPU", workshop.call("gpu")["reason"])
        self.assertEqual(workshop.call()["reply"], "called", "the worker goes on")
        self.assertEqual(workshop.ask("begin", protocol=99, ordinal=0, off=False)["reply"], "failed")

    def test_what_a_sample_does_not_write_stays_poisoned(self):
        def once(x, y, calls=[]):
            calls.append(1)
            if len(calls) == 1:
                y[...] = x

        once.__signature__ = inspect.signature(lambda x, y: None)
        workshop = Workshop()
        variant(of="scale", name="numpy", backend="serial")(once)
        workshop.begin()
        workshop.call()
        self.assertEqual(workshop.y, [1, 2, 3])
        os.pwrite(workshop._file.fileno(), struct.pack("3f", 7, 7, 7), 2 * PAGE)
        workshop.call(request="sample", mode="warm", per_batch=2, batches=1, poisoned=True)
        workshop.call(request="fetch")
        self.assertEqual(workshop.y, [7, 7, 7])

    def test_a_variant_is_called_once_before_it_is_timed_behind_a_gate(self):
        happened = []

        class Watch:
            overhead = 0.0

            def follow(self, stream):
                pass

            def span(self, work, gated=True, alone=True):
                happened.append("gate")
                work()
                return Span(1.0, 1.0, False)

        workshop = Workshop()
        variant(of="scale", name="loading", backend="cuda")(lambda x: happened.append("call") or x)
        subject = Subject(declare.VARIANTS[-1], Site(Data(workshop.hold), Library(None)))
        for _ in range(2):
            subject.on_device(Watch(), "hot", 2, 1)
        self.assertEqual(happened, ["call", "gate", "call", "call", "gate", "call", "call"])

    def test_numpy_declines_types_that_it_does_not_have(self):
        workshop = Workshop(element="bf16", content=np.array([1, 2, 3], np.uint16))
        variant(of="scale", name="numpy", backend="serial")(lambda x: x)
        workshop.begin()
        self.assertEqual(workshop.call()["reason"], "NumPy has no bf16")


if __name__ == "__main__":
    unittest.main()
