"""An OTLP receiver for the tests of `advisor-otel`: OpenTelemetry's official protobufs behind Python's HTTP server.

POST /v1/traces and /v1/metrics keep what comes. GET /SERVICE returns it as JSON, by the name of the service, and the
problems of messages in it: those that do not fit the types of OpenTelemetry's package for generative AI. GET / returns
all names of attributes and metrics that its packages know.
Usage: receiver.py [PORT]   prints its address; 0 or nothing is a free port
"""

import http.server
import json
import sys
import threading

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.util.genai import _agent_invocation, _instruments, types

REQUESTS = {
    "/v1/traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse),
    "/v1/metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse),
}
MESSAGES = {"gen_ai.input.messages": types.InputMessage, "gen_ai.output.messages": types.OutputMessage}
PARTS = [types.TextPart, types.ReasoningPart, types.ToolCallRequestPart, types.ToolCallResponsePart, types.UriPart,
         types.FilePart]
PART_TYPES = {part.__dataclass_fields__["type"].default: part for part in PARTS}
received = {}
lock = threading.Lock()


def names():
    modules = [gen_ai_attributes, gen_ai_metrics, error_attributes, _agent_invocation, _instruments]
    values = [value for module in modules for value in vars(module).values()]
    return sorted({value for value in values if isinstance(value, str) and value.startswith(("gen_ai.", "error."))})


def service(of_resource):
    attributes = of_resource["resource"]["attributes"]
    return next(each["value"]["stringValue"] for each in attributes if each["key"] == "service.name")


def problems(of_resource):
    spans = [span for scope in of_resource.get("scopeSpans", []) for span in scope["spans"]]
    attributes = [attribute for span in spans for attribute in span.get("attributes", [])]
    found = []
    for attribute in attributes:
        if message_type := MESSAGES.get(attribute["key"]):
            for message in json.loads(attribute["value"]["stringValue"]):
                try:
                    parts = [PART_TYPES[part["type"]](**part) for part in message.pop("parts")]
                    message_type(parts=parts, **message)
                except (KeyError, TypeError) as error:
                    found.append(repr(error))
    return found


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path not in REQUESTS or self.headers["content-type"] != "application/x-protobuf":
            return self.answer(415, "text/plain", b"")
        request, response = REQUESTS[self.path]
        message = MessageToDict(request.FromString(body))
        with lock:
            for kind in ("resourceSpans", "resourceMetrics"):
                for of_resource in message.get(kind, []):
                    new = {"resourceSpans": [], "resourceMetrics": [], "problems": []}
                    kept = received.setdefault(service(of_resource), new)
                    kept[kind].append(of_resource)
                    kept["problems"] += problems(of_resource)
        self.answer(200, "application/x-protobuf", response().SerializeToString())

    def do_GET(self):
        with lock:
            value = names() if self.path == "/" else received.get(self.path[1:])
        self.answer(200 if value else 404, "application/json", json.dumps(value).encode())

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Receiver)
print(f"OTLP receiver on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
