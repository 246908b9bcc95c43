"""The trace that the calls of the Python package belong to."""

import os
import tempfile
import unittest
from concurrent import futures
from unittest import mock

import grpc
import numpy as np

import pelab
from pelab import _trace
from pelab.v1 import sweeps_pb2, sweeps_pb2_grpc


class Recorder(sweeps_pb2_grpc.SweepsServicer):
    """A coordinator that keeps the `traceparent` of each call."""

    def __init__(self):
        self.told = []

    def _keep(self, context):
        self.told.append(dict(context.invocation_metadata()).get("traceparent", ""))

    def PutFile(self, request_iterator, context):
        self._keep(context)
        for _ in request_iterator:
            pass
        return sweeps_pb2.PutFileResponse()

    def Submit(self, request, context):
        self._keep(context)
        return sweeps_pb2.SubmitResponse(sweep_id=1)

    def WatchSweep(self, request, context):
        self._keep(context)
        yield sweeps_pb2.SweepUpdate()


class Traces(unittest.TestCase):
    TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    OUTER = f"00-{TRACE}-{SPAN}-01"

    def test_the_form(self):
        """The cases of tests/unit/core/base/trace_context_test.cc."""
        later = f"cc-{self.TRACE}-{self.SPAN}-01"
        for text in (self.OUTER, later, f"{later}-what", f"{later}-"):
            self.assertEqual(_trace.trace_of(text), self.TRACE, text)
        for text in ("", "00", self.OUTER[:-3], f"{self.OUTER}-more", f"{later}.more",
                     "ff" + self.OUTER[2:], "0G" + self.OUTER[2:], f"{self.OUTER}\n",
                     self.OUTER.replace(self.TRACE, self.TRACE.upper()),
                     self.OUTER.replace(self.TRACE, 32 * "0"),
                     self.OUTER.replace(self.SPAN, 16 * "0"), self.OUTER[:-1] + "g",
                     "00_" + self.OUTER[3:]):
            self.assertIsNone(_trace.trace_of(text), text)

    def calls(self, variable):
        """The metadata of a submission with a file, and of a watch, as pairs of trace and span."""
        recorder = Recorder()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        address = f"unix:{folder}/s"
        server = grpc.server(futures.ThreadPoolExecutor(1))
        sweeps_pb2_grpc.add_SweepsServicer_to_server(recorder, server)
        server.add_insecure_port(address)
        server.start()
        self.addCleanup(server.stop, None)
        tokens = np.arange(6).reshape(2, 3)
        pelab.save_task(f"{folder}/t.safetensors", tokens, np.zeros(2, np.int64),
                        ["train", "test"], name="t")
        with (mock.patch.dict(os.environ, {"TRACEPARENT": variable}),
              pelab.connect(address) as lab):
            lab.submit("a: 1\n", own_files={"t.safetensors": f"{folder}/t.safetensors"})
            list(lab.watch(1))
        for told in recorder.told:
            self.assertIsNotNone(_trace.trace_of(told), told)
        return [tuple(told.split("-")[1:3]) for told in recorder.told]

    def test_calls(self):
        named = self.calls(self.OUTER)
        self.assertEqual({trace for trace, _ in named}, {self.TRACE})
        spans = {span for _, span in named}
        self.assertEqual(len(spans | {self.SPAN}), 5, "each call has a span of its own")
        for variable in ("", "nonsense"):
            own = self.calls(variable)
            self.assertEqual(len(own), 4)
            self.assertEqual(len({trace for trace, _ in own[:3]}), 1, "one for a submission")
            self.assertNotEqual(own[3][0], own[0][0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
