package baseline

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Merge adds rows to a baseline. Each replaces the row with the same concurrency, mode and speculation, if there is
// one. Rows stay sorted. b gets a new slice of rows, so earlier copies of b are unchanged.
func Merge(b *api.Baseline, rows ...api.BaselineRow) {
	added := make(map[key]api.BaselineRow, len(rows))
	for _, row := range rows {
		added[keyOf(row)] = row
	}
	kept := slices.DeleteFunc(slices.Clone(b.Rows), func(r api.BaselineRow) bool {
		_, replaced := added[keyOf(r)]
		return replaced
	})
	b.Rows = slices.AppendSeq(kept, maps.Values(added))
	slices.SortFunc(b.Rows, compareRows)
}

// Join returns an imported baseline with the rows of another import. They replace those of the same concurrency, mode
// and speculation. Deployment, workload and provenance are completed from each other. Where both have a value and the
// values differ, the imports are not results of one system, and the [api.FieldError] names the field and both values.
// Runs and notes are joined. The title of b is kept unless only more has one besides its name. Neither argument is
// changed.
func Join(b, more api.Baseline) (api.Baseline, error) {
	if more.Title != "" && more.Title != more.Name {
		b.Title = more.Title
	}
	for _, a := range attributes {
		was, is := a.get(&b), a.get(&more)
		if a.key == "title" || a.key == "speculation" || a.key == "runs" || is == "" || is == was || a.key == "model" &&
			modelName(is) == modelName(was) {
			continue
		}
		if was != "" {
			return api.Baseline{}, api.Refuse(a.path, quote(is), fmt.Sprintf("%s, as the baseline %q has it: rows of "+
				"another system need a baseline of their own", quote(was), b.Name))
		}
		a.set(&b, is)
	}
	b.Provenance.Runs = addRuns(b.Provenance.Runs, more.Provenance.Runs)
	b.Notes = addNotes(b.Notes, strings.Split(more.Notes, "\n"))
	Merge(&b, more.Rows...)
	return b, Validate(b)
}

// addRuns returns a new slice of runs, with those of more that it lacks.
func addRuns(runs, more []api.Source) []api.Source {
	all := slices.Clone(runs)
	for _, r := range more {
		if !slices.ContainsFunc(all, func(o api.Source) bool { return reflect.DeepEqual(o, r) }) {
			all = append(all, r)
		}
	}
	return all
}

// DefaultFor returns the name of the baseline that a target is compared with: the configured one if it exists
// ([api.ThisTarget] always does); else a recorded one with the target's GPU, workers, tensor parallelism and model
// family; else [api.ThisTarget].
func DefaultFor(deployment api.Deployment, all []api.Baseline, configured string) string {
	named := func(b api.Baseline) bool { return b.Name == configured }
	if configured == api.ThisTarget || slices.ContainsFunc(all, named) {
		return configured
	}
	for _, b := range all {
		if b.Kind == KindRecorded && alike(deployment, b.Deployment) {
			return b.Name
		}
	}
	return api.ThisTarget
}

// alike reports whether two known deployments can be expected to have the same performance.
func alike(a, b api.Deployment) bool {
	return a.Workers == b.Workers && a.TensorParallel == b.TensorParallel &&
		gpuName(a.GPU) == gpuName(b.GPU) && gpuName(a.GPU) != "" &&
		modelFamily(a.Model) == modelFamily(b.Model) && modelFamily(a.Model) != ""
}
