//go:build dynamo

package dynamo

import (
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

func TestShadow(t *testing.T) {
	b := startBooth(t)
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		b.setMode(t, mode)
		b.start(t)
		for range 3 {
			time.Sleep(10 * time.Second)
			s, err := b.client.Shadow(t.Context(), api.DefaultLane)
			if err != nil {
				t.Fatal(err)
			}
			show(t, s)
		}
		b.stop(t)
	}
}

func show(t *testing.T, s api.Shadow) {
	f := func(p *float64) float64 {
		if p == nil {
			return -1
		}
		return *p
	}
	t.Logf("source %s %s since %v, %d requests, lost %d, workers %d, withheld %q, error %.4f, reused %v", s.Source, s.Message, s.Since, s.Requests, s.Lost, s.Workers, s.Withheld, f(s.CacheError), s.AnswersReused)
	t.Logf("%-22s %.4f %.2f", "measured", f(s.Measured.HitRatio), f(s.Measured.InflightSpread))
	for _, p := range s.Policies {
		t.Logf("%-22s %.4f %.2f %v", p.Policy, f(p.Figures.HitRatio), f(p.Figures.InflightSpread), p.InForce)
	}
	t.Logf("%+v", s.Choices)
	t.Log(s.Diagnoses)
}
