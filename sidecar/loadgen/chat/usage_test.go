package chat

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A later report of the server's counts replaces an earlier one, except for what it lacks.
func TestUpdatedUsage(t *testing.T) {
	earlier := counts{prompt: 9, completion: 2, total: 11, cached: 4, hasCached: true}
	for later, want := range map[counts]counts{
		{}:                                       earlier,
		{completion: 3}:                          {prompt: 9, completion: 3, cached: 4, hasCached: true},
		{prompt: 9, completion: 3}:               {prompt: 9, completion: 3, cached: 4, hasCached: true},
		{prompt: 8, completion: 3}:               {prompt: 8, completion: 3}, // the cached tokens were those of another prompt
		{prompt: 8, hasCached: true}:             {prompt: 8, completion: 2, hasCached: true},
		{cached: 5, hasCached: true}:             {prompt: 9, completion: 2, total: 11, cached: 5, hasCached: true},
		{completion: 3, total: 12, reasoning: 1}: {prompt: 9, completion: 3, total: 12, reasoning: 1, cached: 4, hasCached: true},
	} {
		assert.Equal(t, want, *earlier.updated(&later), "%+v", later)
	}
	assert.Equal(t, earlier, *(*counts)(nil).updated(&earlier), "the first one")
}

// paced is an answer whose chunks come at equal distances after 200 ms.
type paced struct {
	gap    int // ms
	deltas []string
	usages []string // of each chunk; may be shorter
	last   string   // members of the last event beside its choices
}

func (p paced) serve(c net.Conn) {
	_ = after(c, 200*time.Millisecond, streamHead)
	for i, delta := range p.deltas {
		usage := ""
		if i < len(p.usages) {
			usage = `,"usage":` + p.usages[i]
		}
		wait := time.Duration(min(i, 1)*p.gap) * time.Millisecond
		_ = after(c, wait, framed(`data: {"choices":[{"delta":`+delta+`}]`+usage+"}\n\n"))
	}
	_ = after(c, 0, framed(`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\n",
		`data: {"choices":[]`+p.last+"}\n\n", doneEvent)+lastChunk)
}

// words returns so many deltas with the text.
func words(n int, member, text string) []string {
	return slices.Repeat([]string{fmt.Sprintf(`{"%s":%q}`, member, text)}, n)
}

// usageOf is a report of usage with further members.
func usageOf(prompt, completion, total int, more string) string {
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d%s}`, prompt, completion, total, more)
}

// running returns the usage of n chunks of so many tokens each, from a number of tokens on.
func running(n, from, each int) (all []string) {
	for i := range n {
		all = append(all, strings.TrimPrefix(usageOf(4000, from+each*(i+1), 0, ""), `,"usage":`))
	}
	return all
}

// An answer that a proxy compresses, although no request asks for it, has its own times.
func TestGzip(t *testing.T) {
	const ms = time.Millisecond
	r := inBubble(t, func(c net.Conn) {
		_ = after(c, 0, strings.Replace(streamHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1))
		var zipped bytes.Buffer
		zip := gzip.NewWriter(&zipped)
		for i, text := range []string{"a", "b", "c"} {
			_, _ = io.WriteString(zip, event(text))
			_ = zip.Flush()
			_ = after(c, []time.Duration{200 * ms, 20 * ms, 20 * ms}[i], framed(zipped.String()))
			zipped.Reset()
		}
		_, _ = io.WriteString(zip, doneEvent)
		_ = zip.Close()
		_ = after(c, 0, framed(zipped.String())+lastChunk)
	})
	ttft, _ := r.TTFT()
	tpot, _ := r.TPOT()
	assert.True(t, r.OK(), outcome(r))
	assert.Equal(t, []any{"abc", 200 * ms, 20 * ms}, []any{r.Content, ttft, tpot})
}

// The counts of an answer are compared with each other and with what was streamed. A TPOT of 0 is unknown.
func TestCounts(t *testing.T) {
	const ms = time.Millisecond
	reasoned := func(n int) string { return fmt.Sprintf(`,"completion_tokens_details":{"reasoning_tokens":%d}`, n) }
	cached := func(n int) string { return fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, n) }
	thoughts := slices.Concat(words(10, "reasoning_content", " a b c d"), words(10, "content", " e f g h"))
	summary := append(words(1, "reasoning_content", " briefly"), words(19, "content", " word")...)
	toolCall := slices.Repeat([]string{`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`}, 20)
	for _, row := range []struct {
		name   string
		answer paced
		output int
		source string
		tpot   time.Duration
		prompt int
		cached int // negative: not reported, or unknown
		found  Finding
	}{
		{"all agree", paced{20, words(20, "content", " word"), nil, usageOf(4000, 20, 4020, cached(3900))}, 20, "usage", 20 * ms, 4000, 3900, 0},
		{"the end counts as a token", paced{20, words(20, "content", " word"), nil, usageOf(4000, 21, 4021, "")}, 21, "usage", 19 * ms, 4000, -1, 0},
		{"hidden reasoning", paced{20, words(20, "content", " word"), nil, usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 20 * ms, 4000, -1, Hidden},
		{"hidden reasoning before a longer answer", paced{20, words(200, "content", " word"), nil, usageOf(4000, 300, 4300, reasoned(100))}, 300, "usage", 20 * ms, 4000, -1, Hidden},
		{"hidden reasoning that no detail counts", paced{20, words(20, "content", " word"), nil, usageOf(4000, 500, 4500, "")}, 500, "usage", 0, 4000, -1, Hidden},
		{"hidden reasoning of a split answer", paced{20, words(100, "content", "x"), nil, usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 104 * ms, 4000, -1, Hidden},
		{"hidden reasoning that may be shown", paced{20, words(100, "content", " word"), nil, usageOf(4000, 90, 4090, reasoned(50))}, 90, "usage", 0, 4000, -1, Hidden | Split},
		{"hidden reasoning and a tool call", paced{20, toolCall, nil, usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 20 * ms, 4000, -1, Hidden},
		{"a summary of the reasoning", paced{20, summary, nil, usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 0, 4000, -1, Hidden},
		{"hidden reasoning in the count of the first chunk", paced{20, words(20, "content", " word"), running(20, 480, 1), usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 20 * ms, 4000, -1, Hidden},
		{"hidden reasoning in the last count", paced{20, words(20, "content", " word"), running(20, 0, 1), usageOf(4000, 500, 4500, reasoned(480))}, 500, "usage", 20 * ms, 4000, -1, Hidden},
		{"reasoning inside the answer", paced{20, words(100, "content", " word"), nil, usageOf(4000, 100, 4100, reasoned(80))}, 100, "usage", 20 * ms, 4000, -1, 0},
		{"reasoning outside of the completion", paced{40, thoughts, nil, usageOf(4000, 40, 4080, reasoned(40))}, 80, "usage", 10 * ms, 4000, -1, ReasoningAdded},
		{"more reasoning than completion", paced{40, thoughts, nil, usageOf(4000, 20, 4020, reasoned(60))}, 20, "chunks", 0, 4000, -1, OutputUnclear},
		{"more chunks than tokens", paced{20, words(100, "content", "x"), nil, usageOf(4000, 20, 4020, "")}, 20, "usage", 1980 * ms / 19, 4000, -1, Split},
		{"fewer tokens than the text can have", paced{20, words(100, "content", " word"), nil, usageOf(4000, 2, 4002, "")}, 100, "chunks", 0, 4000, -1, OutputUnclear},
		{"the usage of each chunk alone", paced{40, words(10, "content", " a b c d"), running(10, 4, 0), usageOf(4000, 4, 4004, "")}, 10, "chunks", 0, 4000, -1, OutputUnclear},
		{"several tokens in each chunk, counted", paced{40, words(10, "content", " a b c d"), running(10, 0, 4), usageOf(4000, 40, 4040, "")}, 40, "usage", 10 * ms, 4000, -1, 0},
		{"several tokens in each chunk, not counted", paced{40, words(10, "content", " a b c d"), nil, usageOf(4000, 40, 4040, "")}, 40, "usage", 10 * ms, 4000, -1, 0},
		{"cached tokens outside of the prompt", paced{20, words(20, "content", " word"), nil, usageOf(2500, 20, 4020, cached(1500))}, 20, "usage", 20 * ms, 4000, 1500, CachedAdded},
		{"more cached tokens than prompt, outside of it", paced{20, words(20, "content", " word"), nil, usageOf(100, 20, 4020, cached(3900))}, 20, "usage", 20 * ms, 4000, 3900, CachedAdded},
		{"written and cached tokens outside of the prompt", paced{20, words(20, "content", " word"), nil, usageOf(100, 20, 4020, `,"cache_read_input_tokens":3000,"cache_creation_input_tokens":900`)}, 20, "usage", 20 * ms, 4000, 3000, CachedAdded},
		{"cached and reasoning tokens outside", paced{40, thoughts, nil, usageOf(2500, 40, 4080, reasoned(40)+cached(1500))}, 80, "usage", 10 * ms, 4000, 1500, ReasoningAdded | CachedAdded},
		{"a total that cached or reasoning tokens explain", paced{40, thoughts, nil, usageOf(4000, 40, 4080, reasoned(40)+cached(40))}, 20, "chunks", 0, 0, -1, InputUnclear | CachedUnclear | OutputUnclear},
		{"a total that nothing explains", paced{40, words(10, "content", " a b c d"), nil, usageOf(4000, 40, 4500, "")}, 10, "chunks", 0, 0, -1, InputUnclear | OutputUnclear},
		{"a total that nothing explains, and one token a chunk", paced{20, words(20, "content", " word"), nil, usageOf(4000, 20, 4500, cached(5))}, 20, "usage", 20 * ms, 0, -1, InputUnclear | CachedUnclear},
		{"more cached tokens than prompt", paced{20, words(20, "content", " word"), nil, usageOf(4000, 20, 4020, cached(4001))}, 20, "usage", 20 * ms, 4000, -1, CachedUnclear},
		{"cached tokens under two names", paced{20, words(20, "content", " word"), nil, usageOf(4000, 20, 4020, cached(0)+`,"prompt_cache_hit_tokens":8`)}, 20, "usage", 20 * ms, 4000, -1, CachedUnclear},
		{"llama.cpp's timings beside usage", paced{20, words(20, "content", " word"), nil, usageOf(4000, 20, 4020, "") + `,"timings":{"cache_n":3900,"prompt_n":100,"predicted_n":20}`}, 20, "usage", 20 * ms, 4000, 3900, 0},
		{"llama.cpp's timings alone", paced{20, words(20, "content", " word"), nil, `,"timings":{"cache_n":3900,"prompt_n":100,"predicted_n":20}`}, 20, "usage", 20 * ms, 4000, 3900, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := inBubble(t, row.answer.serve)
			assert.True(t, r.OK(), outcome(r))
			n, source := r.OutputTokens()
			prompt, hit := 0, -1
			if r.Usage != nil {
				prompt = r.Usage.Prompt
			}
			if r.Usage != nil && r.Usage.HasCached {
				hit = r.Usage.Cached
			}
			tpot, _ := r.TPOT()
			assert.Equal(t, []any{row.output, source, row.tpot.Round(ms), row.prompt, row.cached, row.found},
				[]any{n, source, tpot.Round(ms), prompt, hit, r.Findings})
			gaps, _ := r.Gaps(nil)
			assert.Equal(t, row.tpot > 0, len(gaps) > 0, "gaps are known where TPOT is")
		})
	}
}
