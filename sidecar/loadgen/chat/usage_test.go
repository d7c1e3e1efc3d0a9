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
		{}:                           earlier,
		{completion: 3}:              {prompt: 9, completion: 3, cached: 4, hasCached: true},
		{prompt: 9, completion: 3}:   {prompt: 9, completion: 3, cached: 4, hasCached: true},
		{prompt: 8, completion: 3}:   {prompt: 8, completion: 3}, // cached tokens of another prompt
		{prompt: 8, hasCached: true}: {prompt: 8, completion: 2, hasCached: true},
		{cached: 5, hasCached: true}: {prompt: 9, completion: 2, total: 11, cached: 5, hasCached: true},
		{completion: 3, total: 12, reasoning: 1}: {
			prompt: 9, completion: 3, total: 12, reasoning: 1, cached: 4, hasCached: true,
		},
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
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d%s}`,
		prompt, completion, total, more)
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

// figures are what is computed of an answer's counts. TPOT is rounded, and 0 where it is unknown. cached is negative
// where it is unknown.
type figures struct {
	output int
	source string
	tpot   time.Duration
	prompt int
	cached int
	found  Finding
}

func figuresOf(r *Result) figures {
	f := figures{cached: -1, found: r.Findings}
	f.output, f.source = r.OutputTokens()
	tpot, _ := r.TPOT()
	f.tpot = tpot.Round(time.Millisecond)
	if r.Usage != nil {
		f.prompt = r.Usage.Prompt
	}
	if r.Usage != nil && r.Usage.HasCached {
		f.cached = r.Usage.Cached
	}
	return f
}

// The counts of an answer are compared with each other and with what was streamed.
func TestCounts(t *testing.T) {
	const (
		ms      = time.Millisecond
		usage   = "usage"
		unknown = -1
	)
	reasoned := func(n int) string { return fmt.Sprintf(`,"completion_tokens_details":{"reasoning_tokens":%d}`, n) }
	cached := func(n int) string { return fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, n) }
	plain := func(n int, last string) paced { return paced{20, words(n, "content", " word"), nil, last} }
	letters := func(last string) paced { return paced{20, words(100, "content", "x"), nil, last} }
	bundles := func(of []string, last string) paced { return paced{40, words(10, "content", " a b c d"), of, last} }
	streaming := func(of []string, last string) paced { return paced{20, words(20, "content", " word"), of, last} }
	thoughtful := func(last string) paced {
		thoughts := words(10, "reasoning_content", " a b c d")
		return paced{40, append(thoughts, words(10, "content", " e f g h")...), nil, last}
	}
	summary := append(words(1, "reasoning_content", " briefly"), words(19, "content", " word")...)
	toolCall := slices.Repeat([]string{`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`}, 20)
	const (
		timings = `,"timings":{"cache_n":3900,"prompt_n":100,"predicted_n":20}`
		written = `,"cache_read_input_tokens":3000,"cache_creation_input_tokens":900`
	)
	for _, row := range []struct {
		name   string
		answer paced
		want   figures
	}{
		{
			"all agree", plain(20, usageOf(4000, 20, 4020, cached(3900))),
			figures{20, usage, 20 * ms, 4000, 3900, 0},
		},
		{
			"the end counts as a token", plain(20, usageOf(4000, 21, 4021, "")),
			figures{21, usage, 19 * ms, 4000, unknown, 0},
		},
		{
			"hidden reasoning", plain(20, usageOf(4000, 500, 4500, reasoned(480))),
			figures{500, usage, 20 * ms, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning before a longer answer", plain(200, usageOf(4000, 300, 4300, reasoned(100))),
			figures{300, usage, 20 * ms, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning that no detail counts", plain(20, usageOf(4000, 500, 4500, "")),
			figures{500, usage, 0, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning of a split answer", letters(usageOf(4000, 500, 4500, reasoned(480))),
			figures{500, usage, 104 * ms, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning that may be shown", plain(100, usageOf(4000, 90, 4090, reasoned(50))),
			figures{90, usage, 0, 4000, unknown, Hidden | Split},
		},
		{
			"hidden reasoning and a tool call",
			paced{20, toolCall, nil, usageOf(4000, 500, 4500, reasoned(480))},
			figures{500, usage, 20 * ms, 4000, unknown, Hidden},
		},
		{
			"a summary of the reasoning",
			paced{20, summary, nil, usageOf(4000, 500, 4500, reasoned(480))},
			figures{500, usage, 0, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning in the count of the first chunk",
			streaming(running(20, 480, 1), usageOf(4000, 500, 4500, reasoned(480))),
			figures{500, usage, 20 * ms, 4000, unknown, Hidden},
		},
		{
			"hidden reasoning in the last count", streaming(running(20, 0, 1), usageOf(4000, 500, 4500, reasoned(480))),
			figures{500, usage, 20 * ms, 4000, unknown, Hidden},
		},
		{
			"reasoning inside the answer", plain(100, usageOf(4000, 100, 4100, reasoned(80))),
			figures{100, usage, 20 * ms, 4000, unknown, 0},
		},
		{
			"reasoning outside of the completion", thoughtful(usageOf(4000, 40, 4080, reasoned(40))),
			figures{80, usage, 10 * ms, 4000, unknown, ReasoningAdded},
		},
		{
			"more reasoning than completion", thoughtful(usageOf(4000, 20, 4020, reasoned(60))),
			figures{20, "chunks", 0, 4000, unknown, OutputUnclear},
		},
		{
			"more chunks than tokens", letters(usageOf(4000, 20, 4020, "")),
			figures{20, usage, 1980 * ms / 19, 4000, unknown, Split},
		},
		{
			"fewer tokens than the text can have", plain(100, usageOf(4000, 2, 4002, "")),
			figures{100, "chunks", 0, 4000, unknown, OutputUnclear},
		},
		{
			"the usage of each chunk alone", bundles(running(10, 4, 0), usageOf(4000, 4, 4004, "")),
			figures{10, "chunks", 0, 4000, unknown, OutputUnclear},
		},
		{
			"several tokens in each chunk, counted", bundles(running(10, 0, 4), usageOf(4000, 40, 4040, "")),
			figures{40, usage, 10 * ms, 4000, unknown, 0},
		},
		{
			"several tokens in each chunk, not counted", bundles(nil, usageOf(4000, 40, 4040, "")),
			figures{40, usage, 10 * ms, 4000, unknown, 0},
		},
		{
			"several tokens in the first chunk alone, not counted",
			paced{
				20, append(words(1, "content", strings.Repeat(" word", 8)), words(40, "content", " word")...), nil,
				usageOf(4000, 48, 4048, ""),
			},
			figures{48, usage, 20 * ms, 4000, unknown, 0},
		},
		{
			"cached tokens outside of the prompt", plain(20, usageOf(2500, 20, 4020, cached(1500))),
			figures{20, usage, 20 * ms, 4000, 1500, CachedAdded},
		},
		{
			"more cached tokens than prompt, outside of it", plain(20, usageOf(100, 20, 4020, cached(3900))),
			figures{20, usage, 20 * ms, 4000, 3900, CachedAdded},
		},
		{
			"written and cached tokens outside of the prompt", plain(20, usageOf(100, 20, 4020, written)),
			figures{20, usage, 20 * ms, 4000, 3000, CachedAdded},
		},
		{
			"cached and reasoning tokens outside", thoughtful(usageOf(2500, 40, 4080, reasoned(40)+cached(1500))),
			figures{80, usage, 10 * ms, 4000, 1500, ReasoningAdded | CachedAdded},
		},
		{
			"a total that cached or reasoning tokens explain", thoughtful(usageOf(4000, 40, 4080, reasoned(40)+cached(40))),
			figures{20, "chunks", 0, 0, unknown, InputUnclear | CachedUnclear | OutputUnclear},
		},
		{
			"a total that nothing explains", bundles(nil, usageOf(4000, 40, 4500, "")),
			figures{10, "chunks", 0, 0, unknown, InputUnclear | OutputUnclear},
		},
		{
			"a total that nothing explains, and one token a chunk", plain(20, usageOf(4000, 20, 4500, cached(5))),
			figures{20, usage, 20 * ms, 0, unknown, InputUnclear | CachedUnclear},
		},
		{
			"more cached tokens than prompt", plain(20, usageOf(4000, 20, 4020, cached(4001))),
			figures{20, usage, 20 * ms, 4000, unknown, CachedUnclear},
		},
		{
			"cached tokens under two names", plain(20, usageOf(4000, 20, 4020, cached(0)+`,"prompt_cache_hit_tokens":8`)),
			figures{20, usage, 20 * ms, 4000, unknown, CachedUnclear},
		},
		{
			"llama.cpp's timings beside usage", plain(20, usageOf(4000, 20, 4020, "")+timings),
			figures{20, usage, 20 * ms, 4000, 3900, 0},
		},
		{
			"llama.cpp's timings alone", plain(20, timings),
			figures{20, usage, 20 * ms, 4000, 3900, 0},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := inBubble(t, row.answer.serve)
			assert.True(t, r.OK(), outcome(r))
			row.want.tpot = row.want.tpot.Round(ms)
			assert.Equal(t, row.want, figuresOf(&r))
			gaps, _ := r.Gaps(nil)
			assert.Equal(t, row.want.tpot > 0, len(gaps) > 0, "gaps are known where TPOT is")
		})
	}
}
