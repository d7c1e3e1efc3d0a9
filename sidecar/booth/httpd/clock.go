package httpd

import (
	"context"
	"math"
	"sync"
	"time"

	"kvbooth/sidecar/sim"
)

// pacer runs a cluster on the wall clock.
type pacer struct {
	began time.Time // wall-clock time of virtual time zero
	speed float64   // virtual seconds per wall-clock second
	wake  chan struct{}

	mu      sync.Mutex
	cluster *sim.Cluster
	planned time.Duration // virtual time of the next step
}

func newPacer(cluster *sim.Cluster, speed float64) *pacer {
	return &pacer{
		began: time.Now(), speed: speed, wake: make(chan struct{}, 1), cluster: cluster, planned: math.MaxInt64,
	}
}

// now returns the present virtual time.
func (p *pacer) now() time.Duration {
	return time.Duration(float64(time.Since(p.began)) * p.speed)
}

// wall converts a duration of virtual time to wall-clock time.
func (p *pacer) wall(span time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(span) / p.speed))
}

// do advances the cluster to the present and calls f with exclusive access to it.
func (p *pacer) do(f func(*sim.Cluster)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cluster.Advance(p.now())
	f(p.cluster)
	if next, ok := p.cluster.Next(); ok && next < p.planned {
		p.planned = next
		select {
		case p.wake <- struct{}{}:
		default: // a wake-up is pending already
		}
	}
}

// run advances the cluster from event to event until ctx ends. After a delay of the process, overdue events run at
// once.
func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		if wait, ok := p.step(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// step advances the cluster to the present and returns the wait until its next event; false if there is none.
func (p *pacer) step() (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cluster.Advance(p.now())
	next, ok := p.cluster.Next()
	if !ok {
		p.planned = math.MaxInt64
		return 0, false
	}
	p.planned = next
	// At least the clock's smallest step, because rounding could otherwise cause a busy loop.
	return max(p.wall(next)-time.Since(p.began), 1), true
}

// cancel ends a request whose client is no longer served.
func (p *pacer) cancel(job *sim.Job) {
	p.do(func(c *sim.Cluster) { c.Cancel(job) })
}
