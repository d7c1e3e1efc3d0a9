package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/trace"
)

// traceContents is what a trace holds.
type traceContents struct {
	Program    string     `json:"program"`
	File       string     `json:"file"`
	Form       trace.Form `json:"form"`
	Lines      int64      `json:"lines"`
	Unused     int64      `json:"unused_lines"`
	Notes      []string   `json:"unused_notes,omitempty"` // reasons for the first unused lines
	Disordered int64      `json:"disordered_lines"`
	*trace.Contents
	// Missing are sentences on what a replay has to make up.
	Missing []string `json:"missing"`
}

// describeTrace prints what a trace holds. The error is a notStarted for a file that is not usable as a trace.
func describeTrace(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // nothing is measured
	}
	inJSON := slices.Contains(conf.Output, config.OutputJSON)
	paths := slices.DeleteFunc(slices.Clone(conf.Output), config.IsStandardOutput)
	outputs, err := report.OpenOutputs(conf.OutputFormats(), paths)
	if err != nil {
		return notStarted{err}
	}
	c, err := readContents(ctx, conf)
	if err != nil {
		return err
	}
	write := c.writeText
	if inJSON {
		write = func(w io.Writer) error { return writeJSON(w, c) }
	}
	if err := write(stdout); err != nil {
		return err
	}
	return outputs.Write(func(w io.Writer, _ api.ReportFormat) error { return writeJSON(w, c) })
}

func readContents(ctx context.Context, conf *config.Config) (*traceContents, error) {
	t := conf.Trace
	files, err := trace.Find(t.File...)
	if err != nil {
		return nil, notStarted{unreadable("file", t.File, err)}
	}
	r, err := files.Open(trace.Options{
		BlockTokens: t.BlockTokens, Unit: trace.Unit(t.TimeUnit), Disorder: t.Disorder,
		Strict: !conf.Traffic.TraceSkipInvalid, Tokenize: tokenize,
	})
	if err != nil {
		return nil, notStarted{fmt.Errorf("file: %w", err)}
	}
	defer r.Close()
	stream := conf.Traffic.Selection(conf.Seed).Of(untilDone{ctx, r})
	contents, err := trace.Describe(stream, trace.CacheSize{Blocks: t.CacheBlocks, Tokens: t.CacheTokens})
	s := r.Summary()
	note := new(trace.Note)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, fmt.Errorf("stopped after %d requests; nothing was printed", s.Requests)
	case errors.As(err, &note):
		return nil, notStarted{fmt.Errorf("file: %s: %w (--trace-skip-invalid skips such lines)", files, err)}
	case err != nil:
		return nil, notStarted{noRequest("file", files, s, err)}
	case s.Requests == 0:
		return nil, notStarted{noRequest("file", files, s, io.EOF)}
	case contents.Requests == 0:
		return nil, notStarted{nothingLeft("file", files, s)}
	}
	c := &traceContents{
		Program: api.Program(), File: files.String(), Form: s.Form, Lines: s.Lines, Unused: s.Unused,
		Disordered: s.Disordered, Contents: contents,
	}
	for _, n := range s.Notes {
		c.Notes = append(c.Notes, n.Error())
	}
	c.Missing = c.missing(&s)
	return c, nil
}

// untilDone is a stream that ends with a context.
type untilDone struct {
	ctx context.Context //nolint:containedctx // Next has no context of its own, and the stream ends with one call
	trace.Stream
}

// Next implements [trace.Stream].
func (u untilDone) Next() (*trace.Record, error) {
	if err := u.ctx.Err(); err != nil {
		return nil, err
	}
	return u.Stream.Next()
}

// effects say what a replay has to make up for each value that a trace lacks.
var effects = map[string]string{
	trace.LacksTime:   "a replay needs a rate or a number of conversations of its own.",
	trace.LacksDelay:  "a replay needs a think time of its own.",
	trace.LacksBlocks: "there are no texts either, so prompts of a replay share nothing with each other.",
	trace.LacksInput:  "prompts of a replay have another length.",
	trace.LacksOutput: "the target decides on the length of answers.",
}

// missing returns sentences on what the trace lacks.
func (c *traceContents) missing(s *trace.Summary) (all []string) {
	for _, m := range s.Missing {
		number := "all requests"
		if m.Requests < s.Requests {
			number = fmt.Sprintf("%s of %s requests", api.Count(m.Requests), api.Count(s.Requests))
		}
		effect := effects[m.Field]
		if effect == "" {
			effect = "only comparisons with the recorded run need it."
		}
		all = append(all, fmt.Sprintf("%s (%s): %s", m.Field, number, effect))
	}
	if c.Sessions == 0 {
		all = append(all, "sessions (all requests): each request is a conversation of one turn.")
	}
	if n := len(c.Models); n > 1 {
		all = append(all, fmt.Sprintf("models: the trace names %d, but a replay sends all requests to the target's.", n))
	}
	if c.Simultaneous {
		all = append(all, "starts of sessions: all sessions begin at the same time; the trace has times within them.")
	}
	return all
}

const unknown = "unknown"

func (c *traceContents) writeText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", values...) }
	row("file", "%s", c.File)
	row("form", "%s", c.Form)
	row("requests", "%s in %s lines", api.Count(c.Requests), api.Count(c.Lines))
	if c.Sessions == 0 {
		row("sessions", "none in the trace")
	} else {
		row("sessions", "%s", api.Count(c.Sessions))
	}
	row("turns per session", "%s", described(c.Turns))
	row("duration", "%s", known(c.Seconds, "%.1f s"))
	row("rate", "%s", known(c.Rate, "%.3g requests/s"))
	if c.Rate != nil && c.Timed < c.Requests {
		row("", "of the %s requests with times of their own", api.Count(c.Timed))
	}
	row("burstiness", "%s", known(c.GapCV, "coefficient of variation of the gaps %.2f (Poisson: 1)"))
	if c.Dispersion != nil {
		row("", "index of dispersion %.2f in windows of %.3g s (Poisson: 1)", *c.Dispersion, *c.DispersionWindow)
	}
	row("tokens in", "%s", described(c.Input))
	row("tokens out", "%s", described(c.Output))
	if c.BlockTokens == nil {
		row("block size", unknown)
	} else {
		row("block size", "%d tokens", *c.BlockTokens)
	}
	if h := c.Hits; h == nil {
		row("hit rate", unknown)
	} else {
		row("hit rate", "%.1f %% with an unlimited cache, which needs %s blocks (%s tokens)", 100*h.Rate,
			api.Count(h.Distinct), api.Count(int64(h.Distinct)*int64(*c.BlockTokens)))
	}
	if h := c.LimitedHits; h != nil {
		row("", "%.1f %% with one cache of %s blocks (%s tokens)", 100*h.Rate, api.Count(h.Blocks),
			api.Count(int64(h.Blocks)*int64(*c.BlockTokens)))
	}
	for i, m := range c.Models[:min(len(c.Models), 5)] {
		name := ""
		if i == 0 {
			name = "models"
		}
		row(name, "%s: %s requests", m.Model, api.Count(m.Requests))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return c.writeNotes(to)
}

// writeNotes writes what the trace lacks, and the lines that were not used.
func (c *traceContents) writeNotes(to io.Writer) error {
	var b strings.Builder
	if c.Form == trace.ShareGPT || c.Form == trace.Messages || c.Form == trace.Prompts {
		b.WriteString("\nTokens and blocks are those of a tokenizer of this program, not of the target. Conversations " +
			"count one after another.\n")
	}
	if len(c.Missing) > 0 {
		b.WriteString("\nMissing for a replay:\n")
	}
	for _, m := range c.Missing {
		b.WriteString("- " + m + "\n")
	}
	if c.Disordered > 0 {
		fmt.Fprintf(&b, "\n%s lines were out of order and were sorted into place.\n", api.Count(c.Disordered))
	}
	if c.Unused > 0 {
		fmt.Fprintf(&b, "\n%s lines were skipped. The first ones:\n%s\n", api.Count(c.Unused), strings.Join(c.Notes, "\n"))
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func known(v *float64, format string) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf(format, *v)
}

func described(d *trace.Distribution) string {
	if d == nil {
		return unknown
	}
	return fmt.Sprintf("mean %s, p50 %s, p95 %s, max %s", api.Number(d.Mean, 1), api.Count(d.P50),
		api.Count(d.P95), api.Count(d.Max))
}
