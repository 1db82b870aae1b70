"""pydantic-ai: agents with tools, structured output of three kinds, streams and pictures."""

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelHTTPError, NativeOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import checks
from checks import check, equal, true
from samples import FORCED, PDF, PLAIN, THINKER, png


def agent(model=PLAIN, **options):
    provider = OpenAIProvider(base_url=checks.BASE_URL, api_key=options.pop("api_key", checks.API_KEY))
    made = Agent(OpenAIChatModel(model, provider=provider), **options)

    @made.tool_plain
    def get_weather(city: str) -> str:
        """Current weather for a city."""
        return f"9°C in {city}"

    return made


class Place(BaseModel):
    city: str
    inhabitants: int


@check
async def text():
    for model in (PLAIN, THINKER):
        result = await agent(model, instructions="Be brief.").run("Count from 1 to 5", model_settings={"max_tokens": 200, "temperature": 0})
        equal(result.output, "1\n2\n3\n4\n5", "output")
        true(result.usage.input_tokens > 0 and result.usage.output_tokens > 0, str(result.usage))


@check
async def streamed_text():
    async with agent(THINKER).run_stream("Count from 1 to 5") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    equal("".join(pieces), "1\n2\n3\n4\n5", "output")
    true(len(pieces) > 1, "the text came at once")


@check
async def tools():
    for model in (PLAIN, THINKER):
        result = await agent(model).run("get_weather for Oslo and Rome")
        equal(result.output, "The tool says: 9°C in Oslo; 9°C in Rome.", "output")
        parts = [part for message in result.all_messages() for part in message.parts]
        equal([part.args_as_dict() for part in parts if isinstance(part, ToolCallPart)], [{"city": "Oslo"}, {"city": "Rome"}], "calls")
        equal(len([part for part in parts if isinstance(part, ToolReturnPart)]), 2, "number of results")
    # run_stream takes the first text for the output, so the model must not say anything before its calls.
    async with agent(THINKER).run_stream("get_weather for Oslo and Rome") as streamed:
        equal(await streamed.get_output(), result.output, "streamed output")


@check
async def structured_output():
    native = agent(THINKER, output_type=NativeOutput(Place))
    equal((await native.run("Paris")).output, Place(city="Paris", inhabitants=1), "native output")
    called = agent(FORCED, output_type=Place)
    result = await called.run("get_weather for Rome")
    equal(result.output, Place(city="Rome", inhabitants=1), "output by a call")
    calls = [part.tool_name for message in result.all_messages() if isinstance(message, ModelResponse) for part in message.parts if isinstance(part, ToolCallPart)]
    equal(calls, ["get_weather", "final_result"], "calls")


@check
async def pictures_and_documents():
    result = await agent().run(["Look", BinaryContent(png(3), media_type="image/png"), BinaryContent(PDF, media_type="application/pdf")])
    equal(result.output, 'You wrote: "Look". You sent 2 images or documents.', "output")


@check
async def errors():
    for made, status in [(agent("gpt-9"), 404), (agent(api_key="sk-x"), 401)]:
        try:
            await made.run("Hi")
        except ModelHTTPError as error:
            equal(error.status_code, status, "status")
            equal(sorted(error.body), ["code", "message", "param", "type"], "body")
        else:
            raise AssertionError(f"no {status}")


@check
async def agent_of_forty_turns():
    made = agent(THINKER, instructions=checks.RUN + " You are careful." * 200)
    history, read = [], 0
    for turn in range(40):
        prompt = [f"Turn {turn}: get_weather for Oslo and Rome"]
        if turn % 4 == 0:
            prompt.append(BinaryContent(png(turn + 1), media_type="image/png"))
        result = await made.run(prompt, message_history=history, model_settings={"extra_body": {"reasoning_effort": "medium"}})
        equal(result.output, "The tool says: 9°C in Oslo; 9°C in Rome.", f"turn {turn}")
        history = result.all_messages()
        last = history[-1].usage
        true(last.cache_read_tokens > read, f"turn {turn}: nothing more was read from the cache: {last}")
        read = last.cache_read_tokens
    equal(len(history), 40 * 4, "length of the conversation")


if __name__ == "__main__":
    checks.main([("pydantic-ai",)])
