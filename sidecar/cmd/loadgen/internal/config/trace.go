package config

import (
	"time"

	"kvbooth/sidecar/api"
)

// Trace is the request of the command trace. A field that was not given and has no default is 0 or empty.
type Trace struct {
	File        []string      `arg:"" form:"path" help:"Files of one trace or dataset, or patterns such as 'trace.*.jsonl.gz'; may be gzipped. The form is recognized by content: Dynamo, Mooncake (also with sessions and delays), Bailian, WEKA, BurstGPT, Azure, ShareGPT, messages, prompts of vLLM and AIPerf."`
	CacheBlocks int           `min:"1" max:"268435456" placeholder:"N" help:"Also calculate the hit rate of one cache of this size in blocks."`
	CacheTokens int           `min:"1" max:"1000000000000" placeholder:"N" help:"The same, in tokens."`
	BlockTokens int           `min:"1" max:"65536" placeholder:"N" help:"Tokens per block in a trace that does not include it, or of a dataset's texts. Default: inferred from the trace; 16 for texts."`
	TimeUnit    string        `oneof:"s ms us ns" help:"Unit of numeric times. Default: inferred from the trace; s for BurstGPT, ms for datasets."`
	Disorder    time.Duration `min:"0s" max:"24h" help:"How far times may go back; such lines are sorted. Default: 0s; 10m in Dynamo's traces, 10s in WEKA's."`
}

// check refuses two sizes of the cache.
func (t *Trace) check() error {
	if t != nil && t.CacheBlocks != 0 && t.CacheTokens != 0 {
		return api.Refuse("cache_blocks", t.CacheBlocks, "set either --cache-blocks or --cache-tokens, not both")
	}
	return nil
}

// sends reports whether the command sends turns, or checks the configuration of one that does.
func (c *Config) sends() bool {
	return c.Compare == nil && c.Shadow == nil && c.Trace == nil && c.Record == nil && c.Why == nil && c.History == nil &&
		c.Replay == "" && !c.Member
}

// checkTraffic refuses a selection of nothing.
func (c *Config) checkTraffic() error { return c.Traffic.Selection(0).Check() }
