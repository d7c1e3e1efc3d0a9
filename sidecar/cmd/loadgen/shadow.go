package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/traffic"
	"kvbooth/sidecar/trace"
)

// shadowTrace reports what other routers would have found in the caches for a trace's requests. The error is a
// notStarted for a file without requests.
func shadowTrace(ctx context.Context, conf *config.Config, stdout, stderr io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // nothing is measured, and the heap is large
	}
	outputs, err := report.OpenOutputs(conf.OutputFormats(), conf.Output)
	if err != nil {
		return notStarted{err}
	}
	s := &shadowing{conf: conf.Shadow, out: &terminal{w: stderr}}
	if conf.Planned() {
		if err := s.planTraffic(ctx, conf); err != nil {
			return err
		}
	}
	if f, ok := stderr.(*os.File); ok {
		s.live = term.IsTerminal(int(f.Fd()))
	}
	r, err := s.table(ctx)
	if err != nil {
		return err
	}
	format := api.ReportFormat(s.conf.Format)
	if format == api.ReportMarkdown { // the finished part, before the slow curves
		d := r.Document()
		if err := d.WriteMarkdown(stdout); err != nil {
			return err
		}
	}
	if err := s.curves(ctx, r); err != nil {
		return err
	}
	if format == api.ReportMarkdown {
		err = report.WriteSections(stdout, r.Curves())
	} else {
		err = report.Write(stdout, r, format)
	}
	if err != nil {
		return err
	}
	return outputs.Write(func(w io.Writer, f api.ReportFormat) error { return report.Write(w, r, f) })
}

// shadowing is one run of the command.
type shadowing struct {
	conf  *config.Shadow
	out   *terminal
	live  bool // out is a terminal
	files *trace.Files
	plan  func() *traffic.Plan // nil: the traffic is that of files
	load  string               // describes the load of the plan

	options  shadow.Options // without the policies
	own      bool           // whether the workers are those of the trace
	named    int            // workers in the trace
	merged   map[uint64]uint64
	inferred bool // whether the reuse of answers is inferred
	summary  trace.Summary
	progress progress
}

// progress is the progress of a reading.
type progress struct {
	what     string
	read     int64
	reported time.Time
}

// table reads the trace for all policies. Properties of the whole trace, its workers and the inferred settings of the
// engines, are read first where the files can be read twice.
func (s *shadowing) table(ctx context.Context) (*report.Shadow, error) {
	var err error
	if s.plan == nil {
		if s.files, err = trace.Find(s.conf.File...); err != nil {
			return nil, notStarted{unreadable("file", s.conf.File, err)}
		}
	}
	source, err := s.open("reading")
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	if source.first, err = source.shadowSource.Next(); err != nil {
		return nil, notStarted{noRequest("file", s.files, source.Summary(), err)}
	}
	if err := s.settings(source.first); err != nil {
		return nil, notStarted{err}
	}
	if s.own && s.files.Regular {
		if err := s.learn(ctx, source); err != nil {
			return nil, err
		}
		_ = source.Close()
		if source, err = s.open("reading"); err != nil {
			return nil, err
		}
	}
	o := s.options
	o.Policies = shadow.DefaultPolicies()
	figures, err := s.replay(ctx, source, []shadow.Options{o})
	if err != nil {
		return nil, err
	}
	s.summary = source.Summary()
	if len(s.options.Workers) == 0 { // the files cannot be read twice
		s.named = figures[0].Workers
	}
	r := report.NewShadow(api.Program(), s.files.String(), s.summary, figures[0], o.BlockTokens)
	r.Assumptions = s.assumptions(&figures[0])
	s.settle(&figures[0])
	return r, nil
}

// learn reads the trace for the workers that it names, and for the engines' settings that are inferred from measured
// hits, so that all figures are about the same workers and all requests.
func (s *shadowing) learn(ctx context.Context, source *requests) error {
	source.spans = map[uint64]*presence{}
	figures, err := s.replay(ctx, source, []shadow.Options{s.options})
	if err != nil {
		return err
	}
	s.merge(source.spans)
	s.settle(&figures[0])
	return nil
}

// settle keeps the inferred settings of the engines.
func (s *shadowing) settle(f *shadow.Figures) {
	s.options.Guess.Late = f.Late
	if s.options.Answers == shadow.AnswersInferred && s.files.Regular {
		s.inferred, s.options.Answers = f.AnswersSure, shadow.AnswersForgotten
		if f.AnswersFound {
			s.options.Answers = shadow.AnswersFound
		}
	}
}

// presence is the time from the first arrival at a worker to the last end there.
type presence struct{ from, to time.Duration }

// merge joins workers that never overlap in time: after a restart, a worker has another id.
func (s *shadowing) merge(spans map[uint64]*presence) {
	ids := slices.SortedFunc(maps.Keys(spans), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(spans[a].from, spans[b].from), cmp.Compare(a, b))
	})
	s.named, s.merged = len(ids), map[uint64]uint64{}
	var ends []time.Duration // of the joined workers
	for _, id := range ids {
		at := slices.IndexFunc(ends, func(end time.Duration) bool { return end < spans[id].from })
		if at < 0 {
			at = len(ends)
			ends = append(ends, 0)
		}
		ends[at] = spans[id].to
		s.merged[id] = uint64(at) + 1
	}
	s.options.Workers = shadow.SyntheticWorkers(len(ends))
}

// open opens the files at their beginning.
func (s *shadowing) open(what string) (*requests, error) {
	s.progress = progress{what: what, reported: time.Now()}
	if s.plan != nil {
		return &requests{shadowSource: &planned{Plan: s.plan(), summary: trace.Summary{Form: "planned"}}, of: s}, nil
	}
	r, err := s.files.Open(trace.Options{
		BlockTokens: s.conf.BlockTokens, Unit: trace.Unit(s.conf.TimeUnit), Disorder: s.conf.Disorder,
		Progress: func(n int) { s.progress.read += int64(n) },
	})
	if err != nil {
		return nil, notStarted{fmt.Errorf("file: %w", err)}
	}
	return &requests{shadowSource: r, of: s}, nil
}

// unreadable returns the error for files that cannot be read.
func unreadable(field string, files []string, err error) error {
	return api.Refuse(field, strings.Join(files, ", "), fmt.Sprintf("readable files (%v)", err))
}

// noRequest returns why a trace has no request.
func noRequest(field string, files *trace.Files, summary trace.Summary, err error) error {
	if bad := new(api.FieldError); errors.As(err, &bad) { // of an option that the trace requires
		name := bad.Field
		if field == "trace" && (name == "block_tokens" || name == "time_unit") {
			name = "trace_" + name
		}
		allowed := fmt.Sprintf("%s (--%s)", bad.Allowed, strings.ReplaceAll(name, "_", "-"))
		return &api.FieldError{Field: name, Value: bad.Value, Allowed: allowed}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %s: %w", field, files, err)
	}
	all := []error{api.Refuse(field, files.String(),
		fmt.Sprintf("a trace with requests; none of its %d lines is usable", summary.Lines))}
	for _, n := range summary.Notes {
		all = append(all, &n)
	}
	return errors.Join(all...)
}

// shadowNeeds are the values without which a request cannot be replayed.
var shadowNeeds = []string{trace.LacksTime, trace.LacksBlocks, trace.LacksInput, trace.LacksOutput}

// settings returns the cluster's settings, from the flags and the first request.
func (s *shadowing) settings(first *trace.Record) error {
	if err := first.Require("file", shadowNeeds...); err != nil {
		return err
	}
	o := shadow.DefaultOptions(first.BlockTokens)
	o.Policies = nil
	s.own = s.conf.Workers == 0
	switch {
	case !s.own:
		o.Workers = shadow.SyntheticWorkers(s.conf.Workers)
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
		o.Answers = shadow.AnswersFound // there are no measured hits to infer it from
	}
	o.OpeningTokens = cmp.Or(s.conf.HashedTokens, o.OpeningTokens)
	s.options = o
	return o.Validate()
}

// assumptions returns sentences about properties that the trace lacks.
func (s *shadowing) assumptions(f *shadow.Figures) []string {
	var all []string
	if s.load != "" {
		all = append(all, s.load)
	}
	assumed := fmt.Sprintf("first token after %s and %s per output token (--first-token, --per-token). The spread of "+
		"requests depends on this.", s.conf.FirstToken, s.conf.PerToken)
	switch untimed := s.summary.Untimed(); untimed {
	case 0:
		all = append(all, "Under every policy, the times to first token and to the end of the answer are those of the trace.")
	case s.summary.Requests:
		all = append(all, "Assumed, since the trace has no times: "+assumed)
	default:
		all = append(all, fmt.Sprintf("Assumed for %d requests without times: %s", untimed, assumed))
	}
	if lacking := s.summary.Lacking(); lacking != "" {
		all = append(all, lacking)
	}
	if n := len(s.options.Workers); s.own && n > 0 && n < s.named {
		all = append(all, fmt.Sprintf("The trace names %d workers. Those that never overlap in time, as before and "+
			"after a restart, count as one worker that keeps its cache: --workers sets another number than "+
			"%d.", s.named, n))
	} else if s.own && n == 0 {
		all = append(all, "The workers are those that the trace names: in a file instead of a pipe, those that never "+
			"overlap in time would count as one.")
	}
	found := "are found again by later turns"
	if !f.AnswersFound {
		found = "are not found again"
	}
	switch {
	case s.inferred || s.options.Answers == shadow.AnswersInferred && f.AnswersSure:
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
		s.conversations(),
		fmt.Sprintf("opening_hash uses the first %d tokens of a prompt.", s.options.OpeningTokens),
		"Only hit rates and load balance are estimated, not latency: with different latencies, requests would have "+
			"arrived at different times.",
	)
}

// conversations describes the source of the conversations.
func (s *shadowing) conversations() string {
	if s.summary.Sessions > 0 {
		return fmt.Sprintf("Conversations are the trace's %d sessions. A turn with a delay comes that long after the "+
			"end of the turn before.", s.summary.Sessions)
	}
	return "Conversations are inferred: a prompt that continues an earlier one is its next turn."
}

// curvePolicies are the policies with curves.
var curvePolicies = []shadow.Kind{shadow.RoundRobin, shadow.LeastLoaded, shadow.KV, shadow.Best}

// curves reads the trace again, for other capacities and numbers of workers.
func (s *shadowing) curves(ctx context.Context, r *report.Shadow) error {
	if s.conf.NoCurves || !s.files.Regular {
		return nil
	}
	o := s.options
	o.Policies = slices.DeleteFunc(shadow.DefaultPolicies(), func(p shadow.Policy) bool {
		return p.Kind == shadow.KV && p.Name != string(shadow.KV) || !slices.Contains(curvePolicies, p.Kind)
	})
	var points []shadow.Options
	point := func(workers, blocks int) {
		p := o
		p.Workers, p.Capacity = shadow.SyntheticWorkers(max(workers, 1)), max(blocks, 1)
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
	source, err := s.open("curves")
	if err != nil {
		return err
	}
	defer source.Close()
	source.strange = true
	figures, err := s.replay(ctx, source, points)
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

// replay replays the trace through shadows and shows the progress.
func (s *shadowing) replay(ctx context.Context, source shadow.Source,
	options []shadow.Options,
) ([]shadow.Figures, error) {
	n := int64(0)
	figures, err := shadow.Replay(ctx, source, s.service(), options,
		func(requests int64) { n = requests; s.showProgress(requests) })
	s.out.end()
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("stopped after %d requests; no report was written", n)
	}
	if err != nil {
		return nil, fmt.Errorf("file: %s: %w", s.files, err)
	}
	return figures, nil
}

// tellEvery is how often progress is reported where it stays in the log.
const tellEvery = 10 * time.Second

// showProgress prints the progress of the reading: in the last line of a terminal, else in a line at intervals.
func (s *shadowing) showProgress(requests int64) {
	p := &s.progress
	line := fmt.Sprintf("%s: %d requests", p.what, requests)
	if s.files.Size > 0 && s.files.Regular {
		line += fmt.Sprintf(", %.0f %%", 100*float64(p.read)/float64(s.files.Size))
	}
	switch {
	case s.live:
		s.out.show(line)
	case time.Since(p.reported) >= tellEvery:
		p.reported = time.Now()
		fmt.Fprintln(s.out, line)
	}
}

// shadowSource is a trace, or a plan.
type shadowSource interface {
	trace.Stream
	Summary() trace.Summary
	Close() error
}

// planned is the traffic that a run with the same flags would send.
type planned struct {
	*traffic.Plan
	summary trace.Summary
}

// planTraffic plans the traffic of the configuration. The error is a notStarted.
func (s *shadowing) planTraffic(ctx context.Context, conf *config.Config) error {
	recorded, _, err := openPlan(ctx, &conf.Traffic, conf.Seed)
	if err != nil {
		return err
	}
	settings, length := settingsOf(conf, recorded), cmp.Or(conf.Duration, 10*time.Minute)
	s.plan, err = workload.Options{Seed: conf.Seed, Plan: recorded}.Planned(settings, traffic.PlanOptions{
		BlockTokens: cmp.Or(s.conf.BlockTokens, trace.TextBlockTokens), Until: length,
		FirstToken: s.conf.FirstToken, PerToken: s.conf.PerToken,
	})
	if err != nil {
		return notStarted{err}
	}
	name := "shape " + settings.TrafficShape.String()
	if recorded != nil {
		name = recorded.Name
	}
	s.files = &trace.Files{Names: []string{name}, Regular: true}
	s.load = fmt.Sprintf("Planned, not recorded: %s, at most %s.", settings.Ramp.InWords(settings.Level), length)
	return nil
}

// Next implements [trace.Stream].
func (p *planned) Next() (*trace.Record, error) {
	r, err := p.Plan.Next()
	if err == nil {
		p.summary.Requests, p.summary.Arrivals = p.summary.Requests+1, r.At
		if r.Turn == 1 {
			p.summary.Sessions++
		}
	}
	return r, err
}

// Summary returns what has been planned so far.
func (p *planned) Summary() trace.Summary { return p.summary }

// Close does nothing.
func (p *planned) Close() error { return nil }

// requests are the requests of a trace.
type requests struct {
	shadowSource
	of      *shadowing
	first   *trace.Record        // already read
	strange bool                 // whether the simulated workers differ from the real ones
	spans   map[uint64]*presence // of the workers, if not nil
}

// Next implements [shadow.Source].
func (r *requests) Next() (*trace.Record, error) {
	record, err := r.first, error(nil)
	if r.first = nil; record == nil {
		record, err = r.shadowSource.Next()
	}
	if err == nil {
		err = record.Require("file", shadowNeeds...)
	}
	for turn := record; turn != nil; turn = turn.Next {
		switch {
		case r.strange || !r.of.own:
			turn.Worker = 0
		case r.of.merged != nil:
			turn.Worker = r.of.merged[turn.Worker]
		case r.spans != nil && turn.Worker != 0:
			_, ended := r.of.service().Times(turn)
			if s := r.spans[turn.Worker]; s != nil {
				s.to = max(s.to, turn.At+ended)
			} else {
				r.spans[turn.Worker] = &presence{turn.At, turn.At + ended}
			}
		}
	}
	return record, err
}

func (s *shadowing) service() shadow.Service {
	return shadow.Service{FirstToken: s.conf.FirstToken, PerToken: s.conf.PerToken}
}
