"""Python clients against `advisor serve`: two turns each, of which the first has a tool and the second shows memory.

Usage: python clients.py URL
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

import anthropic
import openai
import openapi_spec_validator

URL = sys.argv[1]
WEATHER, SECOND = "How is the weather?", "And who are you?"
MEMORY = "This is message 2 of the conversation"
OUTCOMES = []


def test(run):
    try:
        run(f"python-{run.__name__}-{time.time_ns()}")
        OUTCOMES.append(True)
        print(f"ok      python: {run.__doc__}")
    except Exception:
        OUTCOMES.append(False)
        print(f"FAILED  python: {run.__doc__}")
        traceback.print_exc(file=sys.stdout)


@test
def openai_chat(conversation):
    """openai, chat completions, streamed"""
    headers = {"x-conversation-id": conversation}
    client = openai.OpenAI(api_key="none", base_url=f"{URL}/v1", max_retries=0, default_headers=headers)

    def ask(content):
        messages = [{"role": "user", "content": content}]
        stream = client.chat.completions.create(model="chain", messages=messages, stream=True)
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
        assert len(pieces) > 3, pieces
        return "".join(pieces)

    assert "degrees" in ask(WEATHER)
    assert MEMORY in ask(SECOND)


@test
def openai_responses(conversation):
    """openai, responses, streamed and in one piece"""
    client = openai.OpenAI(api_key="none", base_url=f"{URL}/v1", max_retries=0)
    with client.responses.stream(model="chain", input=WEATHER, conversation=conversation) as stream:
        for _ in stream:
            pass
        assert "degrees" in stream.get_final_response().output_text
    second = client.responses.create(model="chain", input=SECOND, conversation=conversation)
    assert MEMORY in second.output_text, second


@test
def openai_previous_response(conversation):
    """openai, responses, by the previous response, with the client's history"""
    client = openai.OpenAI(api_key="none", base_url=f"{URL}/v1", max_retries=0)
    first = client.responses.create(model="chain", input=WEATHER)
    assert "degrees" in first.output_text, first
    second = client.responses.create(model="chain", input=SECOND, previous_response_id=first.id)
    assert MEMORY in second.output_text, second
    history = [{"role": "user", "content": SECOND}, *second.output, {"role": "user", "content": "And then?"}]
    messages = [{"role": "user", "content": WEATHER}, *first.output, *history]
    third = client.responses.create(model="chain", input=messages, previous_response_id=second.id)
    assert "This is message 3 of the conversation" in third.output_text, third


@test
def anthropic_messages(conversation):
    """anthropic, messages, streamed and in one piece"""
    headers = {"x-conversation-id": conversation}
    client = anthropic.Anthropic(api_key="none", base_url=URL, max_retries=0, default_headers=headers)
    request = {"model": "chain", "max_tokens": 100}
    with client.messages.stream(**request, messages=[{"role": "user", "content": WEATHER}]) as stream:
        assert "degrees" in "".join(stream.text_stream)
    second = client.messages.create(**request, messages=[{"role": "user", "content": SECOND}])
    assert MEMORY in second.content[0].text, second


@test
def anthropic_errors(conversation):
    """anthropic, typed errors"""
    client = anthropic.Anthropic(api_key="none", base_url=URL, max_retries=0)

    def refused(model="chain", **request):
        try:
            client.messages.create(model=model, max_tokens=100, **request)
        except anthropic.APIStatusError as error:
            return error
        raise AssertionError("the request was accepted")

    bad = refused(messages=[])
    assert isinstance(bad, anthropic.BadRequestError), bad
    assert bad.type == "invalid_request_error" and bad.body["request_id"], bad.body
    unknown = refused("claude", messages=[{"role": "user", "content": WEATHER}])
    assert isinstance(unknown, anthropic.NotFoundError), unknown
    assert unknown.type == "not_found_error" and unknown.request_id == unknown.body["request_id"], unknown.body
    foreign = refused(messages=[{"role": "user", "content": WEATHER}], extra_headers={"host": "example.org"})
    assert isinstance(foreign, anthropic.PermissionDeniedError), foreign
    assert foreign.type == "permission_error", foreign.body


@test
def stopped_turn(conversation):
    """openai and anthropic with their default retries, a stopped turn is not asked for again"""
    headers = {"x-conversation-id": conversation}
    client = openai.OpenAI(api_key="none", base_url=f"{URL}/v1", default_headers=headers)
    claude = anthropic.Anthropic(api_key="none", base_url=URL, default_headers=headers)
    messages = [{"role": "user", "content": "Tell me a long story. " * 40}]

    def read():
        with urllib.request.urlopen(f"{URL}/api/conversations/{conversation}", timeout=60) as answer:
            return json.load(answer)

    def stop():
        while True:
            try:
                if read()["running"]:
                    break
            except urllib.error.HTTPError:
                pass
        request = urllib.request.Request(f"{URL}/api/conversations/{conversation}/stop", method="POST")
        urllib.request.urlopen(request, timeout=60).close()

    calls = [
        (openai, lambda: client.chat.completions.create(model="chain", messages=messages)),
        (openai, lambda: client.responses.create(model="chain", input=messages)),
        (anthropic, lambda: claude.messages.create(model="chain", max_tokens=9, messages=messages)),
    ]
    for number, (library, call) in enumerate(calls, 1):
        stopping = threading.Thread(target=stop)
        stopping.start()
        try:
            raise AssertionError(call())
        except library.UnprocessableEntityError as error:
            assert "cancelled" in str(error), error
        stopping.join()
        # A turn may be stopped before its message is stored. Then the conversation may not exist yet.
        try:
            asked = [message for message in read()["messages"] if message["role"] == "user"]
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            asked = []
        assert len(asked) <= number, asked


@test
def llm_command(conversation):
    """the llm command, streamed and in one piece"""
    with tempfile.TemporaryDirectory() as folder:
        model = f"- model_id: chain\n  model_name: chain\n  api_base: {URL}/v1\n  headers:\n    x-conversation-id: {conversation}\n"
        pathlib.Path(folder, "extra-openai-models.yaml").write_text(model)
        environment = {**os.environ, "LLM_USER_PATH": folder, "OPENAI_API_KEY": "none"}

        def ask(text, *options):
            command = [str(pathlib.Path(sys.executable).parent / "llm"), "--model", "chain", *options, text]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "degrees" in ask(WEATHER)
        assert MEMORY in ask(SECOND, "--no-stream")


@test
def openapi_document(conversation):
    """OpenAPI, the description of the routes"""
    with urllib.request.urlopen(f"{URL}/openapi.json", timeout=60) as answer:
        document = json.load(answer)
    openapi_spec_validator.validate(document, cls=openapi_spec_validator.OpenAPIV31SpecValidator)


print(f"{OUTCOMES.count(True)} passed, {OUTCOMES.count(False)} failed")
sys.exit(not all(OUTCOMES))
