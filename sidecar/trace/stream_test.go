package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// list is a stream of records.
type list []*Record

// Next implements [Stream].
func (l *list) Next() (*Record, error) {
	if len(*l) == 0 {
		return nil, io.EOF
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, nil
}

// request returns a record of a session at a second, with blocks of 16 tokens.
func request(second int, session uint64, blocks ...uint64) *Record {
	r := newRecord(Mooncake)
	r.At, r.Session, r.Blocks, r.BlockTokens = time.Duration(second)*time.Second, session, blocks, 16
	r.PromptTokens, r.OutputTokens, r.Line = 16*len(blocks), 1, int64(second)
	return r
}

func TestSelectionByTimeAndSpeed(t *testing.T) {
	follower := request(0, 2, 1)
	follower.Delay, follower.follows = 4*time.Second, true
	in := list{request(0, 1, 1), request(10, 2, 1), request(20, 3, 1), request(30, 4, 1)}
	in[1].Next = follower
	stream := Selection{From: 10 * time.Second, To: 30 * time.Second, Speed: 2}.Of(&in)
	all, err := collect(stream.Next)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, all, 2)
	assert.Equal(t, []time.Duration{0, 5 * time.Second}, []time.Duration{all[0].At, all[1].At})
	assert.Equal(t, 2*time.Second, all[0].Next.Delay)
	untimed := request(0, 1, 1)
	untimed.At = -1
	_, err = Selection{From: time.Second}.Of(&list{untimed}).Next()
	require.ErrorContains(t, err, "trace_from: 1s is not allowed: no part of a trace without times")
	for _, c := range []struct {
		selection Selection
		field     string
	}{
		{Selection{Speed: -1}, "trace_speed"},
		{Selection{Speed: math.NaN()}, "trace_speed"},
		{Selection{Share: 1.5}, "trace_sessions"},
		{Selection{From: -1}, "trace_from"},
		{Selection{From: 5, To: 5}, "trace_to"},
	} {
		require.ErrorContains(t, c.selection.Check(), c.field)
	}
	require.NoError(t, Selection{}.Check())
}

// TestSelectionOfWholeSessions checks that a session remains with all of its turns or none, whichever the seed.
func TestSelectionOfWholeSessions(t *testing.T) {
	selected := func(seed uint64) map[uint64]int {
		var in list
		for i := range 6000 {
			in = append(in, request(i, uint64(i%2000)+1, 1))
		}
		all, err := collect(Selection{Share: .1, Seed: seed}.Of(&in).Next)
		require.ErrorIs(t, err, io.EOF)
		turns := map[uint64]int{}
		for _, r := range all {
			turns[r.Session]++
		}
		return turns
	}
	first, again, other := selected(1), selected(1), selected(2)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
	assert.InDelta(t, 200, len(first), 60)
	for session, turns := range first {
		assert.Equal(t, 3, turns, session)
	}
	in := list{}
	for i := range 2000 {
		in = append(in, request(i, 0, 1))
	}
	all, _ := collect(Selection{Share: .5}.Of(&in).Next)
	assert.InDelta(t, 1000, len(all), 100, "requests without sessions")
}

// TestLoopsHaveFreshPrefixes checks that repetitions share nothing with each other, and within as much as the trace.
func TestLoopsHaveFreshPrefixes(t *testing.T) {
	opened := 0
	open := func() (Stream, error) {
		opened++
		a := request(0, 1, 1, 2)
		a.Next = request(0, 1, 1, 2, 3)
		return &list{a, request(10, 2, 1, 4)}, nil
	}
	all, err := collect(Loop(3, open).Next)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, all, 6)
	assert.Equal(t, 3, opened)
	var at []int
	seen := map[uint64]int{}
	for _, r := range all {
		at = append(at, int(r.At.Seconds()))
		for turn := r; turn != nil; turn = turn.Next {
			assert.Equal(t, r.Session, turn.Session)
			for _, block := range turn.Blocks {
				if in, ok := seen[block]; ok {
					assert.Equal(t, in, turn.Repetition)
				}
				seen[block] = turn.Repetition
			}
		}
	}
	assert.Equal(t, []int{0, 10, 20, 30, 40, 50}, at)
	assert.Len(t, seen, 3*4)
	assert.Equal(t, all[2].Blocks[0], all[3].Blocks[0])
	assert.Equal(t, []uint64{1, 2}, all[0].Blocks)
	endless := Loop(0, open)
	for range 100 {
		_, err := endless.Next()
		require.NoError(t, err)
	}
	_, err = Loop(0, func() (Stream, error) { return &list{}, nil }).Next()
	require.ErrorIs(t, err, io.EOF, "an empty trace is not repeated")
	failure := errors.New("gone")
	_, err = Loop(2, func() (Stream, error) { return nil, failure }).Next()
	require.ErrorIs(t, err, failure)
}

// TestDescribe checks counts, lengths and hit rates of a small trace against numbers by hand.
func TestDescribe(t *testing.T) {
	first := request(0, 1, 1, 2, 3)
	first.Next = request(0, 1, 1, 2, 3, 4)
	first.Next.Delay, first.Next.follows = 25*time.Second, true
	first.Model = "m"
	in := list{first, request(10, 2, 1, 2, 9), request(20, 3, 7, 8), request(30, 2, 1, 2, 9, 10)}
	c, err := Describe(&in, CacheSize{Tokens: 5 * 16})
	require.NoError(t, err)
	assert.EqualValues(t, []int64{5, 3, 4}, []int64{c.Requests, c.Sessions, c.Timed})
	assert.Equal(t, &Distribution{3, 5. / 3, 2, 2, 2}, c.Turns)
	assert.Equal(t, &Distribution{5, 16 * 16. / 5, 48, 64, 64}, c.Input)
	assert.Equal(t, []ModelShare{{"m", 1}}, c.Models)
	assert.InDelta(t, .1, *c.Rate, 1e-9)
	assert.InDelta(t, 0, *c.GapCV, 1e-9)
	assert.Nil(t, c.Dispersion, "too few arrivals")
	assert.Equal(t, 16, *c.BlockTokens)
	assert.Equal(t, &CacheHits{Rate: 8. / 16, HitTokens: 8 * 16, PromptTokens: 16 * 16, Distinct: 8, Reused: 4}, c.Hits)
	// After 1 2 3, 1 2 9 and 7 8, a cache of 5 blocks has 1 2 9 7 8; 1 2 3 4 finds 1 2 and leaves 7 or less of the others.
	assert.Equal(t, 5, c.LimitedHits.Blocks)
	assert.EqualValues(t, 6*16, c.LimitedHits.HitTokens)

	empty, err := Describe(&list{}, CacheSize{})
	require.NoError(t, err)
	assert.Equal(t, &Contents{}, empty)
	_, err = Describe(&list{request(0, 0, 1)}, CacheSize{Tokens: 15})
	require.ErrorContains(t, err, "cache_tokens: 15 is not allowed: at least one block")
	together, err := Describe(&list{request(0, 1, 1), request(0, 2, 1), request(5, 1, 1)}, CacheSize{})
	require.NoError(t, err)
	assert.True(t, together.Simultaneous)
	assert.False(t, c.Simultaneous)
}

// TestBurstiness checks gaps and counts of arrivals whose values are known: constant, Poisson, and bursts of ten.
func TestBurstiness(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name           string
		gap            func(i int) float64 // seconds
		cv, dispersion float64
	}{
		{"constant", func(int) float64 { return .05 }, 0, 0},
		{"Poisson", func(int) float64 { return random.ExpFloat64() * .05 }, 1, 1},
		{"bursts", func(i int) float64 {
			if i%10 > 0 {
				return 0
			}
			return random.ExpFloat64() * .5
		}, math.Sqrt(19), 10},
	} {
		var a arrivals
		at := 0.
		for i := range 40_000 {
			at += c.gap(i)
			a.add(time.Duration(at * float64(time.Second)))
		}
		var got Contents
		a.describe(&got)
		assert.InDelta(t, 20, *got.Rate, .6, c.name)
		assert.InDelta(t, c.cv, *got.GapCV, .03*c.cv+.001, c.name)
		assert.InDelta(t, c.dispersion, *got.Dispersion, .15*c.dispersion+.05, c.name)
	}
}

// TestLRU compares the cache with a list that is searched.
func TestLRU(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l, reference := newLRU(7), []uint64(nil)
	for range 5000 {
		hash := random.Uint64N(15)
		at := slices.Index(reference, hash)
		require.Equal(t, at >= 0, l.has(hash))
		if at >= 0 {
			reference = slices.Delete(reference, at, at+1)
		} else if len(reference) == 7 {
			reference = reference[1:]
		}
		reference = append(reference, hash)
		l.use(hash)
	}
}

// TestBlockSet compares the set with a map, for small numbers and for hashes.
func TestBlockSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var s blockSet
	reference := map[uint64]bool{}
	for i := range 200_000 {
		hash := random.Uint64N(100_000)
		if i%2 == 0 {
			hash = Mix(hash)
		}
		require.Equal(t, !reference[hash], s.add(hash))
		reference[hash] = true
	}
	assert.Equal(t, len(reference), s.n)
}

// TestDescribeReadTrace checks that the description of a stream does not depend on the form that it was read from.
func TestDescribeReadTrace(t *testing.T) {
	var mooncake, csv strings.Builder
	csv.WriteString("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n")
	for i := range 300 {
		fmt.Fprintf(&mooncake, `{"timestamp": %d, "input_length": %d, "output_length": 9}`+"\n", 500*i, 100+i)
		fmt.Fprintf(&csv, "%.1f,,%d,9,0,\n", .5*float64(i), 100+i)
	}
	var got []*Contents
	for _, text := range []string{mooncake.String(), csv.String()} {
		r, err := NewReader(strings.NewReader(text), Options{Strict: true})
		require.NoError(t, err)
		c, err := Describe(r, CacheSize{})
		require.NoError(t, err)
		got = append(got, c)
	}
	assert.Equal(t, got[0], got[1])
	assert.Equal(t, &Distribution{300, 249.5, 249, 384, 399}, got[0].Input)
	assert.Nil(t, got[0].Hits)
}
