package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// Defaults of a sweep of levels, by the protocol of the specification.
const (
	specWarmUp    = 60. // seconds
	specSeconds   = 300.
	specSnapshots = 3
	specRepeats   = 3
)

// Defaults of trials and capacity searches.
const (
	trialSeconds = 60.
	trialTime    = 3600.
	smallest     = .05
	capacityTime = 6 * 3600.
	resolution   = 8  // conversations
	rateSteps    = 20 // of the resolution between the lowest and the highest rate
	scanned      = 5  // levels that a capacity search begins with
)

// complete sets the defaults of a request, by the state of the lane and of the twin, if there is
// one, and by the settings. The error is an *[api.FieldError], also for modes that the driver cannot
// switch to.
func complete(r api.SweepRequest, state api.State, twin *api.State, settings api.Settings) (api.SweepRequest, error) {
	if err := r.Check(); err != nil {
		return r, err
	}
	r.Modes = slices.Clone(r.Modes)
	r.Levels = slices.Clone(r.Levels)
	if r.Kind != api.SweepCapacity {
		compared := cmp.Or(len(r.Modes), len(arms(state.Modes)))
		r.Together = orDefault(r.Together, r.Kind == api.SweepTrial && twin != nil && compared <= 2)
		if *r.Together && twin == nil {
			return r, api.Refuse("together", true,
				"false, because there is only one lane; set twin.target.url to add a second one")
		}
		if *r.Together {
			state.Modes = offered(state, *twin)
		}
	}
	for i := range r.Modes {
		r.Modes[i] = r.Modes[i].Resolve(state.Modes)
	}
	if len(r.Modes) == 0 {
		r.Modes = defaultModes(r, state)
	}
	if err := cmp.Or(checkModes(r, state), r.Check()); err != nil {
		return r, err
	}
	if len(r.Levels) == 0 {
		if r.ByRate() {
			return r, api.Refuse("levels", "", "two rates or more to begin with, such as 2/s,4/s,8/s")
		}
		r.Levels = defaultLevels(r.Kind, state, settings)
	}
	for _, level := range r.Levels {
		if level.Conversations() > settings.MaxConcurrency {
			return r, api.Refuse("levels", level,
				fmt.Sprintf("1 to %d, which is max_concurrency of the settings", settings.MaxConcurrency))
		}
	}
	if r.Kind == api.SweepCapacity {
		r.Levels = slices.SortedFunc(slices.Values(r.Levels), api.Level.Compare)
	}
	r.Title = orDefault(r.Title, "")
	r.SLO = orDefault(r.SLO, settings.SLO)
	setDefaults(&r, state.Driver)
	return r, nil
}

// resolveCaches resolves the caches of a complete request: warm where the two arms of a trial can change within one run
// and the same workers serve both. The error is an [api.FieldError].
func (d *Desk) resolveCaches(r *api.SweepRequest) error {
	if r.Kind != api.SweepTrial {
		return nil
	}
	driver := d.opts.Lane.State().Driver
	inPlace, shared := d.opts.Lane.Switchback(r.Modes)
	possible := inPlace && len(r.Modes) == 2 && !*r.Together
	switch wanted := *r.Caches; {
	case wanted == api.TrialCachesWarm && !possible:
		return api.Refuse("caches", wanted, fmt.Sprintf("cold: only a trial of two arms on one lane can change them within "+
			"one run, where the driver (%s) changes them without a restart and there are no members", driver))
	case wanted == api.TrialCachesAuto && possible && shared, wanted == api.TrialCachesWarm:
		r.Caches = new(api.TrialCachesWarm)
	default:
		r.Caches = new(api.TrialCachesCold)
	}
	return nil
}

// setDefaults sets the defaults that depend on the kind of request.
func setDefaults(r *api.SweepRequest, driver string) {
	switch r.Kind {
	case api.SweepTrial:
		r.Primary = orDefault(r.Primary, string(proof.MeanTTFT))
		if len(r.Modes) > 2 {
			r.Question = orDefault(r.Question, api.QuestionBest)
		}
		r.Smallest = orDefault(r.Smallest, smallest)
		r.Caches = orDefault(r.Caches, api.TrialCachesAuto)
		r.WarmUp = orDefault(r.WarmUp, 0)
		r.Seconds = orDefault(r.Seconds, trialSeconds)
		r.MaxSeconds = orDefault(r.MaxSeconds, trialTime)
	case api.SweepLevels:
		order := api.OrderInterleaved
		if switchIsCostly(driver) && !*r.Together {
			order = api.OrderModeAfterMode
		}
		repeats := specRepeats
		if *r.Together {
			repeats++ // an even number, so that each mode is on either lane equally often
		}
		r.Order = orDefault(r.Order, order)
		r.Repeats = orDefault(r.Repeats, repeats)
		r.Snapshots = orDefault(r.Snapshots, specSnapshots)
		r.WarmUp = orDefault(r.WarmUp, specWarmUp)
		r.Seconds = orDefault(r.Seconds, specSeconds)
	case api.SweepCapacity:
		kind, finest := api.CapacityByConversations, float64(resolution)
		if r.ByRate() {
			first, last := r.Levels[0].Value, r.Levels[len(r.Levels)-1].Value
			kind, finest = api.CapacityByRate, (last-first)/rateSteps
		}
		r.By, r.Resolution = orDefault(r.By, kind), orDefault(r.Resolution, finest)
		r.Seconds = orDefault(r.Seconds, trialSeconds)
		r.MaxSeconds = orDefault(r.MaxSeconds, capacityTime)
	}
	if r.Kind != api.SweepTrial { // the seed of a trial is drawn at its start
		r.Seed = orDefault(r.Seed, 1)
	}
}

// offered returns the modes that both lanes can compare at the same time: those that both can
// switch to, or the present ones where a switch is costly.
func offered(main, twin api.State) (modes []api.ModeState) {
	if lanesFixed(main, twin) {
		return []api.ModeState{main.InMode(), twin.InMode()}
	}
	for _, m := range main.Modes {
		if slices.Contains(twin.Modes, m) {
			modes = append(modes, m)
		}
	}
	return modes
}

// lanesFixed reports whether each lane keeps its mode.
func lanesFixed(main, twin api.State) bool {
	return switchIsCostly(main.Driver) || switchIsCostly(twin.Driver)
}

// switchIsCostly reports whether a change of mode requires an operator, or a restart of the engines.
func switchIsCostly(driver string) bool {
	return slices.Contains([]string{"manual", "command", "http", "kubernetes"}, driver)
}

func orDefault[T any](v *T, fallback T) *T {
	if v != nil {
		return v
	}
	return &fallback
}

// defaultModes returns what a request compares by default: the arms of the configuration, else, under the
// present speculation, round-robin and kv where the driver offers both.
func defaultModes(r api.SweepRequest, state api.State) (modes []api.ModeState) {
	if all := arms(state.Modes); len(all) > 0 {
		return all
	}
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

// arms returns the arms of the configuration among modes.
func arms(modes []api.ModeState) (all []api.ModeState) {
	for _, m := range modes {
		if m.Arm != "" {
			all = append(all, m)
		}
	}
	return all
}

// checkModes checks the modes against those that the driver offers. An empty speculation becomes the
// present one.
func checkModes(r api.SweepRequest, state api.State) error {
	if len(state.Modes) == 0 {
		return fmt.Errorf("%w: the cluster has not reported its modes yet; is it running?", api.ErrUnavailable)
	}
	var names []string
	for _, o := range state.Modes {
		names = append(names, o.Text())
	}
	for i := range r.Modes {
		if r.Modes[i].Speculation == "" {
			r.Modes[i].Speculation = state.Speculation
		}
		if !slices.Contains(state.Modes, r.Modes[i]) {
			return api.Refuse("modes", r.Modes[i].Text(),
				fmt.Sprintf("what the driver %s can switch to: %s", state.Driver, join(names)))
		}
		if !r.MayRepeatMode() && slices.Contains(r.Modes[:i], r.Modes[i]) {
			return api.Refuse("modes", r.Modes[i].Text(), api.EachModeOnce)
		}
	}
	if (r.Kind == api.SweepTrial || r.Kind == api.SweepLevels && *r.Together) && len(r.Modes) < 2 {
		return api.Refuse("modes", join(names),
			fmt.Sprintf("two modes to compare; the driver %s offers only one", state.Driver))
	}
	return nil
}

func join(all []string) string { return strings.Join(all, ", ") }

// defaultLevels returns the default levels of a kind: the present level for a trial, levels up
// to the end of the slider for the others.
func defaultLevels(k api.SweepKind, state api.State, settings api.Settings) []api.Level {
	if at := state.Concurrency.Target; k == api.SweepTrial && at.Kind == api.Rate {
		return []api.Level{at}
	}
	if k == api.SweepTrial {
		return api.LevelsOf(max(1, min(state.Concurrency.Target.Conversations(), settings.MaxConcurrency)))
	}
	top := min(settings.Slider.Max, settings.MaxConcurrency)
	if k == api.SweepLevels {
		var levels []int
		for level := settings.Slider.Min; level <= top; level += settings.Slider.Increment {
			levels = append(levels, level)
		}
		return api.LevelsOf(levels[:min(len(levels), api.MaxSweepLevels)]...)
	}
	low := min(settings.Slider.Min, top-1)
	var levels []int
	for i := range scanned {
		levels = append(levels, max(1, low)+(top-max(1, low))*i/(scanned-1))
	}
	return api.LevelsOf(slices.Compact(levels)...)
}
