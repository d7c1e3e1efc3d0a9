package config

import (
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Shadow is the request of the command shadow. A field that was not given and has no default is 0 or empty.
type Shadow struct {
	File         []string      `arg:"" optional:"" form:"path" help:"Trace files, or patterns such as 'trace.*.jsonl.gz', in the format of Dynamo, Mooncake, Bailian, WEKA or AIPerf's sessions; may be gzipped. Several files are one trace. Without files, it is the traffic that a run with the same --shape or --trace, --rate or --concurrency, --arrivals and --duration (10m) would send."`
	Workers      int           `min:"1" max:"1024" placeholder:"N" help:"Number of workers. Default: those named in the trace, where those that never overlap in time count as one."`
	Blocks       int           `min:"1" max:"268435456" placeholder:"N" help:"KV cache size of one worker in blocks (Dynamo's total_blocks). This or --tokens is required."`
	Tokens       int           `min:"1" max:"1000000000000" placeholder:"N" help:"KV cache size of one worker in tokens."`
	BlockTokens  int           `min:"1" max:"65536" placeholder:"N" help:"Tokens per block in a trace that does not include it, and of the traffic of a run (16). Default: inferred; 512 in Mooncake's format and 16 in Bailian's if that fits."`
	TimeUnit     string        `oneof:"s ms us ns" help:"Unit of the timestamps in a trace that is not Dynamo's. Default: inferred; ms in Mooncake's format and s in Bailian's."`
	Answers      string        `oneof:"inferred found forgotten" help:"Whether later turns find the cached blocks of answers. Default: inferred from the hits in the trace, else found."`
	FirstToken   time.Duration `default:"500ms" min:"0s" max:"1h" help:"Assumed time to first token if the trace has no times."`
	PerToken     time.Duration `default:"25ms" min:"0s" max:"1m" help:"Assumed time per output token if the trace has no times."`
	HashedTokens int           `min:"1" max:"1000000" placeholder:"N" help:"Tokens at the start of a prompt that opening_hash hashes. Default: 1024."`
	Disorder     time.Duration `min:"0s" max:"24h" help:"How far times may go back; such lines are sorted. Default: 10m in Dynamo's traces, else 10s."`
	NoCurves     bool          `help:"Skip the curves over cache capacity and worker count, which need another pass over the trace."`
	Format       string        `default:"md" oneof:"md json csv html" help:"Report format on standard output."`
}

// checkShadow requires traffic of one kind, and the size of the caches, which no trace contains.
func (c *Config) checkShadow() error {
	s := c.Shadow
	switch {
	case s == nil:
		return nil
	case len(s.File) == 0 && !c.Planned():
		return api.Require("file", "trace files, or the traffic of a run (--shape or --trace)")
	case len(s.File) > 0 && c.Planned():
		return api.Refuse("file", strings.Join(s.File, ", "), "no file beside --shape and --trace")
	case len(c.Rate.Steps()) > 0:
		return api.Refuse("rate", c.Rate, "one rate, or a ramp such as 2/s..20/s/10m")
	case s.Blocks == 0 && s.Tokens == 0:
		return api.Require("blocks",
			"the KV cache size of one worker in blocks (--blocks) or tokens (--tokens); traces do not include it")
	case s.Blocks != 0 && s.Tokens != 0:
		return api.Refuse("blocks", s.Blocks, "set either --blocks or --tokens, not both")
	}
	return nil
}
