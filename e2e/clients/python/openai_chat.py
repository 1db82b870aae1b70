"""The openai package, synchronous and asynchronous: chats, streams, errors, models."""

import asyncio
import inspect

import openai

import checks
from checks import check, equal, true

THINKER = "anthropic/claude-sonnet-5-5"  # thinks unless told otherwise
PLAIN = "anthropic/claude-opus-4-8"  # does not

COUNT = [{"role": "user", "content": "Count from 1 to 5"}]


class Client:
    """One client, synchronous or not, used the same way."""

    def __init__(self, kind, **options):
        self.kind = kind
        options = {"base_url": checks.BASE_URL, "api_key": checks.API_KEY, "max_retries": 0, **options}
        self.openai = kind(**options)

    def with_options(self, **options):
        return Client(self.kind, **options)

    async def create(self, messages=COUNT, model=PLAIN, **fields):
        return await settle(self.openai.chat.completions.create(model=model, messages=messages, **fields))

    async def models(self):
        return [model async for model in items(await settle(self.openai.models.list()))]

    async def model(self, name):
        return await settle(self.openai.models.retrieve(name))

    async def stream(self, messages=COUNT, model=PLAIN, **fields):
        """Returns the chunks of a stream and its response's headers."""
        stream = await self.create(messages, model, stream=True, **fields)
        return [chunk async for chunk in items(stream)], stream.response.headers


async def settle(value):
    return await value if inspect.isawaitable(value) else value


async def items(iterable):
    if hasattr(iterable, "__aiter__"):
        async for item in iterable:
            yield item
    else:
        for item in iterable:
            yield item


async def refused(awaitable, kind, status):
    """Waits for an error of exactly this class and status, and returns it."""
    try:
        await awaitable
    except openai.APIStatusError as error:
        equal(type(error), kind, "class of the error")
        equal(error.status_code, status, "status")
        true(error.request_id, "the error has no request id")
        equal(error.response.headers["request-id"], error.request_id, "request-id")
        return error
    raise AssertionError(f"no {kind.__name__}")


def envelope(error, message, kind, param=None, code=None):
    body = error.body
    equal(sorted(body), ["code", "message", "param", "type"], "keys of the error")
    true(message in body["message"], f"message {body['message']!r} does not hold {message!r}")
    equal((body["type"], body["param"], body["code"]), (kind, param, code), "type, param and code")
    equal((error.type, error.param, error.code), (kind, param, code), "what the client makes of them")


def arithmetic(usage):
    """Checks that the counts of one answer fit together."""
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    true(usage.prompt_tokens > 0 and usage.completion_tokens > 0, f"nothing was counted: {usage}")
    equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens, "total_tokens")
    true(0 <= prompt.cached_tokens + prompt.cache_write_tokens <= usage.prompt_tokens, f"cache: {usage}")
    true(0 <= completion.reasoning_tokens <= usage.completion_tokens, f"reasoning: {usage}")


def well_formed(completion, model):
    equal(completion.id, "chatcmpl-" + completion._request_id, "id")
    equal(completion.object, "chat.completion", "object")
    equal(completion.model, model, "model")
    equal(type(completion.created), int, "type of created")
    true(completion.created > 1_700_000_000, f"created is {completion.created}")
    equal(len(completion.choices), 1, "number of choices")
    choice = completion.choices[0]
    equal((choice.index, choice.logprobs), (0, None), "index and logprobs")
    equal((choice.message.role, choice.message.refusal), ("assistant", None), "role and refusal")
    equal(choice.message.tool_calls, None, "tool_calls")
    arithmetic(completion.usage)


@check
async def whole(client):
    completion = await client.create()
    well_formed(completion, PLAIN)
    equal(completion.choices[0].message.content, "1\n2\n3\n4\n5", "content")
    equal(completion.choices[0].finish_reason, "stop", "finish_reason")
    equal(completion.usage.completion_tokens_details.reasoning_tokens, 0, "reasoning_tokens")


@check
async def thinking_is_counted_and_not_shown(client):
    completion = await client.create(model=THINKER, reasoning_effort="high")
    well_formed(completion, THINKER)
    equal(completion.choices[0].message.content, "1\n2\n3\n4\n5", "content")
    true(completion.usage.completion_tokens_details.reasoning_tokens > 0, "no reasoning was counted")


@check
async def roles(client):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": [{"type": "text", "text": "Repeat after me: "}, {"type": "text", "text": "no"}]},
        {"role": "assistant", "content": "no"},
        {"role": "user", "name": "ada", "content": "Repeat after me: naïve 🙂 \u2028 \"quoted\" \\ <b>&amp;</b>"},
    ]
    completion = await client.create(messages)
    well_formed(completion, PLAIN)
    equal(completion.choices[0].message.content, "naïve 🙂 \u2028 \"quoted\" \\ <b>&amp;</b>", "content")


@check
async def an_answer_goes_back(client):
    first = await client.create()
    messages = COUNT + [first.choices[0].message, {"role": "user", "content": "Count from 6 to 7"}]
    second = await client.create(messages)
    equal(second.choices[0].message.content, "6\n7", "content")
    true(second.usage.prompt_tokens > first.usage.prompt_tokens, "the history was not counted")


@check
async def finish_reasons(client):
    for fields, reason, content in [
        ({"stop": "4"}, "stop", "1\n2\n3\n"),
        ({"stop": ["x", "\n3"]}, "stop", "1\n2"),
        ({"max_tokens": 1}, "length", "1\n2\n"),
        ({"max_completion_tokens": 2, "max_tokens": 1}, "length", "1\n2\n3\n4\n"),
    ]:
        choice = (await client.create(**fields)).choices[0]
        equal((choice.finish_reason, choice.message.content), (reason, content), str(fields))
        chunks, _ = await client.stream(**fields)
        equal((chunks[-1].choices[0].finish_reason, folded(chunks)), (reason, content), f"{fields}, streamed")


@check
async def refusal(client):
    messages = [{"role": "user", "content": "STANDIN_REFUSE"}]
    choice = (await client.create(messages)).choices[0]
    equal(choice.finish_reason, "content_filter", "finish_reason")
    chunks, _ = await client.stream(messages)
    equal(chunks[-1].choices[0].finish_reason, "content_filter", "finish_reason, streamed")


@check
async def harmless_fields(client):
    completion = await client.create(
        temperature=0, top_p=0.5, n=1, seed=7, user="u", store=False, metadata={"a": "b"}, presence_penalty=0.5,
        frequency_penalty=0, logprobs=False, logit_bias={}, service_tier="auto", modalities=["text"],
        response_format={"type": "text"}, stop=None, safety_identifier="s", prompt_cache_key="conversation 1",
        parallel_tool_calls=True, tool_choice="auto", extra_body={"something_new": {"x": [1]}},
        extra_headers={"x-ezat-cache": "off"},
    )
    well_formed(completion, PLAIN)


def folded(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def stream_formed(chunks, headers, model):
    """Checks what holds for every stream but its usage chunk."""
    equal({chunk.id for chunk in chunks}, {"chatcmpl-" + headers["x-request-id"]}, "ids")
    equal(headers["request-id"], headers["x-request-id"], "request-id")
    equal(headers["content-type"].split(";")[0], "text/event-stream", "content-type")
    equal({chunk.object for chunk in chunks}, {"chat.completion.chunk"}, "objects")
    equal({chunk.model for chunk in chunks}, {model}, "models")
    equal(len({chunk.created for chunk in chunks}), 1, "number of created times")
    first, last = chunks[0].choices[0], chunks[-1].choices[0]
    equal(first.delta.model_dump(exclude_unset=True), {"role": "assistant", "content": ""}, "first delta")
    equal(last.delta.model_dump(exclude_unset=True), {}, "last delta")
    for chunk in chunks[:-1]:
        equal(chunk.choices[0].finish_reason, None, "finish_reason before the end")
    for chunk in chunks:
        equal((len(chunk.choices), chunk.choices[0].index), (1, 0), "choices and index")
        true("error" not in (chunk.model_extra or {}), "a chunk has an error key")


@check
async def stream(client):
    chunks, headers = await client.stream()
    stream_formed(chunks, headers, PLAIN)
    equal(folded(chunks), "1\n2\n3\n4\n5", "content")
    equal(chunks[-1].choices[0].finish_reason, "stop", "finish_reason")
    true(len(chunks) > 3, f"only {len(chunks)} chunks")
    true(all("usage" not in chunk.model_fields_set for chunk in chunks), "a chunk has usage without being asked")


@check
async def stream_with_usage(client):
    for model in (PLAIN, THINKER):
        chunks, headers = await client.stream(model=model, stream_options={"include_usage": True})
        *chunks, last = chunks
        stream_formed(chunks, headers, model)
        equal(last.choices, [], "choices of the usage chunk")
        equal((last.id, last.created, last.model), (chunks[0].id, chunks[0].created, model), "usage chunk")
        true(all(chunk.usage is None for chunk in chunks), "usage came early")
        true(all("usage" in chunk.model_fields_set for chunk in chunks), "a chunk lacks usage: null")
        arithmetic(last.usage)
        # The same request is cached by now, but no count in all may differ.
        completion = await client.create(model=model)
        equal(last.usage.prompt_tokens, completion.usage.prompt_tokens, "prompt_tokens, whole and streamed")
        equal(last.usage.completion_tokens, completion.usage.completion_tokens, "completion_tokens, whole and streamed")
        equal(folded(chunks), completion.choices[0].message.content, "content, whole and streamed")


@check
async def many_streams_at_once(client):
    async def one(n):
        text = f"stream {n} " + "é🙂" * n
        messages = [{"role": "user", "content": "Repeat after me: " + text}]
        if isinstance(client.openai, openai.AsyncOpenAI):
            chunks, headers = await client.stream(messages)
        else:
            chunks, headers = await asyncio.to_thread(lambda: asyncio.run(client.stream(messages)))
        stream_formed(chunks, headers, PLAIN)
        equal(folded(chunks), text, "content")
        return chunks[0].id

    ids = await asyncio.gather(*(one(n) for n in range(16)))
    equal(len(set(ids)), 16, "number of ids")


@check
async def a_stream_left_early(client):
    stream = await client.create([{"role": "user", "content": "Write 2000 words"}], stream=True, max_tokens=8000)
    async for chunk in items(stream):
        if chunk.choices[0].delta.content:
            break
    await settle(stream.close())
    equal((await client.create()).choices[0].finish_reason, "stop", "the next request")


@check
async def cached_prefix_is_reported(client):
    messages = [
        {"role": "system", "content": f"{checks.RUN} {type(client.openai).__name__} " + "A long and stable prompt. " * 400},
        {"role": "user", "content": "Count from 1 to 2"},
    ]
    first = (await client.create(messages)).usage
    second = (await client.create(messages)).usage
    arithmetic(first)
    arithmetic(second)
    equal(first.prompt_tokens, second.prompt_tokens, "prompt_tokens")
    equal(first.prompt_tokens_details.cached_tokens, 0, "read at first")
    equal(first.prompt_tokens_details.cache_write_tokens, first.prompt_tokens, "written at first")
    equal(second.prompt_tokens_details.cached_tokens, first.prompt_tokens, "read back")
    once = (await client.create([{"role": "user", "content": "Once. " * 2000}], extra_headers={"x-ezat-cache": "off"})).usage
    equal(once.prompt_tokens_details.cache_write_tokens, 0, "written although caching is off")
    mark = {"type": "ephemeral", "ttl": "1h"}
    part = {"type": "text", "text": f"{checks.RUN} {type(client.openai).__name__}, marked. " * 1000, "cache_control": mark}
    own = (await client.create([{"role": "user", "content": [part, {"type": "text", "text": "Hi"}]}])).usage
    true(0 < own.prompt_tokens_details.cache_write_tokens < own.prompt_tokens, f"with an own mark: {own}")


@check
async def refused_fields(client):
    audio = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    for fields, message in [
        ({"n": 2}, "n: only 1 choice per request is supported"),
        ({"logprobs": True}, "logprobs: log probabilities are not available"),
        ({"top_logprobs": 2}, "top_logprobs: log probabilities are not available"),
        ({"logit_bias": {"1": 1}}, "logit_bias: is not supported"),
        ({"modalities": ["text", "audio"]}, "modalities: only text output is supported"),
        ({"web_search_options": {}}, "web_search_options: is not supported"),
        ({"functions": [{"name": "f", "parameters": {}}]}, "functions: the legacy functions API is not supported; use tools"),
        ({"response_format": {"type": "json_object"}}, 'response_format: type "json_object" is not supported; use "json_schema" with a schema (objects need "additionalProperties": false)'),
        ({"reasoning_effort": "huge"}, "reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max"),
        ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools[0].type: only function tools are supported"),
        ({"messages": [{"role": "user", "content": [audio]}]}, "messages[0].content[0]: audio input is not supported"),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, 'messages[0].role: the legacy "function" role is not supported; use tools'),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages: must contain at least one user message"),
    ]:
        for streamed in (False, True):
            error = await refused(client.create(**fields, stream=streamed), openai.BadRequestError, 400)
            equal(error.body["message"], message, str(fields))
            envelope(error, message, "invalid_request_error")


@check
async def what_the_upstream_refuses(client):
    error = await refused(client.create(reasoning_effort="xhigh", model="anthropic/claude-opus-4-6"), openai.BadRequestError, 400)
    envelope(error, "xhigh", "invalid_request_error")


@check
async def keys(client):
    other = client.with_options(api_key="sk-of-nobody")
    without = {"Authorization": openai.Omit()}
    for ask in (
        other.create, lambda: other.create(stream=True), other.models,
        lambda: client.create(extra_headers=without), lambda: client.create(extra_headers=without, stream=True),
    ):
        error = await refused(ask(), openai.AuthenticationError, 401)
        envelope(error, "", "invalid_request_error", code="invalid_api_key")


@check
async def unknown_model(client):
    message = "The model `gpt-9` does not exist or you do not have access to it."
    for awaitable in (client.create(model="gpt-9"), client.create(model="gpt-9", stream=True), client.model("gpt-9")):
        error = await refused(awaitable, openai.NotFoundError, 404)
        envelope(error, message, "invalid_request_error", param="model", code="model_not_found")
        equal(error.body["message"], message, "message")


@check
async def limits_and_load(client):
    for word, kind, status, type_, code in [
        ("STANDIN_RATE_LIMITED", openai.RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
        ("STANDIN_OVERLOADED", openai.InternalServerError, 503, "server_error", "overloaded"),
        ("STANDIN_MIDWAY_FAIL", openai.InternalServerError, 500, "server_error", None),
    ]:
        error = await refused(client.create([{"role": "user", "content": word}]), kind, status)
        envelope(error, "", type_, code=code)
        equal(error.response.headers.get("retry-after"), "2" if status == 429 else None, "retry-after")


@check
async def too_large(client):
    messages = [{"role": "user", "content": "x" * 33_554_433}]
    try:
        error = await refused(client.create(messages), openai.APIStatusError, 413)
        envelope(error, "", "invalid_request_error", code="request_too_large")
    except openai.APIConnectionError:
        # The 413 comes while the body is still being sent, and the connection is closed a second later. On asyncio
        # a client reads nothing while it writes, so it may see only the end of the connection.
        true(isinstance(client.openai, openai.AsyncOpenAI), "the reply was not read")
    equal((await client.create()).choices[0].finish_reason, "stop", "the next request")


@check
async def a_stream_that_fails(client):
    for word in ("STANDIN_MIDWAY_FAIL", "STANDIN_MIDWAY_CUT"):
        text = ""
        stream = await client.create([{"role": "user", "content": f"Count from 1 to 50 {word}"}], stream=True)
        try:
            async for chunk in items(stream):
                text += chunk.choices[0].delta.content or ""
        except openai.APIError as error:
            equal(type(error), openai.APIError, "class of the error")
            envelope(error, "", "server_error")
        else:
            raise AssertionError(f"{word}: the stream ended well with {text!r}")
        true(text.startswith("1\n2\n"), f"{word}: text before the error: {text!r}")


@check
async def models(client):
    listed = await client.models()
    ids = [model.id for model in listed]
    equal(len(ids), len(set(ids)), "number of ids")
    true({PLAIN, THINKER} <= set(ids), f"models are missing: {ids}")
    for model in listed:
        equal((model.object, model.owned_by, type(model.created)), ("model", "anthropic", int), model.id)
        equal(sorted(model.model_dump(exclude_unset=True)), ["created", "id", "object", "owned_by"], "keys")
        true(model.created > 1_600_000_000, f"{model.id} was created at {model.created}")
    one = await client.model(THINKER)
    equal(one.model_dump(), next(model for model in listed if model.id == THINKER).model_dump(), "one model")
    true(one._request_id, "no request id")


if __name__ == "__main__":
    checks.main([("sync", Client(openai.OpenAI)), ("async", Client(openai.AsyncOpenAI))])
