package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/openloop"
	"kvbooth/sidecar/trace"
)

// replayed is what a trace's requests would have felt, by mode.
type replayed struct {
	Simulated bool          `json:"simulated"` // always: nothing of it was measured
	Heading   string        `json:"heading"`
	Trace     string        `json:"trace"`
	Form      trace.Form    `json:"form"`
	Unused    int64         `json:"unused_lines"`
	Notes     []string      `json:"unused_notes,omitempty"`
	Cut       bool          `json:"cut"`
	Speed     float64       `json:"speed"`
	Modes     []replayedRow `json:"modes"`
}

type replayedRow struct {
	Mode api.Mode `json:"mode"`
	openloop.Figures
	// Nil where all answers have one token.
	TPOT50 *float64 `json:"tpot_p50_seconds"`
	TPOT95 *float64 `json:"tpot_p95_seconds"`
}

// checkTrace asks for nothing that a trace decides itself.
func (c *simulateCmd) checkTrace() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"concurrency", len(c.Concurrency) > 0},
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
			return api.Refuse(f.name, "a value", "leave it out with --trace, which determines the requests and their times")
		}
	}
	if !(c.TraceSpeed >= .001 && c.TraceSpeed <= 1000) {
		return api.Refuse("trace_speed", c.TraceSpeed, "0.001 to 1000")
	}
	return nil
}

// replay runs the cluster by a trace, once for each mode.
func (c *simulateCmd) replay(ctx context.Context, out *screen, p plan) error {
	if err := c.checkTrace(); err != nil {
		return flagOf(err)
	}
	o, first, err := c.clusterOfTrace(p)
	if err != nil {
		return flagOf(err)
	}
	size := int64(0)
	if info, err := os.Stat(c.Trace); err == nil {
		size = info.Size()
	}
	bar := out.bar(1000, "simulating")
	var read atomic.Int64
	rows, summaries := make([]replayedRow, len(p.grid.Modes)), make([]trace.Summary, len(p.grid.Modes))
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(c.Jobs)
	for i, mode := range p.grid.Modes {
		g.Go(func() (err error) {
			o := o
			o.Mode = mode
			rows[i].Mode = mode
			f := &rows[i].Figures
			*f, summaries[i], err = c.replayMode(working, o, func(n int) {
				if size > 0 {
					_ = bar.Set(int(1000 * min(read.Add(int64(n)), size*int64(len(rows))) / (size * int64(len(rows)))))
				}
			})
			if !math.IsNaN(f.TPOT50) {
				rows[i].TPOT50, rows[i].TPOT95 = &f.TPOT50, &f.TPOT95
			}
			return err
		})
	}
	err = g.Wait()
	_ = bar.Clear()
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing was written")
	case err != nil:
		return flagOf(err)
	case rows[0].Requests == 0:
		return flagOf(api.Refuse("trace", c.Trace, fmt.Sprintf("a trace with at least one request that fits into a worker's cache of %d tokens", o.Profile.KV.Tokens())))
	}
	r := replayed{
		Simulated: true, Heading: c.heading(o, first), Trace: filepath.Base(c.Trace), Form: summaries[0].Form,
		Unused: summaries[0].Unused, Cut: summaries[0].Cut, Speed: c.TraceSpeed, Modes: rows,
	}
	for _, n := range summaries[0].Notes {
		r.Notes = append(r.Notes, n.Error())
	}
	for _, path := range c.Output {
		write := r.writeCSV
		if filepath.Ext(path) == ".json" {
			write = r.writeJSON
		}
		if err := writeFile(path, write); err != nil {
			return err
		}
	}
	return r.show(out.stdout)
}

// openTrace reads the trace from its beginning; read hears of the bytes.
func (c *simulateCmd) openTrace(read func(int)) (*os.File, *trace.Reader, error) {
	f, err := os.Open(c.Trace)
	if err != nil {
		return nil, nil, api.Refuse("trace", c.Trace, fmt.Sprintf("a readable file (%v)", errors.Unwrap(err)))
	}
	r, err := trace.NewReader(&heard{f, read}, trace.Options{BlockTokens: c.TraceBlockSize})
	var field *api.FieldError
	switch {
	case errors.As(err, &field):
		err = api.Refuse("trace_block_size", c.TraceBlockSize, field.Allowed)
	case err != nil:
		err = api.Refuse("trace", c.Trace, fmt.Sprintf("a trace, plain or gzipped (%v)", err))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, r, nil
}

// heard tells of the bytes that are read.
type heard struct {
	io.Reader
	read func(int)
}

// Read implements [io.Reader].
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.read(n)
	return n, err
}

// clusterOfTrace is the cluster that the flags ask for, with blocks of the trace's size.
func (c *simulateCmd) clusterOfTrace(p plan) (sim.Options, *trace.Record, error) {
	f, r, err := c.openTrace(func(int) {})
	if err != nil {
		return sim.Options{}, nil, err
	}
	defer f.Close()
	first, err := r.Next()
	if err != nil {
		allowed := "a trace with requests"
		for _, n := range r.Summary().Notes {
			allowed += "; " + n.Error()
		}
		return sim.Options{}, nil, api.Refuse("trace", c.Trace, allowed)
	}
	o := p.grid.Cluster
	tokens := o.Profile.KV.Tokens()
	o.Profile.KV.BlockTokens = first.BlockTokens
	o.Profile.KV.Blocks = tokens / first.BlockTokens
	if c.FirstSeed != nil {
		o.Seed = uint64(*c.FirstSeed)
	}
	_, err = sim.New(o)
	return o, first, err
}

func (c *simulateCmd) replayMode(ctx context.Context, o sim.Options, read func(int)) (openloop.Figures, trace.Summary, error) {
	f, r, err := c.openTrace(read)
	if err != nil {
		return openloop.Figures{}, trace.Summary{}, err
	}
	defer f.Close()
	figures, err := openloop.Run(ctx, o, func() (openloop.Arrival, error) {
		q, err := r.Next()
		if err != nil {
			return openloop.Arrival{}, err
		}
		at := time.Duration(float64(q.At) / c.TraceSpeed)
		return openloop.Arrival{At: at, PromptTokens: q.PromptTokens, OutputTokens: q.OutputTokens, Blocks: q.Blocks[:q.PromptTokens/q.BlockTokens]}, nil
	})
	return figures, r.Summary(), err
}

// heading says what is simulated.
func (c *simulateCmd) heading(o sim.Options, first *trace.Record) string {
	calibrated := "times fitted to " + o.Profile.Baseline
	if !o.Profile.CalibratedFor(o.Speculation) {
		calibrated = "not calibrated"
	}
	return fmt.Sprintf("Simulated, not measured: %s (%s), %d × %s, caches of %d blocks of %d tokens, replaying %s.",
		o.Profile.Name, calibrated, o.Profile.Workers, o.Profile.GPU, o.Profile.KV.Blocks, first.BlockTokens, filepath.Base(c.Trace))
}

// replayedColumns are those of the table and the CSV.
var replayedColumns = []struct {
	title, name string
	factor      float64
	decimals    int
	of          func(*openloop.Figures) float64
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
		v := c.of(&row.Figures)
		if math.IsNaN(v) {
			cells = append(cells, unknown)
			continue
		}
		cells = append(cells, strconv.FormatFloat(c.factor*v, 'f', c.decimals, 64))
	}
	return cells
}

// show prints the table and what limits it.
func (r *replayed) show(to io.Writer) error {
	fmt.Fprintln(to, r.Heading)
	fmt.Fprintln(to, "Requests are sent at the times in the trace (open loop). Blocks of answers are not reused, since the trace does not include their hashes.")
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
		fmt.Fprintf(to, "\n%d lines were unusable. The first ones:\n", r.Unused)
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

func (r *replayed) writeJSON(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
