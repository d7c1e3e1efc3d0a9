package config

import (
	"time"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
)

// Shadow is what the command shadow asks for. What is 0 or empty was not given.
type Shadow struct {
	File           string
	Workers        int
	Blocks         int // of one worker's cache; or
	Tokens         int // the same in tokens
	BlockTokens    int
	Answers        string
	FirstToken     time.Duration
	PerToken       time.Duration
	HashedTokens   int
	Disorder       time.Duration
	WithoutCurves  bool
	StandardOutput string // the format
}

// shadowFlags are the flags of the command shadow.
type shadowFlags struct {
	File         string        `arg:"" form:"path" help:"The trace: Dynamo's, or of Mooncake's form; may be compressed by gzip."`
	Workers      int           `min:"1" max:"1024" placeholder:"N" help:"Number of workers. Without it, those that the trace names; then the router's real choices are told, too."`
	Blocks       int           `min:"1" max:"268435456" placeholder:"N" help:"Blocks that the KV cache of one worker holds: Dynamo's total_blocks of a worker. This or --tokens is needed."`
	Tokens       int           `min:"1" max:"1000000000000" placeholder:"N" help:"The same in tokens."`
	BlockTokens  int           `min:"1" max:"65536" placeholder:"N" help:"Tokens of a block in a trace of Mooncake's form. Without it, 512. Dynamo's says it."`
	Answers      string        `oneof:"inferred found forgotten" help:"Whether blocks of answers are found again by later turns. Without it, inferred from the hits that the trace tells, else found."`
	FirstToken   time.Duration `min:"0s" max:"1h" help:"Assumed from a request to its first token where the trace has no times. Without it, 500ms."`
	PerToken     time.Duration `min:"0s" max:"1m" help:"Assumed for each token of an answer where the trace has no times. Without it, 25ms."`
	HashedTokens int           `min:"1" max:"1000000" placeholder:"N" help:"Tokens at the beginning of a prompt that opening_hash looks at. Without it, 1024."`
	Disorder     time.Duration `min:"0s" max:"24h" help:"How much too late a line may come to be put back in its place. Without it, 10m for Dynamo's traces, whose lines come when requests end, else 10s."`
	NoCurves     bool          `help:"Leave out the curves against capacity and workers, for which the trace is read again."`
	Format       string        `oneof:"md json csv html" help:"Form of the report on standard output. Without it, md."`
}

// shadow is what the command shadow asks for; nil for other commands.
func (l *loader) shadow(ctx *kong.Context) *Shadow {
	if commandOf(ctx) != Shadowed {
		return nil
	}
	t := &l.grammar.Shadow
	s := &Shadow{
		File: t.File, Workers: t.Workers, Blocks: t.Blocks, Tokens: t.Tokens, BlockTokens: t.BlockTokens, Answers: t.Answers,
		FirstToken: 500 * time.Millisecond, PerToken: 25 * time.Millisecond,
		HashedTokens: t.HashedTokens, Disorder: t.Disorder, WithoutCurves: t.NoCurves, StandardOutput: t.Format,
	}
	explicit := explicitly(ctx)
	given := func(name string) bool { return explicit[l.own[Shadowed][name].flag.Value] }
	if given("first_token") {
		s.FirstToken = t.FirstToken
	}
	if given("per_token") {
		s.PerToken = t.PerToken
	}
	return s
}

// check asks for the size of the caches, which no trace tells.
func (s *Shadow) check() error {
	switch {
	case s == nil:
		return nil
	case s.Blocks == 0 && s.Tokens == 0:
		return api.Refuse("blocks", "no value", "how many blocks the KV cache of one worker holds (--blocks), or how many tokens (--tokens); no trace tells it")
	case s.Blocks != 0 && s.Tokens != 0:
		return api.Refuse("blocks", s.Blocks, "one of --blocks and --tokens, not both")
	}
	return nil
}
