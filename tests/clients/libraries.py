"""Libraries for Python against `advisor serve`, each with every protocol that it speaks: two turns with a tool of the
chain, an answer that breaks off, a conversation that is too long, and a history that the server does not have.

Usage: python libraries.py URL, with the address of the server of libraries.mjs
"""

import functools
import operator
import os
import sys
import time
import traceback

# litellm reads prices from the network otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import anthropic
import litellm
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, ModelContextWindowExceededError
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

URL = sys.argv[1]
V1 = f"{URL}/v1"
OUTCOMES = []
# litellm asks for an unknown model of Responses in one piece.
litellm.register_model({"openai/chain": {"litellm_provider": "openai", "supports_native_streaming": True}})


# Each client asks `text` behind its messages, adds the question and the answer to them, and returns the answer's text.


def langchain(model, **options):
    def ask(messages, text, stream, headers):
        client = model(model="chain", api_key="none", max_retries=0, default_headers=headers, **options)
        messages.append(HumanMessage(text))
        answer = functools.reduce(operator.add, client.stream(messages)) if stream else client.invoke(messages)
        messages.append(answer)
        return answer.text

    return ask


def pydantic_ai(model, provider):
    def ask(messages, text, stream, headers):
        agent = Agent(model("chain", provider=provider), model_settings={"extra_headers": headers})
        run = agent.run_stream_sync if stream else agent.run_sync
        answer = run(text, message_history=list(messages))
        output = answer.get_output() if stream else answer.output
        messages[:] = answer.all_messages()
        return output

    return ask


def litellm_completion(model, api_base):
    def ask(messages, text, stream, headers):
        messages.append({"role": "user", "content": text})
        options = {"api_base": api_base, "api_key": "none", "max_retries": 0, "extra_headers": headers}
        answer = litellm.completion(model=model, messages=messages, stream=stream, **options)
        message = (litellm.stream_chunk_builder(list(answer)) if stream else answer).choices[0].message
        messages.append(message)
        return message.content

    return ask


def litellm_responses(messages, text, stream, headers):
    messages.append({"role": "user", "content": text})
    options = {"api_base": V1, "api_key": "none", "max_retries": 0, "extra_headers": headers}
    answer = litellm.responses(model="openai/chain", input=messages, stream=stream, **options)
    response = list(answer)[-1].response if stream else answer
    messages.extend(response.output)
    return response.output_text


OPENAI = OpenAIProvider(openai_client=openai.AsyncOpenAI(base_url=V1, api_key="none", max_retries=0))
ANTHROPIC = AnthropicProvider(anthropic_client=anthropic.AsyncAnthropic(base_url=URL, api_key="none", max_retries=0))

# How each client asks, and its own error for a conversation that is too long; a second one within a stream, if the
# client tells only refused requests apart.
CLIENTS = {
    "langchain-openai: chat completions": (langchain(ChatOpenAI, base_url=V1), ContextOverflowError),
    "langchain-openai: responses": (langchain(ChatOpenAI, base_url=V1, use_responses_api=True), ContextOverflowError),
    "langchain-anthropic: messages": (
        langchain(ChatAnthropic, base_url=URL),
        ContextOverflowError,
        anthropic.APIStatusError,
    ),
    "pydantic-ai: chat completions": (pydantic_ai(OpenAIChatModel, OPENAI), ModelContextWindowExceededError),
    "pydantic-ai: responses": (pydantic_ai(OpenAIResponsesModel, OPENAI), ModelContextWindowExceededError),
    "pydantic-ai: messages": (pydantic_ai(AnthropicModel, ANTHROPIC), ModelContextWindowExceededError),
    "litellm: chat completions": (litellm_completion("openai/chain", V1), litellm.ContextWindowExceededError),
    "litellm: responses": (litellm_responses, litellm.ContextWindowExceededError),
    "litellm: messages": (litellm_completion("anthropic/chain", URL), litellm.ContextWindowExceededError),
}


def named():
    return {"x-conversation-id": f"library-{time.time_ns()}"}


def raised(ask, messages, text, stream, headers):
    try:
        answer = ask(messages, text, stream, headers)
    except Exception as error:
        return error
    raise AssertionError(f"no error: {answer!r}")


def two_turns(ask, stream, *_):
    """two turns with a tool of the chain, and the second knows the first"""
    headers, messages = named(), []
    first = ask(messages, "How is the weather?", stream, headers)
    assert first.startswith("The tool says: ") and '"degrees"' in first, first
    result = first.removeprefix("The tool says: ")
    second = ask(messages, "What have I asked?", stream, headers)
    history = ["user: How is the weather?", "assistant: a call", f"tool: {result}", f"assistant: {first}"]
    assert second.splitlines() == [*history, "user: What have I asked?"], second


def broken(ask, stream, *_):
    """an answer that breaks off is an error"""
    error = raised(ask, [], "Break off.", stream, named())
    assert "the answer broke off" in str(error), repr(error)


def too_long(ask, stream, refused, *_):
    """a conversation that is too long is the library's own error for it"""
    error = raised(ask, [], "This is too long.", stream, named())
    assert isinstance(error, refused), repr(error)


def too_long_within(ask, stream, *errors):
    """a result that makes the conversation too long is that error, too"""
    error = raised(ask, [], "Look for too long.", stream, named())
    assert isinstance(error, errors[-1 if stream else 0]), repr(error)
    assert "prompt is too long" in str(error), repr(error)


def foreign(ask, stream, *_):
    """a history that the server does not have is a 400"""
    messages = []
    ask(messages, "Hello", stream, named())
    error = raised(ask, messages, "And now?", stream, named())
    assert error.status_code == 400, repr(error)


for name, (ask, *errors) in CLIENTS.items():
    for scene in (two_turns, broken, too_long, too_long_within, foreign):
        for stream in (True, False):
            test = f"{name}, {'streamed' if stream else 'in one piece'}: {scene.__doc__}"
            try:
                scene(ask, stream, *errors)
                OUTCOMES.append(True)
                print(f"ok      {test}")
            except Exception:
                OUTCOMES.append(False)
                print(f"FAILED  {test}")
                traceback.print_exc(file=sys.stdout)

print(f"{OUTCOMES.count(True)} passed, {OUTCOMES.count(False)} failed")
sys.exit(not all(OUTCOMES))
