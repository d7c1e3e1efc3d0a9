package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/openloop"
	"kvbooth/sidecar/trace"
)

// replayed holds the results of a trace's requests, by mode.
type replayed struct {
	Simulated bool          `json:"simulated"` // always true, because nothing was measured
	Heading   string        `json:"heading"`
	Trace     string        `json:"trace"`
	Form      trace.Form    `json:"form"`
	Arrivals  float64       `json:"arrival_seconds"` // recorded time from the first request to the last one
	Sessions  int64         `json:"sessions,omitempty"`
	Lacking   string        `json:"lacking,omitempty"` // a sentence that names missing fields of the trace
	Unused    int64         `json:"unused_lines"`
	Notes     []string      `json:"unused_notes,omitempty"`
	Cut       bool          `json:"cut"`
	Speed     float64       `json:"speed"`
	Modes     []replayedRow `json:"modes"`
}

type replayedRow struct {
	Mode api.Mode `json:"mode"`
	openloop.Figures
	// The values are nil if all answers have one token.
	TPOT50 *float64 `json:"tpot_p50_seconds"`
	TPOT95 *float64 `json:"tpot_p95_seconds"`
}

// checkTrace returns an error for flags whose values the trace determines.
func (c *simulateCmd) checkTrace() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"levels", len(c.Levels) > 0},
		{"arrivals", c.Arrivals != nil},
		{"burstiness", c.Burstiness != nil},
		{"max_inflight", c.MaxInflight != nil},
		{"seeds", c.Seeds != nil && *c.Seeds != 1},
		{"block_size", c.BlockSize != nil},
		{"openings", c.Openings != nil},
		{"opening_tokens", c.OpeningTokens != nil},
		{"turns_min", c.TurnsMin != nil},
		{"turns_max", c.TurnsMax != nil},
		{"output_tokens_mean", c.OutputTokensMean != nil},
		{"output_tokens_cv", c.OutputTokensCV != nil},
		{"max_tokens", c.MaxTokens != nil},
		{"question_tokens_mean", c.QuestionTokensMean != nil},
		{"question_tokens_cv", c.QuestionTokensCV != nil},
		{"think_time", c.ThinkTime != nil},
		{"start_rate", c.StartRate != nil},
		{"baseline", len(c.Baseline) > 0},
		{"compare", c.Compare != ""},
		{"explain", c.Explain},
		{"against", c.Against != ""},
	} {
		if f.given {
			return api.Refuse(f.name, "a value",
				"leave it out with --trace, which determines the requests and their times")
		}
	}
	if c.TraceSpeed == 0 {
		return api.Refuse("trace_speed", c.TraceSpeed, "0.001 to 1000")
	}
	return trace.Selection{Speed: c.TraceSpeed}.Check()
}

// simulateNeeds are the values without which a request cannot be simulated.
var simulateNeeds = []string{trace.LacksTime, trace.LacksBlocks, trace.LacksInput, trace.LacksOutput}

// replay replays a trace on the simulated cluster, once for each mode. It writes the output files and prints a table,
// but only after all modes have succeeded.
func (c *simulateCmd) replay(ctx context.Context, out *screen) error {
	if err := c.checkTrace(); err != nil {
		return err
	}
	files, err := trace.Find(c.Trace...)
	if err != nil {
		return api.Refuse("trace", strings.Join(c.Trace, ", "), fmt.Sprintf("readable files (%v)", err))
	}
	if c.firstRequest, err = c.readFirst(files); err != nil {
		return err
	}
	p, err := c.plan()
	if err != nil {
		return err
	}
	o, err := c.clusterOfTrace(p)
	if err != nil {
		return err
	}
	rows, summary, err := c.replayModes(ctx, out, o, files, p.grid.Modes)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing was written")
	case err != nil:
		return err
	case rows[0].Requests == 0:
		allowed := fmt.Sprintf("a trace with at least one request that fits into a worker's cache of %d tokens",
			o.Profile.KV.Tokens())
		return api.Refuse("trace", files.String(), allowed)
	}
	r := replayed{
		Simulated: true, Heading: c.heading(o, files), Trace: files.String(), Form: summary.Form,
		Arrivals: summary.Arrivals.Seconds(), Sessions: summary.Sessions, Lacking: summary.Lacking(),
		Unused: summary.Unused, Cut: summary.Cut, Speed: c.TraceSpeed, Modes: rows,
	}
	for _, n := range summary.Notes {
		r.Notes = append(r.Notes, n.Error())
	}
	return c.report(&r, out.stdout)
}

// replayModes replays the trace in each mode concurrently, with a progress bar. The summary of the trace is the same
// for all modes.
func (c *simulateCmd) replayModes(
	ctx context.Context, out *screen, o sim.Options, files *trace.Files, modes []api.Mode,
) ([]replayedRow, trace.Summary, error) {
	size := files.Size
	bar := out.bar(1000, "simulating")
	var read atomic.Int64
	rows, summaries := make([]replayedRow, len(modes)), make([]trace.Summary, len(modes))
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(c.Jobs)
	for i, mode := range modes {
		g.Go(func() (err error) {
			o := o
			o.Mode = mode
			rows[i].Mode = mode
			f := &rows[i].Figures
			total := size * int64(len(rows))
			*f, summaries[i], err = c.replayMode(working, o, files, func(n int) {
				if size > 0 {
					_ = bar.Set(int(1000 * min(read.Add(int64(n)), total) / total))
				}
			})
			if !math.IsNaN(f.TPOT50) {
				rows[i].TPOT50, rows[i].TPOT95 = &f.TPOT50, &f.TPOT95
			}
			return err
		})
	}
	err := g.Wait()
	_ = bar.Clear()
	return rows, summaries[0], err
}

// report writes all files and prints the table.
func (c *simulateCmd) report(r *replayed, stdout io.Writer) error {
	for _, path := range c.Output {
		write := r.writeCSV
		if filepath.Ext(path) == ".json" {
			write = r.writeJSON
		}
		if err := writeFile(path, write); err != nil {
			return err
		}
	}
	return r.show(stdout)
}

// openTrace opens the trace at its beginning. progress is called with the number of bytes read.
func (c *simulateCmd) openTrace(files *trace.Files, progress func(int)) (*trace.Reader, error) {
	options := trace.Options{
		BlockTokens: c.TraceBlockSize, Unit: c.TraceTimeUnit, Progress: progress,
		FillTokens: cmp.Or(c.TraceBlockSize, trace.TextBlockTokens),
	}
	r, err := files.Open(options)
	if err != nil && !errors.As(err, new(*api.FieldError)) {
		err = api.Refuse("trace", strings.Join(c.Trace, ", "), fmt.Sprintf("a trace, plain or gzipped (%v)", err))
	}
	return r, err
}

// readFirst returns the first request of a trace.
func (c *simulateCmd) readFirst(files *trace.Files) (*trace.Record, error) {
	r, err := c.openTrace(files, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	first, err := r.Next()
	if err == nil {
		return first, first.Require("trace", simulateNeeds...)
	}
	if errors.As(err, new(*api.FieldError)) {
		return nil, err
	}
	allowed := "a trace with requests"
	for _, n := range r.Summary().Notes {
		allowed += "; " + n.Error()
	}
	return nil, api.Refuse("trace", files.String(), allowed)
}

// clusterOfTrace returns the options of the cluster of the flags, with the trace's block size.
func (c *simulateCmd) clusterOfTrace(p plan) (sim.Options, error) {
	o := p.grid.Cluster
	o.Profile.KV.Blocks = or(c.KVBlocks, o.Profile.KV.Tokens()/c.firstRequest.BlockTokens)
	o.Profile.KV.BlockTokens = c.firstRequest.BlockTokens
	if c.FirstSeed != nil {
		o.Seed = uint64(*c.FirstSeed)
	}
	_, err := sim.New(o)
	return o, err
}

func (c *simulateCmd) replayMode(
	ctx context.Context, o sim.Options, files *trace.Files, read func(int),
) (openloop.Figures, trace.Summary, error) {
	r, err := c.openTrace(files, read)
	if err != nil {
		return openloop.Figures{}, trace.Summary{}, err
	}
	defer r.Close()
	requests := trace.Selection{Speed: c.TraceSpeed}.Of(r)
	figures, err := openloop.Run(ctx, o, func() (openloop.Arrival, error) {
		q, err := requests.Next()
		if err == nil {
			err = q.Require("trace", simulateNeeds...)
		}
		if err != nil {
			return openloop.Arrival{}, err
		}
		return *arrival(q), nil
	})
	return figures, r.Summary(), err
}

// arrival converts a request of the trace and the turns that follow it.
func arrival(q *trace.Record) *openloop.Arrival {
	if q == nil {
		return nil
	}
	return &openloop.Arrival{
		At: q.At, Delay: max(q.Delay, 0), PromptTokens: q.PromptTokens, OutputTokens: q.OutputTokens,
		Blocks: q.Blocks[:q.PromptTokens/q.BlockTokens], Next: arrival(q.Next),
	}
}

// heading describes the simulation.
func (c *simulateCmd) heading(o sim.Options, files *trace.Files) string {
	calibrated := "times fitted to " + o.Profile.Baseline
	if !o.Profile.CalibratedFor(o.Speculation) {
		calibrated = "not calibrated"
	}
	kv := o.Profile.KV
	return fmt.Sprintf("Simulated, not measured: %s (%s), %d × %s, caches of %d blocks of %d tokens, replaying %s.",
		o.Profile.Name, calibrated, o.Profile.Workers, o.Profile.GPU, kv.Blocks, kv.BlockTokens, files)
}

// replayedColumns are the columns of the table and of the CSV.
var replayedColumns = []struct {
	title, name string
	factor      float64
	decimals    int
	value       func(*openloop.Figures) float64
}{
	{"TTFT p50, ms", "ttft_p50_ms", 1000, 0, func(f *openloop.Figures) float64 { return f.TTFT50 }},
	{"TTFT p95, ms", "ttft_p95_ms", 1000, 0, func(f *openloop.Figures) float64 { return f.TTFT95 }},
	{"TPOT p50, ms", "tpot_p50_ms", 1000, 1, func(f *openloop.Figures) float64 { return f.TPOT50 }},
	{"TPOT p95, ms", "tpot_p95_ms", 1000, 1, func(f *openloop.Figures) float64 { return f.TPOT95 }},
	{"latency p95, s", "latency_p95_s", 1, 1, func(f *openloop.Figures) float64 { return f.Latency95 }},
	{"tokens/s", "output_tokens_per_second", 1, 0, func(f *openloop.Figures) float64 { return f.TokensPerSecond }},
	{"KV hits, %", "kv_hit_percent", 100, 1, func(f *openloop.Figures) float64 { return f.Hit }},
	{"longest wait, s", "longest_wait_s", 1, 2, func(f *openloop.Figures) float64 { return f.LargestQueue }},
}

func (r *replayed) cells(row *replayedRow, unknown string) []string {
	cells := []string{string(row.Mode), strconv.Itoa(row.Requests)}
	for _, c := range replayedColumns {
		v := c.value(&row.Figures)
		if math.IsNaN(v) {
			cells = append(cells, unknown)
			continue
		}
		cells = append(cells, strconv.FormatFloat(c.factor*v, 'f', c.decimals, 64))
	}
	return cells
}

// show prints the table and its limitations.
func (r *replayed) show(to io.Writer) error {
	fmt.Fprintln(to, r.Heading)
	fmt.Fprintf(to, "Requests are sent at the times in the trace (open loop), which are over %.1f s. "+
		"Blocks of answers are not reused, since the trace does not include their hashes.\n", r.Arrivals)
	if r.Sessions > 0 {
		fmt.Fprintf(to, "The trace has %d sessions. "+
			"A turn with a delay is sent that long after the end of the turn before.\n", r.Sessions)
	}
	if r.Lacking != "" {
		fmt.Fprintln(to, r.Lacking)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nsimulated: mode\trequests")
	for _, c := range replayedColumns {
		fmt.Fprint(w, "\t", c.title)
	}
	fmt.Fprintln(w)
	for i := range r.Modes {
		for k, cell := range r.cells(&r.Modes[i], notKnown) {
			if k > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := r.Modes[0].Refused; n > 0 {
		fmt.Fprintf(to, "\n%d requests were skipped because they do not fit into a worker's cache.\n", n)
	}
	if r.Unused > 0 {
		fmt.Fprintf(to, "\nUnusable lines: %d. The first ones:\n", r.Unused)
		for _, n := range r.Notes {
			fmt.Fprintln(to, n)
		}
	}
	if r.Cut {
		fmt.Fprintln(to, "\nThe trace is truncated; everything before the last, incomplete line was used.")
	}
	return nil
}

func (r *replayed) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	names := []string{"simulated_mode", "requests"}
	for _, c := range replayedColumns {
		names = append(names, c.name)
	}
	_ = w.Write(names)
	for i := range r.Modes {
		_ = w.Write(r.cells(&r.Modes[i], ""))
	}
	w.Flush()
	return w.Error()
}

func (r *replayed) writeJSON(to io.Writer) error { return writeJSON(to, r) }
