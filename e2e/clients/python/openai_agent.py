"""The openai package with tools, structured output, streaming helpers and files; a long agent conversation."""

import json

import openai
from pydantic import BaseModel

import checks
from checks import check, equal, true
from openai_chat import Client, arithmetic, items, refused, settle
from samples import FORCED, PLAIN, THINKER, TICKETS, TIME, WEATHER, file_part, image_part


def user(content):
    return {"role": "user", "content": content}


async def whole(client, **fields):
    """Asks without a stream: the message, its finish reason, usage."""
    completion = await client.create(**fields)
    arithmetic(completion.usage)
    return completion.choices[0].message, completion.choices[0].finish_reason, completion.usage


async def streamed(client, **fields):
    """The same as a stream, with calls put together by hand as many clients do."""
    chunks, _ = await client.stream(stream_options={"include_usage": True}, **fields)
    text, calls, reason = "", [], None
    for chunk in chunks[:-1]:
        delta = chunk.choices[0].delta
        text += delta.content or ""
        for part in delta.tool_calls or []:
            if part.index == len(calls):
                equal((part.type, part.function.arguments), ("function", ""), "first fragment of a call")
                true(part.id and part.function.name, "the first fragment lacks an id or a name")
                calls.append({"id": part.id, "type": "function", "function": {"name": part.function.name, "arguments": ""}})
            else:
                equal((part.index, part.id, part.type, part.function.name), (len(calls) - 1, None, None, None), "later fragment")
                calls[-1]["function"]["arguments"] += part.function.arguments
        reason = chunk.choices[0].finish_reason or reason
    arithmetic(chunks[-1].usage)
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    return openai.types.chat.ChatCompletionMessage.model_validate(message), reason, chunks[-1].usage


WAYS = [whole, streamed]


def calls_of(message):
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]


def answers(message, content="9°C and clear"):
    """The results of all calls of a message."""
    return [{"role": "tool", "tool_call_id": call.id, "content": content} for call in message.tool_calls]


@check
async def tool_loop(client):
    for ask in WAYS:
        for model in (PLAIN, THINKER):
            messages = [user("What's the weather in Oslo and Rome? Use get_weather.")]
            message, reason, _ = await ask(client, messages=messages, model=model, tools=[WEATHER, TIME])
            equal(reason, "tool_calls", "finish_reason")
            equal(calls_of(message), [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})], "calls")
            equal(message.content, "I'll look that up." if model == PLAIN else None, "content")
            equal(len({call.id for call in message.tool_calls}), 2, "number of ids")
            first, second = answers(message)
            messages += [message, second, {**first, "content": [{"type": "text", "text": "9"}, {"type": "text", "text": "°C"}]}]
            message, reason, usage = await ask(client, messages=messages, model=model, tools=[WEATHER, TIME])
            equal((reason, message.tool_calls), ("stop", None), "finish_reason and calls")
            equal(message.content, "The tool says: 9°C and clear; 9 °C.", "content")


@check
async def both_ways_give_the_same(client):
    fields = {"messages": [user("Use get_weather and get_time for Oslo")], "model": THINKER, "tools": [WEATHER, TIME]}
    one, _, one_usage = await whole(client, **fields)
    two, _, two_usage = await streamed(client, **fields)
    equal([call.model_dump() for call in one.tool_calls], [call.model_dump() for call in two.tool_calls], "calls")
    equal(one_usage.total_tokens, two_usage.total_tokens, "total_tokens")


@check
async def choices(client):
    messages = [user("Hello")]
    named = {"type": "function", "function": {"name": "get_time"}}
    for ask in WAYS:
        for choice, model, calls in [
            ("none", FORCED, []), ("auto", FORCED, []), ("required", FORCED, ["get_weather"]), (named, FORCED, ["get_time"]),
        ]:
            message, reason, _ = await ask(client, messages=messages, model=model, tools=[WEATHER, TIME], tool_choice=choice, reasoning_effort="low")
            equal([name for name, _ in calls_of(message)], calls, f"calls with {choice}")
            equal(reason, "tool_calls" if calls else "stop", f"finish_reason with {choice}")
        message, _, _ = await ask(client, messages=[user("Use get_weather for Oslo and Rome")], tools=[WEATHER], parallel_tool_calls=False)
        equal(calls_of(message), [("get_weather", {"city": "Oslo"})], "calls without parallel ones")
    for choice in ("required", named):
        error = await refused(client.create(messages, THINKER, tools=[TIME], tool_choice=choice), openai.BadRequestError, 400)
        equal((error.type, error.code), ("invalid_request_error", None), "type and code")
    error = await refused(client.create(messages, tools=[WEATHER], tool_choice=named), openai.BadRequestError, 400)
    true("tool_choice" in error.body["message"], error.body["message"])


@check
async def calls_without_arguments(client):
    for ask in WAYS:
        for tool in TICKETS:
            name = tool["function"]["name"]
            messages = [user(f"{name} please")]
            message, reason, _ = await ask(client, messages=messages, tools=TICKETS)
            equal([(call.function.name, call.function.arguments) for call in message.tool_calls], [(name, "{}")], "call")
            empty = {**message.tool_calls[0].model_dump(), "function": {"name": name, "arguments": ""}}
            messages += [{"role": "assistant", "content": "", "tool_calls": [empty]}, *answers(message, "")]
            message, _, _ = await ask(client, messages=messages, tools=TICKETS)
            equal(message.content, "The tool says: nothing.", "content")


@check
async def foreign_ids(client):
    """Ids of other vendors, which the upstream would not take as they are."""
    ids = ["functions.get_weather:0", "functions.get_weather:1", "ünïcode id"]
    calls = [{"id": id, "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}} for id in ids]
    messages = [user("Hello"), {"role": "assistant", "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": id, "content": id} for id in ids]
    message, _, _ = await whole(client, messages=messages, tools=[WEATHER])
    equal(message.content, "The tool says: " + "; ".join(ids) + ".", "content")


@check
async def results_that_do_not_fit(client):
    message, _, _ = await whole(client, messages=[user("get_weather for Oslo")], tools=[WEATHER])
    for messages, where in [
        ([user("a"), message, user("b")], "messages[1].tool_calls[0].id: "),
        ([user("a"), {"role": "tool", "tool_call_id": "x", "content": "b"}], "messages[1].tool_call_id: "),
        ([user("a"), message, *answers(message), *answers(message)], "messages[3].tool_call_id: "),
    ]:
        error = await refused(client.create(messages, tools=[WEATHER]), openai.BadRequestError, 400)
        true(error.body["message"].startswith(where), error.body["message"])


@check
async def history_without_tools(client):
    messages = [user("get_weather for Oslo")]
    message, _, _ = await whole(client, messages=messages, tools=[WEATHER])
    message, _, _ = await whole(client, messages=messages + [message, *answers(message), user("Repeat after me: done")])
    equal(message.content, "done", "content")


@check
async def pictures_and_documents(client):
    content = [{"type": "text", "text": "Look"}, image_part(3), file_part(), image_part(4)]
    for ask in WAYS:
        message, _, _ = await ask(client, messages=[user(content)])
        equal(message.content, 'You wrote: "Look". You sent 3 images or documents.', "content")
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}, image_part(5), file_part()]}
    message, _, _ = await whole(client, messages=[user("a"), {"role": "assistant", "tool_calls": [call]}, result])
    equal(message.content, "The tool says: seen [image] [document].", "content")


class Step(BaseModel):
    explanation: str
    output: float


class Solution(BaseModel):
    steps: list[Step]
    city: str | None
    final_answer: int


async def parse(client, **fields):
    return await settle(client.openai.chat.completions.parse(**fields))


@check
async def parsed_output(client):
    for model in (PLAIN, THINKER):
        completion = await parse(client, model=model, messages=[user("Paris")], response_format=Solution)
        parsed = completion.choices[0].message.parsed
        equal(parsed, Solution(steps=[Step(explanation="example explanation", output=1.0)], city="Paris", final_answer=1), "parsed")
        equal(completion.id, "chatcmpl-" + completion._request_id, "id")


@check
async def parsed_output_that_ends_too_early(client):
    for fields, kind in [
        ({"messages": [user("Paris")], "max_tokens": 3}, openai.LengthFinishReasonError),
        ({"messages": [user("STANDIN_REFUSE")]}, openai.ContentFilterFinishReasonError),
    ]:
        try:
            await parse(client, model=PLAIN, response_format=Solution, **fields)
        except kind:
            continue
        raise AssertionError(f"no {kind.__name__}")


class get_weather(BaseModel):
    """Current weather."""

    city: str
    units: list[str]


@check
async def parsed_tool_arguments(client):
    tool = openai.pydantic_function_tool(get_weather)
    true(tool["function"]["strict"], "the tool is not strict")
    completion = await parse(client, model=PLAIN, messages=[user("get_weather for Rome")], tools=[tool])
    call = completion.choices[0].message.tool_calls[0]
    equal(call.function.parsed_arguments, get_weather(city="Rome", units=["example units"]), "parsed arguments")


async def events_of(client, **fields):
    """Runs the streaming helper: its events by type, and the final completion."""
    events = {}
    manager = client.openai.chat.completions.stream(**fields)
    if isinstance(client.openai, openai.AsyncOpenAI):
        async with manager as stream:
            async for event in stream:
                events.setdefault(event.type, []).append(event)
            return events, await stream.get_final_completion()
    with manager as stream:
        for event in stream:
            events.setdefault(event.type, []).append(event)
        return events, stream.get_final_completion()


@check
async def streaming_helper(client):
    events, final = await events_of(
        client, model=PLAIN, messages=[user("Count from 1 to 5")], stream_options={"include_usage": True})
    equal("".join(event.delta for event in events["content.delta"]), "1\n2\n3\n4\n5", "deltas")
    equal(events["content.delta"][-1].snapshot, "1\n2\n3\n4\n5", "snapshot")
    equal([event.content for event in events["content.done"]], ["1\n2\n3\n4\n5"], "done")
    equal((final.choices[0].finish_reason, final.choices[0].message.content), ("stop", "1\n2\n3\n4\n5"), "final")
    arithmetic(final.usage)


@check
async def streaming_helper_with_tools(client):
    tool = openai.pydantic_function_tool(get_weather)
    events, final = await events_of(client, model=THINKER, messages=[user("get_weather for Rome and Oslo")], tools=[tool])
    done = events["tool_calls.function.arguments.done"]
    equal([(event.index, event.name, event.parsed_arguments.city) for event in done], [(0, "get_weather", "Rome"), (1, "get_weather", "Oslo")], "calls")
    for index, event in enumerate(done):
        pieces = [delta.arguments_delta for delta in events["tool_calls.function.arguments.delta"] if delta.index == index]
        equal("".join(pieces), event.arguments, "arguments in pieces")
        true(len(pieces) > 1, "the arguments came at once")
    equal(final.choices[0].finish_reason, "tool_calls", "finish_reason")
    equal([call.function.parsed_arguments.city for call in final.choices[0].message.tool_calls], ["Rome", "Oslo"], "parsed")


@check
async def streaming_helper_with_a_format(client):
    events, final = await events_of(client, model=THINKER, messages=[user("Lima")], response_format=Solution)
    equal(events["content.done"][0].parsed.city, "Lima", "parsed")
    equal(final.choices[0].message.parsed.city, "Lima", "parsed in the end")


@check
async def conversation_of_forty_turns(client):
    """Each turn asks, gets two calls, answers them and reads the answer; what was sent once is read from the cache."""
    for ask in WAYS:
        tools = [WEATHER, TIME]
        messages = [{"role": "system", "content": f"{checks.RUN} {client.kind.__name__} {ask.__name__}. " + "You are a careful agent. " * 120}]
        sent = 0
        for turn in range(40):
            text = f"Turn {turn}: use get_weather for Oslo and Rome"
            messages.append(user([{"type": "text", "text": text}, image_part(turn + 1)] if turn % 4 == 0 else text))
            for step in ("calls", "answer"):
                message, reason, usage = await ask(
                    client, messages=messages, model=THINKER, tools=tools, reasoning_effort="medium",
                    prompt_cache_key=f"{client.kind.__name__}-{ask.__name__}")
                equal(usage.prompt_tokens_details.cached_tokens, sent, f"turn {turn}, {step}: tokens read from the cache")
                equal(usage.prompt_tokens_details.cache_write_tokens, usage.prompt_tokens - sent, f"turn {turn}, {step}: tokens written")
                true(usage.completion_tokens_details.reasoning_tokens > 0, "no thinking was counted")
                sent = usage.prompt_tokens
                equal(reason, "tool_calls" if step == "calls" else "stop", f"turn {turn}: finish_reason")
                messages.append(message)
                if step == "calls":
                    messages += answers(message, f"{turn} degrees")
            equal(message.content, f"The tool says: {turn} degrees; {turn} degrees.", f"turn {turn}")
        equal(len(messages), 1 + 40 * 5, "length of the conversation")


if __name__ == "__main__":
    checks.main([("sync", Client(openai.OpenAI)), ("async", Client(openai.AsyncOpenAI))])
