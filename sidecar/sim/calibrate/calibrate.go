// Package calibrate fits the constants of a profile's timing to recorded results of
// the deployment: it simulates the workload that was recorded, in virtual time, and
// changes the constants, within the bounds that the GPUs and the model set, until the
// simulated figures are the recorded ones. It says how well the data determine each
// constant, leaves alone what they do not determine, and names a measurement that would.
//
// The search is Gauss–Newton on the logarithms of the figures, with a Jacobian by
// central differences, in which every run has the same draws as its counterpart (common
// random numbers). The Jacobian at the fitted point, weighted by how well each figure is
// known, also gives the standard errors.
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

// Options say what is fitted to what.
type Options struct {
	Start     sim.Profile    // where the search begins; what is not determined stays as it is there
	Baselines []api.Baseline // recorded on the same deployment, perhaps with different workloads
	Fit       []string       // names of [sim.Profile.Constants]; none: all that have room between their bounds
	HoldOut   []int          // levels that are not fitted to; nil: every other one
	Seeds     int            // runs of every row, 2 to 100; 0: 3
	Suggest   bool           // look for measurements that would determine what these data do not

	Name       string    // of the fitted profile, "" for the name of the first baseline as far as a profile can have it
	Now        time.Time // the date in the fitted profile
	Goroutines int       // runs at a time; 0: one for each core

	// OnProgress, if set, hears of every run, one call at a time.
	OnProgress func(Progress)
}

// Progress is how far a fit has come. How many rounds it takes is not known before.
type Progress struct {
	Phase string // what is computed, such as "round 2"
	Done  int    // runs of this phase
	Runs  int    // of this phase
}

const (
	defaultSeeds = 3
	maxSeeds     = 100
	maxRounds    = 6
	settled      = .005 // a step smaller than this, as a share of each constant, ends the search,
	gain         = .02  // and one that lessens the misfit by less than this share of it
	perturbation = .2   // of a constant, to each side, in a central difference
)

// Run fits. An error is an *[api.FieldError] where the data are not what a fit needs, in
// words that say what to measure; or the context's.
func Run(ctx context.Context, o Options) (*Result, error) { return run(ctx, o, maxRounds) }

// Judge is [Run] without the search: it says how well the data determine each constant
// of the start as it is, and how far that is from them.
func Judge(ctx context.Context, o Options) (*Result, error) { return run(ctx, o, 1) }

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

// fit is one under way.
type fit struct {
	options   Options
	runner    runner
	sources   []source
	fitted    []cell // rows that are fitted to
	held      []cell // rows that are not
	constants []sim.Constant

	profile   sim.Profile // as far as the search has come
	runs      samples     // of the fitted rows, with that profile
	knowledge knowledge   // what the data tell there
	moved     []int       // constants that the search has moved
	rounds    int
}

func newFit(o Options) (*fit, error) {
	if o.Seeds == 0 {
		o.Seeds = defaultSeeds
	}
	if o.Seeds < 2 || o.Seeds > maxSeeds {
		return nil, api.Refuse("seeds", o.Seeds, fmt.Sprintf("2 to %d: with a single one, chance cannot be told from a constant's effect", maxSeeds))
	}
	if o.Goroutines == 0 {
		o.Goroutines = runtime.GOMAXPROCS(0)
	}
	f := &fit{options: o, runner: runner{seeds: o.Seeds, goroutines: o.Goroutines, on: o.OnProgress}}
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

// chosen are the constants that may move.
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

// search moves the constants until a step changes next to nothing or makes next to nothing
// better, in so many rounds at most.
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

// look computes what the data tell of the constants at the present profile.
func (f *fit) look(ctx context.Context, phase string) (knowledge, error) {
	sides, profiles := f.around()
	runs, err := f.runner.run(ctx, phase, f.sources, f.fitted, profiles)
	if err != nil {
		return knowledge{}, err
	}
	w := weigh(f.fitted, f.runs)
	return newKnowledge(w, w.residuals(f.runs), slopes(w, sides, runs), f.priors()), nil
}

// around are the profiles with one constant lower and higher, two for each, and how far
// they are apart, in units of [scale].
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

// scale is the unit in which a constant is moved: its value, or a twentieth of its
// upper bound where it is smaller than that, so that zero can be left.
func scale(c sim.Constant, p *sim.Profile) float64 { return max(c.Get(p), c.High/20) }

// priors are the standard deviations of the constants before anything was measured, in
// units of [scale]: all between their bounds is as likely.
func (f *fit) priors() []float64 {
	out := make([]float64, len(f.constants))
	for i, c := range f.constants {
		out[i] = (c.High - c.Low) / math.Sqrt(12) / scale(c, &f.profile)
	}
	return out
}

// step goes where the slopes point, or a part of the way there; true if the search has ended.
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
		least = math.Inf(1) // what is not determined goes back, at whatever price
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

// room is how far each constant may go down and up, and how far one that is not moved is
// from where it started, in units of [scale].
func (f *fit) room() (low, high, back []float64) {
	start := f.sources[0].start
	for k, c := range f.constants {
		v, s := c.Get(&f.profile), scale(c, &f.profile)
		low, high, back = append(low, (c.Low-v)/s), append(high, (c.High-v)/s), append(back, 0)
		if !slices.Contains(f.moved, k) {
			back[k] = (c.Get(&start) - v) / s
		}
	}
	return low, high, back
}

// Errors are the mean absolute differences between simulated and recorded figures, as
// shares of the recorded ones, of the hit rate itself; NaN where none was recorded.
type Errors struct {
	Levels                           []int
	Rows                             int // a level in one mode
	TTFT50, TTFT95, Throughput, TPOT float64
	Hit                              float64
}

// Row is a recorded row beside the same simulated.
type Row struct {
	Baseline  string
	Recorded  api.BaselineRow
	Simulated closedloop.Figures // mean over the seeds
	Held      bool               // not fitted to
}
