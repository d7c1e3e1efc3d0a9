package workload

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/traffic"
)

// Settings define a workload. They may change while it runs; a conversation keeps the draw that it
// began with. The names in JSON are those of the API and of the configuration, which reads the tags: defaults, ranges
// and help are those of [api.WorkloadSettings], to which a help in a tag is added.
type Settings struct {
	Level        api.Level        `json:"concurrency" kong:"-"`   // conversations in progress
	Ramp         api.Ramp         `json:"ramp,omitzero" kong:"-"` // how a rate is reached
	Turns        api.Range        `json:"turns" embed:"" prefix:"turns."`
	TrafficShape api.TrafficShape `json:"shape" embed:"" prefix:"shape."`
	Openings     Openings         `json:"openings" placeholder:"N" help:"Default: as many as the corpus has (10 built-in articles). Any beyond that are generated from its texts."`
	MaxTokens    int              `json:"max_tokens" basic:""`                            // limit of an answer
	OutputTokens api.Distribution `json:"output_tokens" embed:"" prefix:"output_tokens."` // of max_tokens per turn; mean 0: always MaxTokens
	StartRate    float64          `json:"start_rate"`                                     // maximum of new conversations per second
	TargetRPS    float64          `json:"target_rps"`                                     // maximum of requests per second; 0: none
	ThinkTime    time.Duration    `json:"think_time"`                                     // pause between an answer and the follow-up

	// Arrivals and Burstiness are those of an [arrival.Schedule], at a level that is a rate.
	Arrivals    api.Arrivals `json:"arrivals,omitempty" oneof:"constant poisson gamma"`
	Burstiness  float64      `json:"burstiness,omitempty"`
	MaxInflight int          `json:"max_inflight,omitempty"` // from which arrivals at a rate are dropped
}

// Shape returns what of the settings affects results, for a corpus. exact is that of [Plan.Shape].
func (s Settings) Shape(c *corpus.Corpus, exact bool) api.WorkloadShape {
	if !s.TrafficShape.Recorded() {
		return (&Plan{Timed: traffic.Timed{Speed: 1}, Name: s.planName()}).Shape(s, exact)
	}
	return api.WorkloadShape{
		Turns: c.Turns(s.Turns), MaxTokens: s.MaxTokens, Openings: new(s.Openings.Of(c)), OpeningTokens: c.Length,
		OutputTokens: s.lengths(), ThinkTime: new(s.ThinkTime.Seconds()), TargetRPS: new(s.TargetRPS),
		Arrivals: s.arrivalsText(),
	}
}

// arrivalsText describes how conversations come at a rate, empty at a number of them.
func (s Settings) arrivalsText() string {
	switch {
	case s.Level.Kind != api.Rate:
		return ""
	case s.Arrivals == api.ArrivalsGamma:
		return fmt.Sprintf("%s, burstiness %v", s.Arrivals, s.Burstiness)
	}
	return string(s.Arrivals)
}

// lengths returns the distribution of the lengths of answers, nil without one.
func (s Settings) lengths() *api.Distribution {
	if s.OutputTokens.Mean == 0 {
		return nil
	}
	return &s.OutputTokens
}

// Openings is the number of different texts that open the conversations, or one of the constants.
type Openings int

// With AsMany, there are as many openings as the corpus in use has texts. With OneEach, every
// conversation of a process opens with a text of its own.
const (
	AsMany  Openings = 0
	OneEach Openings = -1
)

// OpeningsOf converts the number in the API, where 0 means [OneEach].
func OpeningsOf(n int) Openings {
	if n == 0 {
		return OneEach
	}
	return Openings(n)
}

// UnmarshalText parses the number in the API. The empty text is [AsMany].
func (o *Openings) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*o = AsMany
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || !api.Limits["openings"].Allows(float64(n)) {
		return api.Refuse("openings", string(text), o.Allowed())
	}
	*o = OpeningsOf(n)
	return nil
}

// Allowed describes the texts that [Openings.UnmarshalText] accepts.
func (Openings) Allowed() string { return "a whole number, " + api.Limits["openings"].String() }

// String returns the text that [Openings.UnmarshalText] parses.
func (o Openings) String() string {
	switch o {
	case AsMany:
		return ""
	case OneEach:
		return "0"
	}
	return strconv.Itoa(int(o))
}

// Of returns the number in the API, for a corpus.
func (o Openings) Of(c *corpus.Corpus) int {
	switch o {
	case AsMany:
		return len(c.Starters)
	case OneEach:
		return 0
	}
	return int(o)
}

// Apply returns the settings changed by a patch. The error is an [api.FieldError] that names the
// invalid field; then s is returned unchanged.
func (s Settings) Apply(p api.WorkloadPatch, maxConcurrency int) (Settings, error) {
	if err := api.CheckLimits(p); err != nil {
		return s, err
	}
	next := s
	if p.Level != nil {
		next.Ramp = api.Ramp{}
	}
	api.Merge(&next, p)
	if p.TrafficShape != nil && next.TrafficShape.Recorded() {
		next.TrafficShape.Preset = api.ShapeRecorded
	}
	if p.Openings != nil {
		next.Openings = OpeningsOf(*p.Openings)
	}
	if err := next.Check(maxConcurrency); err != nil {
		return s, err
	}
	return next, nil
}

// load returns what the settings and a plan say of when conversations begin. draws says which arrivals come at a rate.
func (s Settings) load(o *Options, draws arrivalDraws) arrival.Load {
	l := arrival.Load{
		Level: s.Level, StartRate: s.StartRate,
		Schedule: arrival.Schedule{Gaps: s.Arrivals, Burstiness: s.Burstiness, Seed: draws.seed, First: draws.first},
		From:     s.Ramp.From.Value, Over: time.Duration(s.Ramp.Seconds * float64(time.Second)),
	}
	if o.Plan != nil {
		l.Times, l.Speed = o.Plan.Times, o.Plan.speed(s.Level)
	}
	return l
}

// arrivalDraws are the seed of the arrivals at a rate, and the number of the conversation that has the first draws.
type arrivalDraws struct {
	seed  uint64
	first int64
}

// drawsAs reports whether both settings draw the same conversations.
func (s Settings) drawsAs(o Settings) bool {
	return s.Turns == o.Turns && s.Openings == o.Openings && s.MaxTokens == o.MaxTokens &&
		s.OutputTokens == o.OutputTokens && s.TrafficShape == o.TrafficShape
}

// CheckContext checks that what conversations begin with leaves room for an answer in the context of a model, which
// holds so many tokens; 0 means unknown. The error is an [api.FieldError].
func (s Settings) CheckContext(c *corpus.Corpus, tokens int) error {
	if _, err := s.ShapePlan(0, tokens); err != nil || tokens == 0 || !s.TrafficShape.Recorded() {
		return err
	}
	if most := tokens - s.MaxTokens - questionTokens; c.Length > most {
		return api.Refuse("opening_tokens", c.Length, fmt.Sprintf(
			"at most %d before answers of %d (max_tokens) in the context of the model, %d tokens", most, s.MaxTokens, tokens))
	}
	return nil
}

// Check checks every field against its range. The error is an [api.FieldError].
func (s Settings) Check(maxConcurrency int) error {
	if err := cmp.Or(s.Ramp.Check(s.Level), api.CheckLimits(s)); err != nil {
		return err
	}
	if _, err := s.ShapePlan(0, 0); err != nil {
		return err
	}
	if s.Level.Kind == api.Rate && s.TargetRPS > 0 {
		return api.Refuse("target_rps", s.TargetRPS,
			fmt.Sprintf("0 at a rate, here %v: it would hold arrivals back", s.Level))
	}
	if s.Level.Conversations() > maxConcurrency {
		return api.Refuse("concurrency", s.Level, fmt.Sprintf("1 to %d (max_concurrency)", maxConcurrency))
	}
	if s.Openings < OneEach || s.Openings > api.MaxOpenings {
		return api.Refuse("openings", int(s.Openings), api.Limits["openings"].String())
	}
	return nil
}
