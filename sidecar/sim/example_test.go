package sim_test

import (
	"fmt"
	"time"

	"kvbooth/sidecar/sim"
)

// stream is what a server keeps of one request.
type stream struct{ chunks int }

func (s *stream) Routed(d *sim.Decision) {
	fmt.Printf("routed among %d workers, %.0f %% of the prompt expected in the cache\n", len(d.Candidates), 100*d.PredictedHit())
}

func (s *stream) FirstToken(r sim.Report) {
	fmt.Printf("first token after %v, %d of %d prompt tokens cached\n", (r.FirstToken - r.Submitted).Round(10*time.Millisecond), r.CachedTokens, r.PromptTokens)
}

func (s *stream) Tokens(time.Duration, int) { s.chunks++ }

func (s *stream) Finished(r sim.Report) {
	fmt.Printf("%s after %d tokens, several in a chunk: %t\n", r.Reason, r.OutputTokens, s.chunks < r.OutputTokens)
}

func ExampleCluster() {
	profile := sim.H200()
	cluster, err := sim.New(sim.DefaultOptions(profile))
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt, answer := make([]uint32, 3200), make([]uint32, 500) // token ids
	for range 2 {
		request := sim.NewRequest("conversation-turn", prompt, answer, 100, profile.KV.BlockTokens)
		if _, err := cluster.Submit(request, &stream{}); err != nil {
			fmt.Println(err)
		}
		for at, ok := cluster.Next(); ok; at, ok = cluster.Next() {
			cluster.Advance(at) // a server waits for that moment on the wall clock
		}
		prompt = append(append(prompt, answer[:100]...), 7, 8, 9)
	}
	// Output:
	// routed among 3 workers, 0 % of the prompt expected in the cache
	// first token after 540ms, 0 of 3200 prompt tokens cached
	// length after 100 tokens, several in a chunk: true
	// routed among 3 workers, 100 % of the prompt expected in the cache
	// first token after 140ms, 3296 of 3303 prompt tokens cached
	// length after 100 tokens, several in a chunk: true
}
