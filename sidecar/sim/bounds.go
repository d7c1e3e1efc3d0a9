package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// Compute describes the arithmetic of one GPU and of the model. Together they bound the least time per token.
type Compute struct {
	// TFLOPS is the dense peak of one GPU at the profile's precision, as the manufacturer states it.
	TFLOPS float64 `yaml:"tflops"`
	// Parameters of the model, in billions. Each takes two operations per token.
	Parameters float64 `yaml:"parameters"`
	// Attention is layers × heads × width of a head. Each takes four operations for every pair of a token and an earlier
	// one.
	Attention float64 `yaml:"attention"`
}

// Origin classifies where a constant comes from.
type Origin string

// The origins of a constant.
const (
	Fitted  Origin = "fitted"  // fitted to the baseline
	Derived Origin = "derived" // from data sheets or another profile; Source.From has the details
	Assumed Origin = "assumed" // no recorded data supports it
)

// Source documents where a constant comes from.
type Source struct {
	Origin Origin `yaml:"origin"`
	From   string `yaml:"from"` // the data and the reasoning, in words
}

// Constant is a number of a profile's timing, with the bounds that the profile's GPUs and model set, independent of
// measurements. The unit is milliseconds, except for shares and tokens.
type Constant struct {
	Name      string  // path of the constant in the YAML form
	Low, High float64 // bounds of a fit, both included
	Why       string  // the reason for the bounds

	Get func(*Profile) float64
	// Set changes the constant in this profile only, not in copies of it. It does not check the bounds.
	Set func(*Profile, float64)
}

// Constants returns the constants of a profile's timing with their bounds, in a fixed order. The bounds depend only
// on GPUs, memory and model, not on the constants.
//
// A worker cannot read its weights or its cache faster than the bandwidth of its GPUs, and cannot compute faster than
// their peak. Upper bounds allow for what kernels reach: at least a quarter of the peak.
func (p *Profile) Constants() []Constant {
	gpus := float64(p.TensorParallel)
	reading := p.reading()
	perToken := 2 * p.Compute.Parameters * 1e9 / (gpus * p.Compute.TFLOPS * 1e12) * 1000 // ms
	perPair := 4 * p.Compute.Attention / (gpus * p.Compute.TFLOPS * 1e12) * 1000
	perContext := float64(p.KV.BytesPerToken) / (gpus * p.Memory.Bandwidth * 1e9) * 1000
	verified := float64(1 + p.Speculation[api.SpeculationNotRecorded].DraftTokens)

	all := []Constant{
		constant("step.host", 0, maxFloor, "nothing, or as long as launching the kernels one by one",
			func(p *Profile) *float64 { return &p.Step.Host }),
		constant("step.host_per_sequence", 0, hostPerSequence,
			"what the host spends on a sequence in an iteration: its inputs, sampling, its answer's text",
			func(p *Profile) *float64 { return &p.Step.HostPerSequence }),
		constant("step.base", reading, 4*reading,
			"the weights are read once an iteration, at the full bandwidth, or at a quarter of it",
			func(p *Profile) *float64 { return &p.Step.Base }),
		constant("step.per_sequence", 0, 4*verified*perToken,
			"nothing while reading the weights takes longer; its tokens at a quarter of the peak",
			func(p *Profile) *float64 { return &p.Step.PerSequence }),
		constant("step.per_context_token", perContext, 4*perContext,
			"keys and values are read at the full bandwidth, or at a quarter of it",
			func(p *Profile) *float64 { return &p.Step.PerContextToken }),
		constant("step.per_prefill_token", perToken, 4*perToken,
			"two operations a parameter at the GPUs' peak, or at a quarter of it",
			func(p *Profile) *float64 { return &p.Step.PerPrefillToken }),
		constant("step.per_chunk_context", perPair, 8*perPair,
			"attention at the GPUs' peak, or at an eighth of it: a quarter, at twice the precision",
			func(p *Profile) *float64 { return &p.Step.PerChunkContext }),
		constant("step.jitter", 0, maxJitter, "larger values would give iterations of zero duration",
			func(p *Profile) *float64 { return &p.Step.Jitter }),
	}
	for i := range p.Step.Floors {
		name := fmt.Sprintf("step.floors[%d].", i)
		all = append(all,
			constant(name+"milliseconds", reading, maxFloor,
				"no less than without a floor; a host launches a layer of the model in 2 ms at most",
				func(p *Profile) *float64 { return &p.Step.Floors[i].Milliseconds }),
			constant(name+"per_sequence", 0, hostPerSequence, "as step.host_per_sequence",
				func(p *Profile) *float64 { return &p.Step.Floors[i].PerSequence }))
	}
	return append(all,
		constant("uneven", 0, .15, "no two machines are equally fast; a worker a third slower would be replaced",
			func(p *Profile) *float64 { return &p.Uneven }),
		constant("hand_over", 0, 1, "tokens leave during the iteration after theirs",
			func(p *Profile) *float64 { return &p.HandOver }),
		constant("frontend.in", 1, 100, "template, tokenizer and router, on a CPU",
			func(p *Profile) *float64 { return &p.Frontend.In }),
		constant("frontend.out", 0, 50, "text of a token, on a CPU, and the network",
			func(p *Profile) *float64 { return &p.Frontend.Out }),
		Constant{
			Name: "speculation." + string(api.SpeculationNotRecorded) + ".tokens_per_step", Low: 1, High: verified,
			Why: "an iteration gives a sequence one token at least, at most one more than are drafted",
			Get: (*Profile).tokensPerStep, Set: (*Profile).setTokensPerStep,
		},
	)
}

// constant returns the constant that is a field of the profile.
func constant(name string, low, high float64, why string, field func(*Profile) *float64) Constant {
	return Constant{
		Name: name, Low: low, High: high, Why: why,
		Get: func(p *Profile) float64 { return *field(p) },
		Set: func(p *Profile, v float64) {
			p.Step.Floors = slices.Clone(p.Step.Floors) // copies of the profile share them
			*field(p) = v
		},
	}
}

// hostPerSequence is the most that the host may spend on a sequence in an iteration, in milliseconds.
const hostPerSequence = 1

// maxFloor is the largest floor of an iteration, in milliseconds: the launch of the kernels of 80 layers, 2 ms each.
const maxFloor = 160

func (p *Profile) tokensPerStep() float64 { return p.TokensPerStep() }

// setTokensPerStep raises all acceptances of the deployment as recorded to one power, so that the mean number of
// tokens per step becomes the given one.
func (p *Profile) setTokensPerStep(tokens float64) {
	s := p.Speculation[api.SpeculationNotRecorded]
	given := s.Acceptance
	low, high := 1e-6, 1e6 // powers: all accepted, nothing accepted
	for range 100 {
		power := math.Sqrt(low * high)
		s.Acceptance = slices.Clone(given)
		for i, a := range given {
			s.Acceptance[i] = math.Pow(a, power)
		}
		if s.TokensPerStep() > tokens {
			low = power
		} else {
			high = power
		}
	}
	p.Speculation = maps.Clone(p.Speculation)
	p.Speculation[api.SpeculationNotRecorded] = s
}

// validateConstants checks that the constants are within their bounds, and that the profile names the source of
// each constant and of nothing else.
func (p Profile) validateConstants() error {
	constants := p.Constants()
	names := make([]string, 0, len(constants))
	for _, c := range constants {
		names = append(names, c.Name)
		if v := c.Get(&p); !(c.Low*(1-rounding) <= v && v <= c.High*(1+rounding)) { // also refuses NaN
			return api.Refuse(c.Name, v, fmt.Sprintf("%.4g to %.4g: %s", c.Low, c.High, c.Why))
		}
		field := "sources." + c.Name
		s, ok := p.Sources[c.Name]
		switch {
		case !ok:
			return api.Require(field, "where the constant comes from")
		case s.Origin != Fitted && s.Origin != Derived && s.Origin != Assumed:
			return api.Refuse(field+".origin", s.Origin, fmt.Sprint([]Origin{Fitted, Derived, Assumed}))
		case s.Origin == Fitted && p.Baseline == "":
			return api.Refuse(field+".origin", s.Origin, "derived or assumed, in a profile without a baseline")
		case s.From == "":
			return api.Refuse(field+".from", "", "some text")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Sources)) {
		if !slices.Contains(names, name) {
			return api.Refuse("sources", name, fmt.Sprint(names))
		}
	}
	return nil
}

// rounding is the share by which a constant may exceed its bound, because written constants have few digits.
const rounding = .005
