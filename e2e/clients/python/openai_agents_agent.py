"""The OpenAI Agents SDK on chat completions: tools, hand-offs, streams, structured output, a long session."""

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

import checks
from checks import check, equal, true
from samples import FORCED, PLAIN, THINKER, data_url, png

set_tracing_disabled(True)  # traces would go to OpenAI


@function_tool
def get_weather(city: str) -> str:
    """Current weather for a city."""
    return f"9°C in {city}"


def model(name, **options):
    client = openai.AsyncOpenAI(**{"base_url": checks.BASE_URL, "api_key": checks.API_KEY, "max_retries": 0, **options})
    return OpenAIChatCompletionsModel(name, client)


def agent(of=PLAIN, **options):
    """An agent of a model; options go over the usual ones."""
    return Agent(**{"name": "helper", "instructions": "Be brief.", "model": model(of), "tools": [get_weather], **options})


@check
async def text():
    for name in (PLAIN, THINKER):
        result = await Runner.run(agent(name), "Count from 1 to 5")
        equal(result.final_output, "1\n2\n3\n4\n5", "output")
        usage = result.context_wrapper.usage
        equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, "total_tokens")
        true(usage.output_tokens > 0, str(usage))


@check
async def tools():
    for name in (PLAIN, THINKER):
        result = await Runner.run(agent(name), "get_weather for Oslo and Rome")
        equal(result.final_output, "The tool says: 9°C in Oslo; 9°C in Rome.", "output")
        one_by_one = agent(name, model_settings=ModelSettings(parallel_tool_calls=False))
        result = await Runner.run(one_by_one, "get_weather for Oslo and Rome")
        equal(result.final_output, "The tool says: 9°C in Oslo.", "output without parallel calls")


@check
async def forced_tools():
    forced = agent(FORCED, model_settings=ModelSettings(tool_choice="required"))
    result = await Runner.run(forced, "Hello")
    equal(result.final_output, "The tool says: 9°C in Oslo.", "output")


@check
async def streamed():
    for name in (PLAIN, THINKER):
        result = Runner.run_streamed(agent(name), "get_weather for Oslo and Rome")
        pieces, kinds = [], []
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                pieces.append(event.data.delta)
            if event.type == "run_item_stream_event":
                kinds.append(event.name)
        equal(result.final_output, "The tool says: 9°C in Oslo; 9°C in Rome.", "output")
        true("".join(pieces).endswith(result.final_output) and len(pieces) > 2, f"pieces {pieces}")
        equal((kinds.count("tool_called"), kinds.count("tool_output")), (2, 2), "number of calls and results")


class Place(BaseModel):
    city: str
    inhabitants: int


@check
async def structured_output():
    for name in (PLAIN, THINKER):
        result = await Runner.run(agent(name, output_type=Place), "Paris")
        equal(result.final_output, Place(city="Paris", inhabitants=1), "output")


@check
async def hand_off():
    other = agent(THINKER, name="weather", handoff_description="Knows the weather")
    first = agent(tools=[], handoffs=[other])
    result = await Runner.run(first, "transfer_to_weather please, then get_weather for Lima")
    equal(result.last_agent.name, "weather", "last agent")
    true(result.final_output.startswith("The tool says: "), result.final_output)


@check
async def errors():
    for made, kind in [(model("gpt-9"), openai.NotFoundError), (model(PLAIN, api_key="sk-x"), openai.AuthenticationError)]:
        try:
            await Runner.run(agent(model=made), "Hi")
        except kind as error:
            equal(type(error), kind, "class of the error")
        else:
            raise AssertionError(f"no {kind.__name__}")


@check
async def session_of_forty_turns():
    session = SQLiteSession("session", ":memory:")
    made = agent(THINKER, instructions=checks.RUN + " You are careful." * 200, model_settings=ModelSettings(reasoning={"effort": "medium"}))
    read = 0
    for turn in range(40):
        text = f"Turn {turn}: get_weather for Oslo and Rome"
        content = [{"type": "input_text", "text": text}]
        if turn % 4 == 0:
            content.append({"type": "input_image", "image_url": data_url("image/png", png(turn + 1)), "detail": "auto"})
        items = await session.get_items()
        result = await Runner.run(made, [*items, {"role": "user", "content": content}])
        await session.clear_session()
        await session.add_items(result.to_input_list())
        equal(result.final_output, "The tool says: 9°C in Oslo; 9°C in Rome.", f"turn {turn}")
        cached = result.raw_responses[-1].usage.input_tokens_details.cached_tokens
        true(cached > read, f"turn {turn}: nothing more was read from the cache")
        read = cached


if __name__ == "__main__":
    checks.main([("openai-agents",)])
