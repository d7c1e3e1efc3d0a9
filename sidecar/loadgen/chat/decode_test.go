package chat

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// dynamoChunk is one token as a real Dynamo sent it.
const dynamoChunk = `{"id":"chatcmpl-8ffc9ead-347f-4abd-bda8-ba2b02e35d1a","choices":[{"index":0,"delta":{"content":"sweep"},"finish_reason":null,"logprobs":null}],"created":1795254324,"model":"meta-llama/Llama-3.1-70B-Instruct","object":"chat.completion.chunk","nvext":{"worker_id":{"prefill_worker_id":16549284283275536882,"prefill_dp_rank":0,"decode_worker_id":16549284283275536882,"decode_dp_rank":0}}}`

func TestDecodeChunk(t *testing.T) {
	const worker = 16549284283275536882
	for _, row := range []struct {
		name, in string
		want     chunk
	}{
		{"a token of Dynamo's", dynamoChunk, chunk{text: []byte("sweep"), content: true, object: true, worker: worker}},
		{"role only", `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, chunk{object: true}},
		{"null content", `{"choices":[{"delta":{"content":null,"tool_calls":null}}]}`, chunk{object: true}},
		{"null delta", `{"choices":[{"delta":null},null]}`, chunk{object: true}},
		{"reasoning", `{"choices":[{"delta":{"reasoning":"hm"}}]}`, chunk{text: []byte("hm"), content: true, object: true}},
		{"reasoning_content", `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`, chunk{text: []byte("hm"), content: true, object: true}},
		{"a tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}`, chunk{content: true, object: true}},
		{"no tool call", `{"choices":[{"delta":{"tool_calls":[]}}]}`, chunk{object: true}},
		{"finish only", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, chunk{object: true, finishReason: "stop"}},
		{
			"usage on its own", `{"choices":[],"usage":{"prompt_tokens":13,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}`,
			chunk{object: true, hasUsage: true, usage: Usage{13, 3, 0, true}},
		},
		{
			"usage on a token", `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":13,"completion_tokens":3}}`,
			chunk{text: []byte("a"), content: true, object: true, hasUsage: true, usage: Usage{13, 3, 0, false}},
		},
		{"usage null", `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, chunk{text: []byte("a"), content: true, object: true}},
		{"usage details null", `{"usage":{"prompt_tokens":1,"completion_tokens":null,"prompt_tokens_details":null}}`, chunk{object: true, hasUsage: true, usage: Usage{Prompt: 1}}},
		{"cached tokens null", `{"usage":{"prompt_tokens_details":{"cached_tokens":null}}}`, chunk{object: true, hasUsage: true}},
		{"counts below zero or beyond reason", `{"usage":{"prompt_tokens":-5,"completion_tokens":1e300}}`, chunk{object: true, hasUsage: true, usage: Usage{Completion: 1<<31 - 1}}},
		{"worker: decode wins over prefill", `{"nvext":{"worker_id":{"decode_worker_id":18446744073709551615,"prefill_worker_id":7}}}`, chunk{object: true, worker: 1<<64 - 1}},
		{"worker: prefill alone", `{"nvext":{"worker_id":{"prefill_worker_id":9007199254740993,"decode_worker_id":null}}}`, chunk{object: true, worker: 1<<53 + 1}},
		{"worker as a string", `{"nvext":{"worker_id":{"decode_worker_id":"16549284283275536882"}}}`, chunk{object: true, worker: worker}},
		{"worker beyond 64 bits", `{"nvext":{"worker_id":{"decode_worker_id":99999999999999999999}}}`, chunk{object: true}},
		{"an nvext of another shape", `{"nvext":{"worker_id":12,"timing":"none"}}`, chunk{object: true}},
		{"an nvext of another kind", `{"nvext":[1]}`, chunk{object: true}},
		{
			"timing", `{"nvext":{"timing":{"ttft_ms":250.5,"kv_hit_rate":0.75,"router_queue_depth":3,"total_time_ms":9}}}`,
			chunk{object: true, hasTiming: true, timing: Timing{.2505, .75, 3, true, true, true}},
		},
		{"timing of nulls", `{"nvext":{"timing":{"ttft_ms":null,"kv_hit_rate":null,"router_queue_depth":null}}}`, chunk{object: true, hasTiming: true}},
		{"error object", `{"error":{"message":"boom","type":"internal","code":500}}`, chunk{isError: true, errMessage: "boom", errType: "internal"}},
		{"error string", `{"error":"boom"}`, chunk{isError: true, errMessage: "boom"}},
		{"error null is none", `{"choices":[],"error":null}`, chunk{object: true}},
		{"Dynamo's error", `{"message":"boom","type":"overloaded","code":503}`, chunk{isError: true, errMessage: "boom", errType: "overloaded"}},
		{"a message beside choices is no error", `{"choices":[],"message":"hello"}`, chunk{object: true, errMessage: "hello"}},
		{"an escaped key", `{"choices":[{"delta":{"con\u0074ent":"a"}}]}`, chunk{text: []byte("a"), content: true, object: true}},
		{"white space everywhere", " {\n\t\"choices\" : [ { \"delta\" : { \"content\" : \"a\" } } ] }\r\n ", chunk{text: []byte("a"), content: true, object: true}},
		{"an empty object", `{}`, chunk{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := chunk{text: []byte("left over"), content: true, isError: true, worker: 3}
			if err := decodeChunk([]byte(row.in), &c); err != nil {
				t.Fatal(err)
			}
			if len(c.text) == 0 {
				c.text = nil
			}
			if !reflect.DeepEqual(c, row.want) {
				t.Errorf("got  %+v\nwant %+v", c, row.want)
			}
		})
	}
}

func TestDecodeChunkRefuses(t *testing.T) {
	bad := []string{
		"", " ", "null", "true", "7", `"text"`, "[]", "[DONE]", "<html>", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1}{}`, `{"a":1} x`,
		`{a:1}`, `{"a":nul}`, `{"a":truE}`, `{"a":'b'}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":"\"}`, `{"a" 1}`, `{"a":1 "b":2}`,
		`{"choices":7}`, `{"choices":["a"]}`, `{"choices":[{"delta":"a"}]}`, `{"usage":{"completion_tokens":"3"}}`,
		`{"choices":[{"delta":{"content":"\x"}}]}`, `{"choices":[{"delta":{"content":"\u12g4"}}]}`, `{"choices":[{"delta":{"content":"\u12"}}]}`,
	}
	for i := range dynamoChunk { // cut anywhere
		bad = append(bad, dynamoChunk[:i])
	}
	for _, in := range bad {
		var c chunk
		if decodeChunk([]byte(in), &c) == nil {
			t.Errorf("accepted %q", in)
		}
	}
}

// Nesting is bounded: a hostile answer must not exhaust the stack.
func TestDecodeDepth(t *testing.T) {
	t.Parallel()
	nested := func(open, end string, n int) string {
		return `{"x":` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + `}`
	}
	var c chunk
	for _, n := range []int{1, 63} {
		if err := decodeChunk([]byte(nested("[", "]", n)), &c); err != nil {
			t.Errorf("%d levels: %v", n, err)
		}
	}
	for _, in := range []string{nested("[", "]", 64), nested(`{"a":`, "}", 5_000_000), strings.Repeat("[", 5_000_000), `{"choices":` + strings.Repeat(`[{"delta":`, 1_000_000)} {
		if decodeChunk([]byte(in), &c) == nil {
			t.Errorf("accepted %d bytes of nesting", len(in))
		}
	}
}

// Every escape that JSON has, and what encoding/json makes of broken surrogates.
func TestEscapes(t *testing.T) {
	for _, s := range []string{
		`plain`, `\"\\\/\b\f\n\r\t`, `\u0041\u00e9\u20AC`, `\ud83d\ude00`, `\uD83D\uDE00 x`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`,
		`\ud83d\ud83d\ude00`, `\u0000`, `\\u0041`, `\\\u0041`, `\\\\`, `\\\"`, `"`[1:], `é😀`, `\u2028`, `a\\`,
	} {
		var want string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &want); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		var c chunk
		if err := decodeChunk([]byte(`{"choices":[{"delta":{"content":"`+s+`"}}]}`), &c); err != nil || string(c.text) != want {
			t.Errorf("%s: got %q, %v; want %q", s, c.text, err, want)
		}
	}
}

// randomValue is a JSON value of any shape, with every kind of character in its strings.
func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return r.NormFloat64() * 1e6
	case n == 3:
		return r.Int64()
	case n < 6 || depth == 0:
		return randomText(r)
	case n == 6:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[randomText(r)] = randomValue(r, depth-1)
	}
	return object
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("aZ \"\\/\b\f\n\r\t\x00\x1f<>&é€😀\u2028\ufffd{}[]:,")
	text := make([]rune, r.IntN(12))
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// Whatever stands around them, the members that count are found.
func TestDecodeRandomDocuments(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		content, finish, worker := randomText(r), randomText(r), r.Uint64()
		choice := map[string]any{"delta": map[string]any{"content": content, "x": randomValue(r, 4)}, "finish_reason": finish, "logprobs": randomValue(r, 4)}
		document := map[string]any{
			"choices": []any{choice}, "a": randomValue(r, 5), "z": randomValue(r, 5),
			"nvext": map[string]any{"other": randomValue(r, 3), "worker_id": map[string]any{"decode_worker_id": worker}},
			"usage": map[string]any{"prompt_tokens": r.IntN(1e6), "completion_tokens": r.IntN(1e6), "other": randomValue(r, 3)},
		}
		in, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			var indented bytes.Buffer
			_ = json.Indent(&indented, in, "\t", "  ")
			in = indented.Bytes()
		}
		var c chunk
		if err := decodeChunk(in, &c); err != nil {
			t.Fatalf("%v: %s", err, in)
		}
		if string(c.text) != content || c.content != (content != "") || c.finishReason != finish || c.worker != worker {
			t.Fatalf("got %+v\nwant %q %q %d in %s", c, content, finish, worker, in)
		}
		want := document["usage"].(map[string]any)
		if c.usage.Prompt != want["prompt_tokens"] || c.usage.Completion != want["completion_tokens"] {
			t.Fatalf("usage %+v in %s", c.usage, in)
		}
	}
}

// member is one member of an object, in the order of the document.
type member struct {
	key   string
	value any
}

// parse reads a document with encoding/json, keeping order and doubled keys.
func parse(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := parse(d)
			if err != nil {
				return nil, err
			}
			object = append(object, member{key.(string), value})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := parse(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// each calls use with every value under key. fits is false where v, or use, is of the wrong type.
func each(v any, key string, use func(any) (fits bool)) (fits bool) {
	object, ok := v.([]member)
	if !ok {
		return v == nil
	}
	for _, m := range object {
		if m.key == key && !use(m.value) {
			return false
		}
	}
	return true
}

// reference finds the text of a chunk by way of encoding/json. fits says that
// every member that counts has the type that it must have.
func reference(document any) (text string, fits bool) {
	fits = each(document, "choices", func(choices any) bool {
		list, ok := choices.([]any)
		for _, choice := range list {
			ok = ok && each(choice, "delta", func(delta any) bool {
				object, isObject := delta.([]member)
				for _, m := range object {
					if s, ok := m.value.(string); ok && (m.key == "content" || m.key == "reasoning" || m.key == "reasoning_content") {
						text += s
					}
				}
				return isObject || delta == nil
			})
		}
		return ok || choices == nil
	})
	number := func(v any) bool {
		n, ok := v.(json.Number)
		_, err := strconv.ParseFloat(string(n), 64)
		return v == nil || ok && err == nil
	}
	objectOr := func(v any, use func() bool) bool { // another kind of value is passed over
		_, ok := v.([]member)
		return !ok || use()
	}
	fits = fits && each(document, "usage", func(usage any) bool {
		return objectOr(usage, func() bool {
			return each(usage, "prompt_tokens", number) && each(usage, "completion_tokens", number) &&
				each(usage, "prompt_tokens_details", func(v any) bool {
					return objectOr(v, func() bool { return each(v, "cached_tokens", number) })
				})
		})
	})
	return text, fits && each(document, "nvext", func(nvext any) bool {
		return objectOr(nvext, func() bool {
			return each(nvext, "timing", func(v any) bool {
				return objectOr(v, func() bool {
					return each(v, "ttft_ms", number) && each(v, "kv_hit_rate", number) && each(v, "router_queue_depth", number)
				})
			})
		})
	})
}

func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []member:
		for _, m := range v {
			deepest = max(deepest, depthOf(m.value))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depthOf(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// FuzzDecodeChunk: an object that is JSON, with members of the right types, is
// accepted, and its text is what encoding/json finds; nothing else panics.
func FuzzDecodeChunk(f *testing.F) {
	f.Add([]byte(dynamoChunk))
	for _, s := range []string{
		`{}`, `{"choices":[{"delta":{"content":"\ud83d\ude00\\","reasoning":"x","tool_calls":[{}]},"finish_reason":"stop"}]}`,
		`{"usage":{"prompt_tokens":1e2,"completion_tokens":-0.5,"prompt_tokens_details":{"cached_tokens":7}},"error":{"message":"m","type":"t"}}`,
		`{"nvext":{"worker_id":{"decode_worker_id":"1","prefill_worker_id":2},"timing":{"ttft_ms":1,"kv_hit_rate":null}},"error":"e"}`,
		`{"choices":[null,{"delta":null}],"choices":null,"message":"m","type":3}`, "{\"\\u0061\" :\t[ ] }",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var c chunk
		err := decodeChunk(in, &c)
		if !json.Valid(in) || !utf8.Valid(in) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(in))
		d.UseNumber()
		document, parseErr := parse(d)
		if parseErr != nil || depthOf(document) > maxDepth {
			return
		}
		if _, ok := document.([]member); !ok {
			if err == nil {
				t.Fatalf("accepted %s, which is no object", in)
			}
			return
		}
		text, fits := reference(document)
		if !fits {
			return
		}
		if err != nil || string(c.text) != text {
			t.Fatalf("got %q, %v; want %q from %s", c.text, err, text, in)
		}
	})
}

func TestDecodeAllocatesNothing(t *testing.T) {
	c := chunk{text: make([]byte, 0, 256)}
	for _, in := range []string{dynamoChunk, `{"choices":[{"delta":{"content":"a\n\u00e9\ud83d\ude00"}}],"usage":{"prompt_tokens":3700,"completion_tokens":17,"prompt_tokens_details":{"cached_tokens":3600}}}`} {
		data := []byte(in)
		if n := testing.AllocsPerRun(200, func() { _ = decodeChunk(data, &c) }); n != 0 {
			t.Errorf("%v allocations for %s", n, in)
		}
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	data := []byte(dynamoChunk)
	c := chunk{text: make([]byte, 0, 256)}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := decodeChunk(data, &c); err != nil {
			b.Fatal(err)
		}
	}
}
