package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// found returns the texts of the diagnoses by rule.
func found(s api.Shadow) map[string]string {
	texts := map[string]string{}
	for _, d := range s.Diagnoses {
		texts[d.Rule] = d.Text
	}
	return texts
}

// Cold caches have no diagnosis, since their hits differ from the prediction on every cluster, and neither have caches
// that match the prediction.
func TestNoDiagnosisOfColdOrHealthyCaches(t *testing.T) {
	on(t, func(s *rig) {
		s.set(func(s *rig) { s.cluster.KV.PredictedRatio = new(.95) })
		for i := range 70 {
			s.turn(100+i, 11, 0)
		}
		assert.Empty(t, s.shadow().Diagnoses)
	})
	on(t, func(s *rig) {
		pass(coldFor)
		s.set(func(s *rig) { s.cluster.KV.PredictedRatio, s.cluster.KV.AchievableRatio = new(.95), new(.96) })
		s.turn(1, 11, 0)
		for range 70 {
			s.turn(1, 11, 320)
		}
		assert.Empty(t, s.shadow().Diagnoses)
	})
}

// The reason for missing hits follows from the other figures.
func TestPredictedAboveReported(t *testing.T) {
	on(t, func(s *rig) {
		pass(coldFor)
		s.set(func(s *rig) { s.cluster.KV.PredictedRatio = new(.95) })
		for i := range 70 {
			s.turn(100+i, 11, 0) // each has a new text: the account finds nothing either
		}
		text := found(s.shadow())["predicted_above_reported"]
		assert.Contains(t, text, "The router predicts that 95.0 % of the prompts are cached; the workers found 0.0 %")
		assert.Contains(t, text, "KV events are being lost, or the router's block size is not the workers' "+
			"(the metrics report 32 tokens)")
		s.set(func(s *rig) {
			for i := range s.cluster.Workers {
				s.cluster.Workers[i].CacheUse = new(.99)
			}
		})
		assert.Contains(t, found(s.shadow())["predicted_above_reported"], "The caches are 99.0 % full")
		s.set(func(s *rig) { s.state.Mode = api.ModeRoundRobin })
		assert.NotContains(t, found(s.shadow()), "predicted_above_reported", "no router predicts anything")
	})
	on(t, func(s *rig) {
		pass(coldFor)
		s.set(func(s *rig) { s.cluster.KV.PredictedRatio = new(.95) })
		for range 70 {
			s.turn(1, 11, 0) // the worker reports no hits, although it should have some
		}
		assert.Contains(t, found(s.shadow())["predicted_above_reported"],
			"smaller than the 100 blocks that the metrics report, or prefix caching is disabled")
	})
}

func TestOneWorkerBusiest(t *testing.T) {
	on(t, func(s *rig) {
		pass(coldFor)
		for i := range 70 {
			s.turn(1, 11, 0)
			if i%2 == 0 {
				s.turn(1, 22, 0)
			}
		}
		s.set(func(s *rig) { s.cluster.Workers[0].Inflight, s.cluster.Workers[1].Inflight = new(9.), new(2.) })
		pass(time.Minute)
		assert.NotContains(t, found(s.shadow()), "one_worker_busiest", "one minute is not minutes")
		pass(2 * time.Minute)
		text := found(s.shadow())["one_worker_busiest"]
		assert.Contains(t, text, "Worker pod-0 was the busiest for 180 of the last 180 s, "+
			"with 9.0 requests in flight where the mean of all workers was 5.5.")
	})
}

func TestHitRateFallsWithConcurrency(t *testing.T) {
	on(t, func(s *rig) {
		pass(coldFor)
		s.turn(1, 11, 0)
		for range 110 {
			s.turn(1, 11, 320)
		}
		require.NotContains(t, found(s.shadow()), "hit_rate_falls_with_concurrency")
		s.set(func(s *rig) { s.state.Concurrency.Target = api.AtConversations(20) })
		for range 110 {
			f := s.Follow(Sent{ID: "r", Conversation: "1", Concurrency: 20})
			f.Routed(prompt(1, 330))
			f.FirstToken("11")
			f.end(Result{OK: true, Worker: 11, PromptTokens: 330, CachedTokens: 256})
			pass(100 * time.Millisecond)
		}
		text := found(s.shadow())["hit_rate_falls_with_concurrency"]
		assert.Contains(t, text, "At 20 conversations 77.6 % of the prompts were cached (110 turns), "+
			"at 10 it was 96.1 % (111 turns).")
		assert.Contains(t, text, "need about 100 blocks of each worker's 100")
	})
}
