package compare

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
)

// unexplained is what is said where no known difference of the two clusters would
// have this sign.
const unexplained = "against what is known of both; see whether the machine had time for both, and measure longer"

// whyHit and whyStay: the costs of the two routers are the same, so what differs
// comes from what they are asked, and when.
func whyHit(p *pair, _ bool) string {
	core := p.mean(func(r *result) float64 { return r.prompt })
	if math.Abs(core/p.real.prompt-1) >= alike {
		return fmt.Sprintf("the prompts differ, %.0f tokens against %.0f in the mean", core, p.real.prompt)
	}
	return unexplained
}

func whyStay(p *pair, above bool) string {
	if p.mode == api.ModeRoundRobin && !above {
		return "which conversation ends next decides it, not the router: a prefill holds up the others on its worker, so the next turn seldom comes from there; a mock worker's prefills hold them up for longer"
	}
	return unexplained
}

func whySpread(*pair, bool) string { return unexplained }

// whyTTFT: the simulation has what the recorded frontend and engine add.
func whyTTFT(p *pair, above bool) string {
	f, core := p.profile.Frontend, p.mean(func(r *result) float64 { return r.uncached })
	switch {
	case above:
		return fmt.Sprintf("the simulation adds the recorded frontend's %.0f ms and lets tokens leave %.2f of a step late; mock workers do neither",
			f.In+f.Out, p.profile.HandOver)
	case core < p.real.uncached*(1-alike):
		return fmt.Sprintf("fewer tokens to prefill, %.0f a turn against %.0f", core, p.real.uncached)
	}
	return "mock workers take the prefills and the decode step of an iteration one after the other, so a request waits longer behind others' prefills"
}

// whyTPOT: what a prefill costs those who decode meanwhile.
func whyTPOT(p *pair, above bool) string {
	if above {
		return unexplained
	}
	return fmt.Sprintf("mock workers take a prefill, with a base of its own of %.0f ms, and a decode step one after the other, and give one token for both; an iteration of the simulation does both at once and gives %.2f",
		p.profile.Step.Host+p.profile.Step.Base, p.profile.TokensPerStep())
}

// whyRate: in a closed loop, conversations × tokens of a turn / its time.
func whyRate(p *pair, _ bool) string {
	expected := p.mean(func(r *result) float64 { return r.output / turnTime(r) }) * turnTime(&p.real) / p.real.output
	if math.Abs(expected/(p.mean(func(r *result) float64 { return r.rate })/p.real.rate)-1) < alike {
		return "the loop is closed: it follows from TTFT and TPOT"
	}
	return "more than TTFT and TPOT explain: the spans caught the conversations at different points; measure longer"
}

// turnTime is about how long a turn takes, in seconds.
func turnTime(r *result) float64 { return known(r.ttft.P50) + (r.output-1)*known(r.tpot.P50) }

// mean is that of a figure over the runs of the core.
func (p *pair) mean(of func(*result) float64) float64 { return bandOf(p.core, of).mean }
