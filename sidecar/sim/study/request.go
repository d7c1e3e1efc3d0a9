package study

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Request describes a simulation. Fields that are not set have the recorded values: the deployment of the profile, and
// the workload of the recorded results.
type Request api.SimulationRequest

// Modes are the routing modes that can be simulated.
var Modes = []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded}

// Limits are [api.SimulationLimits] with wider ranges for longer computations than the API allows. Some ranges depend
// on the profile besides: a cache must fit into the GPUs' memory.
var Limits = func() map[string]api.Limit {
	all := maps.Clone(api.SimulationLimits)
	all["levels"] = api.Limit{Min: 1, Max: 100_000, Unit: "conversations"}
	all["seeds"] = api.Limit{Min: 1, Max: 100}
	all["first_seed"] = api.Limit{Min: 0, Max: math.MaxUint32}
	all["workers"] = api.Limit{Min: 1, Max: 1024}
	return all
}()

// maxLevels is the maximum number of levels of a request.
const maxLevels = 100

// Defaults that do not come from the recorded results.
const (
	defaultProfile   = "h200-tp1"
	defaultSeeds     = 6 // as many as the recorded sweeps on H200
	defaultFirstSeed = 1

	defaultMaxInflight = 1000 // as in the load generator
)

var (
	defaultLevels = api.LevelsOf(60, 80, 100, 120, 140, 160, 180)
	defaultModes  = []api.Mode{api.ModeKV, api.ModeRoundRobin}
)

// Over returns the request with its unset fields taken from another request.
func (r Request) Over(other Request) Request {
	to, from := reflect.ValueOf(&r).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return r
}

// CheckTraffic refuses fields that the request's shape, or a trace, ignores, unless they have their defaults. The error
// is an *[api.FieldError].
func (r Request) CheckTraffic(trace bool) error {
	kind := api.TrafficKind{Trace: trace, Arrivals: api.ArrivalsPoisson}
	if r.Arrivals != nil {
		kind.Arrivals = *r.Arrivals
	}
	if r.Shape != nil {
		kind.Shape = *r.Shape
	}
	fields, defaults := reflect.ValueOf(&r).Elem(), reflect.ValueOf(Request{}.Complete(sim.H200()))
	for i := range fields.NumField() {
		if reflect.DeepEqual(fields.Field(i).Interface(), defaults.Field(i).Interface()) {
			fields.Field(i).SetZero()
		}
	}
	return kind.CheckRequest(api.SimulationRequest(r))
}

// Complete returns the request with every field set. Levels are sorted; levels and modes are distinct.
func (r Request) Complete(p sim.Profile) Request {
	w, o := closedloop.Recorded(), sim.DefaultOptions(p)
	full := r.Over(Request{
		Profile: &p.Name, Levels: defaultLevels, Modes: defaultModes,
		Seeds: new(defaultSeeds), FirstSeed: new(defaultFirstSeed),
		Shape: &api.TrafficShape{Preset: api.ShapeRecorded}, Trace: new(false), Openings: &w.Openings, OpeningTokens: new(0),
		Turns: &w.Turns, OutputTokens: w.Output, MaxTokens: &w.MaxTokens,
		QuestionTokens: &w.QuestionTokens, ThinkTime: new(w.ThinkTime.Seconds()), StartRate: &w.StartRate,
		Arrivals: new(api.ArrivalsPoisson), Burstiness: new(1.), MaxInflight: new(defaultMaxInflight),
		Workers: &p.Workers, MaxBatchSize: &p.MaxSequences, BlockSize: &p.KV.BlockTokens,
		KVTokens: new(p.KV.Tokens()), Speculation: &o.Speculation,
		OverlapWeight: &o.OverlapWeight, Temperature: &o.Temperature,
		RouterDecodeActiveRequestWeight: &o.Router.DecodeActiveRequestWeight,
		RouterTrackOutputBlocks:         &o.Router.TrackOutputBlocks,
		RouterAssumeKVReuse:             &o.Router.AssumeKVReuse,
	})
	full.Levels = slices.Compact(slices.SortedFunc(slices.Values(full.Levels), api.Level.Compare))
	full.Modes = distinct(full.Modes)
	return full
}

func distinct(modes []api.Mode) (once []api.Mode) {
	for _, m := range modes {
		if !slices.Contains(once, m) {
			once = append(once, m)
		}
	}
	return once
}

// Grid returns the grid of the request on one of the built-in profiles. An error is an *[api.FieldError] whose field
// is the JSON path in the request.
func (r Request) Grid() (Grid, error) {
	name := defaultProfile
	if r.Profile != nil {
		name = *r.Profile
	}
	p, err := sim.LoadProfile(name)
	if err != nil {
		return Grid{}, err
	}
	return r.GridOn(p)
}

// GridOn is [Request.Grid] with a given profile. It ignores the request's Profile.
func (r Request) GridOn(p sim.Profile) (Grid, error) {
	full := r.Complete(p)
	if err := full.check(); err != nil {
		return Grid{}, err
	}
	if err := full.fit(&p); err != nil {
		return Grid{}, err
	}
	g := Grid{
		Cluster: sim.DefaultOptions(p), Workload: full.workload(), Levels: full.Levels, Modes: full.Modes,
		Sweep: true, LeadIn: true,
	}
	o := &g.Cluster
	o.Speculation, o.OverlapWeight, o.Temperature = *full.Speculation, *full.OverlapWeight, *full.Temperature
	o.Router.DecodeActiveRequestWeight = *full.RouterDecodeActiveRequestWeight
	o.Router.TrackOutputBlocks, o.Router.AssumeKVReuse = *full.RouterTrackOutputBlocks, *full.RouterAssumeKVReuse
	for i := range *full.Seeds {
		g.Seeds = append(g.Seeds, uint64(*full.FirstSeed+i))
	}
	if _, err := sim.New(*o); err != nil {
		return Grid{}, err
	}
	return g, g.Workload.Validate()
}

// check compares a complete request with [Limits].
func (r Request) check() error {
	if len(r.Levels) < 1 || len(r.Levels) > maxLevels {
		return api.Refuse("levels", fmt.Sprintf("%d of them", len(r.Levels)), fmt.Sprintf("1 to %d levels", maxLevels))
	}
	if len(r.Modes) == 0 {
		return api.Refuse("modes", "none", fmt.Sprint("at least one of ", Modes))
	}
	for _, m := range r.Modes {
		if err := api.OneOf("modes", m, Modes); err != nil {
			return err
		}
	}
	return cmp.Or(r.Shape.Check(), api.CheckWithin(Limits, api.SimulationRequest(r)))
}

// workload returns the workload of a complete request, without level and seed.
func (r Request) workload() closedloop.Workload {
	w := closedloop.Recorded()
	if !r.Shape.Recorded() {
		w.Shape = *r.Shape
	}
	w.Turns, w.Openings, w.MaxTokens = *r.Turns, *r.Openings, *r.MaxTokens
	w.Output, w.QuestionTokens = r.OutputTokens, *r.QuestionTokens
	w.ThinkTime, w.StartRate = time.Duration(*r.ThinkTime*float64(time.Second)), *r.StartRate
	w.Arrivals, w.Burstiness, w.MaxInflight = *r.Arrivals, *r.Burstiness, *r.MaxInflight
	if n := *r.OpeningTokens; n > 0 {
		w.OpeningTokens = []int{n}
	}
	return w
}

// fit sets a profile's sizes to those of a complete request. It returns an error for sizes that the profile cannot
// have.
func (r Request) fit(p *sim.Profile) error {
	if least := r.longest() + *r.BlockSize; *r.KVTokens < least && r.Shape.Recorded() {
		allowed := fmt.Sprintf("at least %d: the longest conversation has to fit into one worker", least)
		return api.Refuse("kv_tokens", *r.KVTokens, allowed)
	}
	p.Workers, p.MaxSequences = *r.Workers, *r.MaxBatchSize
	p.KV.BlockTokens, p.KV.Blocks = *r.BlockSize, *r.KVTokens / *r.BlockSize
	err := p.Validate()
	var field *api.FieldError
	if errors.As(err, &field) {
		switch field.Field { // translate profile fields to fields of the request
		case "memory.gpu":
			const gib = 1 << 30
			room := (p.Memory.GPU*float64(p.TensorParallel) - p.Memory.Weights) * gib / float64(p.KV.BytesPerToken)
			allowed := fmt.Sprintf("less than %.0f: what fits in the memory of a worker's GPUs besides the weights", room)
			return api.Refuse("kv_tokens", *r.KVTokens, allowed)
		case "max_batched_tokens":
			allowed := fmt.Sprintf("fewer: an iteration of %d tokens has to leave room to prefill", p.MaxBatchedTokens)
			return api.Refuse("max_batch_size", *r.MaxBatchSize, allowed)
		}
	}
	return err
}

// longest returns an upper bound on the tokens of a conversation with its last answer. Random lengths are taken as
// five standard deviations above their mean.
func (r Request) longest() int {
	far := func(d api.Distribution) int { return int(math.Ceil(d.Mean * (1 + 5*d.CV))) }
	answer := *r.MaxTokens
	if r.OutputTokens.Mean > 0 {
		answer = min(answer, max(far(*r.OutputTokens), 1))
	}
	return slices.Max(r.workload().OpeningTokens) + r.Turns.Max*answer + (r.Turns.Max-1)*far(*r.QuestionTokens)
}

// Preset is a common question with a name.
type Preset struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Request Request `json:"request"` // relative to the profile of [Presets]
}

// PresetNames are the names of the presets, the recorded setting first.
var PresetNames = []string{"as-recorded", "twice-the-gpus", "own-documents", "batch-128"}

// Presets returns all presets for a profile.
func Presets(p sim.Profile) []Preset {
	return []Preset{
		{PresetNames[0], "As recorded", Request{}},
		{PresetNames[1], "Twice the GPUs", Request{Workers: new(2 * p.Workers)}},
		{PresetNames[2], "One document per user", Request{Openings: new(0)}},
		{PresetNames[3], "Batch 128", Request{MaxBatchSize: new(128)}},
	}
}

// FindPreset returns a preset by its name. An unknown name gives an *[api.FieldError] with the field "preset".
func FindPreset(name string, p sim.Profile) (Preset, error) {
	for _, preset := range Presets(p) {
		if preset.Name == name {
			return preset, nil
		}
	}
	return Preset{}, api.Refuse("preset", fmt.Sprintf("%.40q", name), "one of "+strings.Join(PresetNames, ", "))
}
