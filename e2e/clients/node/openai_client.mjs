// The openai package of Node in front of the gateway, and what its checks share.

import assert from "node:assert/strict";

import OpenAI from "openai";

import { apiKey, baseURL } from "./checks.mjs";
import { PLAIN } from "./samples.mjs";

export const COUNT = [{ role: "user", content: "Count from 1 to 5" }];

export const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

export function create(fields = {}, options = {}) {
  return client.chat.completions.create({ model: PLAIN, messages: COUNT, ...fields }, options);
}

// stream returns the chunks of a stream and its response's headers.
export async function stream(fields = {}) {
  const { data, response } = await create({ ...fields, stream: true }).withResponse();
  const chunks = [];
  for await (const chunk of data) chunks.push(chunk);
  return { chunks, headers: response.headers };
}

export const folded = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");

// refused waits for an error of exactly this class and status.
export async function refused(promise, kind, status) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `no ${kind.name}`);
  assert.equal(error.constructor, kind, String(error));
  assert.equal(error.status, status);
  assert.ok(error.requestID, "the error has no request id");
  assert.equal(error.headers.get("request-id"), error.requestID);
  return error;
}

export function envelope(error, message, type, param = null, code = null) {
  assert.deepEqual(Object.keys(error.error).sort(), ["code", "message", "param", "type"]);
  assert.ok(error.error.message.includes(message), error.error.message);
  assert.deepEqual([error.type, error.param, error.code], [type, param, code]);
}

// arithmetic checks that the counts of one answer fit together.
export function arithmetic(usage) {
  const { cached_tokens: read, cache_write_tokens: written } = usage.prompt_tokens_details;
  const { reasoning_tokens: reasoning } = usage.completion_tokens_details;
  for (const count of [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, read, written, reasoning]) {
    assert.ok(Number.isInteger(count) && count >= 0, JSON.stringify(usage));
  }
  assert.ok(usage.prompt_tokens > 0 && usage.completion_tokens > 0, JSON.stringify(usage));
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(read + written <= usage.prompt_tokens && reasoning <= usage.completion_tokens, JSON.stringify(usage));
}
