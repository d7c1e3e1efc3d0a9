package lane

import (
	"maps"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// mostNames limits the workers that are kept for an arm.
const mostNames = 1024

// armWorkers holds the workers that the turns of each arm name. It is safe for concurrent use.
type armWorkers struct {
	mu    sync.Mutex
	named map[string]map[string]bool // by arm
}

func (a *armWorkers) add(arm, worker string) {
	if arm == "" || worker == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch workers := a.named[arm]; {
	case a.named == nil:
		a.named = map[string]map[string]bool{arm: {worker: true}}
	case workers == nil:
		a.named[arm] = map[string]bool{worker: true}
	case len(workers) < mostNames:
		workers[worker] = true
	}
}

// of returns the workers of an arm: those that its turns name, and those of arms that share one of them.
func (a *armWorkers) of(arm string) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]bool{}
	for _, workers := range a.named {
		for name := range a.named[arm] {
			if workers[name] {
				maps.Copy(all, workers)
				break
			}
		}
	}
	return all
}

// Cluster returns the state of the cluster. Its list of workers is never nil. Where the metrics are those of several
// arms, it has the workers of the arm in force, as far as turns name them.
func (l *Lane) Cluster() api.Cluster {
	c := l.opts.Cluster()
	c.Workers = notNil(c.Workers)
	if client, ok := l.opts.Client.(Redirected); ok && l.opts.SharesMetrics != nil {
		if arm := client.InUse(); l.opts.SharesMetrics(arm) {
			cluster.KeepWorkers(&c, l.armWorkers.of(arm))
		}
	}
	if c.Engines != nil {
		totals := *c.Engines
		now := time.Now()
		totals.Placement = l.shadow.Placement(now)
		totals.Served = &api.ServedTotals{At: now, Tokens: l.meter.Total(), GoodTurns: l.record.GoodTurns()}
		c.Engines = &totals
	}
	return c
}
