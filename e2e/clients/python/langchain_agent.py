"""LangChain: ChatOpenAI alone, with structured output, and in an agent."""

import base64

import openai
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import checks
from checks import check, equal, true
from samples import FORCED, PDF, PLAIN, THINKER, data_url, png


def chat(model=PLAIN, **options):
    options = {"base_url": checks.BASE_URL, "api_key": checks.API_KEY, "max_retries": 0, "stream_usage": True, **options}
    return ChatOpenAI(model=model, **options)


@tool
def get_weather(city: str) -> str:
    """Current weather for a city."""
    return f"9°C in {city}"


@tool
def get_time(zone: str, seconds: bool = False) -> str:
    """The time in a zone."""
    return "12:00"


def arithmetic(message):
    usage = message.usage_metadata
    equal(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"], "total_tokens")
    true(0 < usage["output_tokens"] and usage["input_token_details"]["cache_read"] <= usage["input_tokens"], str(usage))


@check
async def whole_and_streamed():
    for model in (PLAIN, THINKER):
        llm = chat(model, temperature=0, max_tokens=200)
        messages = [SystemMessage("Be brief."), HumanMessage("Count from 1 to 5")]
        one, two = llm.invoke(messages), await llm.ainvoke(messages)
        folded = None
        for chunk in llm.stream(messages):
            folded = chunk if folded is None else folded + chunk
        afolded = None
        async for chunk in llm.astream(messages):
            afolded = chunk if afolded is None else afolded + chunk
        for message in (one, two, folded, afolded):
            equal(message.content, "1\n2\n3\n4\n5", "content")
            equal(message.response_metadata["finish_reason"], "stop", "finish_reason")
            equal(message.usage_metadata["total_tokens"], one.usage_metadata["total_tokens"], "total_tokens")
            arithmetic(message)
        equal(one.usage_metadata["output_token_details"]["reasoning"] > 0, model == THINKER, "reasoning was counted")


@check
async def tools_by_hand():
    llm = chat(THINKER).bind_tools([get_weather, get_time])
    messages = [HumanMessage("get_weather for Oslo and Rome")]
    folded = None
    for chunk in llm.stream(messages):
        folded = chunk if folded is None else folded + chunk
    whole = llm.invoke(messages)
    for answer in (whole, folded):
        equal([(call["name"], call["args"]) for call in answer.tool_calls], [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})], "calls")
        equal(answer.invalid_tool_calls, [], "invalid calls")
        results = [get_weather.invoke(call) for call in answer.tool_calls]
        true(all(isinstance(result, ToolMessage) for result in results), "results")
        last = llm.invoke([*messages, AIMessage(content=answer.content, tool_calls=answer.tool_calls), *results])
        equal(last.content, "The tool says: 9°C in Oslo; 9°C in Rome.", "content")


class Place(BaseModel):
    """A place."""

    city: str
    inhabitants: int
    rivers: list[str]


@check
async def structured_output():
    want = Place(city="Paris", inhabitants=1, rivers=["example rivers"])
    for llm in (chat(PLAIN), chat(THINKER)):
        equal(llm.with_structured_output(Place).invoke("Paris"), want, "parsed")
        equal(await llm.with_structured_output(Place, strict=True).ainvoke("Paris"), want, "parsed, strict")
    equal(chat(FORCED).with_structured_output(Place, method="function_calling").invoke("Paris"), want, "parsed, by a call")
    try:
        chat(PLAIN).with_structured_output(Place, method="json_mode").invoke("Paris")
    except openai.BadRequestError as error:
        true("json_object" in str(error), str(error))
    else:
        raise AssertionError("json_object was not refused")


@check
async def pictures_and_documents():
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": data_url("image/png", png(3))}},
        {"type": "image", "base64": base64.b64encode(png(4)).decode(), "mime_type": "image/png"},
        {"type": "file", "base64": base64.b64encode(PDF).decode(), "mime_type": "application/pdf", "filename": "a.pdf"},
    ]
    equal(chat().invoke([HumanMessage(content)]).content, 'You wrote: "Look". You sent 3 images or documents.', "content")


@check
async def errors():
    for model, options, kind, code in [
        ("gpt-9", {}, openai.NotFoundError, "model_not_found"),
        (PLAIN, {"n": 2}, openai.BadRequestError, None),
        (PLAIN, {"api_key": "sk-x"}, openai.AuthenticationError, "invalid_api_key"),
    ]:
        try:
            chat(model, **options).invoke("Hi")
        except kind as error:
            equal((error.type, error.code), ("invalid_request_error", code), "type and code")
        else:
            raise AssertionError(f"no {kind.__name__}")
    try:
        list(chat().stream("Count from 1 to 50 STANDIN_MIDWAY_FAIL"))
    except openai.APIError as error:
        equal(error.type, "server_error", "type")
    else:
        raise AssertionError("the failing stream ended well")


@check
async def agent_of_forty_turns():
    agent = create_agent(chat(THINKER, reasoning_effort="medium"), [get_weather, get_time], system_prompt=checks.RUN + " You are careful." * 200)
    messages = []
    read = 0
    for turn in range(40):
        text = f"Turn {turn}: get_weather for Oslo and Rome"
        image = {"type": "image_url", "image_url": {"url": data_url("image/png", png(turn + 1))}}
        messages.append(HumanMessage([{"type": "text", "text": text}, image] if turn % 4 == 0 else text))
        messages = (await agent.ainvoke({"messages": messages}))["messages"]
        answer = messages[-1]
        equal(answer.content, "The tool says: 9°C in Oslo; 9°C in Rome.", f"turn {turn}")
        arithmetic(answer)
        true(answer.usage_metadata["input_token_details"]["cache_read"] > read, f"turn {turn}: nothing more was read from the cache")
        read = answer.usage_metadata["input_token_details"]["cache_read"]
    equal(len(messages), 40 * 5, "length of the conversation")


if __name__ == "__main__":
    checks.main([("langchain",)])
