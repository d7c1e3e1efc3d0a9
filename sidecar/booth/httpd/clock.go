package httpd

import (
	"context"
	"math"
	"sync"
	"time"

	"kvbooth/sidecar/sim"
)

// pacer lets a cluster live on the wall clock.
type pacer struct {
	began time.Time // the wall clock at virtual time zero
	speed float64   // virtual seconds in one of the wall clock
	poke  chan struct{}

	mu      sync.Mutex
	cluster *sim.Cluster
	planned time.Duration // the virtual time at which run looks next
}

func newPacer(cluster *sim.Cluster, speed float64) *pacer {
	return &pacer{began: time.Now(), speed: speed, poke: make(chan struct{}, 1), cluster: cluster, planned: math.MaxInt64}
}

// now is the present moment of virtual time.
func (p *pacer) now() time.Duration {
	return time.Duration(float64(time.Since(p.began)) * p.speed)
}

// wall is how long a span of virtual time takes on the wall clock.
func (p *pacer) wall(span time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(span) / p.speed))
}

// do gives the cluster, at the present moment, to f and meanwhile to nobody else.
func (p *pacer) do(f func(*sim.Cluster)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cluster.Advance(p.now())
	f(p.cluster)
	if next, ok := p.cluster.Next(); ok && next < p.planned {
		p.planned = next
		select {
		case p.poke <- struct{}{}:
		default: // it has not yet seen the one before
		}
	}
}

// run advances the cluster from event to event until ctx ends. Where the process
// was held up, what should have happened meanwhile happens at once.
func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.poke:
		case <-timer.C:
		}
		if wait, ok := p.step(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// step advances the cluster to the present and says how long to wait for its next
// event; false without one.
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
	// Not less than the clock's smallest step, lest rounding makes run spin.
	return max(p.wall(next)-time.Since(p.began), 1), true
}

// cancel ends a request whose client is no longer served.
func (p *pacer) cancel(job *sim.Job) {
	p.do(func(c *sim.Cluster) { c.Cancel(job) })
}
