package calibrate

import (
	"context"
	"fmt"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// measurement is a possible further measurement.
type measurement struct {
	what    string // description that names the settings
	changed func(*source)
	levels  []int
}

// measurements returns the candidates, the one with the least effort first.
func (f *fit) measurements() []measurement {
	s, p := &f.sources[0], &f.profile
	w := s.start.Workers
	same := func(*source) {}
	var list []measurement
	list = append(list, measurement{"one conversation for each worker: level " + fmt.Sprint(w), same, []int{w}})
	for _, floor := range p.Step.Floors {
		if low, high := floor.Sequences.Min, floor.Sequences.Max; high > 0 {
			levels := []int{w * max(low-4, 1), w * (low + high) / 2, w * high}
			list = append(list, measurement{
				"levels on both sides of the step of the iteration's length: " + join(levels), same, levels,
			})
		}
	}
	levels := levelsOf(s.baseline.Rows)
	ends := []int{levels[0], levels[len(levels)-1]}
	for _, tokens := range []int{500, 8000} {
		if most := slices.Max(s.workload.OpeningTokens); most < tokens/2 || most > 2*tokens {
			list = append(list, measurement{
				fmt.Sprintf("openings of another length: --opening-tokens=%d at levels %s", tokens, join(ends)),
				func(s *source) { s.workload.OpeningTokens = []int{tokens} }, ends,
			})
		}
	}
	if s.workload.Openings != 0 {
		list = append(list, measurement{
			"a separate opening for each conversation, so that prefill dominates: --openings=0 at levels " + join(ends),
			func(s *source) { s.workload.Openings = 0 }, ends,
		})
	}
	return list
}

// suggest simulates further measurements. For each constant that is not determined, it records the first measurement
// that would determine it, otherwise the one that narrows it most. Mode and noise are those of the baseline's first
// row.
func (f *fit) suggest(ctx context.Context, r *Result) error {
	if !slices.ContainsFunc(r.Constants, func(c Constant) bool { return c.Status == NotDetermined }) {
		return nil
	}
	inflated := f.knowledge.inflation(len(f.moved))
	before := f.knowledge.errors(inflated)
	best := slices.Clone(before)
	remedies := make([]string, len(before))
	for _, m := range f.measurements() {
		found, err := f.simulate(ctx, m)
		if err != nil {
			return err
		}
		with := f.knowledge.plus(found.information)
		for i, e := range with.errors(inflated) {
			if normal*best[i] > Tolerance && e < best[i]/narrower {
				best[i], remedies[i] = e, m.what
			}
		}
	}
	for i := range r.Constants {
		c := &r.Constants[i]
		if c.Status != NotDetermined {
			continue
		}
		k := f.index(c.Name)
		switch {
		case remedies[k] == "" || best[k] > f.knowledge.prior[k]:
			c.Remedy = "none of the levels, lengths and numbers of openings tried would determine it"
		case normal*best[k] <= Tolerance:
			c.Remedy = remedies[k] + " would determine it"
		default:
			c.Remedy = fmt.Sprintf("%s would narrow it to ± %.0f %%", remedies[k], 100*normal*best[k])
		}
	}
	r.Runs = f.runner.total
	return nil
}

// narrower is the factor by which a measurement must reduce a standard error to be suggested.
const narrower = 1.2

// simulate returns the information that a measurement would give on the constants.
func (f *fit) simulate(ctx context.Context, m measurement) (knowledge, error) {
	s := f.sources[0]
	m.changed(&s)
	var cells []cell
	value := new(1.) // arbitrary; only the noise is used
	for _, level := range m.levels {
		cells = append(cells, cell{row: &api.BaselineRow{
			Level: api.AtConversations(level), Mode: s.baseline.Rows[0].Mode, OutputTokensPerSecond: value,
			TTFT: api.Percentiles{P50: value, P95: value}, TPOT: api.Percentiles{P50: value},
		}})
	}
	apart, profiles := f.around()
	few := f.runner
	few.seeds = 2
	runs, err := few.run(ctx, "what to measure", []source{s}, cells, append(profiles, f.profile))
	if err != nil {
		return knowledge{}, err
	}
	f.runner.total = few.total
	w := weigh(cells, runs[len(profiles)])
	information := slopes(w, apart, runs[:len(profiles)])
	return newKnowledge(w, make([]float64, len(w)), information, f.priors()), nil
}

// Check simulates a baseline's rows with an unchanged profile. It returns the rows with their simulated figures, and
// the assumptions. Unlike [Run], it accepts any baseline with rows to simulate. onProgress may be nil.
func Check(
	ctx context.Context, p sim.Profile, b api.Baseline, seeds, goroutines int, onProgress func(Progress),
) ([]Row, []string, error) {
	sources, err := newSources(p, []api.Baseline{b})
	if err != nil {
		return nil, nil, err
	}
	var cells []cell
	for k := range sources[0].baseline.Rows {
		cells = append(cells, cell{0, &sources[0].baseline.Rows[k]})
	}
	r := runner{seeds: seeds, goroutines: goroutines, onProgress: onProgress}
	runs, err := r.run(ctx, b.Name, sources, cells, []sim.Profile{sources[0].start})
	if err != nil {
		return nil, nil, err
	}
	return rowsOf(sources, cells, runs[0]), sources[0].assumed, nil
}
