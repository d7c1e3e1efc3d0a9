// Package chat sends one chat completion request to an OpenAI-compatible server
// and measures its streamed answer.
//
// What it measures, after AIPerf's metrics reference: a content chunk is a
// chunk with non-empty content, reasoning or tool-call delta. TTFT is the first
// content chunk, latency the last one, both from the moment the request is
// sent; time to open a new connection counts, since a user waits for it too.
// TPOT is (latency − TTFT) / (output tokens − 1). Output tokens are the
// server's usage, else the counted content chunks.
//
// A time stamp is taken when the read returns that brought a chunk's last byte,
// below TLS and before anything is parsed: net/http does the rest over a
// connection that does this. Each stream has a connection of its own. HTTP/1.1
// is spoken, uncompressed; the environment's proxy is used, and no redirect is
// followed.
package chat
