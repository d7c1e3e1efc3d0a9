package sim

import (
	"math"
	"math/rand/v2"
)

// Costs is how Dynamo's KV router weighs workers against one another: of the simulated
// cluster's router, and of whoever asks what such a router would have done.
type Costs struct {
	RouterSwitches
	OverlapWeight float64 // of prefill against decode, from 0
	Temperature   float64 // of the choice; 0 takes the lowest cost
	BlockTokens   int     // tokens of a block
}

// Load is a router's account of one worker, before a request.
type Load struct {
	Requests      int // in progress
	PrefillTokens int // expected of those without a first token
	Blocks        int // of those in progress, as [RouterSwitches] says
}

// Candidate is a worker with a load, weighed for a request by Dynamo's formula
// (scheduling/selector/default.rs), in blocks:
//
//	cost           = overlap weight × prefill blocks + decode blocks + request weight × requests
//	prefill blocks = (prefill tokens in progress + prompt tokens) / block size − credit × overlap
//	decode blocks  = different blocks in progress, the request's included
//
// where the credit is 1 unless a switch changes it. Of the request's prompt the worker holds the first
// overlap blocks, and the first shared ones are in progress there; idlest is the least prefill in progress
// of all candidates, in tokens. The candidate does not name its worker yet.
func (k *Costs) Candidate(l Load, promptTokens, overlap, shared, idlest int) Candidate {
	size := float64(k.BlockTokens)
	c := Candidate{OverlapBlocks: overlap, Requests: l.Requests, DecodeBlocks: l.Blocks}
	if k.TrackActiveBlocks {
		c.DecodeBlocks += promptTokens/k.BlockTokens - shared
	}
	prefill := 0.0
	if k.TrackPrefillTokens {
		c.PrefillTokens = l.PrefillTokens + promptTokens - overlap*k.BlockTokens
		request := math.Ceil(float64(promptTokens) / size)
		excess := float64(l.PrefillTokens-idlest) / size / request
		credit := k.OverlapScoreCredit / (1 + k.OverlapScoreCreditDecay*excess)
		prefill = float64(c.PrefillTokens)/size + (1-credit)*float64(overlap)
	}
	c.Cost = k.OverlapWeight*prefill + float64(c.DecodeBlocks) + k.DecodeActiveRequestWeight*float64(c.Requests)
	return c
}

// Choose is the candidate that Dynamo's KV router takes: the one with the lowest cost, any of
// them where several have it; with a temperature, one that is drawn.
func (k *Costs) Choose(candidates []Candidate, rng *rand.Rand) int {
	if k.Temperature > 0 {
		return k.sample(candidates, rng)
	}
	return lowest(candidates, func(c *Candidate) float64 { return c.Cost }, rng)
}

// LeastLoaded is the candidate with the fewest requests in progress, any of them where
// several have so few.
func LeastLoaded(candidates []Candidate, rng *rand.Rand) int {
	return lowest(candidates, func(c *Candidate) float64 { return float64(c.Requests) }, rng)
}

// lowest is the candidate with the lowest value, any of them where several have it.
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
