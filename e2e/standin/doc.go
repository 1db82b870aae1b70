// Package standin is a strict stand-in for Anthropic's Messages API, for
// tests and for trying things out without a key.
//
// It refuses what the live API refuses, with the live API's error types and
// much of its wording, so that a translated request which passes here is one
// that the API would take. Check does this alone, without HTTP.
//
// What it answers is made up, but follows from the request: the same body
// gets the same answer, in text, thinking, tool calls or structured output,
// whole or as a stream, with steady token counts and a prompt cache.
// The newest user text steers it:
//
//   - a tool's name, or "use the tool", calls that tool; several cities or
//     several names call in parallel, "3 times" calls in three turns;
//   - "Count from 1 to 5", "Repeat after me: …" and "Write 200 words" are
//     obeyed; everything else is echoed;
//   - the Word constants make it refuse, fill its context, or fail.
//
// Script replaces answers, whole or piece by piece, so that a test can play
// any upstream, broken ones included.
//
// It knows no server tools, no files and no batches. Where the reference is
// silent the stricter reading counts.
package standin
