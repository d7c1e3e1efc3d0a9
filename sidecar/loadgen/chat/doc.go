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
// A time stamp is taken when the bytes of a chunk have been read and before
// anything of them is parsed. To keep that true with a thousand streams on two
// cores, the package has a transport of its own: one goroutine and one
// connection a stream, one read system call a chunk (on Linux; elsewhere two),
// no timer touched and nothing allocated per chunk. It speaks HTTP/1.1; it
// follows no redirect and uses no proxy.
package chat
