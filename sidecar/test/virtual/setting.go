package virtual

import (
	"cmp"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Setting is a closed loop with the recorded workload on the simulated H200s. The profile is fitted to the record, so
// that the modes differ as they did there.
type Setting struct {
	Concurrency int
	Mode        api.Mode
	Draws       uint64    // seed of the workload
	System      uint64    // seed of the cluster
	Slower      float64   // factor on the duration of all iterations; 0: 1
	SlowerGPU   float64   // factor on the duration of what the GPUs do in them; 0: 1
	Prefill     float64   // factor on the duration of prefill, 1 or more; 0: 1
	Openings    int       // 0: the recorded ten
	Turns       api.Range // zero: the recorded five
	// Ramped starts conversations in their midst, as a trial does. Otherwise they start at their beginning, as in a run
	// and a capacity search.
	Ramped bool
}

// Loop returns a loop that has not run yet, and its workload.
func (s Setting) Loop() (*closedloop.Loop, closedloop.Workload, error) {
	o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
	o.Mode, o.Seed = s.Mode, s.System
	slow(&o.Profile, cmp.Or(s.Slower, 1), false)
	slow(&o.Profile, cmp.Or(s.SlowerGPU, 1), true)
	slowPrefill(&o.Profile.Step, cmp.Or(s.Prefill, 1))
	w.Level, w.Seed = api.AtConversations(s.Concurrency), s.Draws
	w.Openings, w.Turns = cmp.Or(s.Openings, w.Openings), cmp.Or(s.Turns, w.Turns)
	if s.Ramped {
		w.RampedStart = int64(s.Concurrency)
	}
	l, err := closedloop.New(o, w)
	return l, w, err
}

// slow multiplies the duration of all iterations, or only of what the GPU does in them. With a factor below 1,
// attention keeps its duration, since the profile has it at the GPU's peak.
func slow(p *sim.Profile, factor float64, gpu bool) {
	for _, c := range p.Constants() {
		switch {
		case !strings.HasPrefix(c.Name, "step.") || c.Name == "step.jitter":
		case gpu && (strings.HasPrefix(c.Name, "step.host") || strings.HasSuffix(c.Name, "].per_sequence")):
		case c.Name == "step.per_context_token" || c.Name == "step.per_chunk_context":
			c.Set(p, max(factor, 1)*c.Get(p))
		default:
			c.Set(p, factor*c.Get(p))
		}
	}
}

// slowPrefill multiplies the duration of prefill. The profile must have its floors for itself.
func slowPrefill(c *sim.StepCost, factor float64) {
	c.PerPrefillToken *= factor
	c.PerChunkContext *= factor
	for i := range c.Floors {
		if c.Floors[i].Prefill {
			c.Floors[i].Milliseconds *= factor
		}
	}
}
