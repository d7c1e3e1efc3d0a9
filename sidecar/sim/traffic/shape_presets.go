package traffic

import (
	"time"

	"kvbooth/sidecar/api"
)

// defaultContext is the context of a model that does not report its own.
const defaultContext = 131_072

// preset holds the numbers of a shape.
type preset struct {
	noun      string // of a group
	role      string // of the message with the prefix
	groups    int    // 0: nothing is shared
	zipf      float64
	prefix    lengths
	suffix    lengths // what each turn adds
	answer    lengths
	turns     turnCount
	members   uint64    // agents of a family; 0: there are none
	family    lengths   // task that a family shares
	sideTurns turnCount // of sub-agents
	tools     bool      // later turns are results of tools, after their pauses
}

// presets are the shapes. Numbers without a source are assumptions, which docs/traffic.md names as such.
var presets = map[api.ShapePreset]preset{
	// Zhao et al., "WildChat: 1M ChatGPT Interaction Logs in the Wild" (2024), table 1, on ShareGPT: 3.51 turns a
	// conversation, user messages of 94.46 ± 626.39 tokens, answers of 348.45 ± 269.93. A geometric distribution with
	// this mean has 72 % of conversations with several turns; Gao et al., "Cost-Efficient Large Language Model Serving
	// for Multi-turn Conversations with CachedAttention" (2024), count 73 %.
	api.ShapeChat: {
		suffix: scattered(94.46, 626.39), answer: scattered(348.45, 269.93), turns: turnCount{mean: 3.51},
	},
	// The defaults of SGLang's benchmark with the dataset generated-shared-prefix.
	api.ShapePrefix: {
		noun: "group", role: "system", groups: 64, prefix: exactly(2048), suffix: exactly(128), answer: exactly(256),
		turns: turnCount{min: 1, max: 1},
	},
	// Jin et al., "RAGCache: Efficient Knowledge Caching for Retrieval-Augmented Generation" (2024): 3 % of the documents
	// get 60 % of the requests, which 1,000 documents do with this exponent. Lengths are assumptions.
	api.ShapeRAG: {
		noun: "document", role: "user", groups: 1000, zipf: 1.07, prefix: between(2000, 30_000),
		suffix: scattered(30, 20), answer: scattered(150, 120), turns: turnCount{min: 1, max: 1},
	},
	// Ji, "Context Engineering for AI Agents: Lessons from Building Manus" (2025): about 50 calls of tools for a task, and
	// 100 tokens of prompts for each token of answers. Lengths, pauses and families are assumptions that give both.
	api.ShapeAgent: {
		noun: "system prompt", role: "system", groups: 1, prefix: between(5000, 20_000),
		suffix: scattered(800, 1200), answer: scattered(400, 400), turns: turnCount{min: 10, max: 100},
		members: 4, family: between(1000, 4000), sideTurns: turnCount{min: 10, max: 30}, tools: true,
	},
	// Hendrycks et al., "Measuring Massive Multitask Language Understanding" (2021): 57 subjects, each with five worked
	// examples before the question. Lengths and popularity are assumptions.
	api.ShapeFewShot: {
		noun: "template", role: "user", groups: 57, zipf: 1, prefix: between(400, 1600),
		suffix: scattered(110, 80), answer: scattered(32, 32), turns: turnCount{min: 1, max: 1},
	},
	// Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving"
	// (2024), on summaries of LongBench: prompts of 1,738.3 tokens and answers of 90.7. Variation is an assumption.
	api.ShapeBatch: {
		suffix: scattered(1738.3, 1000), answer: scattered(90.7, 60), turns: turnCount{min: 1, max: 1},
	},
}

// toolPauses are the times that tools take: log-normal, with the shares of the calls. They are assumptions.
var toolPauses = []struct {
	share  float64
	median time.Duration
	sigma  float64 // standard deviation of the logarithm
}{
	{.50, 200 * time.Millisecond, .5}, // reading and searching files
	{.25, time.Second, .7},            // editing, and requests to services
	{.20, 8 * time.Second, 1},         // running programs and tests
	{.05, 40 * time.Second, .7},       // asking a person
}
