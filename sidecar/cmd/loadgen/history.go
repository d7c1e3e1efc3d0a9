package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/history"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/store"
)

// lastAccepted stands for the last accepted run in the setting against.
const lastAccepted = "accepted"

// acceptedRun returns the last accepted run of the configured name, with the scatter between the runs of its series.
// The error is an [api.FieldError] where none is accepted.
func acceptedRun(ctx context.Context, conf *config.Config) (*proof.Accepted, error) {
	runs, err := store.ReadRuns(ctx, conf.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data_dir: cannot read the history in %s: %w", conf.DataDir, err)
	}
	runs = slices.DeleteFunc(runs, func(r api.RunRecord) bool {
		return r.Kind != api.SingleRun || r.Result.Name != conf.Name
	})
	var last *api.RunRecord
	for i := range runs {
		if at := runs[i].Accepted; at != nil && (last == nil || !at.Before(*last.Accepted)) {
			last = &runs[i]
		}
	}
	if last == nil {
		return nil, api.Refuse("against", lastAccepted, fmt.Sprintf("an accepted run with the name %q in %s (runs of that "+
			"name: %d): run once without --against, then loadgen history accept latest --name %q", conf.Name,
			conf.DataDir, len(runs), conf.Name))
	}
	type scatter struct {
		deviation float64
		freedom   int
	}
	between := map[string]scatter{} // by figure, found once, since the search for changes takes long
	for _, s := range history.Group(runs) {
		if slices.Contains(s.Runs, last.ID) {
			for _, q := range proof.Gated {
				deviation, freedom := s.Scatter(q)
				between[q.Name] = scatter{deviation, freedom}
			}
		}
	}
	return &proof.Accepted{
		Name: "accepted run " + last.ID, Result: last.Result,
		Between: func(figure string) (float64, int) { return between[figure].deviation, between[figure].freedom + 1 },
	}, nil
}

// latest stands for the newest run on the command line.
const latest = "latest"

// acceptance is the action that accepts a run.
const acceptance = "accept"

// showHistory prints the history in the data directory, or accepts a run of it. The error is a notStarted.
func showHistory(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	q := conf.History
	runs, err := store.ReadRuns(ctx, conf.DataDir)
	if err != nil {
		return notStarted{fmt.Errorf("data_dir: cannot read the history in %s: %w", conf.DataDir, err)}
	}
	if conf.NameGiven {
		runs = slices.DeleteFunc(runs, func(r api.RunRecord) bool { return r.Result.Name != conf.Name })
	}
	if q.Action != "" {
		return accept(ctx, conf, runs, stdout)
	}
	list := history.List(runs)
	if q.Format == "json" {
		return writeJSON(stdout, list)
	}
	if len(list.Runs) == 0 {
		fmt.Fprintln(stdout, noRuns(conf))
		return nil
	}
	return printHistory(stdout, &list)
}

// noRuns says where a history without runs is, and how it gets some.
func noRuns(conf *config.Config) string {
	named := ""
	if conf.NameGiven {
		named = fmt.Sprintf(" with the name %q", conf.Name)
	}
	return fmt.Sprintf("No run%s has ended in %s: the history has runs with --duration, --requests or --trace, "+
		"trials, sweeps and capacity searches.", named, conf.DataDir)
}

// accept sets whether later runs are compared with a run.
func accept(ctx context.Context, conf *config.Config, runs []api.RunRecord, stdout io.Writer) error {
	q, id := conf.History, conf.History.Run
	if len(runs) == 0 {
		return notStarted{errors.New(noRuns(conf))}
	}
	if id == latest {
		id = runs[len(runs)-1].ID
	}
	if !slices.ContainsFunc(runs, func(r api.RunRecord) bool { return r.ID == id }) {
		return notStarted{api.Refuse("run", strconv.Quote(q.Run), "latest, or the id of a run in the history of "+
			conf.DataDir+"; see loadgen history")}
	}
	s, err := openStore(ctx, conf, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return notStarted{err}
	}
	_, err = s.AcceptRun(ctx, id, q.Action == acceptance)
	if err = errors.Join(err, s.Close()); err != nil {
		return notStarted{err}
	}
	done := "withdrawn"
	if q.Action == acceptance {
		done = "accepted"
	}
	fmt.Fprintln(stdout, id, done)
	return nil
}

// printHistory prints a line for each row of each run, and the changes.
func printHistory(stdout io.Writer, list *api.RunHistory) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tENDED (UTC)\tNAME\tKIND\tLOAD\tARM\tTTFT MEAN, MS\tTTFT P95, MS\tTPOT P95, MS\tTOKENS/S\tNOTES")
	for i := range list.Runs {
		r := &list.Runs[i]
		notes := notesOf(list, r)
		for j := range r.Result.Rows {
			row := &r.Result.Rows[j]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Ended.UTC().Format("2006-01-02 15:04"),
				r.Result.Name, r.Kind, row.Level.InWords(), row.InMode().Name(), milliseconds(row.TTFTMean),
				milliseconds(row.TTFT.P95), milliseconds(row.TPOT.P95), whole(row.OutputTokensPerSecond), notes)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range list.Series {
		s := &list.Series[i]
		for _, c := range s.Changes {
			fmt.Fprintf(stdout, "%s of %s at %s, %s: %s\n", c.Figure, s.Name, s.Level.InWords(),
				api.ModeState{Arm: s.Arm, Mode: s.Mode, Speculation: s.Speculation}.Name(), changeText(c))
		}
	}
	return nil
}

// notesOf says what became of a run.
func notesOf(list *api.RunHistory, r *api.RunRecord) string {
	var notes []string
	if r.Accepted != nil {
		notes = append(notes, "accepted")
	}
	if r.Failed {
		notes = append(notes, "failed")
	}
	if slices.ContainsFunc(list.Series, func(s api.RunSeries) bool {
		return slices.ContainsFunc(s.Changes, func(c api.RunChange) bool { return c.Run == r.ID })
	}) {
		notes = append(notes, "changed")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		notes = append(notes, name+"="+r.Labels[name])
	}
	return strings.Join(notes, " ")
}

func changeText(c api.RunChange) string {
	word := "worse"
	if c.Better {
		word = "better"
	}
	q := baseline.QuantityOf(c.Figure)
	switch q.Kind {
	case baseline.Share:
		return fmt.Sprintf("%s since run %s, by %s points: %s to %s", word, c.Run, api.Signed(100*(c.After-c.Before), 1),
			api.Percent(c.Before), api.Percent(c.After))
	case baseline.Time:
		return fmt.Sprintf("%s since run %s, by %s %%: %s to %s", word, c.Run, api.Signed(100*(c.After/c.Before-1), 1),
			api.Milliseconds(c.Before), api.Milliseconds(c.After))
	}
	return fmt.Sprintf("%s since run %s, by %s %%: %s to %s", word, c.Run, api.Signed(100*(c.After/c.Before-1), 1),
		api.Number(c.Before, 0), api.Number(c.After, 0))
}

func milliseconds(v *float64) string {
	if v == nil {
		return "–"
	}
	return api.InMS(*v)
}

func whole(v *float64) string {
	if v == nil {
		return "–"
	}
	return api.Number(*v, 0)
}

// runLabels returns the labels of runs by their names.
func runLabels(conf *config.Config) map[string]string {
	labels := map[string]string{}
	for _, label := range conf.Labels {
		name, value, _ := strings.Cut(label, "=")
		labels[name] = value
	}
	return labels
}

// remember adds a run to the history, and its id to the report. A run with steps at different levels or in different
// modes has no row, and is left out.
func (e *endOf) remember(ctx context.Context, r *report.Run) {
	b, err := r.AsBaseline(e.conf.Name)
	if err != nil {
		e.log.Info("the run is left out of the history", "reason", err)
		return
	}
	verdict := r.Verdict()
	if r.Cause == report.BySignal || r.Cause == report.ByOperator {
		verdict += "; cut short"
	}
	id := strconv.FormatInt(e.started.UnixMilli(), 36)
	err = e.store.SaveRun(ctx, api.RunRecord{
		ID: id, Kind: api.SingleRun, Labels: runLabels(e.conf),
		Started: e.started.UTC().Round(time.Millisecond), Ended: e.ended.UTC().Round(time.Millisecond), Program: r.Program,
		Router: r.Target.Router, Verdict: verdict, Failed: r.Failed() || r.Aborted() != "" || r.MostFailed() != "", Result: b,
	})
	if err != nil {
		e.log.Warn("the run could not be added to the history", "error", err)
		return
	}
	r.Data.Run = id
}
