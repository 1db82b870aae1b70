// The Vercel AI SDK with both of its OpenAI providers: text, streams, tools, structured output, pictures, a long conversation.

import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

import { apiKey, baseURL, check, main, run } from "./checks.mjs";
import { FORCED, PDF, PLAIN, THINKER, png } from "./samples.mjs";

// Each provider gives models by their names.
const providers = (key = apiKey) => {
  const openai = createOpenAI({ baseURL, apiKey: key });
  const compatible = createOpenAICompatible({ name: "gateway", baseURL, apiKey: key, includeUsage: true, supportsStructuredOutputs: true });
  return { openai: (name) => openai.chat(name), compatible: (name) => compatible(name) };
};

function everywhere(name, body) {
  for (const [provider, model] of Object.entries(providers())) check(`${provider}: ${name}`, () => body(model, provider));
}

const getWeather = () =>
  tool({ description: "Current weather", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `9°C in ${city}` });
const getTime = () => tool({ description: "The time", inputSchema: z.object({ zone: z.string() }), execute: async () => "12:00" });
const tools = () => ({ get_weather: getWeather(), get_time: getTime() });

const quiet = { maxRetries: 0 };

function arithmetic(usage) {
  assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens, JSON.stringify(usage));
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0, JSON.stringify(usage));
}

// drained reads a whole stream: its text, and everything that the SDK calls an error.
async function drained(result) {
  const errors = [];
  let text = "";
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") text += part.text;
    if (part.type === "error") errors.push(part.error);
  }
  return { text, errors };
}

everywhere("text, whole and streamed", async (model) => {
  for (const name of [PLAIN, THINKER]) {
    const options = { ...quiet, model: model(name), system: "Be brief.", prompt: "Count from 1 to 5", maxOutputTokens: 200 };
    const whole = await generateText(options);
    const stream = streamText(options);
    const { text, errors } = await drained(stream);
    assert.deepEqual([errors, text, whole.text], [[], "1\n2\n3\n4\n5", "1\n2\n3\n4\n5"]);
    assert.deepEqual([await stream.finishReason, whole.finishReason], ["stop", "stop"]);
    arithmetic(whole.usage);
    assert.equal((await stream.usage).totalTokens, whole.usage.totalTokens);
    assert.equal(whole.response.modelId, name);
  }
});

everywhere("finish reasons", async (model) => {
  for (const [fields, reason] of [[{ maxOutputTokens: 1, prompt: "Count from 1 to 5" }, "length"], [{ prompt: "STANDIN_REFUSE" }, "content-filter"]]) {
    const options = { ...quiet, model: model(PLAIN), ...fields };
    assert.equal((await generateText(options)).finishReason, reason);
    const stream = streamText(options);
    await drained(stream);
    assert.equal(await stream.finishReason, reason);
  }
});

everywhere("tool loop", async (model) => {
  for (const name of [PLAIN, THINKER]) {
    const options = { ...quiet, model: model(name), tools: tools(), stopWhen: isStepCount(5), prompt: "get_weather for Oslo and Rome" };
    const whole = await generateText(options);
    assert.equal(whole.text, "The tool says: 9°C in Oslo; 9°C in Rome.");
    assert.equal(whole.steps.length, 2);
    assert.deepEqual(whole.steps[0].toolCalls.map((call) => call.input), [{ city: "Oslo" }, { city: "Rome" }]);
    const stream = streamText(options);
    const { text, errors } = await drained(stream);
    assert.deepEqual(errors, []);
    assert.ok(text.endsWith(whole.text), text);
    assert.deepEqual((await stream.steps)[0].toolCalls.map((call) => call.input), [{ city: "Oslo" }, { city: "Rome" }]);
    assert.equal((await stream.steps)[0].finishReason, "tool-calls");
  }
});

everywhere("tool choices", async (model) => {
  for (const [toolChoice, calls] of [["none", []], ["required", ["get_weather"]], [{ type: "tool", toolName: "get_time" }, ["get_time"]]]) {
    const { toolCalls } = await generateText({ ...quiet, model: model(FORCED), tools: tools(), toolChoice, prompt: "Hello" });
    assert.deepEqual(toolCalls.map((call) => call.toolName), calls);
  }
});

everywhere("a tool without input", async (model) => {
  for (const name of ["tickets", "tickets_", "tickets__"]) {
    const inputs = [];
    const bare = tool({ inputSchema: z.object({}), execute: async (input) => (inputs.push(input), "none") });
    const stream = streamText({ ...quiet, model: model(PLAIN), tools: { [name]: bare }, stopWhen: isStepCount(2), prompt: `${name} please` });
    const { text, errors } = await drained(stream);
    assert.deepEqual([errors, inputs], [[], [{}]]);
    assert.ok(text.endsWith("The tool says: none."), text);
  }
});

everywhere("structured output", async (model) => {
  const schema = z.object({ city: z.string(), inhabitants: z.number(), rivers: z.array(z.string()) });
  const want = { city: "Paris", inhabitants: 1, rivers: ["example rivers"] };
  for (const name of [PLAIN, THINKER]) {
    const options = { ...quiet, model: model(name), output: Output.object({ schema }), prompt: "Paris" };
    assert.deepEqual((await generateText(options)).output, want);
    const stream = streamText(options);
    await drained(stream);
    assert.deepEqual(await stream.output, want);
  }
});

everywhere("pictures and documents", async (model) => {
  const content = [
    { type: "text", text: "Look" },
    { type: "file", data: png(3), mediaType: "image/png" },
    { type: "file", data: PDF, mediaType: "application/pdf", filename: "a.pdf" },
  ];
  const { text } = await generateText({ ...quiet, model: model(PLAIN), messages: [{ role: "user", content }] });
  assert.equal(text, 'You wrote: "Look". You sent 2 images or documents.');
});

everywhere("errors", async (model, provider) => {
  for (const [made, status, code] of [[model("gpt-9"), 404, "model_not_found"], [providers("sk-x")[provider](PLAIN), 401, "invalid_api_key"]]) {
    await assert.rejects(generateText({ ...quiet, model: made, prompt: "Hi" }), (error) => {
      assert.ok(APICallError.isInstance(error), String(error));
      assert.deepEqual([error.statusCode, error.isRetryable, JSON.parse(error.responseBody).error.code], [status, false, code]);
      return true;
    });
  }
  for (const word of ["STANDIN_MIDWAY_FAIL", "STANDIN_MIDWAY_CUT"]) {
    const { text, errors } = await drained(streamText({ ...quiet, model: model(PLAIN), prompt: `Count from 1 to 50 ${word}`, onError() {} }));
    assert.equal(errors.length, 1, `${word}: ${errors}`);
    assert.ok(text.startsWith("1\n2\n"), text);
  }
});

everywhere("conversation of forty turns", async (model, provider) => {
  const system = `${run} ${provider}. ${"You are a careful agent. ".repeat(120)}`;
  const messages = [];
  let read = 0;
  for (let turn = 0; turn < 40; turn++) {
    const content = [{ type: "text", text: `Turn ${turn}: get_weather for Oslo and Rome` }];
    if (turn % 4 === 0) content.push({ type: "file", data: png(turn + 1), mediaType: "image/png" });
    messages.push({ role: "user", content });
    const options = { ...quiet, model: model(THINKER), system, messages, tools: tools(), stopWhen: isStepCount(3) };
    const result = turn % 2 ? await generateText(options) : streamText(options);
    if (turn % 2 === 0) assert.deepEqual((await drained(result)).errors, []);
    assert.equal(await result.text, "The tool says: 9°C in Oslo; 9°C in Rome.", `turn ${turn}`);
    messages.push(...(await result.responseMessages));
    const cached = (await result.usage).inputTokenDetails.cacheReadTokens;
    assert.ok(cached > read, `turn ${turn}: ${cached} tokens read from the cache after ${read}`);
    read = cached;
  }
  assert.equal(messages.length, 40 * 4);
});

await main("ai-sdk");
