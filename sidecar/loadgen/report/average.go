package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// MeanBaseline averages results of one system, such as separate sweeps. Each row is the mean of the rows of its level
// and mode, by [proof.MeanRow]. The error is an *[api.FieldError], for example if levels, modes, deployments or
// workloads differ. There must be at least one result.
func MeanBaseline(all []api.Baseline) (api.Baseline, error) {
	mean := all[0]
	mean.Rows, mean.Notes, mean.Provenance.Runs = nil, "", nil
	for i := range all {
		if err := checkAverage(&all[0], &all[i]); err != nil {
			return api.Baseline{}, err
		}
		if all[i].Kind != mean.Kind {
			mean.Kind = baseline.KindImported
		}
		mean.Provenance.Runs = append(mean.Provenance.Runs, runsOf(&all[i])...)
	}
	for _, row := range all[0].Rows {
		var same []api.BaselineRow
		for i := range all {
			same = append(same, all[i].Rows[rowAt(&all[i], &row)])
		}
		mean.Rows = append(mean.Rows, meanOf(same))
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	mean.Name = shortened(strings.Join(names, "+"), 100)
	mean.Title = shortened(fmt.Sprintf("Mean of %s: %s", plural(len(all), "result"), join(names)), api.MaxLine)
	mean.Notes = fmt.Sprintf("Each value is the mean of %s: %s. Intervals are of 95 %%, by Student's t over them.",
		plural(len(all), "result"), join(names))
	return mean, baseline.Validate(mean)
}

// checkAverage returns an *[api.FieldError] if b cannot be averaged with the first result.
func checkAverage(first, b *api.Baseline) error {
	if was, is := levelsOf(first), levelsOf(b); was != is {
		return api.Refuse("levels", is+" in "+b.Name, was+", as "+first.Name+" has them")
	}
	mode := first.Rows[0].InMode()
	if found, _ := baseline.Unlike(*b, *first, mode, mode); len(found) > 0 {
		d := found[0]
		return api.Refuse(d.Field, d.Live+" in "+b.Name, d.Baseline+", as "+first.Name+" has it")
	}
	return nil
}

// levelsOf lists the levels of each mode in one line of text.
func levelsOf(b *api.Baseline) string {
	var modes []api.ModeState
	of := map[api.ModeState][]api.Level{}
	for _, r := range b.Rows {
		m := r.InMode()
		if of[m] == nil {
			modes = append(modes, m)
		}
		of[m] = append(of[m], r.Level)
	}
	var parts []string
	for _, m := range modes {
		slices.SortFunc(of[m], api.Level.Compare)
		parts = append(parts, numbers(of[m])+" under "+m.Name())
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// rowAt returns the index in b of the row with the level and mode of row, or -1.
func rowAt(b *api.Baseline, row *api.BaselineRow) int {
	return slices.IndexFunc(b.Rows, func(r api.BaselineRow) bool {
		return r.Level == row.Level && r.InMode() == row.InMode()
	})
}

// meanOf extends [proof.MeanRow] by the cluster's figures and the values that only recorded tables have.
func meanOf(rows []api.BaselineRow) api.BaselineRow {
	mean := proof.MeanRow(rows)
	var all []*api.ClusterFigures
	for i := range rows {
		all = append(all, &rows[i].ClusterFigures)
	}
	mean.ClusterFigures = proof.MeanFigures(all)
	for _, name := range []string{"tpot_derived_p50", "tpot_derived_p95", "itl_p50", "itl_p95"} {
		of := baseline.QuantityOf(name).In
		*of(&mean) = proof.MeanFigure(rows, of)
	}
	return mean
}

// runsOf returns the runs behind a result. A result that names none counts as one run.
func runsOf(b *api.Baseline) []api.Source {
	if len(b.Provenance.Runs) > 0 {
		return b.Provenance.Runs
	}
	run := api.Source{File: b.Name}
	for _, r := range b.Rows {
		if r.Measured != nil && (run.Date == nil || r.Measured.After(*run.Date)) {
			run.Date = r.Measured
		}
	}
	return []api.Source{run}
}

// shortened cuts a text after most characters.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most]))
}
