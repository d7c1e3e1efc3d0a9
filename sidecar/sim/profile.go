package sim

import "kvbooth/sidecar/api"

// Profile says how large and how fast one worker of a cluster is. Its times
// are for the model and the GPU that it names and for no others.
type Profile struct {
	Name           string // identifies the profile, fit for a file name
	Baseline       string // the recorded results that its times were fitted to
	Model          string // as clients name it
	Precision      string // of the weights and of the KV cache
	GPU            string
	Workers        int // of the recorded deployment
	TensorParallel int // GPUs of one worker

	KV KVCache

	MaxSequences     int // sequences that one iteration decodes at most
	MaxBatchedTokens int // tokens that one iteration takes at most; longer prompts are prefilled in chunks

	Step          StepCost
	TokensPerStep float64 // tokens that a sequence gets from one iteration; above 1 with speculation
}

// KVCache is the size of one worker's KV cache.
type KVCache struct {
	BytesPerToken int
	BlockTokens   int // tokens of one block, the unit of reuse
	Blocks        int // of one worker
}

// Tokens is how many tokens one worker's cache holds.
func (k KVCache) Tokens() int { return k.Blocks * k.BlockTokens }

// StepCost is what one iteration of a worker costs, in milliseconds. For b
// decoding sequences whose contexts add up to c tokens, and P prompt tokens
// that are prefilled in the same iteration,
//
//	Base + PerSequence·b + PerContextToken·c
//	     + PerPrefillToken·P + PerChunkContext·Σ(chunk · context before the chunk)
//
// raised to the floors that apply.
type StepCost struct {
	Base            float64
	PerSequence     float64
	PerContextToken float64
	PerPrefillToken float64
	PerChunkContext float64
	Jitter          float64 // standard deviation of an iteration over its mean
	Floors          []Floor
}

// Floor is the least that an iteration takes when it prefills (if Prefill is
// set), or when the number of its decoding sequences is in the range.
type Floor struct {
	Milliseconds float64
	Prefill      bool
	Sequences    api.Range // the zero range holds no iteration that decodes
}

// Decode is the length in milliseconds of an iteration that only decodes: so
// many sequences, whose contexts add up to so many tokens.
func (c StepCost) Decode(sequences int, contextTokens float64) float64 {
	ms := c.Base + c.PerSequence*float64(sequences) + c.PerContextToken*contextTokens
	for _, floor := range c.Floors {
		if floor.Sequences.Min <= sequences && sequences <= floor.Sequences.Max {
			ms = max(ms, floor.Milliseconds)
		}
	}
	return ms
}

// H200 is the profile of the recorded run on three NVIDIA H200s, one per
// worker, that serve Llama 3.1 70B Instruct in FP8 with TensorRT-LLM.
//
// The sizes follow from the model and the GPU. A token's keys and values are
// 2 × 80 layers × 8 KV heads × 128 × 1 byte. Of 131.3 GiB that are free for
// the engine, 71 GiB hold the weights, and 90 % of the rest hold 11,119 blocks
// of 32 tokens.
//
// The times were fitted to the recorded table with a discrete-event model of the
// cluster. The floor of
// 92 ms is what the table shows: TPOT jumps between 27 and 40 sequences per GPU
// and then stays flat, as it would if CUDA graphs existed for up to 32 and for
// 64 sequences and those between ran without. The 2.21 tokens per step are a
// draft of three tokens of which .66, .56 and .48 are accepted, each given that
// the one before it was: 1 + .66 + .66·.56 + .66·.56·.48. Whether the recorded
// run did speculate, its documents do not say.
func H200() Profile {
	return Profile{
		Name:             "h200-tp1",
		Baseline:         "h200x3-tp1-llama70b-fp8",
		Model:            "meta-llama/Llama-3.1-70B-Instruct",
		Precision:        "FP8",
		GPU:              "H200",
		Workers:          3,
		TensorParallel:   1,
		KV:               KVCache{BytesPerToken: 163_840, BlockTokens: 32, Blocks: 11_119},
		MaxSequences:     64,
		MaxBatchedTokens: 16_384,
		Step: StepCost{
			Base: 41, PerSequence: 0.5, PerContextToken: 3.3e-5,
			PerPrefillToken: 0.118, PerChunkContext: 1e-6, Jitter: 0.02,
			Floors: []Floor{{Milliseconds: 92, Prefill: true, Sequences: api.Range{Min: 33, Max: 63}}},
		},
		TokensPerStep: 2.21,
	}
}
