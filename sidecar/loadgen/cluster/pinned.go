package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const refreshEvery = 2 * time.Second

var _ workload.Driver = (*Pinned)(nil)

// Pinned is the driver for a Dynamo that runs under kv and is never restarted.
// For round_robin it deals the turns out to the instances itself, by pinning
// each to one; under kv it leaves them to the router. It is safe for concurrent
// use, and Close ends it.
type Pinned struct {
	target string
	shown  string // the target without a password, for messages
	client *http.Client
	log    *slog.Logger
	offers []api.ModeState

	mu      sync.Mutex               // held while deal is replaced
	deal    atomic.Pointer[[]string] // the instances; nil under kv
	turns   atomic.Uint64            // dealt so far
	failing bool                     // the last refresh failed; guarded by mu

	cancel context.CancelFunc
	done   chan struct{}
}

// NewPinned makes the driver for a frontend, its URL with or without /v1. The
// speculation is the deployment's: it goes with both modes, since no restart
// changes it. A nil client means one without credentials. What is no URL gives an
// [api.FieldError].
func NewPinned(target string, speculation api.Speculation, client *http.Client, log *slog.Logger) (*Pinned, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pinned{
		target: target, shown: u.Redacted(), client: client, log: log, cancel: cancel, done: make(chan struct{}),
		offers: []api.ModeState{
			{Mode: api.ModeKV, Speculation: speculation},
			{Mode: api.ModeRoundRobin, Speculation: speculation},
		},
	}
	go p.keepFresh(ctx)
	return p, nil
}

// Name is pinned.
func (p *Pinned) Name() string { return "pinned" }

// Offers are kv and round_robin.
func (p *Pinned) Offers() []api.ModeState { return slices.Clone(p.offers) }

// Instance gives the instance whose turn it is under round_robin, "" under kv.
// Over any span with the same instances, the numbers of turns that they get
// differ by at most one.
func (p *Pinned) Instance() string {
	deal := p.deal.Load()
	if deal == nil {
		return ""
	}
	turn := p.turns.Add(1) - 1
	return (*deal)[turn%uint64(len(*deal))]
}

// Instances are those that turns are dealt out to at the moment, for whoever deals them out instead;
// none under kv.
func (p *Pinned) Instances() []string {
	deal := p.deal.Load()
	if deal == nil {
		return nil
	}
	return slices.Clone(*deal)
}

// Switch asks the frontend for its instances and begins to deal, or ends dealing.
// The caches keep what they hold. It gives an [api.FieldError] for a mode that is
// not offered, and an error where there are no instances to deal to; the mode is
// then as before.
func (p *Pinned) Switch(
	ctx context.Context, _, to api.ModeState, report func(phase, message string),
) (cold bool, err error) {
	if err := offered(p.offers, to); err != nil {
		return false, err
	}
	if to.Mode == api.ModeKV {
		p.set(nil)
		report("switching", "the KV router chooses the instance for every turn")
		return false, nil
	}
	report("switching", "asking the frontend for its instances")
	instances, err := p.probe(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot get the list of instances, which Round-robin needs: %w", err)
	}
	if len(instances) == 0 {
		return false, fmt.Errorf("under Round-robin there are no instances to send turns to: /health of %s lists none with "+
			"the endpoint %q", p.shown, generate)
	}
	p.set(&instances)
	report("switching", fmt.Sprintf("turns are sent to %d instances in rotation", len(instances)))
	return false, nil
}

// Close ends the driver and waits for its goroutine.
func (p *Pinned) Close() {
	p.cancel()
	<-p.done
}

func (p *Pinned) set(instances *[]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deal.Store(instances)
	p.failing = false
}

func (p *Pinned) probe(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return Probe(ctx, p.target, p.client)
}

// keepFresh refreshes the deal until ctx ends.
func (p *Pinned) keepFresh(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if dealt := p.deal.Load(); dealt != nil {
				instances, err := p.probe(ctx)
				p.refresh(ctx, dealt, instances, err)
			}
		}
	}
}

// refresh replaces the deal that was in force when the frontend was asked, if it
// still is. Where the frontend does not answer or lists nobody, the deal stays:
// turns that fail are seen, while turns without an instance would be routed by
// the KV router under the name of round-robin.
func (p *Pinned) refresh(ctx context.Context, dealt *[]string, instances []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || p.deal.Load() != dealt {
		return
	}
	if err == nil && len(instances) == 0 {
		err = errors.New("the frontend lists none")
	}
	failing := err != nil
	if failing && !p.failing {
		p.log.Warn("the instances cannot be refreshed; turns continue on the known ones", "instances", len(*dealt), "error",
			err)
	}
	p.failing = failing
	if failing || slices.Equal(*dealt, instances) {
		return
	}
	p.log.Info("the instances have changed", "before", *dealt, "now", instances)
	p.deal.Store(&instances)
}
