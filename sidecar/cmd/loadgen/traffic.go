package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/traffic"
	"kvbooth/sidecar/trace"
)

// tokenize returns the tokens of a text.
func tokenize(text string) []uint {
	ids, _, _ := corpus.Encoder().Encode(text) // fails as little as corpus.Tokens
	return ids
}

// openPlan reads the configured trace; it returns nil without one. The error is a notStarted.
func openPlan(ctx context.Context, conf *config.Config, log *slog.Logger) (*workload.Plan, error) {
	t := &conf.Traffic
	if len(t.Files) == 0 {
		return nil, nil
	}
	files, err := trace.Find(t.Files...)
	if err != nil {
		return nil, notStarted{unreadable("trace", t.Files, err)}
	}
	r, err := files.Open(trace.Options{
		BlockTokens: t.TraceBlockTokens, Unit: trace.Unit(t.TraceTimeUnit), Strict: !t.TraceSkipInvalid, Tokenize: tokenize,
	})
	if err != nil {
		return nil, notStarted{fmt.Errorf("trace: %w", err)}
	}
	defer r.Close()
	selection := t.Selection(conf.Seed)
	selection.Speed = 1 // that of the plan
	replay, err := traffic.NewReplay(selection.Of(untilDone{ctx, r}), t.TraceLoop)
	if err := unusable("trace", files, r.Summary(), replay, err); err != nil {
		return nil, notStarted{err}
	}
	p := &workload.Plan{
		Source: replay, Speed: t.TraceSpeed, HitRatio: replay.HitRatio(),
		Name: fmt.Sprintf("trace %s (%d sessions, %d requests, %08x)", files, replay.Conversations(), replay.Turns(),
			replay.Sum()),
	}
	if rate := replay.Rate(); rate > 0 {
		p.Times, p.Rate = replay.At, rate
		if level, _ := p.Level(); !level.IsRate() {
			return nil, notStarted{api.Refuse("trace_speed", t.TraceSpeed,
				fmt.Sprintf("a speed at which the sessions of the trace begin at %s, here %v", api.AllowedRate, level))}
		}
	}
	return p, checkSpans(conf, p, replay.Conversations(), log)
}

// checkSpans refuses a trace that ends before a span of a sweep at one of its rates, and warns of one that ends at all:
// each span begins with its first session.
func checkSpans(conf *config.Config, p *workload.Plan, sessions int, log *slog.Logger) error {
	if conf.Sweep == nil || conf.Traffic.TraceLoop {
		return nil
	}
	r := conf.Sweep.Request
	levels := r.Levels
	if own, ok := p.Level(); ok && len(levels) == 0 && r.Kind == api.SweepTrial {
		levels = []api.Level{own}
	}
	span := 60.
	if r.Kind == api.SweepLevels {
		span = 300
	}
	api.Patch(&span, r.Seconds)
	for _, l := range levels {
		if lasts := float64(sessions) / l.Value; l.Kind == api.Rate && lasts < span {
			return notStarted{api.Refuse("trace", strings.Join(conf.Traffic.Files, ","), fmt.Sprintf(
				"one that lasts a span (--span), %.0f s; at %v, this one ends after %.0f s, unless --trace-loop begins it anew",
				span, l, lasts))}
		}
	}
	log.Warn("the trace does not begin anew (--trace-loop): a span that is longer than the trace ends without load",
		"sessions", sessions)
	return nil
}

// unusable returns why a trace has no request to run, nil if it has.
func unusable(field string, files *trace.Files, s trace.Summary, replay *traffic.Replay, err error) error {
	note := new(trace.Note)
	switch {
	case errors.As(err, &note):
		return fmt.Errorf("%s: %s: %w (--trace-skip-invalid skips such lines)", field, files, err)
	case err != nil:
		return noRequest(field, files, s, err)
	case s.Requests == 0:
		return noRequest(field, files, s, io.EOF)
	case replay.Turns() == 0:
		return nothingLeft(field, files, s)
	}
	return nil
}

// nothingLeft is the error of a selection without a request.
func nothingLeft(field string, files *trace.Files, s trace.Summary) error {
	return api.Refuse(field, files.String(),
		fmt.Sprintf("a trace of which --trace-from, --trace-to and --trace-sessions leave a request; %d were read",
			s.Requests))
}

// planLevel returns the level of the recorded times.
func (g *generator) planLevel() (level api.Level, ok bool) {
	if g.plan == nil {
		return level, false
	}
	return g.plan.Level()
}
