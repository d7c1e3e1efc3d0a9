package probe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kvbooth/sidecar/loadgen/chat"
)

// addedPause is between two requests: no delayed acknowledgment of one adds to the next.
const addedPause = 50 * time.Millisecond

// Added is by how much later the first token comes through a router than from an engine asked directly.
type Added struct {
	Median   time.Duration    `json:"median_ns"`   // of pairs of requests, one at a time
	Interval [2]time.Duration `json:"interval_ns"` // 95 % or more, by the sign test
	Requests int              `json:"requests"`    // that the router has got
}

// Door is an address that answers chat requests.
type Door struct {
	URL, Model, Key string
}

// AddedLatency asks a router and an engine in turn, with short prompts that are new to both, and compares the times to
// the first token of a number of pairs. Nothing else should ask the engines meanwhile.
func AddedLatency(ctx context.Context, through, direct Door, pairs int) (a Added, err error) {
	var clients [2]*chat.Client
	for i, d := range []Door{direct, through} {
		client, err := chat.New(chat.Options{URL: d.URL, Model: d.Model, APIKey: d.Key, Settings: Settings})
		if err != nil {
			return a, err
		}
		defer client.Close()
		if failure := client.Probe(ctx); failure != nil {
			return a, fmt.Errorf("%s: %w", d.URL, failure)
		}
		clients[i] = client
	}
	return measure(ctx, clients[1], clients[0], pairs)
}

// measure is [AddedLatency] with clients.
func measure(ctx context.Context, through, direct *chat.Client, pairs int) (a Added, err error) {
	clients := []*chat.Client{direct, through}
	differences := make([]time.Duration, 0, pairs)
	for pair := range pairs {
		var first [2]time.Duration
		for k := range 2 {
			i := (pair + k) % 2 // each is first in half of the pairs
			if err := Pause(ctx, addedPause); err != nil {
				return a, err
			}
			text := "Number " + strconv.Itoa(pair) + " of " + strconv.FormatInt(time.Now().UnixNano(), 36)
			r, err := Ask(ctx, clients[i], chat.Request{
				Messages: []chat.Message{{Role: chat.RoleUser, Text: text}}, MaxTokens: answerTokens,
			})
			if err != nil {
				return a, err
			}
			var ok bool
			if first[i], ok = r.TTFT(); !ok {
				return a, fmt.Errorf("%s answers without a token", clients[i].Root())
			}
		}
		differences = append(differences, first[1]-first[0])
	}
	slices.Sort(differences)
	rank := signRank(pairs)
	return Added{
		Median:   (differences[(pairs-1)/2] + differences[pairs/2]) / 2,
		Interval: [2]time.Duration{differences[rank], differences[pairs-1-rank]},
		Requests: pairs,
	}, nil
}

// signRank returns the rank, from 0, of the order statistics that bound the median of n differences at 95 % or more, by
// the sign test: at most 2.5 % of a binomial distribution with one half lie below it.
func signRank(n int) (rank int) {
	below, term := 0., 1. // the term of k is the binomial coefficient over 2^n
	for range n {
		term /= 2
	}
	for k := 0; ; k++ {
		if below += term; below > .025 {
			return max(0, k-1)
		}
		term *= float64(n-k) / float64(k+1)
	}
}
