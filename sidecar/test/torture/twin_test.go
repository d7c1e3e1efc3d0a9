//go:build torture && linux

package torture

import (
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/known"
)

// A twin survives kills, the loss of either target and a suspended process: turns are paired again, each lane reaches
// its concurrency again, the lane with a working target continues meanwhile, and no reported turn is lost.
func TestTwinSurvivesFaults(t *testing.T) {
	other := known.New(tokens)
	var lost atomic.Bool // whether the twin's target is lost
	other.Answer = func(net.Conn) bool { return lost.Load() }
	r := newRig(t, fault{flags: []string{"--twin-target-url=" + serve(t, other)}})
	away := func(set func(bool), alone int, caution string) func() {
		return func() {
			set(true)
			before := r.lanes()[alone].Totals.OK
			r.eventually("the lane that is left goes on, and the other is named", func() (any, bool) {
				now, pairs := r.lanes()[alone].Totals.OK, r.twin()
				return pairs.Caution, now > before+conversations && strings.Contains(pairs.Caution, caution)
			})
			set(false)
		}
	}
	cut := func(net.Conn) {}
	for _, f := range []struct {
		name    string
		inflict func()
	}{
		{"the load generator is killed", func() {
			r.part.Kill()
			r.part.Start(t)
		}},
		{"the twin's target is lost", away(lost.Store, 0, "the target of lane twin cannot serve")},
		{"the main target is lost", away(func(on bool) {
			r.every.Store(on)
			r.hostile.Store(nil)
			if on {
				r.hostile.Store(new(cut))
			}
		}, 1, "the target of lane main cannot serve")},
		{"the process is suspended", func() {
			require.NoError(t, syscall.Kill(r.part.PID(), syscall.SIGSTOP))
			<-time.After(5 * time.Second)
			require.NoError(t, syscall.Kill(r.part.PID(), syscall.SIGCONT))
		}},
	} {
		r.eventually("turns are paired", func() (any, bool) { n := r.twin().Pairs; return n, n >= conversations })
		lanes, had := r.lanes(), r.twin()
		reported, err := r.status()
		require.NoError(t, err)
		f.inflict()
		over := time.Now()
		r.eventually("turns are paired after: "+f.name, func() (any, bool) {
			now, lanes := r.twin(), r.lanes()
			if now.Pairs < had.Pairs { // a new process counts
				had.Pairs = 0
			}
			whole := true
			for _, l := range lanes {
				whole = whole && l.State.Concurrency.Actual == conversations
			}
			return now, whole && now.Pairs >= had.Pairs+conversations && !strings.Contains(now.Caution, "cannot serve")
		})
		figure.Report(t, "twin, %s: turns are paired again %.1f s after its end", f.name, time.Since(over).Seconds())
		found := 0
		for _, lane := range lanes {
			found += len(boothtest.Turns(t, r.client, lane.Name, 0))
		}
		assert.GreaterOrEqual(t, int64(found), reported.Store.StoredTurns, "stored and reported turns: %s", f.name)
	}
}

func (r *rig) eventually(what string, holds func() (any, bool)) {
	r.Helper()
	wait.Within(r.T, time.Minute, what, holds)
}

// lanes returns the snapshots of both lanes.
func (r *rig) lanes() (lanes []api.LaneSnapshot) {
	r.eventually("a snapshot", func() (any, bool) {
		s, err := r.client.Snapshot(r.Context())
		lanes = s.Lanes
		return err, err == nil
	})
	return lanes
}

func (r *rig) twin() (now api.Twin) {
	r.eventually("the pairs", func() (any, bool) {
		var err error
		now, err = r.client.Twin(r.Context())
		return err, err == nil
	})
	return now
}
