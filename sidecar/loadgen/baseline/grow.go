package baseline

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Merge puts rows into a baseline, each in place of the row with the same
// concurrency, mode and speculation if there is one, and keeps the rows
// sorted. It gives b a new slice of rows, so that copies of b made before stay
// as they were.
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

// Join gives an imported baseline with the rows of another import added to it, in place
// of those of the same concurrency, mode and speculation. What one of them does not know
// of the deployment, the workload and the provenance, it has of the other; where both know and
// differ, they are no results of one system, and the [api.FieldError] names the field and both
// values. The runs add up. The title stays unless more has one besides its name; the notes add up. Neither
// of the two is changed.
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

// addRuns adds those that are not there yet, into a slice of its own.
func addRuns(runs, more []api.Source) []api.Source {
	all := slices.Clone(runs)
	for _, r := range more {
		if !slices.ContainsFunc(all, func(o api.Source) bool { return reflect.DeepEqual(o, r) }) {
			all = append(all, r)
		}
	}
	return all
}

// DefaultFor names the baseline that a target is compared with: the configured
// one if it exists ([api.ThisTarget] always does); else a recorded one whose GPU, workers, tensor parallelism
// and model family are the target's; else [api.ThisTarget].
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

// alike says whether two known deployments can be expected to perform alike.
func alike(a, b api.Deployment) bool {
	return a.Workers == b.Workers && a.TensorParallel == b.TensorParallel &&
		gpuName(a.GPU) == gpuName(b.GPU) && gpuName(a.GPU) != "" &&
		modelFamily(a.Model) == modelFamily(b.Model) && modelFamily(a.Model) != ""
}
