package baseline

import (
	"cmp"
	"slices"

	"kvbooth/sidecar/api"
)

// modes and speculations in the order in which they are listed.
var (
	modes        = []api.Mode{api.ModeRoundRobin, api.ModeKV, api.ModeLeastLoaded, api.ModeUnknown}
	speculations = []api.Speculation{
		api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3, api.SpeculationNotRecorded,
	}
)

// key identifies a row of a baseline.
type key struct {
	concurrency int
	api.ModeState
}

func keyOf(r api.BaselineRow) key {
	return key{r.Concurrency, r.InMode()}
}

// compareModes puts round-robin first, then kv, then the rest.
func compareModes(a, b api.ModeState) int {
	return cmp.Or(
		cmp.Compare(slices.Index(modes, a.Mode), slices.Index(modes, b.Mode)),
		cmp.Compare(slices.Index(speculations, a.Speculation), slices.Index(speculations, b.Speculation)),
		cmp.Compare(a.Arm, b.Arm),
	)
}

func compareRows(a, b api.BaselineRow) int {
	x, y := keyOf(a), keyOf(b)
	return cmp.Or(cmp.Compare(x.concurrency, y.concurrency), compareModes(x.ModeState, y.ModeState))
}
