"""What the server sends, read strictly by the types of OpenAI's and Anthropic's Python libraries: every turn of the encoders'
tests, whole answers, lists of models and errors. The settings in the server's README are all that these types have.

Usage: python schemas.py STREAMS URL, where STREAMS is the example `client_streams`, and URL a server
"""

import functools
import json
import pathlib
import re
import subprocess
import sys
import traceback
import typing
import urllib.error
import urllib.request

import anthropic.types as anthropic
import openai.types.chat as chat
import openai.types.responses as responses
import pydantic
from anthropic.types import message_create_params
from anthropic.types.shared import ErrorResponse
from openai.types import Model
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from openai.types.shared import ErrorObject

README = pathlib.Path(__file__).parents[2] / "crates/serving/advisor-server/README.md"
OUTCOMES = []
# What the server adds. Clients ignore it.
OWN = {"reasoning_content", "request_id"}
# The event of an error has the published fields, and the nested form that OpenAI sends. OpenAI sends citations in a stream of
# Chat Completions, too. Earlier types have the name of a call at the end of its arguments.
KNOWN = {
    ("ResponseErrorEvent", "error"),
    ("ChoiceDelta", "annotations"),
    ("ResponseFunctionCallArgumentsDoneEvent", "name"),
}


def test(run):
    try:
        run()
        OUTCOMES.append(True)
        print(f"ok      schemas: {run.__doc__}")
    except Exception:
        OUTCOMES.append(False)
        print(f"FAILED  schemas: {run.__doc__}")
        traceback.print_exc(file=sys.stdout)


def extras(value):
    """Yields the fields that a type does not have, with the type."""
    if isinstance(value, pydantic.BaseModel):
        yield from ((type(value).__name__, field) for field in value.model_extra or {})
        for field in type(value).model_fields:
            yield from extras(getattr(value, field))
    elif isinstance(value, list):
        for item in value:
            yield from extras(item)


# Making one takes a second for a large type.
adapter = functools.cache(pydantic.TypeAdapter)


def read(kind, text):
    """Reads JSON strictly, without fields of other names."""
    value = adapter(kind).validate_json(text, strict=True)
    unknown = {(of, field) for of, field in extras(value) if field not in OWN} - KNOWN
    assert not unknown, f"{unknown} in {text}"
    return value


def member(union, text):
    """Returns the type of a union that has the type of an event. The errors of a whole union have a thousand lines."""
    kinds = typing.get_args(typing.get_args(union)[0])
    of = json.loads(text)["type"]
    return next(kind for kind in kinds if of in typing.get_args(kind.model_fields["type"].annotation))


def data(stream):
    return [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]


@functools.cache
def streams():
    return json.loads(subprocess.run([sys.argv[1]], capture_output=True, check=True).stdout)


def each(protocol, of, error):
    """Reads the events of every turn, each as the type that `of` returns."""
    count = 0
    for turn, forms in streams().items():
        for event in data(forms[protocol]):
            try:
                fails = "error" in json.loads(event) or json.loads(event).get("type") == "response.failed"
                error(event) if fails else read(of(event), event)
            except Exception as violation:
                raise AssertionError(f"{protocol}, {turn}: {event}") from violation
            count += 1
    assert count > 50, count


def chat_error(event):
    read(ErrorObject, json.dumps(json.loads(event)["error"]))


@test
def chat_completions():
    """Chat Completions, every event of every turn"""
    each("Chat Completions", lambda _: chat.ChatCompletionChunk, chat_error)
    each("Chat Completions with usage", lambda _: chat.ChatCompletionChunk, chat_error)


@test
def responses_events():
    """Responses, every event of every turn"""

    def failed(event):
        value = json.loads(event)
        # Beside the published list, OpenAI sends this code, and clients look for it.
        if value["type"] == "response.failed" and value["response"]["error"]["code"] == "context_length_exceeded":
            value["response"]["error"]["code"] = "invalid_prompt"
        read(member(responses.ResponseStreamEvent, event), json.dumps(value))
        if value["type"] == "error":
            read(ErrorObject, json.dumps(value["error"]))

    each("Responses", functools.partial(member, responses.ResponseStreamEvent), failed)


@test
def messages_events():
    """Messages, every event of every turn"""

    def failed(event):
        value = json.loads(event)
        value["error"].pop("code")
        read(ErrorResponse, json.dumps(value))

    each("Messages", functools.partial(member, anthropic.RawMessageStreamEvent), failed)


def ask(path, body=None):
    """Returns the text of an answer, also of an error."""
    body = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(sys.argv[2] + path, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return error.read()


@test
def whole_answers():
    """answers in one piece, and their errors"""
    messages = [{"role": "user", "content": "How is the weather?"}]
    read(chat.ChatCompletion, ask("/v1/chat/completions", {"messages": messages}))
    read(responses.Response, ask("/v1/responses", {"input": "How is the weather?"}))
    read(anthropic.Message, ask("/v1/messages", {"messages": messages, "max_tokens": 99}))
    for path in ["/v1/chat/completions", "/v1/responses"]:
        error = read(ErrorObject, json.dumps(json.loads(ask(path, {"model": "other", "messages": messages, "input": "Hi"}))["error"]))
        assert error.code == "model_not_found", error
    error = json.loads(ask("/v1/messages", {"model": "other", "messages": messages}))
    error["error"].pop("code")
    assert read(ErrorResponse, json.dumps(error)).error.type == "not_found_error", error


@test
def models():
    """the list of models"""
    page = json.loads(ask("/v1/models"))
    [model] = page["data"]
    for text in [json.dumps(model), ask(f"/v1/models/{model['id']}")]:
        # The model has the fields of both.
        for kind in [Model, anthropic.ModelInfo]:
            adapter(kind).validate_json(text, strict=True)
    assert page["has_more"] is False and page["first_id"] == page["last_id"] == model["id"], page


@test
def settings():
    """the README names every setting of these types"""
    rows = re.findall(r"^\| `(/v1/[a-z/]+)` \|(.*)\|$", README.read_text(), re.MULTILINE)
    named = {route: set(re.findall(r"`([a-z_]+)", cells)) for route, cells in rows if "`stream`" in cells}
    for route, params in [
        ("/v1/chat/completions", completion_create_params.CompletionCreateParamsBase),
        ("/v1/responses", response_create_params.ResponseCreateParamsBase),
        ("/v1/messages", message_create_params.MessageCreateParamsBase),
    ]:
        missing = typing.get_type_hints(params).keys() - named[route]
        assert not missing, f"{route}: {missing}"


print(f"{OUTCOMES.count(True)} passed, {OUTCOMES.count(False)} failed")
sys.exit(not all(OUTCOMES))
