package chat

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	goccy "github.com/goccy/go-json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// dynamoChunk is one token as a real Dynamo sent it.
const dynamoChunk = `{"id":"chatcmpl-8ffc9ead-347f-4abd-bda8-ba2b02e35d1a","choices":[{"index":0,"delta":{"content":"sweep"},"finish_reason":null,"logprobs":null}],"created":1795254324,"model":"meta-llama/Llama-3.1-70B-Instruct","object":"chat.completion.chunk","nvext":{"worker_id":{"prefill_worker_id":16549284283275536882,"prefill_dp_rank":0,"decode_worker_id":16549284283275536882,"decode_dp_rank":0}}}`

func TestDecodeChunk(t *testing.T) {
	const worker = 16549284283275536882
	for _, row := range []struct {
		name, in string
		want     chunk
	}{
		{"a token of Dynamo", dynamoChunk, chunk{text: "sweep", content: true, worker: worker, choices: true, answer: true}},
		{"role only", `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, chunk{choices: true}},
		{"null content", `{"choices":[{"delta":{"content":null,"tool_calls":null}}]}`, chunk{choices: true}},
		{"null delta", `{"choices":[{"delta":null},null]}`, chunk{choices: true}},
		{"null choices", `{"choices":null}`, chunk{}},
		{"several choices", `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"},{"delta":{"content":"b"}}]}`, chunk{text: "ab", content: true, finishReason: "stop", choices: true, answer: true}},
		{"reasoning", `{"choices":[{"delta":{"reasoning":"hm"}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"reasoning_content", `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"reasoning under two names", `{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"reasoning_text", `{"choices":[{"delta":{"reasoning_text":"hm"}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"thinking", `{"choices":[{"delta":{"thinking":"hm"}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"reasoning_details", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"thinking_blocks", `{"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"hm"}],"content":""}}]}`, chunk{reasoning: "hm", content: true, choices: true}},
		{"a message in place of a delta", `{"choices":[{"message":{"role":"assistant","content":"a"}}]}`, chunk{whole: "a", choices: true}},
		{"the text of a completion that is no chat", `{"choices":[{"text":"a"}]}`, chunk{text: "a", content: true, answer: true, choices: true}},
		{"a finish reason as an object", `{"choices":[{"delta":{"content":"a"},"finish_reason":{"type":"abort"}}]}`, chunk{text: "a", content: true, answer: true, choices: true, finishReason: "abort"}},
		{"the text null as a finish reason", `{"choices":[{"delta":{"content":"a"},"finish_reason":"null"}]}`, chunk{text: "a", content: true, answer: true, choices: true}},
		{"the text None as a finish reason", `{"choices":[{"delta":{"content":"a"},"finish_reason":"None"}]}`, chunk{text: "a", content: true, answer: true, choices: true}},
		{"usage in the choice", `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":13,"completion_tokens":3,"total_tokens":16,"cached_tokens":8}}]}`, chunk{choices: true, finishReason: "stop", usage: &counts{prompt: 13, completion: 3, total: 16, cached: 8, hasCached: true}}},
		{"Groq's usage", `{"choices":[{"delta":{}}],"x_groq":{"usage":{"prompt_tokens":13,"completion_tokens":3}}}`, chunk{choices: true, usage: &counts{prompt: 13, completion: 3}}},
		{"timings of another kind", `{"choices":[{"delta":{"content":"a"}}],"timings":"none"}`, chunk{text: "a", content: true, answer: true, choices: true}},
		{"a finish reason as a list", `{"choices":[{"delta":{},"finish_reason":["stop"]}]}`, chunk{choices: true, finishReason: "stop"}},
		{"a refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, chunk{text: "no", content: true, choices: true, answer: true}},
		{"a function call", `{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, chunk{content: true, choices: true, answer: true}},
		{"the last of the reasoning beside the first of the content", `{"choices":[{"delta":{"reasoning":"hm ","content":"a"}}]}`, chunk{text: "a", reasoning: "hm ", content: true, choices: true, answer: true}},
		{"a tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}`, chunk{content: true, choices: true, answer: true}},
		{"no tool call", `{"choices":[{"delta":{"tool_calls":[]}}]}`, chunk{choices: true}},
		{"finish only", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, chunk{finishReason: "stop", choices: true}},
		{"usage on its own", `{"choices":[],"usage":{"prompt_tokens":13,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}`, chunk{usage: &counts{prompt: 13, completion: 3, hasCached: true}}},
		{"usage on a token", `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":13,"completion_tokens":3}}`, chunk{text: "a", content: true, usage: &counts{prompt: 13, completion: 3}, choices: true, answer: true}},
		{"usage null", `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"usage that counts nothing", `{"choices":[{"delta":{"content":"a"}}],"usage":{}}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"usage details null", `{"usage":{"prompt_tokens":1,"completion_tokens":null,"prompt_tokens_details":null}}`, chunk{usage: &counts{prompt: 1}}},
		{"cached tokens null", `{"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":null}}}`, chunk{usage: &counts{prompt: 1}}},
		{"as many tokens as can be", `{"usage":{"prompt_tokens":1e7,"completion_tokens":1e7,"prompt_tokens_details":{"cached_tokens":1e7}}}`, chunk{usage: &counts{prompt: 1e7, completion: 1e7, cached: 1e7, hasCached: true}}},
		{"worker: decode wins over prefill", `{"nvext":{"worker_id":{"decode_worker_id":18446744073709551615,"prefill_worker_id":7}}}`, chunk{worker: 1<<64 - 1}},
		{"worker: prefill alone", `{"nvext":{"worker_id":{"prefill_worker_id":9007199254740993,"decode_worker_id":null}}}`, chunk{worker: 1<<53 + 1}},
		{"worker as a string", `{"nvext":{"worker_id":{"decode_worker_id":"16549284283275536882"}}}`, chunk{worker: worker}},
		{"worker beyond 64 bits", `{"nvext":{"worker_id":{"decode_worker_id":99999999999999999999}}}`, chunk{}},
		{"worker as a word", `{"nvext":{"worker_id":{"decode_worker_id":"w-1","prefill_worker_id":[7]}}}`, chunk{}},
		{"timing", `{"nvext":{"timing":{"ttft_ms":250.5,"kv_hit_rate":0.75,"router_queue_depth":3,"total_time_ms":9}}}`, chunk{timing: Timing{.2505, .75, 3, true, true, true}}},
		{"timing of nulls", `{"nvext":{"timing":{"ttft_ms":null,"kv_hit_rate":null,"router_queue_depth":null}}}`, chunk{}},
		{"error object", `{"error":{"message":"boom","type":"internal","code":500}}`, chunk{isError: true, errMember: true, errMessage: "boom", errType: "internal", errCode: "500"}},
		{"error string", `{"error":"boom"}`, chunk{isError: true, errMember: true, errMessage: "boom"}},
		{"error without words", `{"error":{"message":7,"type":null}}`, chunk{isError: true, errMember: true, errMessage: "7"}},
		{"error list", `{"error":[{"message":"boom"}]}`, chunk{isError: true, errMember: true, errMessage: "boom"}},
		{"error number", `{"error":500,"choices":[]}`, chunk{isError: true, errMember: true, errCode: "500"}},
		{"error true", `{"error":true}`, chunk{isError: true, errMember: true}},
		{"several errors", `{"errors":["boom"],"usage":{}}`, chunk{isError: true, errMember: true, errMessage: "boom"}},
		{"an error in a choice", `{"choices":[{"delta":{},"error":{"code":502,"message":"boom"},"finish_reason":"error"}]}`, chunk{isError: true, errMember: true, errMessage: "boom", errCode: "502", choices: true, finishReason: "error"}},
		{"an object of the kind error", `{"object":"error","message":"boom","choices":[]}`, chunk{isError: true, errMember: true, errMessage: "boom"}},
		{"a message under another name", `{"code":500,"msg":"boom"}`, chunk{isError: true, errMessage: "boom", errCode: "500"}},
		{"FastAPI's error as an object", `{"detail":{"msg":"boom"}}`, chunk{isError: true, errMessage: "boom"}},
		{"MiniMax's error", `{"object":"chat.completion.chunk","choices":null,"base_resp":{"status_code":1000,"status_msg":"boom"}}`, chunk{isError: true, errMember: true, errMessage: "boom", errCode: "1000"}},
		{"MiniMax's error beside a token", `{"choices":[{"delta":{"content":"a"}}],"base_resp":{"status_code":1027,"status_msg":"boom"}}`, chunk{text: "a", content: true, answer: true, choices: true, isError: true, errMember: true, errMessage: "boom", errCode: "1027"}},
		{"MiniMax's success", `{"choices":[{"delta":{"content":"a"}}],"base_resp":{"status_code":0,"status_msg":""}}`, chunk{text: "a", content: true, answer: true, choices: true}},
		{"MiniMax's success at the end", `{"choices":null,"base_resp":{"status_code":0,"status_msg":"success"}}`, chunk{}},
		{"Baidu's error", `{"error_code":18,"error_msg":"boom"}`, chunk{isError: true, errMessage: "boom", errCode: "18"}},
		{"Baidu's error beside choices", `{"object":"chat.completion.chunk","choices":null,"error_code":18,"error_msg":"boom"}`, chunk{isError: true, errMessage: "boom", errCode: "18"}},
		{"DashScope's error", `{"object":"chat.completion.chunk","choices":[],"code":"InvalidParameter","message":"boom"}`, chunk{isError: true, errMessage: "boom", errCode: "InvalidParameter"}},
		{"Spark's error", `{"header":{"code":10013,"message":"boom"},"choices":null}`, chunk{isError: true, errMessage: "boom", errCode: "10013"}},
		{"a message beside null choices", `{"object":"chat.completion.chunk","choices":null,"message":"boom"}`, chunk{isError: true, errMessage: "boom"}},
		{"an error object beside null choices", `{"object":"chat.completion.chunk","choices":null,"error":{"message":"boom","status":"FAILED"}}`, chunk{isError: true, errMember: true, errMessage: "boom", errCode: "FAILED"}},
		{"something unknown beside null choices", `{"object":"chat.completion.chunk","choices":null,"fault":"boom"}`, chunk{unknown: true}},
		{"a chunk of nothing", `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":null,"usage":null}`, chunk{}},
		{"a state beside empty choices", `{"choices":[],"status":"queued","message":"wait"}`, chunk{errMessage: "wait"}},
		{"no error in any form", `{"choices":[{"error":null}],"error":{},"errors":[],"code":0}`, chunk{choices: true, errCode: "0"}},
		{"error null is none", `{"choices":[],"error":null}`, chunk{}},
		{"error of another kind is none", `{"choices":[],"error":false}`, chunk{}},
		{"Dynamo's error", `{"message":"boom","type":"overloaded","code":503}`, chunk{isError: true, errMessage: "boom", errType: "overloaded", errCode: "503"}},
		{"FastAPI's error", `{"detail":"Not Found"}`, chunk{isError: true, errMessage: "Not Found"}},
		{"FastAPI's list of faults", `{"detail":[{"loc":["body","nvext"],"msg":"Extra inputs are not permitted"}]}`, chunk{isError: true, errMessage: "Extra inputs are not permitted"}},
		{"an error of no words is none", `{"error":"","choices":[{"delta":{"content":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"a message beside choices is no error", `{"choices":[],"message":"hello"}`, chunk{errMessage: "hello"}},
		{"an escaped key", `{"choices":[{"delta":{"con\u0074ent":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{
			"white space everywhere", " {\n\t\"choices\" : [ { \"delta\" : { \"content\" : \"a\" } } ] }\r\n ",
			chunk{text: "a", content: true, choices: true, answer: true},
		},
		{"an empty object", `{}`, chunk{unknown: true}},

		// Of the wrong type, and passed over.
		{"a content of parts", `{"choices":[{"delta":{"content":[{"text":"a"}],"reasoning":"hm"},"finish_reason":"stop"}]}`, chunk{text: "a", reasoning: "hm", content: true, finishReason: "stop", choices: true, answer: true}},
		{"parts of reasoning", `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"T"}]},{"type":"text","text":"a"}]}}]}`, chunk{text: "a", reasoning: "T", content: true, choices: true, answer: true}},
		{"reasoning as a part with its text", `{"choices":[{"delta":{"content":[{"type":"reasoning","text":"T"}]}}]}`, chunk{reasoning: "T", content: true, choices: true}},
		{"a part alone", `{"choices":[{"delta":{"content":{"type":"text","text":"a"}}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"a reasoning of parts", `{"choices":[{"delta":{"content":null,"reasoning_content":[{"type":"text","text":"T"}]}}]}`, chunk{reasoning: "T", content: true, choices: true}},
		{"no parts", `{"choices":[{"delta":{"content":[]}}]}`, chunk{choices: true}},
		{"a count in quotes", `{"usage":{"prompt_tokens":"13","completion_tokens":"3"}}`, chunk{usage: &counts{prompt: 13, completion: 3}}},
		{"a count of another kind", `{"usage":{"prompt_tokens":13,"completion_tokens":{}}}`, chunk{usage: &counts{prompt: 13}}},
		{"usage of zeros", `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, chunk{}},
		{"cached tokens of no prompt", `{"usage":{"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}`, chunk{usage: &counts{completion: 3, hasCached: true}}},
		{"cached tokens under DeepSeek's name", `{"usage":{"prompt_tokens":13,"completion_tokens":3,"prompt_cache_hit_tokens":8}}`, chunk{usage: &counts{prompt: 13, completion: 3, cached: 8, hasCached: true}}},
		{"tool calls of another kind", `{"choices":[{"delta":{"tool_calls":{},"content":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"a finish reason of another kind", `{"choices":[{"finish_reason":1,"delta":{"content":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"usage of another kind", `{"usage":"none","choices":[{"delta":{"content":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
		{"usage details of another kind", `{"usage":{"prompt_tokens_details":7,"prompt_tokens":1}}`, chunk{usage: &counts{prompt: 1}}},
		{"an nvext of another shape", `{"nvext":{"worker_id":12,"timing":"none"}}`, chunk{}},
		{"an nvext of another kind", `{"nvext":[1]}`, chunk{}},
		{"a message and a type of another kind", `{"message":1,"type":[],"choices":[{"delta":{"content":"a"}}]}`, chunk{text: "a", content: true, choices: true, answer: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := decodeChunk([]byte(row.in))
			require.NoError(t, err)
			assert.Equal(t, row.want, c)
		})
	}
}

// An implausible number counts as not reported. The rest of its chunk is valid.
func TestImplausible(t *testing.T) {
	for _, row := range []struct {
		name, usage, timing string
		want                chunk
	}{
		{"more tokens than can be", `"prompt_tokens":9,"completion_tokens":1e23`, ``, chunk{usage: &counts{prompt: 9}}},
		{"a number beyond a float64", `"prompt_tokens":9,"completion_tokens":1e999`, ``, chunk{usage: &counts{prompt: 9}}},
		{"tokens below zero", `"prompt_tokens":-5,"completion_tokens":3`, ``, chunk{usage: &counts{completion: 3}}},
		{"half a token", `"prompt_tokens":9,"completion_tokens":2.5`, ``, chunk{usage: &counts{prompt: 9}}},
		{"cached below zero", `"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":-1}`, ``, chunk{usage: &counts{prompt: 9, completion: 3}}},
		{"a time before it was asked", ``, `"ttft_ms":-1,"kv_hit_rate":0.5`, chunk{timing: Timing{PredictedHitRatio: .5, HasPredicted: true}}},
		{"a time of years", ``, `"ttft_ms":1e12`, chunk{}},
		{"more hits than all", ``, `"kv_hit_rate":55`, chunk{}},
		{"hits below zero", ``, `"kv_hit_rate":-0.1,"ttft_ms":500`, chunk{timing: Timing{TTFT: .5, HasTTFT: true}}},
		{"a queue below zero", ``, `"router_queue_depth":-1e308`, chunk{}},
		{"a queue without end", ``, `"router_queue_depth":1e308`, chunk{}},
	} {
		before := plausible.Rejected()[plausible.Target]
		row.want.text, row.want.content, row.want.choices, row.want.answer = "a", true, true, true
		in := `{"choices":[{"delta":{"content":"a"}}],"usage":{` + row.usage + `},"nvext":{"timing":{` + row.timing + `}}}`
		c, err := decodeChunk([]byte(in))
		require.NoError(t, err, row.name)
		assert.Equal(t, row.want, c, row.name)
		assert.NotEqual(t, before, plausible.Rejected()[plausible.Target], "%s is counted", row.name)
	}
}

func TestDecodeChunkRefuses(t *testing.T) {
	bad := []string{
		"", " ", "null", "true", "7", `"text"`, "[]", "[DONE]", "<html>", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1}{}`, `{"a":1} x`,
		`{a:1}`, `{"a":nul}`, `{"a":truE}`, `{"a":'b'}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":"\"}`, `{"a" 1}`, `{"a":1 "b":2}`,
		`{"choices":7}`, `{"choices":["a"]}`, `{"choices":[{"delta":"a"}]}`,
		`{"choices":[{"delta":{"content":"\x"}}]}`, `{"choices":[{"delta":{"content":"\u12g4"}}]}`, `{"choices":[{"delta":{"content":"\u12"}}]}`,
		// Nesting is bounded: a hostile answer must not exhaust the stack.
		`{"x":` + strings.Repeat("[", 5_000_000) + strings.Repeat("]", 5_000_000) + "}", `{"error":` + strings.Repeat(`{"a":`, 5_000_000),
		strings.Repeat("[", 5_000_000), `{"choices":` + strings.Repeat(`[{"delta":`, 1_000_000),
	}
	for i := range dynamoChunk { // cut anywhere
		bad = append(bad, dynamoChunk[:i])
	}
	for _, in := range bad {
		if _, err := decodeChunk([]byte(in)); err == nil {
			t.Errorf("accepted %.300q", in)
		}
	}
}

// FuzzDecodeChunk: the library, which is fast by other means than Go's own, finds in
// every document what encoding/json does, and the same fault.
func FuzzDecodeChunk(f *testing.F) {
	for _, s := range []string{
		dynamoChunk, `{}`, `{"choices":[{"delta":{"content":"\ud83d\ude00\\","reasoning":"x","tool_calls":[{}]},"finish_reason":"stop"}]}`,
		`{"usage":{"prompt_tokens":1e2,"completion_tokens":-0.5,"prompt_tokens_details":{"cached_tokens":7}},"error":{"message":"m","type":"t"}}`,
		`{"nvext":{"worker_id":{"decode_worker_id":"1","prefill_worker_id":2},"timing":{"ttft_ms":1,"kv_hit_rate":null}},"error":"e"}`,
		`{"choices":[null,{"delta":null}],"choices":null,"message":"m","type":3}`, "{\"\\u0061\" :\t[ ] }", `{"choices":["a"],"usage":[],"nvext":7}`,
		`{"a":{"choices":[{}],"\"}":"]\\"},"b":[[{"c":[1,-2.5e+3,true,false,null]}],"}"],"choices":[{"x":{},"delta":{"y":["\"",{}],"content":"a"}}],"z":""}`,
	} {
		f.Add([]byte(s))
	}
	for _, s := range []string{ // every escape there is, and broken surrogates
		`plain`, `\"\\\/\b\f\n\r\t`, `\u0041\u00e9\u20AC`, `\ud83d\ude00`, `\uD83D\uDE00 x`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`,
		`\ud83d\ud83d\ude00`, `\u0000`, `\\u0041`, `\\\u0041`, `\\\\`, `\\\"`, `é😀`, `\u2028`, `a\\`, "\xff",
	} {
		f.Add([]byte(`{"choices":[{"delta":{"content":"` + s + `"}}]}`))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var got, want chunkJSON
		err, wantErr := goccy.Unmarshal(in, &got), json.Unmarshal(in, &want)
		field, wantField := "none", "none"
		if e, ok := errors.AsType[*goccy.UnmarshalTypeError](err); ok {
			field = e.Field
		}
		if e, ok := errors.AsType[*json.UnmarshalTypeError](wantErr); ok {
			wantField = e.Field
		}
		if (err == nil) != (wantErr == nil) || field != wantField {
			t.Fatalf("got %v, want %v of %s", err, wantErr, in)
		}
		if (err == nil || field != "none") && !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v of %s", got, want, in)
		}
		if _, err := decodeChunk(in); err == nil && !json.Valid(in) {
			t.Fatalf("accepted %s", in)
		}
	})
}

// A chunk of a pattern is decoded as the JSON decoder decodes it.
func FuzzPattern(f *testing.F) {
	const head = `{"id":"c-1","object":"chat.completion.chunk","created":1,"model":" b",`
	const plain = head + `"choices":[{"index":0,"delta":{"content":" a"},"finish_reason":null}]}`
	for _, first := range []string{
		plain, head + `"choices": [{"delta": {"content": "é", "refusal": null}}], "usage": null} `,
		head + `"choices":[{"delta":{"content":" b"}},{"delta":{"content":" b"}}]}`,
		`{"choices":[{"text":"a"}],"x":"a"}`, dynamoChunk,
	} {
		for _, second := range []string{
			strings.ReplaceAll(plain, " a", "word"), strings.ReplaceAll(plain, " a", `\n`),
			strings.ReplaceAll(plain, " a", "\xff"), strings.ReplaceAll(plain, " a", `a"},"x":{"y":"`),
			strings.ReplaceAll(plain, "null", `"stop"`), plain, `{}`, `x`,
		} {
			f.Add([]byte(first), []byte(second), "\x01")
		}
	}
	var known pattern
	_, err := known.decode([]byte(plain))
	require.NoError(f, err)
	_, ok := known.text([]byte(strings.ReplaceAll(plain, " a", "word")))
	require.True(f, ok)
	f.Fuzz(func(t *testing.T, first, second []byte, text string) {
		var p pattern
		_, _ = p.decode(first)
		for _, data := range [][]byte{second, slices.Concat(p.before, []byte(text), p.after)} {
			got, err := p.decode(data)
			want, wantErr := decodeChunk(data)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
	})
}
