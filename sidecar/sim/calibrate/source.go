package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// source is a baseline with the simulation that reproduces it.
type source struct {
	baseline api.Baseline
	start    sim.Profile // with the sizes of the recorded deployment
	workload closedloop.Workload
	assumed  []string // assumptions where the baseline lacks data
}

// cell is a row to simulate.
type cell struct {
	source int
	row    *api.BaselineRow
}

// questionTokens is the mean length of the built-in follow-up questions, at four characters per token. The lengths of
// other follow-ups are unknown.
const questionTokens = 16

// kindRecorded is the kind of the built-in baselines.
const kindRecorded = "recorded"

func newSources(start sim.Profile, baselines []api.Baseline) ([]source, error) {
	if len(baselines) == 0 {
		return nil, api.Refuse("from", "none", "at least one baseline")
	}
	list := make([]source, len(baselines))
	for i, b := range baselines {
		s, err := newSource(start, b)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	for _, s := range list[1:] {
		if a, b := rowKind(list[0].baseline), rowKind(s.baseline); a != b {
			allowed := fmt.Sprintf("%s, as %s has it: one fit is of one kind", a, list[0].baseline.Name)
			return nil, api.Refuse(s.baseline.Name+": speculation", b, allowed)
		}
	}
	return list, nil
}

func newSource(start sim.Profile, b api.Baseline) (source, error) {
	s := source{baseline: b, start: start}
	s.baseline.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(r api.BaselineRow) bool {
		return !slices.Contains(study.Modes, r.Mode)
	})
	if len(s.baseline.Rows) == 0 {
		return s, api.Refuse(b.Name+": mode", api.ModeUnknown,
			"rows of kv, round_robin or least_loaded: set the server's mode in the load generator and measure again")
	}
	if n := len(b.Rows) - len(s.baseline.Rows); n > 0 {
		s.assume("%d rows of an unknown mode are left out", n)
	}
	if err := s.takeSizes(); err != nil {
		return s, err
	}
	if err := s.speculate(); err != nil {
		return s, err
	}
	return s, s.work()
}

// assume records an assumption.
func (s *source) assume(format string, args ...any) {
	s.assumed = append(s.assumed, s.baseline.Name+": "+fmt.Sprintf(format, args...))
}

// takeSizes sets the sizes of the profile to those of the recorded deployment. A size that is not recorded stays as the
// profile has it. The cache keeps its size in tokens. The error wraps an [api.FieldError] if the profile is of another
// GPU or of another number of GPUs per worker, or if the sizes make it invalid.
func (s *source) takeSizes() error {
	d, p := s.baseline.Deployment, &s.start
	if d.GPU != "" && !alike(d.GPU, p.GPU) {
		allowed := fmt.Sprintf("one of the %s that %s was recorded on: "+
			"the bounds of the constants come from the GPU's data sheet", d.GPU, s.baseline.Name)
		return api.Refuse("profile", p.Name+", of the "+p.GPU, allowed)
	}
	if d.TensorParallel != 0 && d.TensorParallel != p.TensorParallel {
		return api.Refuse("profile", fmt.Sprintf("%s, of %d GPUs a worker", p.Name, p.TensorParallel),
			fmt.Sprintf("one with %d GPUs a worker, as %s was recorded on", d.TensorParallel, s.baseline.Name))
	}
	if d.Workers == 0 {
		s.assume("the number of workers is not recorded; the profile has %d", p.Workers)
	}
	tokens := p.KV.Tokens()
	for _, size := range []struct {
		field    *int
		recorded int
	}{
		{&p.Workers, d.Workers},
		{&p.KV.BlockTokens, d.BlockSize},
		{&p.MaxSequences, d.MaxBatchSize},
		{&p.MaxBatchedTokens, d.MaxNumTokens},
	} {
		if size.recorded != 0 {
			*size.field = size.recorded
		}
	}
	p.KV.Blocks = tokens / p.KV.BlockTokens
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%s: %w", s.baseline.Name, err)
	}
	return nil
}

// alike reports whether two names denote the same GPU, such as "H200" and "NVIDIA H200 141GB".
func alike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return strings.Contains(a, b) || strings.Contains(b, a)
}

func rowKind(b api.Baseline) api.Speculation { return b.Rows[0].Speculation }

// speculate makes the recorded kind of speculation the profile's deployment as recorded.
func (s *source) speculate() error {
	kind := rowKind(s.baseline)
	for _, r := range s.baseline.Rows {
		if r.Speculation != kind {
			allowed := fmt.Sprintf("rows of one kind, such as %s: "+
				"the tokens and the cost of a step are fitted for one", kind)
			return api.Refuse(s.baseline.Name+": speculation", r.Speculation, allowed)
		}
	}
	speculation, ok := s.start.Speculation[kind]
	if !ok {
		return api.Refuse(s.baseline.Name+": speculation", kind, "a kind that the profile has")
	}
	s.start = withSpeculation(s.start, speculation)
	return nil
}

// work derives the workload from the baseline.
func (s *source) work() error {
	shape, w := s.baseline.Workload, closedloop.Recorded()
	field := s.baseline.Name + ": workload"
	if shape == nil {
		return api.Require(field,
			`the line # workload: {"turns":{"min":5,"max":5},"max_tokens":1024}, with what was run`)
	}
	w.Turns, w.MaxTokens = shape.Turns, shape.MaxTokens
	if shape.Openings == nil {
		s.assume("the number of opening texts is not recorded; %d were assumed", w.Openings)
	} else {
		w.Openings = *shape.Openings
	}
	if shape.OpeningTokens != 0 {
		w.OpeningTokens = []int{shape.OpeningTokens}
	}
	if shape.ThinkTime != nil {
		w.ThinkTime = time.Duration(*shape.ThinkTime * float64(time.Second))
	}
	if shape.Followup != api.RecordedFollowup {
		w.QuestionTokens = api.Distribution{Mean: questionTokens}
	}
	switch mean, ok := s.answers(); {
	case shape.OutputTokens != nil:
		w.Output = shape.OutputTokens
	case s.baseline.Kind == kindRecorded: // closedloop.Recorded has the lengths
	case !ok:
		return api.Require(field+".output_tokens", "the lengths of the answers, "+
			"or rows with both throughput (tops) and requests per second (rps), which give their mean")
	default:
		w.Output = cut(mean, w.Output.CV, w.MaxTokens)
		s.assume("answers of %.0f tokens, from throughput over requests; that they vary by %.0f %% was assumed",
			mean, 100*w.Output.CV)
	}
	s.workload = w
	if err := w.Validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// answers returns the mean length of an answer, computed from throughput and request rate; false without both.
func (s *source) answers() (mean float64, ok bool) {
	var tokens, requests float64
	for _, r := range s.baseline.Rows {
		if r.OutputTokensPerSecond != nil && r.RequestsPerSecond != nil {
			tokens += *r.OutputTokensPerSecond
			requests += *r.RequestsPerSecond
		}
	}
	return tokens / requests, requests > 0 && tokens >= requests
}

// cut returns a normal distribution with the given coefficient of variation whose mean, once values are cut at the
// limit, is the given mean.
func cut(mean, cv float64, limit int) *api.Distribution {
	low, high := mean, 4*float64(limit)
	for range 60 {
		mu := (low + high) / 2
		sigma := cv * mu
		z := (float64(limit) - mu) / sigma
		below := .5 * math.Erfc(-z/math.Sqrt2)
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		if float64(limit)-sigma*(z*below+density) < mean {
			low = mu
		} else {
			high = mu
		}
	}
	return &api.Distribution{Mean: low, CV: cv}
}

// options returns those of a cluster with the sizes of this source and the constants of a profile.
func (s *source) options(p sim.Profile) sim.Options {
	sizes := &s.start
	p.Workers, p.MaxSequences, p.MaxBatchedTokens = sizes.Workers, sizes.MaxSequences, sizes.MaxBatchedTokens
	p.KV = sizes.KV
	return sim.DefaultOptions(p)
}

// levelsOf returns the distinct levels of some rows, ascending.
func levelsOf(rows []api.BaselineRow) []int {
	var list []int
	for _, r := range rows {
		list = append(list, r.Level.Conversations())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// split divides the rows into those to fit to and those to hold out: the named levels, or every other level of each
// baseline, but never its lowest and highest. Data that are not sufficient for a fit give an error.
func split(sources []source, holdOut []int) (fitted, held []cell, err error) {
	var all []int
	for i := range sources {
		rows := sources[i].baseline.Rows
		levels := levelsOf(rows)
		all = append(all, levels...)
		out := holdOut
		if out == nil {
			for k := 1; k < len(levels)-1; k += 2 {
				out = append(out, levels[k])
			}
		}
		for k := range rows {
			c := cell{i, &rows[k]}
			if slices.Contains(out, c.row.Level.Conversations()) {
				held = append(held, c)
			} else {
				fitted = append(fitted, c)
			}
		}
	}
	for _, level := range holdOut {
		if !slices.Contains(all, level) {
			slices.Sort(all)
			allowed := "levels of the baselines: " + join(slices.Compact(all))
			return nil, nil, api.Refuse("hold-out", level, allowed)
		}
	}
	return fitted, held, sufficient(sources, fitted, len(holdOut) > 0)
}

// sufficient returns an error that says what to measure if the rows are not sufficient for a fit.
func sufficient(sources []source, cells []cell, chosen bool) error {
	var levels []int
	first, speeds := 0, 0
	for _, c := range cells {
		levels = append(levels, c.row.Level.Conversations())
		if positive(c.row.TTFT.P50) {
			first++
		}
		if positive(throughput.recorded(c.row)) || positive(tpot.recorded(c.row)) {
			speeds++
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	name := sources[0].baseline.Name
	switch {
	case speeds == 0:
		return api.Refuse(name+": rows", "TTFT alone", "throughput or TPOT as well (tops, itl_p50_ms): "+
			"TTFT does not show how long an iteration takes; record one of them at these levels")
	case first == 0:
		return api.Refuse(name+": rows", "no TTFT", "TTFT as well (ttft_p50_ms): "+
			"nothing else shows how long prefill takes; record it at these levels")
	case len(levels) == 0 || len(levels) == 1 && chosen:
		return api.Refuse("hold-out", "all levels but "+join(levels), "at least two remaining levels")
	case len(levels) == 1:
		allowed := fmt.Sprintf("two levels or more: one shows how long an iteration takes, "+
			"not what of it grows with the load; measure at %d and %d, too", max(levels[0]/3, 1), max(levels[0]/2, 2))
		return api.Refuse(name+": concurrency", fmt.Sprintf("%d alone", levels[0]), allowed)
	}
	return nil
}

func join(levels []int) string {
	texts := make([]string, len(levels))
	for i, level := range levels {
		texts[i] = fmt.Sprint(level)
	}
	return strings.Join(texts, ", ")
}
