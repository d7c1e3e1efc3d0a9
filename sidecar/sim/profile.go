package sim

import (
	"cmp"
	"math"

	"kvbooth/sidecar/api"
)

// Profile describes the size and the speed of one worker of a cluster. Its times hold only for the model and the GPU
// that it names. [LoadProfile] returns the built-in profiles, [ParseProfile] reads others.
type Profile struct {
	Name           string `yaml:"name"`               // identifies the profile, fit for a file name
	Baseline       string `yaml:"baseline"`           // recorded results of this deployment, "" without any
	Calibrated     bool   `yaml:"calibrated"`         // fitted to the baseline
	Basis          string `yaml:"basis"`              // source of the times
	Model          string `yaml:"model"`              // name of the model in requests
	Deployed       string `yaml:"deployed,omitempty"` // name of the model in the deployment's documents; "": not known
	Precision      string `yaml:"precision"`          // precision of the weights and of the KV cache
	GPU            string `yaml:"gpu"`                // name of the GPU
	Workers        int    `yaml:"workers"`            // workers of the deployment
	TensorParallel int    `yaml:"tensor_parallel"`    // GPUs of one worker

	KV     KVCache `yaml:"kv"`
	Memory Memory  `yaml:"memory"`

	Compute Compute `yaml:"compute"`

	MaxSequences int `yaml:"max_sequences"` // per iteration
	// MaxBatchedTokens limits the tokens of one iteration. Longer prompts are prefilled in chunks.
	MaxBatchedTokens int `yaml:"max_batched_tokens"`

	Step StepCost `yaml:"step"`
	// Uneven is the standard deviation of the workers' times over the mean: see [Profile.pace].
	Uneven float64 `yaml:"uneven"`
	// HandOver is the share of a decode step that passes until an iteration's tokens leave the worker.
	HandOver float64  `yaml:"hand_over"`
	Frontend Frontend `yaml:"frontend"`

	// Speculation has one entry for each kind that the cluster offers. The entry
	// [api.SpeculationNotRecorded] is the deployment as it was recorded.
	Speculation map[api.Speculation]Speculation `yaml:"speculation"`

	// Sources has one entry for each of [Profile.Constants], by its name.
	Sources map[string]Source `yaml:"sources"`
}

// Frontend is the time that the frontend adds to every request, in milliseconds.
type Frontend struct {
	In  float64 `yaml:"in"`  // from a request's arrival to its arrival at a worker
	Out float64 `yaml:"out"` // from the worker's tokens to the client
}

// KVCache is the size of one worker's KV cache.
type KVCache struct {
	BytesPerToken int `yaml:"bytes_per_token"`
	BlockTokens   int `yaml:"block_tokens"` // tokens of one block, the unit of reuse
	Blocks        int `yaml:"blocks"`       // capacity of one worker
}

// Memory is the memory that a worker's weights and KV cache share, in GiB, and its bandwidth.
type Memory struct {
	GPU       float64 `yaml:"gpu"`       // memory of one GPU
	Weights   float64 `yaml:"weights"`   // weights of the model, spread over the GPUs of a worker
	Bandwidth float64 `yaml:"bandwidth"` // bandwidth of one GPU, in GB/s
}

// reading returns the milliseconds in which all GPUs of a worker read its weights once, in parallel.
func (p Profile) reading() float64 {
	const gib, gb = 1 << 30, 1e9
	return 1000 * p.Memory.Weights * gib / float64(p.TensorParallel) / (p.Memory.Bandwidth * gb)
}

// pace returns the factor between a worker's iteration times and those of [StepCost]. No two machines are equally
// fast: the paces of n workers are quantiles of a normal distribution, one from the middle of each n-th, the fastest
// worker first.
func (p Profile) pace(worker int) float64 {
	middle := (float64(worker) + .5) / float64(p.Workers)
	return 1 + p.Uneven*math.Sqrt2*math.Erfinv(2*middle-1)
}

// Tokens returns the number of tokens that one worker's cache holds.
func (k KVCache) Tokens() int { return k.Blocks * k.BlockTokens }

// blocksOf returns the number of blocks for so many tokens; the last one may be partly filled.
func (k KVCache) blocksOf(tokens int) int { return (tokens + k.BlockTokens - 1) / k.BlockTokens }

// StepCost is the time that one iteration of a worker takes, in milliseconds. For b decoding sequences with c context
// tokens in total, and P prompt tokens prefilled in the same iteration, the GPUs take
//
//	Base + PerSequence·b + PerContextToken·c
//	     + PerPrefillToken·P + PerChunkContext·Σ(chunk · context before the chunk)
//
// The host adds Host + HostPerSequence·b. Where a floor applies, the iteration takes at least that floor instead:
// there the host's launches take so long, while the GPUs work.
type StepCost struct {
	Host            float64 `yaml:"host"` // scheduling, drafting and sampling, while the GPUs have nothing to do
	HostPerSequence float64 `yaml:"host_per_sequence"`
	Base            float64 `yaml:"base"` // reading the weights
	PerSequence     float64 `yaml:"per_sequence"`
	PerContextToken float64 `yaml:"per_context_token"`
	PerPrefillToken float64 `yaml:"per_prefill_token"`
	PerChunkContext float64 `yaml:"per_chunk_context"`
	Jitter          float64 `yaml:"jitter"` // standard deviation of an iteration over its mean
	Floors          []Floor `yaml:"floors"`
}

// Floor is the least time of an iteration that prefills (if Prefill is set), or whose number of decoding sequences is
// in the range: a constant, plus a part for each decoding sequence.
type Floor struct {
	Milliseconds float64   `yaml:"milliseconds"`
	PerSequence  float64   `yaml:"per_sequence"`
	Prefill      bool      `yaml:"prefill"`
	Sequences    api.Range `yaml:"sequences"` // the zero range holds no iteration that decodes
}

// Iteration is the work of one iteration of a worker.
type Iteration struct {
	Sequences     int     // decoding sequences
	ContextTokens float64 // sum over the decoding sequences
	PrefillTokens int
	ChunkContext  float64 // Σ(chunk · context before the chunk), in tokens²
}

// Milliseconds returns the mean length of an iteration.
func (c StepCost) Milliseconds(i Iteration) float64 {
	ms := c.Base + c.PerSequence*float64(i.Sequences) + c.PerContextToken*i.ContextTokens +
		c.PerPrefillToken*float64(i.PrefillTokens) + c.PerChunkContext*i.ChunkContext
	least, bounded := 0.0, false
	for _, floor := range c.Floors {
		if floor.applies(i) {
			least, bounded = max(least, floor.Milliseconds+floor.PerSequence*float64(i.Sequences)), true
		}
	}
	if bounded {
		return max(ms, least)
	}
	return ms + c.Host + c.HostPerSequence*float64(i.Sequences)
}

// Kernels returns the part of an iteration in which the GPUs run kernels, in milliseconds: reading the weights, and
// the work itself. During the host's time, and during the extra time of a floor (batches without CUDA graphs, whose
// kernels wait for their launches), the GPUs are idle.
func (c StepCost) Kernels(i Iteration) float64 {
	work := c
	work.Host, work.HostPerSequence, work.Floors = 0, 0, nil
	return work.Milliseconds(i)
}

func (f Floor) applies(i Iteration) bool {
	return f.Prefill && i.PrefillTokens > 0 ||
		i.Sequences > 0 && f.Sequences.Min <= i.Sequences && i.Sequences <= f.Sequences.Max
}

// Decode returns the length in milliseconds of an iteration that only decodes. contextTokens is the total over all
// sequences.
func (c StepCost) Decode(sequences int, contextTokens float64) float64 {
	return c.Milliseconds(Iteration{Sequences: sequences, ContextTokens: contextTokens})
}

// scaled returns the cost with all parts except prefill multiplied by a factor.
func (c StepCost) scaled(factor float64) StepCost {
	c.Host *= factor
	c.HostPerSequence *= factor
	c.Base *= factor
	c.PerSequence *= factor
	c.PerContextToken *= factor
	floors := make([]Floor, len(c.Floors))
	for i, floor := range c.Floors {
		floor.Milliseconds *= factor
		floor.PerSequence *= factor
		floors[i] = floor
	}
	c.Floors = floors
	return c
}

// TokensPerStep returns the mean number of tokens that a sequence gets from one iteration, as recorded. It is above 1
// with speculation.
func (p Profile) TokensPerStep() float64 {
	return p.Speculation[api.SpeculationNotRecorded].TokensPerStep()
}

// CalibratedFor reports whether the profile was fitted to measurements under this kind of speculation. Otherwise its
// times are based on assumptions, and reports of them must say "not calibrated".
func (p Profile) CalibratedFor(kind api.Speculation) bool {
	return p.Calibrated && p.Speculation[kind].Calibrated
}

// DeployedModel returns the name of the model with its precision, as the documents of the deployment write it if the
// profile says so.
func (p Profile) DeployedModel() string {
	return cmp.Or(p.Deployed, p.Model+"-"+p.Precision)
}

// H200 returns the profile of the recorded run on three NVIDIA H200s, one per worker, that serve Llama 3.1 70B
// Instruct in FP8 with TensorRT-LLM. The sources of its numbers are in profiles/h200-tp1.yaml.
func H200() Profile {
	p, err := LoadProfile("h200-tp1")
	if err != nil {
		panic(err) // the file is part of the program
	}
	return p
}
