package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Request describes a simulation with the names of the command line and of the API. Fields that are not set have the
// recorded values: the deployment of the profile, and the workload of the recorded results.
type Request struct {
	Profile   *string    `json:"profile,omitempty"`    // name of a [sim.Profile]
	Levels    []int      `json:"levels,omitempty"`     // concurrencies
	Modes     []api.Mode `json:"modes,omitempty"`      // of the router
	Seeds     *int       `json:"seeds,omitempty"`      // runs per point
	FirstSeed *int       `json:"first_seed,omitempty"` // the following seeds are consecutive

	// The workload.
	Openings         *int              `json:"openings,omitempty"`       // different texts; 0 means one per conversation
	OpeningTokens    *int              `json:"opening_tokens,omitempty"` // 0 means 3,500 to 4,000, as recorded
	Turns            *api.Range        `json:"turns,omitempty"`
	OutputTokens     *api.Distribution `json:"output_tokens,omitempty"` // up to max_tokens; mean 0 means always max_tokens
	MaxTokens        *int              `json:"max_tokens,omitempty"`    // limit of an answer
	QuestionTokens   *api.Distribution `json:"question_tokens,omitempty"`
	ThinkTimeSeconds *float64          `json:"think_time_seconds,omitempty"`
	StartRate        *float64          `json:"start_rate,omitempty"` // maximum number of new conversations per second

	// The cluster.
	Workers      *int             `json:"workers,omitempty"`
	MaxBatchSize *int             `json:"max_batch_size,omitempty"` // maximum number of sequences per iteration
	BlockSize    *int             `json:"block_size,omitempty"`     // tokens per block of the KV cache
	KVTokens     *int             `json:"kv_tokens,omitempty"`      // per worker, rounded down to whole blocks
	Speculation  *api.Speculation `json:"speculation,omitempty"`

	// Dynamo's router under kv.
	OverlapWeight                   *float64 `json:"overlap_weight,omitempty"`
	Temperature                     *float64 `json:"temperature,omitempty"`
	RouterDecodeActiveRequestWeight *float64 `json:"router_decode_active_request_weight,omitempty"`
	RouterTrackOutputBlocks         *bool    `json:"router_track_output_blocks,omitempty"`
	RouterAssumeKVReuse             *bool    `json:"router_assume_kv_reuse,omitempty"`
}

// Modes are the routing modes that can be simulated.
var Modes = []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded}

// Limits are the ranges of a [Request]'s numbers, by their JSON paths. Some ranges depend on the profile besides: a
// cache must fit into the GPUs' memory.
var Limits = map[string]api.Limit{
	"levels":               {Min: 1, Max: 100_000, Unit: "conversations"},
	"seeds":                {Min: 1, Max: 100},
	"first_seed":           {Min: 0, Max: math.MaxUint32},
	"openings":             api.Limits["openings"],
	"opening_tokens":       {Min: 0, Max: api.MaxTokens},
	"turns.min":            api.Limits["turns.min"],
	"turns.max":            api.Limits["turns.max"],
	"output_tokens.mean":   api.Limits["output_tokens.mean"],
	"output_tokens.cv":     api.Limits["output_tokens.cv"],
	"max_tokens":           api.Limits["max_tokens"],
	"question_tokens.mean": {Min: 1, Max: api.MaxTokens},
	"question_tokens.cv":   {Min: 0, Max: 2},
	"think_time_seconds":   api.Limits["think_time"],
	"start_rate":           api.Limits["start_rate"],
	"workers":              {Min: 1, Max: 1024},
	"max_batch_size":       {Min: 1, Max: 512, Unit: "sequences"},
	"block_size":           {Min: 1, Max: 1024, Unit: "tokens"},
	"kv_tokens":            {Min: 1024, Max: 1 << 30},
	"overlap_weight":       {Min: 0, Max: 1000},
	"temperature":          {Min: 0, Max: 1000},

	"router_decode_active_request_weight": {Min: 0, Max: 1000, Unit: "blocks"},
}

// maxLevels is the maximum number of levels of a request.
const maxLevels = 100

// Defaults that do not come from the recorded results.
const (
	defaultProfile   = "h200-tp1"
	defaultSeeds     = 6 // as many as the recorded sweeps on H200
	defaultFirstSeed = 1
)

var (
	defaultLevels = []int{60, 80, 100, 120, 140, 160, 180}
	defaultModes  = []api.Mode{api.ModeKV, api.ModeRoundRobin}
)

// Over returns the request with its unset fields taken from another request.
func (r Request) Over(other Request) Request {
	return Request{
		Profile:   cmp.Or(r.Profile, other.Profile),
		Levels:    either(r.Levels, other.Levels),
		Modes:     either(r.Modes, other.Modes),
		Seeds:     cmp.Or(r.Seeds, other.Seeds),
		FirstSeed: cmp.Or(r.FirstSeed, other.FirstSeed),

		Openings:         cmp.Or(r.Openings, other.Openings),
		OpeningTokens:    cmp.Or(r.OpeningTokens, other.OpeningTokens),
		Turns:            cmp.Or(r.Turns, other.Turns),
		OutputTokens:     cmp.Or(r.OutputTokens, other.OutputTokens),
		MaxTokens:        cmp.Or(r.MaxTokens, other.MaxTokens),
		QuestionTokens:   cmp.Or(r.QuestionTokens, other.QuestionTokens),
		ThinkTimeSeconds: cmp.Or(r.ThinkTimeSeconds, other.ThinkTimeSeconds),
		StartRate:        cmp.Or(r.StartRate, other.StartRate),

		Workers:      cmp.Or(r.Workers, other.Workers),
		MaxBatchSize: cmp.Or(r.MaxBatchSize, other.MaxBatchSize),
		BlockSize:    cmp.Or(r.BlockSize, other.BlockSize),
		KVTokens:     cmp.Or(r.KVTokens, other.KVTokens),
		Speculation:  cmp.Or(r.Speculation, other.Speculation),

		OverlapWeight:                   cmp.Or(r.OverlapWeight, other.OverlapWeight),
		Temperature:                     cmp.Or(r.Temperature, other.Temperature),
		RouterDecodeActiveRequestWeight: cmp.Or(r.RouterDecodeActiveRequestWeight, other.RouterDecodeActiveRequestWeight),
		RouterTrackOutputBlocks:         cmp.Or(r.RouterTrackOutputBlocks, other.RouterTrackOutputBlocks),
		RouterAssumeKVReuse:             cmp.Or(r.RouterAssumeKVReuse, other.RouterAssumeKVReuse),
	}
}

func either[T any](a, b []T) []T {
	if a == nil {
		return b
	}
	return a
}

// Complete returns the request with every field set. Levels are sorted; levels and modes are distinct.
func (r Request) Complete(p sim.Profile) Request {
	w, o := closedloop.Recorded(), sim.DefaultOptions(p)
	full := r.Over(Request{
		Profile: &p.Name, Levels: defaultLevels, Modes: defaultModes,
		Seeds: new(defaultSeeds), FirstSeed: new(defaultFirstSeed),
		Openings: &w.Openings, OpeningTokens: new(0), Turns: &w.Turns, OutputTokens: w.Output, MaxTokens: &w.MaxTokens,
		QuestionTokens: &w.QuestionTokens, ThinkTimeSeconds: new(w.ThinkTime.Seconds()), StartRate: &w.StartRate,
		Workers: &p.Workers, MaxBatchSize: &p.MaxSequences, BlockSize: &p.KV.BlockTokens,
		KVTokens: new(p.KV.Tokens()), Speculation: &o.Speculation,
		OverlapWeight: &o.OverlapWeight, Temperature: &o.Temperature,
		RouterDecodeActiveRequestWeight: &o.Router.DecodeActiveRequestWeight,
		RouterTrackOutputBlocks:         &o.Router.TrackOutputBlocks,
		RouterAssumeKVReuse:             &o.Router.AssumeKVReuse,
	})
	full.Levels = slices.Compact(slices.Sorted(slices.Values(full.Levels)))
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

// number is a number of a request, with its JSON path.
type number struct {
	path  string
	value float64
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
	for _, level := range r.Levels {
		if err := (number{"levels", float64(level)}).check(); err != nil {
			return err
		}
	}
	for _, n := range []number{
		{"seeds", float64(*r.Seeds)},
		{"first_seed", float64(*r.FirstSeed)},
		{"openings", float64(*r.Openings)},
		{"opening_tokens", float64(*r.OpeningTokens)},
		{"turns.min", float64(r.Turns.Min)},
		{"turns.max", float64(r.Turns.Max)},
		{"output_tokens.mean", r.OutputTokens.Mean},
		{"output_tokens.cv", r.OutputTokens.CV},
		{"max_tokens", float64(*r.MaxTokens)},
		{"question_tokens.mean", r.QuestionTokens.Mean},
		{"question_tokens.cv", r.QuestionTokens.CV},
		{"think_time_seconds", *r.ThinkTimeSeconds},
		{"start_rate", *r.StartRate},
		{"workers", float64(*r.Workers)},
		{"max_batch_size", float64(*r.MaxBatchSize)},
		{"block_size", float64(*r.BlockSize)},
		{"kv_tokens", float64(*r.KVTokens)},
		{"overlap_weight", *r.OverlapWeight},
		{"temperature", *r.Temperature},
		{"router_decode_active_request_weight", *r.RouterDecodeActiveRequestWeight},
	} {
		if err := n.check(); err != nil {
			return err
		}
	}
	if r.Turns.Min > r.Turns.Max {
		return api.Refuse("turns.min", r.Turns.Min, fmt.Sprintf("1 to %d", r.Turns.Max))
	}
	return nil
}

func (n number) check() error {
	if limit := Limits[n.path]; !limit.Allows(n.value) {
		return api.Refuse(n.path, n.value, limit.String())
	}
	return nil
}

// workload returns the workload of a complete request, without concurrency and seed.
func (r Request) workload() closedloop.Workload {
	w := closedloop.Recorded()
	w.Turns, w.Openings, w.MaxTokens = *r.Turns, *r.Openings, *r.MaxTokens
	w.Output, w.QuestionTokens = r.OutputTokens, *r.QuestionTokens
	w.ThinkTime, w.StartRate = time.Duration(*r.ThinkTimeSeconds*float64(time.Second)), *r.StartRate
	if n := *r.OpeningTokens; n > 0 {
		w.OpeningTokens = []int{n}
	}
	return w
}

// fit sets a profile's sizes to those of a complete request. It returns an error for sizes that the profile cannot
// have.
func (r Request) fit(p *sim.Profile) error {
	if least := r.longest() + *r.BlockSize; *r.KVTokens < least {
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
