package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// Merge puts a newly measured row into a baseline, in place of the row with the
// same concurrency, mode and speculation if there is one, and keeps the rows
// sorted. It gives b a new slice of rows, so that copies of b made before stay
// as they were.
func Merge(b *api.Baseline, row api.BaselineRow) {
	rows := slices.DeleteFunc(slices.Clone(b.Rows), func(r api.BaselineRow) bool { return keyOf(r) == keyOf(row) })
	rows = append(rows, row)
	slices.SortFunc(rows, compareRows)
	b.Rows = rows
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
