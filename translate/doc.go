// Package translate is the core of EZAT Router's OpenAI door: a pure function
// from the bytes of a Chat Completions request to the bytes of an Anthropic
// Messages request, and a pure machine from the upstream's bytes back to the
// client's.
//
//	body ─Parse→ Request ─Decide→ Plan ─Write→ upstream bytes
//	upstream JSON ─Reply.Answer→ chat.completion
//	upstream SSE  ─Stream.Feed→ chat.completion.chunk events
//	any Error ─AppendEnvelope / AppendEvent→ client bytes
//
// Invariants: no host calls, clock, randomness, logging, goroutines, changing
// globals, or map iteration that reaches output. What the package wants done it
// returns (Fetch); what it may not find out itself it is told (Env, Answer).
// Nothing here panics on any input, and every depth, size and count is bounded
// before it can cost memory or stack.
package translate
