package main

import (
	"cmp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// exportTurns exports the turns of a side's lane as traces.
func (g *generator) exportTurns(s *side, l *lane.Options) {
	addresses := map[api.ModeState]string{}
	for _, a := range s.conf.Mode.Addresses() {
		addresses[a.State] = a.URL
	}
	ended := l.Ended
	l.TraceParent = g.exporter.TraceParent
	l.Ended = func(t *workload.Turn) {
		if ended != nil {
			ended(t)
		}
		mode := api.ModeState{Arm: t.Arm, Mode: t.Mode, Speculation: t.Speculation}
		g.exporter.Turn(&t.Turn, cmp.Or(t.Model, s.client.Model()), cmp.Or(addresses[mode], s.conf.Target.URL))
	}
}
