package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/cmd/loadgen/internal/report"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/trace"
)

// shadowTrace says what other routers would have found in the caches on a trace's requests. The
// error is a notStarted for a file that has none.
func shadowTrace(ctx context.Context, conf *config.Config, stdout, stderr io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // nothing is measured meanwhile, and there is more to collect
	}
	outputs, bad, err := report.OpenOutputs(conf.Output)
	if err != nil {
		return notStarted{api.Refuse("output", bad, fmt.Sprintf("%s that can be written; %v", report.AllowedShadow, err))}
	}
	defer outputs.Close()
	s := &shadowing{conf: conf.Shadow, out: &terminal{w: stderr}}
	if f, ok := stderr.(*os.File); ok {
		s.live = term.IsTerminal(int(f.Fd()))
	}
	r, err := s.table(ctx)
	if err != nil {
		return err
	}
	format := cmp.Or(s.conf.StandardOutput, "md")
	if format == "md" { // what is known already, while the curves take their time
		if err := r.WriteTable(stdout); err != nil {
			return err
		}
	}
	if err := s.curves(ctx, r); err != nil {
		return err
	}
	write := r.WriteCurves
	if format != "md" {
		write = func(w io.Writer) error { return r.Write(w, format) }
	}
	if err := write(stdout); err != nil {
		return err
	}
	return outputs.WriteShadow(r)
}

// shadowing is one call of the command.
type shadowing struct {
	conf *config.Shadow
	out  *terminal
	live bool // out is a terminal

	options  shadow.Options // without the policies
	own      bool           // the workers are those of the trace
	summary  trace.Summary
	timed    bool
	regular  bool
	progress progress
}

// progress is how far a reading is.
type progress struct {
	what string
	size int64
	read int64
	told time.Time
}

// table reads the trace once, for all policies.
func (s *shadowing) table(ctx context.Context) (*report.Shadow, error) {
	f, err := os.Open(filepath.Clean(s.conf.File))
	if err != nil {
		return nil, notStarted{api.Refuse("file", s.conf.File, fmt.Sprintf("a readable file (%v)", errors.Unwrap(err)))}
	}
	defer f.Close()
	source, err := s.open(f, "reading")
	if err != nil {
		return nil, notStarted{fmt.Errorf("file: %s: %w", s.conf.File, err)}
	}
	first, err := source.Next()
	if err != nil {
		return nil, notStarted{s.nothing(source.Summary(), err)}
	}
	if err := s.settings(first); err != nil {
		return nil, notStarted{err}
	}
	o := s.options
	o.Policies = shadow.DefaultPolicies()
	figures, err := s.replay(ctx, &requests{Reader: source, first: first, strange: !s.own}, []shadow.Options{o})
	if err != nil {
		return nil, err
	}
	s.summary = source.Summary()
	r := report.NewShadow(api.ProgramVersion(), s.conf.File, s.summary, figures[0], o.BlockTokens)
	r.Assumptions = s.assumptions(&figures[0])
	if s.own {
		s.options.Workers = shadow.MadeUp(figures[0].Workers)
	}
	if s.options.Answers == shadow.AnswersInferred {
		s.options.Answers = shadow.AnswersForgotten
		if figures[0].AnswersFound {
			s.options.Answers = shadow.AnswersFound
		}
	}
	return r, nil
}

// open reads a file from its beginning.
func (s *shadowing) open(f *os.File, what string) (*trace.Reader, error) {
	s.progress = progress{what: what, told: time.Now()}
	if info, err := f.Stat(); err == nil {
		s.regular = info.Mode().IsRegular()
		s.progress.size = info.Size()
	}
	return trace.NewReader(&counted{f, &s.progress.read}, trace.Options{BlockTokens: s.conf.BlockTokens, Disorder: s.conf.Disorder})
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *int64
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += int64(n)
	return n, err
}

// nothing says why a trace has no request.
func (s *shadowing) nothing(summary trace.Summary, err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("file: %s: %w", s.conf.File, err)
	}
	all := []error{api.Refuse("file", s.conf.File, fmt.Sprintf("a trace with requests; none of its %d lines is usable", summary.Lines))}
	for _, n := range summary.Notes {
		all = append(all, &n)
	}
	return errors.Join(all...)
}

// settings are what the flags and the first request say of the cluster.
func (s *shadowing) settings(first *trace.Record) error {
	o := shadow.DefaultOptions(first.BlockTokens)
	s.timed = first.Timed
	s.own = s.conf.Workers == 0
	switch {
	case !s.own:
		o.Workers = shadow.MadeUp(s.conf.Workers)
	case first.Worker == 0:
		return api.Require("workers", "the number of workers (--workers), since the trace does not include it")
	}
	o.Capacity = s.conf.Blocks
	if o.Capacity == 0 {
		o.Capacity = s.conf.Tokens / o.BlockTokens
	}
	if o.Capacity == 0 {
		return api.Refuse("tokens", s.conf.Tokens, fmt.Sprintf("at least one block of %d tokens", o.BlockTokens))
	}
	o.Answers = shadow.Answers(cmp.Or(s.conf.Answers, string(shadow.AnswersInferred)))
	if o.Answers == shadow.AnswersInferred && (!s.own || first.Cached < 0) {
		o.Answers = shadow.AnswersFound // there is nothing to infer it from
	}
	o.OpeningTokens = cmp.Or(s.conf.HashedTokens, o.OpeningTokens)
	s.options = o
	return o.Validate()
}

// assumptions are the sentences about what the trace does not say.
func (s *shadowing) assumptions(f *shadow.Figures) []string {
	var all []string
	if s.timed {
		all = append(all, "Under every policy, the times to first token and to the end of the answer are those of the trace.")
	} else {
		all = append(all, fmt.Sprintf("Assumed, since the trace has no times: first token after %s and %s per output token (--first-token, --per-token). The spread of requests depends on this.", s.conf.FirstToken, s.conf.PerToken))
	}
	found := "are found again by later turns"
	if !f.AnswersFound {
		found = "are not found again"
	}
	switch {
	case s.options.Answers == shadow.AnswersInferred && f.AnswersSure:
		all = append(all, fmt.Sprintf("Blocks of answers %s: inferred from the hits in the trace.", found))
	case s.conf.Answers == "" || !f.AnswersSure:
		all = append(all, fmt.Sprintf("Assumed: blocks of answers %s (--answers).", found))
	default:
		all = append(all, fmt.Sprintf("Blocks of answers %s (set by --answers).", found))
	}
	if f.Since > 0 {
		all = append(all, fmt.Sprintf("Figures cover the time from %.0f s on, when this was known.", f.Since.Seconds()))
	}
	return append(all,
		"Conversations are inferred: a prompt that continues an earlier one is its next turn.",
		fmt.Sprintf("opening_hash uses the first %d tokens of a prompt.", s.options.OpeningTokens),
		"Only hit rates and load balance are estimated, not latency: with different latencies, requests would have arrived at different times.",
	)
}

// curvePolicies are those that curves are drawn of.
var curvePolicies = []shadow.Kind{shadow.RoundRobin, shadow.LeastLoaded, shadow.KV, shadow.Best}

// curves reads the trace once more, for other capacities and numbers of workers.
func (s *shadowing) curves(ctx context.Context, r *report.Shadow) error {
	if s.conf.WithoutCurves || !s.regular {
		return nil
	}
	o := s.options
	o.Policies = slices.DeleteFunc(shadow.DefaultPolicies(), func(p shadow.Policy) bool {
		return p.Kind == shadow.KV && p.Name != string(shadow.KV) || !slices.Contains(curvePolicies, p.Kind)
	})
	var points []shadow.Options
	point := func(workers, blocks int) {
		p := o
		p.Workers, p.Capacity = shadow.MadeUp(max(workers, 1)), max(blocks, 1)
		points = append(points, p)
	}
	w, c := len(o.Workers), o.Capacity
	capacities := []int{c / 8, c / 4, c / 2, c, 2 * c, 4 * c}
	for _, blocks := range capacities {
		point(w, blocks)
	}
	workers := slices.Compact([]int{max(w/4, 1), max(w/2, 1), w, 2 * w, 4 * w})
	for _, n := range workers {
		point(n, c)
	}
	f, err := os.Open(filepath.Clean(s.conf.File))
	if err != nil {
		return err
	}
	defer f.Close()
	source, err := s.open(f, "curves")
	if err != nil {
		return err
	}
	figures, err := s.replay(ctx, &requests{Reader: source, strange: true}, points)
	if err != nil {
		return err
	}
	for i, f := range figures {
		if at := report.NewShadowPoint(points[i], f); i < len(capacities) {
			r.ByCapacity = append(r.ByCapacity, at)
		} else {
			r.ByWorkers = append(r.ByWorkers, at)
		}
	}
	return nil
}

// replay tells shadows of the trace, and its reader how far that is.
func (s *shadowing) replay(ctx context.Context, source shadow.Source, options []shadow.Options) ([]shadow.Figures, error) {
	service := shadow.Service{FirstToken: s.conf.FirstToken, PerToken: s.conf.PerToken}
	n := int64(0)
	figures, err := shadow.Replay(ctx, source, service, options, func(requests int64) { n = requests; s.showProgress(requests) })
	s.out.end()
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("stopped after %d requests; no report was written", n)
	}
	if err != nil {
		return nil, fmt.Errorf("file: %s: %w", s.conf.File, err)
	}
	return figures, nil
}

// tellEvery is how often progress is told where it stays in the log.
const tellEvery = 10 * time.Second

// showProgress says how far the reading is: in the last line of a terminal, else in a line now and then.
func (s *shadowing) showProgress(requests int64) {
	p := &s.progress
	line := fmt.Sprintf("%s: %d requests", p.what, requests)
	if p.size > 0 && s.regular {
		line += fmt.Sprintf(", %.0f %%", 100*float64(p.read)/float64(p.size))
	}
	switch {
	case s.live:
		s.out.show(line)
	case time.Since(p.told) >= tellEvery:
		p.told = time.Now()
		fmt.Fprintln(s.out, line)
	}
}

// requests are those of a trace.
type requests struct {
	*trace.Reader
	first   *trace.Record // that has been read already
	strange bool          // the real workers are not those that are asked about
}

// Next implements [shadow.Source].
func (r *requests) Next() (*trace.Record, error) {
	record, err := r.first, error(nil)
	if r.first = nil; record == nil {
		record, err = r.Reader.Next()
	}
	if record != nil && r.strange {
		record.Worker = 0
	}
	return record, err
}
