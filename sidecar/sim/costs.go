package sim

import (
	"math"
	"math/rand/v2"
)

// Costs is the cost function by which Dynamo's KV router selects a worker. The simulated router uses it, and so do
// predictions of what such a router would have done.
type Costs struct {
	RouterSwitches
	OverlapWeight float64 // weight of prefill relative to decode, at least 0
	Temperature   float64 // softmax temperature of the choice; 0 takes the lowest cost
	BlockTokens   int     // tokens per block
}

// Load is a router's account of one worker before a request.
type Load struct {
	Requests      int // requests in progress
	PrefillTokens int // expected tokens to prefill for requests without a first token
	Blocks        int // blocks of requests in progress, counted by the rules of [RouterSwitches]
}

// Candidate returns a worker's cost for a request by Dynamo's formula (scheduling/selector/default.rs), in blocks:
//
//	cost           = overlap weight × prefill blocks + decode blocks + request weight × requests
//	prefill blocks = (prefill tokens in progress + prompt tokens) / block size − credit × overlap
//	decode blocks  = different blocks in progress, the request's included
//
// The credit is 1 unless a switch changes it. The worker's cache holds the first overlap blocks of the prompt, and the
// first shared blocks belong to requests in progress there. leastPrefill is the least prefill in progress of all
// candidates, in tokens. The caller sets the candidate's worker.
func (k *Costs) Candidate(l Load, promptTokens, overlap, shared, leastPrefill int) Candidate {
	size := float64(k.BlockTokens)
	c := Candidate{OverlapBlocks: overlap, Requests: l.Requests, DecodeBlocks: l.Blocks}
	if k.TrackActiveBlocks {
		c.DecodeBlocks += promptTokens/k.BlockTokens - shared
	}
	prefill := 0.0
	if k.TrackPrefillTokens {
		c.PrefillTokens = l.PrefillTokens + promptTokens - overlap*k.BlockTokens
		request := math.Ceil(float64(promptTokens) / size)
		excess := float64(l.PrefillTokens-leastPrefill) / size / request
		credit := k.OverlapScoreCredit / (1 + k.OverlapScoreCreditDecay*excess)
		prefill = float64(c.PrefillTokens)/size + (1-credit)*float64(overlap)
	}
	c.Cost = k.OverlapWeight*prefill + float64(c.DecodeBlocks) + k.DecodeActiveRequestWeight*float64(c.Requests)
	return c
}

// Choose returns the index of the candidate that Dynamo's KV router selects: the one with the lowest cost, ties broken
// at random, or with a temperature a random one weighted by cost.
func (k *Costs) Choose(candidates []Candidate, rng *rand.Rand) int {
	if k.Temperature > 0 {
		return k.sample(candidates, rng)
	}
	return lowest(candidates, func(c *Candidate) float64 { return c.Cost }, rng)
}

// LeastLoaded returns the index of the candidate with the fewest requests in progress, ties broken at random.
func LeastLoaded(candidates []Candidate, rng *rand.Rand) int {
	return lowest(candidates, func(c *Candidate) float64 { return float64(c.Requests) }, rng)
}

const (
	placementBound = 1.25 // of the mean number of requests in progress
	placementFree  = 4    // requests in progress up to which a worker is not too busy
)

// MostInflight returns the number of requests in progress that a worker may have under [BestPlacement]: four, or 1.25
// times the mean with the request to place. all is the number on all workers, without that request.
func MostInflight(all, workers int) int {
	return max(placementFree, int(math.Ceil(placementBound*float64(all+1)/float64(workers))))
}

// BestPlacement returns the index of the candidate that holds the longest prefix of a prompt, of those within
// [MostInflight]; of several, the one with the fewest requests, else the next from first on. It is the best choice for
// this request alone, not for those to come.
func BestPlacement(candidates []Candidate, first int) int {
	all := 0
	for i := range candidates {
		all += candidates[i].Requests
	}
	most, chosen := MostInflight(all, len(candidates)), -1
	for i := range candidates {
		at := (first + i) % len(candidates)
		c := &candidates[at]
		if c.Requests >= most {
			continue
		}
		if chosen < 0 || c.OverlapBlocks > candidates[chosen].OverlapBlocks ||
			c.OverlapBlocks == candidates[chosen].OverlapBlocks && c.Requests < candidates[chosen].Requests {
			chosen = at
		}
	}
	return chosen
}

// lowest returns the index of the candidate with the lowest value, ties broken at random.
func lowest(candidates []Candidate, value func(*Candidate) float64, rng *rand.Rand) int {
	chosen, ties, least := 0, 0, math.Inf(1)
	for i := range candidates {
		switch v := value(&candidates[i]); {
		case i == 0 || v < least:
			chosen, ties, least = i, 1, v
		case v == least:
			if ties++; rng.IntN(ties) == 0 {
				chosen = i
			}
		}
	}
	return chosen
}

// sample draws a candidate with a probability ∝ exp(−(c − min) / ((max − min)·T)),
// Dynamo's softmax over costs.
func (k *Costs) sample(candidates []Candidate, rng *rand.Rand) int {
	low, high := candidates[0].Cost, candidates[0].Cost
	for _, c := range candidates {
		low, high = min(low, c.Cost), max(high, c.Cost)
	}
	if low == high {
		return rng.IntN(len(candidates))
	}
	weights, sum := make([]float64, len(candidates)), 0.0
	for i, c := range candidates {
		weights[i] = math.Exp(-(c.Cost - low) / ((high - low) * k.Temperature))
		sum += weights[i]
	}
	drawn := rng.Float64() * sum
	for i, weight := range weights {
		if drawn -= weight; drawn < 0 {
			return i
		}
	}
	return len(candidates) - 1
}
