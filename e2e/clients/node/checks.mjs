// Runs named checks against a gateway, prints one line for each, and ends
// with a summary. A check fails by throwing; the others still run. BASE_URL
// is the gateway with its prefix, API_KEY the key that it takes.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

export const baseURL = process.env.BASE_URL;
export const apiKey = process.env.API_KEY;
assert.ok(baseURL && apiKey, "BASE_URL and API_KEY must be set");

// run makes prompts of this run differ from those of an earlier one, which the upstream's cache may still know.
export const run = randomUUID();

// How long one check may take. Nothing good comes near it.
const patienceMs = 60_000;

const checks = [];

export function check(name, body) {
  checks.push({ name, body });
}

async function patiently(body) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${patienceMs} ms`)), patienceMs);
  });
  try {
    await Promise.race([body(), late]);
  } finally {
    clearTimeout(timer);
  }
}

// main runs everything and ends the process: 1 when a check has failed.
export async function main(group) {
  let failed = 0;
  for (const { name, body } of checks) {
    try {
      await patiently(body);
      console.log(`ok    ${group}: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${group}: ${name}: ${error?.stack ?? error}`);
    }
  }
  console.log(`${checks.length} checks, ${failed} failed`);
  process.exit(failed || !checks.length ? 1 : 0);
}
