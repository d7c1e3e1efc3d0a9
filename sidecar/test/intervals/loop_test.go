//go:build verify

package intervals

import (
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/test/virtual"
)

// run runs a cluster in a setting until a virtual time, from [began] on. first receives the TTFT of each turn at its
// first token. A turn that has ended belongs to no step yet.
func run(
	s virtual.Setting, until time.Duration, tokens func(time.Duration, int), first func(at, ttft time.Duration),
	ended func(t api.Turn, gaps []chat.Gap),
) error {
	l, _, err := s.Loop()
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
