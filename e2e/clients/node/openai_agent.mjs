// The openai package of Node with tools, structured output, streaming helpers and files; a long agent conversation.

import assert from "node:assert/strict";

import OpenAI from "openai";
import { ContentFilterFinishReasonError, LengthFinishReasonError } from "openai/core/error";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

import { check, main, run } from "./checks.mjs";
import { arithmetic, client, create, refused, stream } from "./openai_client.mjs";
import { FORCED, PLAIN, THINKER, TICKETS, TIME, WEATHER, filePart, imagePart } from "./samples.mjs";

const user = (content) => ({ role: "user", content });

// whole asks without a stream: the message, its finish reason, usage.
async function whole(fields) {
  const completion = await create(fields);
  arithmetic(completion.usage);
  const { message, finish_reason: reason } = completion.choices[0];
  return { message, reason, usage: completion.usage };
}

// streamed does the same as a stream, with calls put together by hand as many clients do.
async function streamed(fields) {
  const { chunks } = await stream({ ...fields, stream_options: { include_usage: true } });
  const message = { role: "assistant", content: null };
  const { usage } = chunks.pop();
  let reason = null;
  for (const { choices } of chunks) {
    const { delta, finish_reason } = choices[0];
    if (delta.content) message.content = (message.content ?? "") + delta.content;
    for (const { index, ...part } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      if (index === message.tool_calls.length) {
        assert.deepEqual([part.type, part.function.arguments], ["function", ""]);
        assert.ok(part.id && part.function.name);
        message.tool_calls.push(structuredClone(part));
      } else {
        assert.deepEqual(part, { function: { arguments: part.function.arguments } });
        assert.equal(index, message.tool_calls.length - 1);
        message.tool_calls[index].function.arguments += part.function.arguments;
      }
    }
    reason = finish_reason ?? reason;
  }
  arithmetic(usage);
  return { message, reason, usage };
}

const ways = [whole, streamed];

const callsOf = (message) => (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);

const answers = (message, content = "9°C and clear") => message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content }));

check("tool loop", async () => {
  for (const ask of ways) {
    for (const model of [PLAIN, THINKER]) {
      const messages = [user("What's the weather in Oslo and Rome? Use get_weather.")];
      const first = await ask({ model, messages, tools: [WEATHER, TIME] });
      assert.equal(first.reason, "tool_calls");
      assert.deepEqual(callsOf(first.message), [["get_weather", { city: "Oslo" }], ["get_weather", { city: "Rome" }]]);
      assert.equal(first.message.content, model === PLAIN ? "I'll look that up." : null);
      const [one, two] = answers(first.message);
      const parts = [{ type: "text", text: "9" }, { type: "text", text: "°C" }];
      messages.push(first.message, two, { ...one, content: parts });
      const second = await ask({ model, messages, tools: [WEATHER, TIME] });
      assert.deepEqual([second.reason, second.message.tool_calls], ["stop", undefined]);
      assert.equal(second.message.content, "The tool says: 9°C and clear; 9 °C.");
    }
  }
});

check("choices", async () => {
  const named = { type: "function", function: { name: "get_time" } };
  const messages = [user("Hello")];
  for (const ask of ways) {
    for (const [tool_choice, calls] of [["none", []], ["auto", []], ["required", ["get_weather"]], [named, ["get_time"]]]) {
      const { message, reason } = await ask({ model: FORCED, messages, tools: [WEATHER, TIME], tool_choice, reasoning_effort: "low" });
      assert.deepEqual(callsOf(message).map(([name]) => name), calls);
      assert.equal(reason, calls.length ? "tool_calls" : "stop");
    }
    const single = await ask({ messages: [user("Use get_weather for Oslo and Rome")], tools: [WEATHER], parallel_tool_calls: false });
    assert.deepEqual(callsOf(single.message), [["get_weather", { city: "Oslo" }]]);
  }
  const error = await refused(create({ model: THINKER, messages, tools: [TIME], tool_choice: "required" }), OpenAI.BadRequestError, 400);
  assert.deepEqual([error.type, error.code], ["invalid_request_error", null]);
});

check("calls without arguments", async () => {
  for (const ask of ways) {
    for (const { function: { name } } of TICKETS) {
      const messages = [user(`${name} please`)];
      const { message } = await ask({ messages, tools: TICKETS });
      assert.deepEqual(message.tool_calls.map((call) => call.function), [{ name, arguments: "{}" }]);
      const last = await ask({ messages: [...messages, message, ...answers(message, "")], tools: TICKETS });
      assert.equal(last.message.content, "The tool says: nothing.");
    }
  }
});

check("pictures and documents", async () => {
  for (const ask of ways) {
    const { message } = await ask({ messages: [user([{ type: "text", text: "Look" }, imagePart(3), filePart(), imagePart(4)])] });
    assert.equal(message.content, 'You wrote: "Look". You sent 3 images or documents.');
  }
});

const Place = z.object({ city: z.string(), inhabitants: z.number(), rivers: z.array(z.string()), note: z.string().nullable() });
const place = (city) => ({ city, inhabitants: 1, rivers: ["example rivers"], note: "example note" });

// Whole numbers bring their bounds with them, which the upstream does not take.
const Bounded = z.object({ inhabitants: z.number().int() });

check("parsed output", async () => {
  for (const model of [PLAIN, THINKER]) {
    const completion = await client.chat.completions.parse({ model, messages: [user("Paris")], response_format: zodResponseFormat(Place, "place") });
    assert.deepEqual(completion.choices[0].message.parsed, place("Paris"));
  }
  const bounded = client.chat.completions.parse({ model: PLAIN, messages: [user("Paris")], response_format: zodResponseFormat(Bounded, "bounded") });
  await refused(bounded, OpenAI.BadRequestError, 400);
});

check("parsed output that ends too early", async () => {
  const response_format = zodResponseFormat(Place, "place");
  for (const [fields, kind] of [
    [{ messages: [user("Paris")], max_tokens: 3 }, LengthFinishReasonError],
    [{ messages: [user("STANDIN_REFUSE")] }, ContentFilterFinishReasonError],
  ]) {
    await assert.rejects(client.chat.completions.parse({ model: PLAIN, response_format, ...fields }), kind);
  }
});

check("parsed tool arguments", async () => {
  const tool = zodFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) });
  assert.equal(tool.function.strict, true);
  const completion = await client.chat.completions.parse({ model: PLAIN, messages: [user("get_weather for Rome")], tools: [tool] });
  assert.deepEqual(completion.choices[0].message.tool_calls[0].function.parsed_arguments, { city: "Rome" });
});

check("streaming helper", async () => {
  const deltas = [];
  const helper = client.chat.completions.stream({ model: THINKER, messages: [user("Count from 1 to 5")], stream_options: { include_usage: true } });
  helper.on("content.delta", ({ delta }) => deltas.push(delta));
  const final = await helper.finalChatCompletion();
  assert.equal(deltas.join(""), "1\n2\n3\n4\n5");
  assert.deepEqual([final.choices[0].finish_reason, final.choices[0].message.content], ["stop", "1\n2\n3\n4\n5"]);
  arithmetic(final.usage);
});

check("streaming helper with tools", async () => {
  const done = [];
  const helper = client.chat.completions.stream({ model: THINKER, messages: [user("get_weather for Rome and Oslo")], tools: [WEATHER] });
  helper.on("tool_calls.function.arguments.done", ({ index, name, arguments: json }) => done.push([index, name, JSON.parse(json)]));
  const final = await helper.finalChatCompletion();
  assert.deepEqual(done, [[0, "get_weather", { city: "Rome" }], [1, "get_weather", { city: "Oslo" }]]);
  assert.deepEqual([final.choices[0].finish_reason, callsOf(final.choices[0].message).length], ["tool_calls", 2]);
});

check("tool runner", async () => {
  for (const streams of [false, true]) {
    const asked = [];
    const parameters = z.object({ city: z.string() });
    const weather = ({ city }) => (asked.push(city), `9°C in ${city}`);
    const runner = client.chat.completions.runTools({
      model: THINKER, stream: streams, messages: [user("get_weather for Oslo and Rome")],
      tools: [zodFunction({ name: "get_weather", description: "Weather", parameters, function: weather })],
    });
    assert.equal(await runner.finalContent(), "The tool says: 9°C in Oslo; 9°C in Rome.");
    assert.deepEqual(asked, ["Oslo", "Rome"]);
  }
});

// Each turn asks, gets two calls, answers them and reads the answer; what was sent once is read from the cache.
check("conversation of forty turns", async () => {
  for (const ask of ways) {
    const messages = [{ role: "system", content: `${run} ${ask.name}. ${"You are a careful agent. ".repeat(120)}` }];
    let sent = 0;
    for (let turn = 0; turn < 40; turn++) {
      const text = `Turn ${turn}: use get_weather for Oslo and Rome`;
      messages.push(user(turn % 4 ? text : [{ type: "text", text }, imagePart(turn + 1)]));
      for (const wanted of ["tool_calls", "stop"]) {
        const { message, reason, usage } = await ask({ model: THINKER, messages, tools: [WEATHER, TIME], reasoning_effort: "medium", prompt_cache_key: `node ${ask.name}` });
        assert.deepEqual([reason, usage.prompt_tokens_details.cached_tokens], [wanted, sent], `turn ${turn}`);
        assert.equal(usage.prompt_tokens_details.cache_write_tokens, usage.prompt_tokens - sent);
        assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
        sent = usage.prompt_tokens;
        messages.push(message, ...(message.tool_calls ? answers(message, `${turn} degrees`) : []));
      }
      assert.equal(messages.at(-1).content, `The tool says: ${turn} degrees; ${turn} degrees.`);
    }
    assert.equal(messages.length, 1 + 40 * 5);
  }
});

await main("node");
