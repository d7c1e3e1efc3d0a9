// Package calibrate fits the constants of a profile's timing to recorded results of the deployment. It simulates the
// recorded workload in virtual time and changes the constants, within the bounds that the GPUs and the model set,
// until the simulated figures match the recorded ones. It reports how well the data determine each constant, leaves
// undetermined constants unchanged, and suggests a measurement that would determine them.
//
// The search is Gauss–Newton on the logarithms of the figures. Its Jacobian consists of central differences, whose
// runs use the same random numbers on both sides (common random numbers). The Jacobian at the fitted point, weighted
// by the precision of each figure, also gives the standard errors.
package calibrate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Options select the profile, the data and the method of a fit.
type Options struct {
	Start     sim.Profile    // start of the search; undetermined constants keep its values
	Baselines []api.Baseline // recorded on the same deployment, possibly with different workloads
	Fit       []string       // names of [sim.Profile.Constants]; empty means all that have room between their bounds
	HoldOut   []int          // levels to leave out of the fit; nil means every other level
	Seeds     int            // runs of every row, 2 to 100; 0 means 3
	Suggest   bool           // look for measurements that would determine the remaining constants

	Name       string    // of the fitted profile; "" derives it from the name of the first baseline
	Now        time.Time // date in the fitted profile
	Goroutines int       // concurrent runs; 0 means one per core

	// OnProgress, if set, receives the progress after every run. Calls are not concurrent.
	OnProgress func(Progress)
}

// Progress is the progress of a fit. The number of rounds is not known in advance.
type Progress struct {
	Phase string // current phase, such as "round 2"
	Done  int    // completed runs of this phase
	Runs  int    // total runs of this phase
}

const (
	defaultSeeds = 3
	maxSeeds     = 100
	maxRounds    = 6
	settled      = .005 // the search ends at a step smaller than this share of each constant
	gain         = .02  // the search ends at a step that reduces the misfit by less than this share
	perturbation = .2   // share of a constant by which a central difference changes it to each side
)

// Run fits the constants. If the data are not sufficient for a fit, the error is an *[api.FieldError] that says what
// to measure. Otherwise the error is that of the context.
func Run(ctx context.Context, o Options) (*Result, error) { return run(ctx, o, maxRounds) }

// Assess is [Run] without the search: it reports how well the data determine each constant of the start, and the
// difference between simulated and recorded figures.
func Assess(ctx context.Context, o Options) (*Result, error) { return run(ctx, o, 1) }

func run(ctx context.Context, o Options, rounds int) (*Result, error) {
	f, err := newFit(o)
	if err != nil {
		return nil, err
	}
	if err := f.search(ctx, rounds); err != nil {
		return nil, err
	}
	r, err := f.result(ctx)
	if err != nil || !o.Suggest {
		return r, err
	}
	return r, f.suggest(ctx, r)
}

// fit is the state of a fit in progress.
type fit struct {
	options   Options
	runner    runner
	sources   []source
	fitted    []cell // rows to fit to
	held      []cell // held-out rows
	constants []sim.Constant

	profile   sim.Profile // current point of the search
	runs      samples     // of the fitted rows, with profile
	knowledge knowledge   // information on the constants at profile
	moved     []int       // indices of the constants that the search moves
	rounds    int
}

func newFit(o Options) (*fit, error) {
	if o.Seeds == 0 {
		o.Seeds = defaultSeeds
	}
	if o.Seeds < 2 || o.Seeds > maxSeeds {
		allowed := fmt.Sprintf("2 to %d: one run does not separate chance from a constant's effect", maxSeeds)
		return nil, api.Refuse("seeds", o.Seeds, allowed)
	}
	if o.Goroutines == 0 {
		o.Goroutines = runtime.GOMAXPROCS(0)
	}
	f := &fit{options: o, runner: runner{seeds: o.Seeds, goroutines: o.Goroutines, onProgress: o.OnProgress}}
	var err error
	if f.sources, err = newSources(o.Start, o.Baselines); err != nil {
		return nil, err
	}
	if f.fitted, f.held, err = split(f.sources, o.HoldOut); err != nil {
		return nil, err
	}
	f.profile = f.sources[0].start
	if f.constants, err = chosen(&f.profile, o.Fit); err != nil {
		return nil, err
	}
	return f, nil
}

// chosen returns the constants that the fit may move.
func chosen(p *sim.Profile, names []string) (list []sim.Constant, err error) {
	all := p.Constants()
	known := make([]string, len(all))
	for i, c := range all {
		known[i] = c.Name
		if c.High > c.Low && (len(names) == 0 || slices.Contains(names, c.Name)) {
			list = append(list, c)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, api.Refuse("fit", name, strings.Join(known, ", "))
		}
		if !slices.ContainsFunc(list, func(c sim.Constant) bool { return c.Name == name }) {
			return nil, api.Refuse("fit", name, "a constant with room between its bounds")
		}
	}
	return list, nil
}

// search moves the constants until a step is small or hardly improves the misfit, for at most the given number of
// rounds.
func (f *fit) search(ctx context.Context, rounds int) error {
	runs, err := f.runner.run(ctx, "at the start", f.sources, f.fitted, []sim.Profile{f.profile})
	if err != nil {
		return err
	}
	f.runs = runs[0]
	for f.rounds = 1; ; f.rounds++ {
		if f.knowledge, err = f.look(ctx, fmt.Sprintf("round %d", f.rounds)); err != nil {
			return err
		}
		f.moved = f.knowledge.movable()
		if f.rounds == rounds {
			return nil
		}
		done, err := f.step(ctx)
		if err != nil || done {
			return err
		}
	}
}

// look estimates the information on the constants at the current profile.
func (f *fit) look(ctx context.Context, phase string) (knowledge, error) {
	apart, profiles := f.around()
	runs, err := f.runner.run(ctx, phase, f.sources, f.fitted, profiles)
	if err != nil {
		return knowledge{}, err
	}
	w := weigh(f.fitted, f.runs)
	return newKnowledge(w, w.residuals(f.runs), slopes(w, apart, runs), f.priors()), nil
}

// around returns two profiles for each constant, first one with a lower value, then one with a higher value. The values
// stay within the constant's bounds. apart has for each constant the distance between its two values, in units of
// [scale].
func (f *fit) around() (apart []float64, profiles []sim.Profile) {
	for _, c := range f.constants {
		v, s := c.Get(&f.profile), scale(c, &f.profile)
		low, high := max(c.Low, v-perturbation*s), min(c.High, v+perturbation*s)
		for _, v := range []float64{low, high} {
			p := f.profile
			c.Set(&p, v)
			profiles = append(profiles, p)
		}
		apart = append(apart, (high-low)/s)
	}
	return apart, profiles
}

// scale returns the unit in which a constant is moved: its value, but at least a twentieth of its upper bound, so
// that a constant can leave zero.
func scale(c sim.Constant, p *sim.Profile) float64 { return max(c.Get(p), c.High/20) }

// priors returns the standard deviations of the constants before any measurement, in units of [scale]: those of
// uniform distributions between the bounds.
func (f *fit) priors() []float64 {
	out := make([]float64, len(f.constants))
	for i, c := range f.constants {
		out[i] = (c.High - c.Low) / math.Sqrt(12) / scale(c, &f.profile)
	}
	return out
}

// step takes the Gauss-Newton step, or a part of it. It returns true if the search has ended.
func (f *fit) step(ctx context.Context) (done bool, err error) {
	low, high, back := f.room()
	delta, largest := f.knowledge.step(f.moved, low, high, back)
	if largest < settled {
		return true, nil
	}
	parts := []float64{1, .5, .25}
	profiles := make([]sim.Profile, len(parts))
	for i, part := range parts {
		profiles[i] = f.profile
		for k, c := range f.constants {
			d := delta[k]
			if slices.Contains(f.moved, k) {
				d *= part
			}
			c.Set(&profiles[i], min(max(c.Get(&f.profile)+d*scale(c, &f.profile), c.Low), c.High))
		}
	}
	runs, err := f.runner.run(ctx, fmt.Sprintf("step %d", f.rounds), f.sources, f.fitted, profiles)
	if err != nil {
		return false, err
	}
	best, least := -1, (1-gain)*f.knowledge.misfit()
	if slices.ContainsFunc(back, func(d float64) bool { return d != 0 }) {
		least = math.Inf(1) // undetermined constants return to their start at any cost
	}
	for i := range runs {
		if m := f.knowledge.weights.misfit(runs[i]); m < least {
			best, least = i, m
		}
	}
	if best < 0 {
		return true, nil
	}
	f.profile, f.runs = profiles[best], runs[best]
	return false, nil
}

// room returns how far each constant may move down and up, and the distance of each constant that is not moved from
// its start, in units of [scale].
func (f *fit) room() (low, high, back []float64) {
	start := f.sources[0].start
	for k, c := range f.constants {
		v, s := c.Get(&f.profile), scale(c, &f.profile)
		low = append(low, (c.Low-v)/s)
		high = append(high, (c.High-v)/s)
		back = append(back, 0)
		if !slices.Contains(f.moved, k) {
			back[k] = (c.Get(&start) - v) / s
		}
	}
	return low, high, back
}

// Errors are the mean absolute differences between simulated and recorded figures, as shares of the recorded ones. For
// the hit rate, it is the difference itself. A figure without recorded values is NaN.
type Errors struct {
	Levels                           []int
	Rows                             int // each is one level in one mode
	TTFT50, TTFT95, Throughput, TPOT float64
	Hit                              float64
}

// Row is a recorded row with its simulated figures.
type Row struct {
	Baseline  string
	Recorded  api.BaselineRow
	Simulated closedloop.Figures // mean over the seeds
	Held      bool               // held out of the fit
}
