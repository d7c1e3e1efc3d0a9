package sweep

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// The specification's protocol of a sweep of levels.
const (
	specWarmUp    = 60. // seconds
	specSeconds   = 300.
	specSnapshots = 3
	specRepeats   = 3
)

// Defaults of the others.
const (
	trialSeconds = 60.
	trialTime    = 3600.
	smallest     = .05
	capacityTime = 6 * 3600.
	resolution   = 8
	scanned      = 5 // levels that a capacity search begins with
)

// complete fills in what a request leaves out, by the lane's state, that of the twin if there is
// one, and the settings. The error is an *[api.FieldError]; of what the driver cannot switch to, too.
func complete(r api.SweepRequest, state api.State, twin *api.State, settings api.Settings) (api.SweepRequest, error) {
	if err := r.Check(); err != nil {
		return r, err
	}
	r.Modes, r.Levels = slices.Clone(r.Modes), slices.Clone(r.Levels)
	if r.Kind != api.SweepCapacity {
		r.Together = or(r.Together, r.Kind == api.SweepTrial && twin != nil)
		if *r.Together && twin == nil {
			return r, api.Refuse("together", true, "false, because there is only one lane; set twin.target.url to add a second one")
		}
		if *r.Together {
			state.Modes = offered(state, *twin)
		}
	}
	if len(r.Modes) == 0 {
		r.Modes = defaultModes(r, state)
	}
	if err := checkModes(r, state); err != nil {
		return r, err
	}
	if len(r.Levels) == 0 {
		r.Levels = defaultLevels(r.Kind, state, settings)
	}
	for _, level := range r.Levels {
		if level > settings.MaxConcurrency {
			return r, api.Refuse("levels", level, fmt.Sprintf("1 to %d, which is max_concurrency of the settings", settings.MaxConcurrency))
		}
	}
	if r.Kind == api.SweepCapacity {
		r.Levels = slices.Sorted(slices.Values(r.Levels))
	}
	r.Title = or(r.Title, "")
	r.SLO = or(r.SLO, settings.SLO)
	switch r.Kind {
	case api.SweepTrial:
		r.Primary, r.Smallest = or(r.Primary, string(proof.MeanTTFT)), or(r.Smallest, smallest)
		r.Seconds, r.MaxSeconds = or(r.Seconds, trialSeconds), or(r.MaxSeconds, trialTime)
	case api.SweepLevels:
		order := api.OrderInterleaved
		if dear(state.Driver) && !*r.Together {
			order = api.OrderModeAfterMode
		}
		repeats := specRepeats
		if *r.Together {
			repeats++ // even, so that each mode is on either lane as often
		}
		r.Order, r.Repeats, r.Snapshots = or(r.Order, order), or(r.Repeats, repeats), or(r.Snapshots, specSnapshots)
		r.WarmUp, r.Seconds = or(r.WarmUp, specWarmUp), or(r.Seconds, specSeconds)
	case api.SweepCapacity:
		r.Resolution, r.Seconds, r.MaxSeconds = or(r.Resolution, resolution), or(r.Seconds, trialSeconds), or(r.MaxSeconds, capacityTime)
	}
	if r.Kind != api.SweepTrial { // whose seed is drawn when it starts
		r.Seed = or(r.Seed, 1)
	}
	return r, nil
}

// offered are the modes that both lanes at once can compare: those that both can switch
// to, or those in force where a switch is dear.
func offered(main, twin api.State) (modes []api.ModeState) {
	if fixed(main, twin) {
		return []api.ModeState{modeIn(main), modeIn(twin)}
	}
	for _, m := range main.Modes {
		if slices.Contains(twin.Modes, m) {
			modes = append(modes, m)
		}
	}
	return modes
}

// fixed says whether each lane keeps the mode that it has.
func fixed(main, twin api.State) bool { return dear(main.Driver) || dear(twin.Driver) }

func modeIn(s api.State) api.ModeState {
	return api.ModeState{Mode: s.Mode, Speculation: s.Speculation}
}

// dear says whether a change of mode takes a person's hands, or a restart of the engines.
func dear(driver string) bool { return driver == "manual" || driver == "kubernetes" }

func or[T any](v *T, otherwise T) *T {
	if v != nil {
		return v
	}
	return &otherwise
}

// defaultModes are what a request compares of what the driver offers under the speculation in
// force: round-robin and kv where it has both.
func defaultModes(r api.SweepRequest, state api.State) (modes []api.ModeState) {
	for _, m := range []api.Mode{api.ModeRoundRobin, api.ModeKV, api.ModeLeastLoaded} {
		if o := (api.ModeState{Mode: m, Speculation: state.Speculation}); slices.Contains(state.Modes, o) {
			modes = append(modes, o)
		}
	}
	if r.Kind != api.SweepLevels || *r.Together {
		modes = modes[:min(2, len(modes))]
	}
	return modes
}

// checkModes holds the modes against what the driver offers; an empty speculation is the
// one in force.
func checkModes(r api.SweepRequest, state api.State) error {
	if len(state.Modes) == 0 {
		return fmt.Errorf("%w: the cluster has not reported its modes yet; is it running?", api.ErrUnavailable)
	}
	var names []string
	for _, o := range state.Modes {
		names = append(names, words(o))
	}
	for i := range r.Modes {
		if r.Modes[i].Speculation == "" {
			r.Modes[i].Speculation = state.Speculation
		}
		if !slices.Contains(state.Modes, r.Modes[i]) {
			return api.Refuse("modes", words(r.Modes[i]), fmt.Sprintf("what the driver %s can switch to: %s", state.Driver, join(names)))
		}
		if r.Kind != api.SweepTrial && slices.Contains(r.Modes[:i], r.Modes[i]) {
			return api.Refuse("modes", words(r.Modes[i]), "each mode once; a trial may compare a mode with itself, which tests the method")
		}
	}
	if (r.Kind == api.SweepTrial || r.Kind == api.SweepLevels && *r.Together) && len(r.Modes) < 2 {
		return api.Refuse("modes", join(names), fmt.Sprintf("two modes to compare; the driver %s offers only one", state.Driver))
	}
	return nil
}

// words names a mode as a request does, with its speculation where it has one.
func words(m api.ModeState) string {
	if m.Speculation == "" || m.Speculation == api.SpeculationOff || m.Speculation == api.SpeculationNotRecorded {
		return string(m.Mode)
	}
	return fmt.Sprintf("%s with speculation %s", m.Mode, m.Speculation)
}

func join(all []string) string { return strings.Join(all, ", ") }

// defaultLevels are those of a kind: the present concurrency for a trial, levels up to the
// slider's end for the others.
func defaultLevels(k api.SweepKind, state api.State, settings api.Settings) []int {
	if k == api.SweepTrial {
		return []int{max(1, min(state.Concurrency.Target, settings.MaxConcurrency))}
	}
	top := min(settings.Slider.Max, settings.MaxConcurrency)
	if k == api.SweepLevels {
		var levels []int
		for level := settings.Slider.Min; level <= top; level += settings.Slider.Increment {
			levels = append(levels, level)
		}
		return levels[:min(len(levels), api.MaxSweepLevels)]
	}
	low := min(settings.Slider.Min, top-1)
	var levels []int
	for i := range scanned {
		levels = append(levels, max(1, low)+(top-max(1, low))*i/(scanned-1))
	}
	return slices.Compact(levels)
}
