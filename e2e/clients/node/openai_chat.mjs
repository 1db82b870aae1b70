// The openai package of Node: chats, streams, errors, models.

import assert from "node:assert/strict";

import OpenAI from "openai";

import { apiKey, baseURL, check, main } from "./checks.mjs";
import { COUNT, arithmetic, client, create, envelope, folded, refused, stream } from "./openai_client.mjs";
import { PLAIN, THINKER } from "./samples.mjs";

function wellFormed(completion, model) {
  const { id, object, created, choices, usage } = completion;
  assert.deepEqual(Object.keys(completion).sort(), ["choices", "created", "id", "model", "object", "usage"]);
  assert.equal(id, `chatcmpl-${completion._request_id}`);
  assert.deepEqual([object, completion.model, choices.length], ["chat.completion", model, 1]);
  assert.ok(Number.isInteger(created) && created > 1_700_000_000, String(created));
  assert.deepEqual([choices[0].index, choices[0].logprobs], [0, null]);
  assert.deepEqual(Object.keys(choices[0].message).sort(), ["content", "refusal", "role"]);
  assert.deepEqual([choices[0].message.role, choices[0].message.refusal], ["assistant", null]);
  arithmetic(usage);
}

function streamFormed(chunks, headers, model) {
  assert.deepEqual([...new Set(chunks.map((chunk) => chunk.id))], [`chatcmpl-${headers.get("x-request-id")}`]);
  assert.equal(headers.get("request-id"), headers.get("x-request-id"));
  assert.match(headers.get("content-type"), /^text\/event-stream/);
  assert.equal(new Set(chunks.map((chunk) => chunk.created)).size, 1);
  for (const chunk of chunks) {
    assert.deepEqual([chunk.object, chunk.model, chunk.choices.length, chunk.choices[0].index], ["chat.completion.chunk", model, 1, 0]);
    assert.ok(!("error" in chunk));
  }
  assert.deepEqual(chunks[0].choices[0].delta, { role: "assistant", content: "" });
  assert.deepEqual(chunks.at(-1).choices[0].delta, {});
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.choices[0].finish_reason === null));
}

check("whole", async () => {
  const completion = await create();
  wellFormed(completion, PLAIN);
  assert.equal(completion.choices[0].message.content, "1\n2\n3\n4\n5");
  assert.equal(completion.choices[0].finish_reason, "stop");
  assert.equal(completion.usage.completion_tokens_details.reasoning_tokens, 0);
});

check("thinking is counted and not shown", async () => {
  const completion = await create({ model: THINKER, reasoning_effort: "high" });
  wellFormed(completion, THINKER);
  assert.equal(completion.choices[0].message.content, "1\n2\n3\n4\n5");
  assert.ok(completion.usage.completion_tokens_details.reasoning_tokens > 0);
});

check("roles", async () => {
  const said = 'naïve 🙂 \u2028 "quoted" \\ <b>&amp;</b>';
  const completion = await create({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "developer", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", content: [{ type: "text", text: "Repeat after me: " }, { type: "text", text: "no" }] },
      { role: "assistant", content: "no" },
      { role: "user", name: "ada", content: `Repeat after me: ${said}` },
    ],
  });
  wellFormed(completion, PLAIN);
  assert.equal(completion.choices[0].message.content, said);
});

check("an answer goes back", async () => {
  const first = await create();
  const second = await create({ messages: [...COUNT, first.choices[0].message, { role: "user", content: "Count from 6 to 7" }] });
  assert.equal(second.choices[0].message.content, "6\n7");
});

check("finish reasons", async () => {
  for (const [fields, reason, content] of [
    [{ stop: "4" }, "stop", "1\n2\n3\n"],
    [{ stop: ["x", "\n3"] }, "stop", "1\n2"],
    [{ max_tokens: 1 }, "length", "1\n2\n"],
    [{ max_completion_tokens: 2, max_tokens: 1 }, "length", "1\n2\n3\n4\n"],
  ]) {
    const { message, finish_reason } = (await create(fields)).choices[0];
    assert.deepEqual([finish_reason, message.content], [reason, content]);
    const { chunks } = await stream(fields);
    assert.deepEqual([chunks.at(-1).choices[0].finish_reason, folded(chunks)], [reason, content]);
  }
  const messages = [{ role: "user", content: "STANDIN_REFUSE" }];
  assert.equal((await create({ messages })).choices[0].finish_reason, "content_filter");
  assert.equal((await stream({ messages })).chunks.at(-1).choices[0].finish_reason, "content_filter");
});

check("harmless fields", async () => {
  const completion = await create({
    temperature: 0, top_p: 0.5, n: 1, seed: 7, user: "u", store: false, metadata: { a: "b" }, presence_penalty: 0.5,
    frequency_penalty: 0, logprobs: false, logit_bias: {}, service_tier: "auto", modalities: ["text"],
    response_format: { type: "text" }, stop: null, safety_identifier: "s", prompt_cache_key: "conversation 1",
    parallel_tool_calls: true, tool_choice: "auto", something_new: { x: [1] },
  });
  wellFormed(completion, PLAIN);
});

check("stream", async () => {
  const { chunks, headers } = await stream();
  streamFormed(chunks, headers, PLAIN);
  assert.equal(folded(chunks), "1\n2\n3\n4\n5");
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  assert.ok(chunks.length > 3 && chunks.every((chunk) => !("usage" in chunk)));
});

check("stream with usage", async () => {
  for (const model of [PLAIN, THINKER]) {
    const { chunks, headers } = await stream({ model, stream_options: { include_usage: true } });
    const last = chunks.pop();
    streamFormed(chunks, headers, model);
    assert.ok(chunks.every((chunk) => chunk.usage === null));
    assert.deepEqual([last.choices, last.id, last.created, last.model], [[], chunks[0].id, chunks[0].created, model]);
    arithmetic(last.usage);
    const completion = await create({ model });
    assert.equal(last.usage.prompt_tokens, completion.usage.prompt_tokens);
    assert.equal(last.usage.completion_tokens, completion.usage.completion_tokens);
    assert.equal(folded(chunks), completion.choices[0].message.content);
  }
});

check("many streams at once", async () => {
  const ids = await Promise.all(
    Array.from({ length: 16 }, async (_, n) => {
      const text = `stream ${n} ${"é🙂".repeat(n)}`.trim();
      const { chunks, headers } = await stream({ messages: [{ role: "user", content: `Repeat after me: ${text}` }] });
      streamFormed(chunks, headers, PLAIN);
      assert.equal(folded(chunks), text);
      return chunks[0].id;
    }),
  );
  assert.equal(new Set(ids).size, 16);
});

check("a stream left early", async () => {
  const left = await create({ messages: [{ role: "user", content: "Write 2000 words" }], max_tokens: 8000, stream: true });
  for await (const chunk of left) {
    if (chunk.choices[0].delta.content) break; // aborts the request
  }
  assert.ok(left.controller.signal.aborted);
  assert.equal((await create()).choices[0].finish_reason, "stop");
});

check("the stream's text as it is read back", async () => {
  const copy = (await create({ stream: true })).toReadableStream();
  const lines = (await new Response(copy).text()).trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(folded(lines), "1\n2\n3\n4\n5");
});

check("refused fields", async () => {
  const audio = { type: "input_audio", input_audio: { data: "aGk=", format: "wav" } };
  for (const [fields, message] of [
    [{ n: 2 }, "n: only 1 choice per request is supported"],
    [{ logprobs: true }, "logprobs: log probabilities are not available"],
    [{ top_logprobs: 2 }, "top_logprobs: log probabilities are not available"],
    [{ logit_bias: { 1: 1 } }, "logit_bias: is not supported"],
    [{ modalities: ["text", "audio"] }, "modalities: only text output is supported"],
    [{ web_search_options: {} }, "web_search_options: is not supported"],
    [{ functions: [{ name: "f", parameters: {} }] }, "functions: the legacy functions API is not supported; use tools"],
    [{ response_format: { type: "json_object" } }, 'response_format: type "json_object" is not supported; use "json_schema" with a schema (objects need "additionalProperties": false)'],
    [{ reasoning_effort: "huge" }, "reasoning_effort: use one of none, minimal, low, medium, high, xhigh, max"],
    [{ tools: [{ type: "custom", custom: { name: "c" } }] }, "tools[0].type: only function tools are supported"],
    [{ messages: [{ role: "user", content: [audio] }] }, "messages[0].content[0]: audio input is not supported"],
    [{ messages: [{ role: "function", name: "f", content: "x" }] }, 'messages[0].role: the legacy "function" role is not supported; use tools'],
    [{ messages: [{ role: "system", content: "x" }] }, "messages: must contain at least one user message"],
  ]) {
    for (const streamed of [false, true]) {
      const error = await refused(create({ ...fields, stream: streamed }), OpenAI.BadRequestError, 400);
      envelope(error, message, "invalid_request_error");
      assert.equal(error.error.message, message);
    }
  }
});

check("what the upstream refuses", async () => {
  const error = await refused(create({ reasoning_effort: "xhigh", model: "anthropic/claude-opus-4-6" }), OpenAI.BadRequestError, 400);
  envelope(error, "xhigh", "invalid_request_error");
});

check("keys", async () => {
  const other = new OpenAI({ baseURL, apiKey: "sk-of-nobody", maxRetries: 0 });
  const question = { model: PLAIN, messages: COUNT };
  for (const ask of [
    () => other.chat.completions.create(question),
    () => other.chat.completions.create({ ...question, stream: true }),
    () => other.models.list(),
    () => create({}, { headers: { Authorization: null } }),
  ]) {
    envelope(await refused(ask(), OpenAI.AuthenticationError, 401), "", "invalid_request_error", null, "invalid_api_key");
  }
});

check("unknown model", async () => {
  const message = "The model `gpt-9` does not exist or you do not have access to it.";
  for (const ask of [() => create({ model: "gpt-9" }), () => create({ model: "gpt-9", stream: true }), () => client.models.retrieve("gpt-9")]) {
    const error = await refused(ask(), OpenAI.NotFoundError, 404);
    envelope(error, message, "invalid_request_error", "model", "model_not_found");
    assert.equal(error.error.message, message);
  }
});

check("limits and load", async () => {
  for (const [word, kind, status, type, code] of [
    ["STANDIN_RATE_LIMITED", OpenAI.RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"],
    ["STANDIN_OVERLOADED", OpenAI.InternalServerError, 503, "server_error", "overloaded"],
    ["STANDIN_MIDWAY_FAIL", OpenAI.InternalServerError, 500, "server_error", null],
  ]) {
    const error = await refused(create({ messages: [{ role: "user", content: word }] }), kind, status);
    envelope(error, "", type, null, code);
    assert.equal(error.headers.get("retry-after"), status === 429 ? "2" : null);
  }
});

check("too large", async () => {
  const messages = [{ role: "user", content: "x".repeat(33_554_433) }];
  const error = await refused(create({ messages }), OpenAI.APIError, 413);
  envelope(error, "", "invalid_request_error", null, "request_too_large");
  assert.equal((await create()).choices[0].finish_reason, "stop");
});

check("a stream that fails", async () => {
  for (const word of ["STANDIN_MIDWAY_FAIL", "STANDIN_MIDWAY_CUT"]) {
    let text = "";
    let error;
    try {
      const failing = await create({ messages: [{ role: "user", content: `Count from 1 to 50 ${word}` }], stream: true });
      for await (const chunk of failing) text += chunk.choices[0].delta.content ?? "";
    } catch (caught) {
      error = caught;
    }
    assert.ok(error, `${word}: the stream ended well with ${JSON.stringify(text)}`);
    assert.equal(error.constructor, OpenAI.APIError, String(error));
    envelope(error, "", "server_error");
    assert.equal(error.status, undefined);
    assert.ok(text.startsWith("1\n2\n"), text);
  }
});

check("models", async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model);
  const ids = listed.map((model) => model.id);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.includes(PLAIN) && ids.includes(THINKER), ids.join());
  for (const model of listed) {
    assert.deepEqual(Object.keys(model).sort(), ["created", "id", "object", "owned_by"]);
    assert.deepEqual([model.object, model.owned_by], ["model", "anthropic"]);
    assert.ok(Number.isInteger(model.created) && model.created > 1_600_000_000, JSON.stringify(model));
  }
  const one = await client.models.retrieve(THINKER);
  assert.deepEqual({ ...one }, listed.find((model) => model.id === THINKER));
  assert.ok(one._request_id);
});

await main("node");
