package sweep

import (
	"time"

	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// Turns records the turns of a span that belongs to no sweep. It is safe for concurrent use.
type Turns struct{ *recorder }

var _ lane.SpanObserver = Turns{}

// NewTurns makes a recorder for a span on a lane.
func NewTurns(l *lane.Lane) Turns { return Turns{newRecorder(time.Now(), 0, l.Opening)} }

// Since returns the turns so far with their times since a moment. Turns in flight have no status.
func (t Turns) Since(moment time.Time) (all []workload.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all = append(all, t.turns...)
	for _, turn := range t.inFlight {
		all = append(all, *turn)
	}
	for i := range all {
		all[i].Sent -= moment.Sub(t.base)
		all[i].Ended -= moment.Sub(t.base)
	}
	return all
}
