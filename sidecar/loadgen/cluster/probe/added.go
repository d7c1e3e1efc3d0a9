package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kvbooth/sidecar/loadgen/chat"
)

// addedPairs is the number of pairs of requests by which [AddedLatency] measures. The order statistics of rank
// addedRank from either end bound the median of the differences at 95 %, by the sign test (96.2 % of 40).
const (
	addedPairs = 40
	addedRank  = 13 // from 0
)

// addedPause is between two requests: no delayed acknowledgment of one adds to the next.
const addedPause = 100 * time.Millisecond

// Added is by how much later the first token comes through a router than from an engine asked directly.
type Added struct {
	Median   time.Duration    // of pairs of requests, one at a time
	Interval [2]time.Duration // 95 %, by the sign test
	Requests int              // that the router has got
}

// Door is an address that answers chat requests.
type Door struct {
	URL, Model, Key string
}

// AddedLatency asks a router and an engine in turn, with short prompts that are new to both, and compares the times to
// the first token. Nothing else should ask the engines meanwhile.
func AddedLatency(ctx context.Context, through, direct Door) (a Added, err error) {
	var clients [2]*chat.Client
	doors := []Door{direct, through}
	for i, d := range doors {
		client, err := chat.New(chat.Options{
			URL: d.URL, Model: d.Model, APIKey: d.Key,
			Settings: probeSettings,
		})
		if err != nil {
			return a, err
		}
		defer client.Close()
		if failure := client.Probe(ctx); failure != nil {
			return a, fmt.Errorf("%s: %w", d.URL, failure)
		}
		clients[i] = client
	}
	differences := make([]time.Duration, 0, addedPairs)
	for pair := range addedPairs {
		var first [2]time.Duration
		for k := range 2 {
			i := (pair + k) % 2 // each is first in half of the pairs
			if err := pause(ctx, addedPause); err != nil {
				return a, err
			}
			r, err := short(ctx, clients[i], "Number "+strconv.Itoa(pair)+" of "+strconv.FormatInt(time.Now().UnixNano(), 36))
			if err != nil {
				return a, err
			}
			var ok bool
			if first[i], ok = r.TTFT(); !ok {
				return a, fmt.Errorf("%s answers without a token", doors[i].URL)
			}
		}
		differences = append(differences, first[1]-first[0])
	}
	slices.Sort(differences)
	const half = addedPairs / 2
	return Added{
		Median:   (differences[half-1] + differences[half]) / 2,
		Interval: [2]time.Duration{differences[addedRank], differences[addedPairs-1-addedRank]},
		Requests: addedPairs,
	}, nil
}
