//go:build verify

package intervals

import (
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// setting is constant in a run. The workload is the recorded one.
type setting struct {
	concurrency int
	mode        api.Mode
	seed        uint64
	slower      float64 // factor on the duration of all iterations; 0: 1
}

// run runs a cluster in a setting until a virtual time, from [began] on. first receives the TTFT of each turn at its
// first token. A turn that has ended belongs to no step yet.
func run(
	s setting, until time.Duration, tokens func(time.Duration, int), first func(at, ttft time.Duration),
	ended func(t api.Turn, gaps []chat.Gap),
) error {
	o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
	o.Mode, o.Seed = s.mode, s.seed
	w.Concurrency, w.Seed = s.concurrency, s.seed
	if s.slower != 0 {
		slow(&o.Profile, s.slower)
	}
	l, err := closedloop.New(o, w)
	if err != nil {
		return err
	}
	type turn struct {
		last time.Duration // time of the last tokens
		gaps []chat.Gap
	}
	open := map[int64]*turn{} // by conversation
	l.OnTokens = func(t *closedloop.Turn, at time.Duration, n int) {
		tokens(at, n)
		if u := open[t.Conversation]; u != nil {
			u.gaps = append(u.gaps, chat.Gap{Seconds: (at - u.last).Seconds() / float64(n), Tokens: float64(n)})
			u.last = at
			return
		}
		open[t.Conversation] = &turn{last: at}
		first(at, at-t.Submitted)
	}
	l.OnTurn = func(t *closedloop.Turn) {
		tpot, _ := t.TPOT()
		ended(api.Turn{
			Number: t.Number, Status: api.TurnOK, Ended: began.Add(t.Ended),
			TTFT: new(t.TTFT().Seconds()), TPOT: new(tpot.Seconds()), Latency: new(t.Latency().Seconds()),
			PromptTokens: &t.PromptTokens, CachedTokens: &t.CachedTokens, OutputTokens: &t.OutputTokens,
		}, open[t.Conversation].gaps)
		delete(open, t.Conversation)
	}
	return l.Run(until)
}

// slow multiplies the duration of all iterations.
func slow(p *sim.Profile, factor float64) {
	for _, c := range p.Constants() {
		if strings.HasPrefix(c.Name, "step.") && c.Name != "step.jitter" {
			c.Set(p, factor*c.Get(p))
		}
	}
}
