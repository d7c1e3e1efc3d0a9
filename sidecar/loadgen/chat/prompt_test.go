package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// promptsIn reads pieces with a fresh reader and lists the ids of each event of theirs.
func promptsIn(most int, pieces ...[]byte) (got [][]uint32, err error) {
	ids := promptIDs{most: most}
	r := sseReader{prompt: ids.read, event: func(name string, _ []byte) {
		if name == promptEvent {
			got = append(got, ids.take())
		}
	}}
	for _, p := range pieces {
		if err := r.feed(p); err != nil {
			return got, err
		}
	}
	return got, r.finish()
}

// The ids are read wherever the stream is cut, and nothing but a whole list of ids is.
func TestPromptIDs(t *testing.T) {
	for _, row := range []struct {
		name, in string
		want     [][]uint32
	}{
		{"as Dynamo sends it", "event: token_ids\n: \"[0,2,203,4294967295]\"\n\ndata: a\n\n", [][]uint32{{0, 2, 203, 4294967295}}},
		{"in CRLF", "event: token_ids\r\n: \"[7,8]\"\r\n\r\n", [][]uint32{{7, 8}}},
		{"with blanks", "event: token_ids\n:[ 7, 8 ]\n\n", [][]uint32{{7, 8}}},
		{"two of them", "event: token_ids\n:[7]\n\nevent: token_ids\n:[8]\n\n", [][]uint32{{7}, {8}}},
		{"a comment of another event", "event: x\n:[7]\n\n:[7]\n\n", nil},
		{"an empty list", "event: token_ids\n:[]\n\n", [][]uint32{nil}},
		{"no list", "event: token_ids\n\n", [][]uint32{nil}},
		{"cut off", "event: token_ids\n:[1,2\n\n", [][]uint32{nil}},
		{"a negative id", "event: token_ids\n:[1,-2]\n\n", [][]uint32{nil}},
		{"an id of 33 bits", "event: token_ids\n:[4294967296]\n\n", [][]uint32{nil}},
		{"text", "event: token_ids\n: see below\n\n", [][]uint32{nil}},
		{"more than the prompt can have", "event: token_ids\n:[1,2,3,4,5,6]\n\n", [][]uint32{nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := []byte(row.in)
			same := func(got [][]uint32) bool { return slices.EqualFunc(got, row.want, slices.Equal[[]uint32]) }
			for i := range len(in) + 1 {
				if got, err := promptsIn(5, in[:i], in[i:]); err != nil || !same(got) {
					t.Fatalf("cut at %d: got %v, %v; want %v", i, got, err, row.want)
				}
			}
			if got, err := promptsIn(5, singles(in)...); err != nil || !same(got) {
				t.Fatalf("byte by byte: got %v, %v; want %v", got, err, row.want)
			}
		})
	}
}

// A long prompt's ids come with the first chunk behind them, whose time stamp they leave
// alone: it is that of the read which brought it.
func TestPromptBeforeTheFirstChunk(t *testing.T) {
	var list strings.Builder
	want := make([]uint32, 7000)
	for i := range want {
		want[i] = uint32(i * 977 % 50000)
		fmt.Fprintf(&list, "%d,", want[i])
	}
	ids := "event: token_ids\n: \"[" + strings.TrimSuffix(list.String(), ",") + "]\"\n\n"
	s := serve(t, always(answerOf(ids, event("a"), event("b"), doneEvent)))
	c := clientOf(t, s.url)
	c.ext.set(map[string]bool{ExtNVExt: true, ExtTokenIDs: true})
	var got []uint32
	chunks := 0
	r := c.Do(t.Context(), Request{
		Messages: []openai.ChatCompletionMessage{{Role: "user", Content: strings.Repeat("x", 7000)}}, MaxTokens: 9,
		OnPrompt: func(ids []uint32) {
			if got = ids; chunks > 0 {
				t.Error("the ids came after a chunk")
			}
		},
		OnChunk: func(int) { chunks++ },
	})
	if !r.OK() || r.Content != "ab" || !slices.Equal(got, want) {
		t.Errorf("%v, %q, %d ids", r.Err, r.Content, len(got))
	}
	if ttft, ok := r.TTFT(); !ok || ttft <= 0 || ttft > r.Ended.Sub(r.Sent) {
		t.Errorf("TTFT %v", ttft)
	}
}

// A request asks for ids where they are in use and somebody wants them.
func TestAsksForPrompt(t *testing.T) {
	want := func([]uint32) {}
	for _, row := range []struct {
		used  bool
		to    func([]uint32)
		asked bool
	}{{true, want, true}, {false, want, false}, {true, nil, false}} {
		p, err := newPayload(Request{Messages: hello(), OnPrompt: row.to}, "m", map[string]bool{ExtNVExt: true, ExtTokenIDs: row.used})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(p.buf.String(), `"annotations":["token_ids"]`); got != row.asked {
			t.Errorf("%+v: asked %v: %s", row.used, got, p.buf)
		}
	}
}

const idsEvent = "event: token_ids\n: \"[1,2,3]\"\n\n"

// The annotation is dropped alone where it is refused, by name or not, and is not in use
// where it is ignored.
func TestProbeTokenIDs(t *testing.T) {
	annotated := func(c call) bool { return strings.Contains(string(c.body), `"annotations"`) }
	for _, row := range []struct {
		name     string
		answer   func(call) string
		ids      bool
		nvext    bool
		requests int32
	}{
		{"it knows them", func(call) string { return answerOf(idsEvent, workerEvent, usageEvent, doneEvent) }, true, true, 1},
		{"it tells ids and no worker", func(call) string { return answerOf(idsEvent, event("a"), usageEvent, doneEvent) }, true, true, 1},
		{"it ignores them", func(call) string { return answerOf(workerEvent, usageEvent, doneEvent) }, false, true, 1},
		{"it refuses them by name", func(c call) string {
			if annotated(c) {
				return withLength(400, "", `{"message":"nvext: unknown field annotations"}`)
			}
			return answerOf(workerEvent, usageEvent, doneEvent)
		}, false, true, 2},
		{"it refuses them without naming them", func(c call) string {
			if annotated(c) {
				return withLength(400, "", `{"message":"bad request"}`)
			}
			return answerOf(workerEvent, usageEvent, doneEvent)
		}, false, true, 2},
		{"it refuses all of nvext", func(c call) string {
			if asked(c.body)[ExtNVExt] {
				return withLength(400, "", `{"message":"unknown field nvext"}`)
			}
			return answerOf(event("a"), usageEvent, doneEvent)
		}, false, false, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, func(c call) bool { return always(row.answer(c))(c) })
			c, err := New(Options{URL: s.url, Model: "m", TokenIDs: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if err := c.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if used := c.Extensions(); used[ExtTokenIDs] != row.ids || used[ExtNVExt] != row.nvext || !used[ExtStreamOptions] {
				t.Errorf("in use: %v", used)
			}
			if n := s.requests.Load(); n != row.requests {
				t.Errorf("%d requests, want %d", n, row.requests)
			}
		})
	}
}

// What the ids of a turn cost: some 35 kB of text.
func BenchmarkPromptIDs(b *testing.B) {
	line := []byte("event: token_ids\n: \"[")
	for i := range 7000 {
		line = strconv.AppendInt(line, int64(i*977%50000), 10)
		line = append(line, ',')
	}
	line = append(line[:len(line)-1], "]\"\n\n"...)
	ids := promptIDs{most: 1 << 20}
	var n atomic.Int64
	r := sseReader{prompt: ids.read, event: func(string, []byte) { n.Store(int64(len(ids.take()))) }}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		for piece := line; len(piece) > 0; {
			cut := min(len(piece), bufferSize)
			if err := r.feed(piece[:cut]); err != nil {
				b.Fatal(err)
			}
			piece = piece[cut:]
		}
	}
	if n.Load() != 7000 {
		b.Fatalf("%d ids", n.Load())
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/float64(b.N), "µs/turn")
}
