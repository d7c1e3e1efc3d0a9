package chat

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// chunksAt makes content chunks at so many milliseconds; tokens may be shorter.
func chunksAt(ms []int, tokens ...int32) []Chunk {
	chunks := make([]Chunk, len(ms))
	for i, m := range ms {
		chunks[i].At = time.Duration(m) * time.Millisecond
		if i < len(tokens) {
			chunks[i].Tokens = tokens[i]
		}
	}
	return chunks
}

func TestDefinitions(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name      string
		ms        []int
		usage     *Usage
		ttft, e2e time.Duration // 0: undefined
		tpot      time.Duration // negative: undefined
		tokens    int
	}{
		{"nothing came", nil, nil, 0, 0, -1, 0},
		{"one chunk has no TPOT", []int{200}, nil, 200 * ms, 200 * ms, -1, 1},
		{"TTFT is no part of TPOT", []int{200, 225, 250}, nil, 200 * ms, 250 * ms, 25 * ms, 3},
		{
			"usage counts before chunks",
			[]int{200, 230, 260, 290, 320, 350, 380, 410},
			&Usage{Completion: 15},
			200 * ms, 410 * ms, 15 * ms, 15,
		},
		{"one token by usage", []int{200}, &Usage{Completion: 1}, 200 * ms, 200 * ms, -1, 1},
		{"many tokens in few chunks", []int{200, 600}, &Usage{Completion: 80}, 200 * ms, 600 * ms, -1, 80},
		{"a burst at the start", []int{200, 200, 200, 300, 400}, nil, 200 * ms, 400 * ms, -1, 5},
		{"several tokens in a lone chunk", []int{200}, &Usage{Completion: 4}, 200 * ms, 200 * ms, -1, 4},
		{"all tokens at once", []int{580, 580, 580}, nil, 580 * ms, 580 * ms, -1, 3},
		{
			"tokens in two bursts", slices.Concat(slices.Repeat([]int{300}, 8), slices.Repeat([]int{580}, 8)), nil,
			300 * ms, 580 * ms, -1, 16,
		},
		{
			"a first chunk that a proxy holds", slices.Concat(slices.Repeat([]int{574}, 9), stepsFrom(596, 60)), nil,
			574 * ms, 1894 * ms, -1, 69,
		},
		{
			"bursts that a proxy holds for 200 ms",
			[]int{600, 600, 600, 800, 800, 800, 800, 1000, 1000, 1000, 1200},
			nil,
			600 * ms, 1200 * ms, -1, 11,
		},
		{
			"slow steps of speculation",
			[]int{600, 800, 800, 800, 1000, 1000, 1000},
			nil,
			600 * ms, 1000 * ms, 400 * ms / 6, 7,
		},
		{
			"two chunks a token",
			[]int{600, 600, 800, 800, 1000, 1000, 1200, 1200, 1400, 1400, 1600, 1600, 1800, 1800, 2000, 2000},
			&Usage{Completion: 8},
			600 * ms, 2000 * ms, 200 * ms, 8,
		},
		{
			"chunks of speculation",
			[]int{200, 200, 200, 200, 240, 240, 280, 280, 280, 320, 320, 360, 360, 360, 400, 400, 440},
			nil, 200 * ms,
			440 * ms, 240 * ms / 16, 17,
		},
		{"a late read of a few tokens", []int{200, 250, 250, 250, 300}, nil, 200 * ms, 300 * ms, 25 * ms, 5},
		{"no count of the answer", []int{200, 250}, &Usage{Prompt: 9}, 200 * ms, 250 * ms, 50 * ms, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Result{Chunks: chunksAt(row.ms), Usage: row.usage}
			if d, ok := r.TTFT(); d != row.ttft || ok != (row.ttft != 0) {
				t.Errorf("TTFT %v, %v", d, ok)
			}
			if d, ok := r.Latency(); d != row.e2e || ok != (row.e2e != 0) {
				t.Errorf("latency %v, %v", d, ok)
			}
			if d, ok := r.TPOT(); d != max(0, row.tpot) || ok != (row.tpot >= 0) {
				t.Errorf("TPOT %v, %v", d, ok)
			}
			source := "chunks"
			if row.usage != nil && row.usage.Completion > 0 {
				source = "usage"
			}
			if n, by := r.OutputTokens(); n != row.tokens || by != source {
				t.Errorf("output tokens %d by %s", n, by)
			}
		})
	}
}

// stepsFrom returns n times, 22 ms apart.
func stepsFrom(first, n int) (all []int) {
	for i := range n {
		all = append(all, first+22*i)
	}
	return all
}

func TestGaps(t *testing.T) {
	for _, row := range []struct {
		name      string
		chunks    []Chunk
		usage     *Usage
		estimated bool
		want      []Gap
	}{
		{"a lone chunk has no gap", chunksAt([]int{100}), nil, false, nil},
		{
			"chunks with counts share their own gap", chunksAt([]int{100, 130, 150}, 1, 3, 1), &Usage{Completion: 5}, false,
			[]Gap{{.010, 3}, {.020, 1}},
		},
		{"the first chunk's tokens belong to no gap", chunksAt([]int{100, 130}, 1, 1), nil, false, []Gap{{.030, 1}}},
		{
			"usage says one token each", chunksAt([]int{100, 130, 150}), &Usage{Completion: 3}, false,
			[]Gap{{.030, 1}, {.020, 1}},
		},
		{
			"usage says one token each, and the end", chunksAt([]int{100, 130, 150}), &Usage{Completion: 4}, false,
			[]Gap{{.030, 1}, {.020, 1}},
		},
		{
			"usage says two each on average", chunksAt([]int{100, 130, 160, 190, 220, 250}), &Usage{Completion: 12}, true,
			slices.Repeat([]Gap{{.015, 2}}, 5),
		},
		{"no counts", chunksAt([]int{100, 130}), nil, true, []Gap{{.030, 1}}},
		{
			"bursts from the start", chunksAt([]int{0, 0, 30, 30, 30, 60, 60, 60, 90, 90, 90, 90}), nil, true,
			[]Gap{{.010, 3}, {.010, 3}, {.0075, 4}},
		},
		{
			"usage counts fewer tokens than chunks came", chunksAt([]int{100, 130, 150}), &Usage{Completion: 2}, true,
			[]Gap{{.030, 1}, {.020, 1}},
		},
		{
			"some chunks have counts", chunksAt([]int{100, 140, 150}, 2, 2, 0), &Usage{Completion: 6}, true,
			[]Gap{{.020, 2}, {.005, 2}},
		},
		{"two of three chunks in one read", chunksAt([]int{100, 120, 120}, 1, 1, 1), nil, false, []Gap{{.020, 1}, {0, 1}}},
		{"two of three chunks at the start", chunksAt([]int{100, 100, 120}, 1, 1, 1), nil, false, nil},
		{
			"bursts count as one chunk", chunksAt([]int{100, 130, 130, 130, 160, 160, 160}, 1, 1, 1, 1, 1, 1, 1), nil, false,
			[]Gap{{.010, 3}, {.010, 3}},
		},
		{"all chunks in one read", chunksAt([]int{100, 100}, 1, 1), nil, false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Result{Chunks: row.chunks, Usage: row.usage, FinishReason: "stop"}
			before := []Gap{{7, 7}}
			got, estimated := r.Gaps(before)
			if estimated != row.estimated || len(got) != 1+len(row.want) || got[0] != before[0] {
				t.Fatalf("got %v, estimated %v; want %v, %v appended", got, estimated, row.want, row.estimated)
			}
			for i, g := range got[1:] {
				if math.Abs(g.Seconds-row.want[i].Seconds) > 1e-9 || g.Tokens != row.want[i].Tokens {
					t.Errorf("gap %d: got %v, want %v", i, g, row.want[i])
				}
			}
		})
	}
}

func TestGapPercentiles(t *testing.T) {
	p50, p95 := GapPercentiles([]Gap{{Seconds: .04, Tokens: 1}, {Seconds: .01, Tokens: 9}, {Seconds: .02, Tokens: 10}})
	assert.Equal(t, []float64{.02, .02}, []float64{p50, p95}, "9 of 20 tokens took .01, and 19 of 20 at most .02")
	p50, _ = GapPercentiles(nil)
	assert.True(t, math.IsNaN(p50))
}
