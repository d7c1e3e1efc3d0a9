// Package chat sends one chat completion request to an OpenAI-compatible server
// and measures its streamed answer.
//
// The metrics follow AIPerf's metrics reference. A content chunk has a non-empty content, reasoning or tool-call
// delta. TTFT is the time from sending the request to the first content chunk, latency the time to the last one.
// Both include the time to open a connection, since a user waits for it too. TPOT is (latency − TTFT) / (output
// tokens − those of the first chunk), over the tokens that were streamed. Output tokens are the server's usage,
// else the number of content chunks.
//
// A chunk's time stamp is the return of the read that delivered its last byte, below TLS and before parsing. Each
// stream in progress has its own connection. Requests use HTTP/1.1 without compression and redirects, and the
// environment's proxy.
package chat
