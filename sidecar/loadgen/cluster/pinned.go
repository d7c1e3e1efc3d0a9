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

// Pinned is the driver for a Dynamo in kv or direct mode that is not restarted. For
// round_robin it pins each turn to the next instance in rotation. Under kv the
// router chooses. It is safe for concurrent use, and requires Close.
type Pinned struct {
	target   string
	redacted string // the target without a password, for messages
	client   *http.Client
	log      *slog.Logger
	offers   []api.ModeState

	mu       sync.Mutex               // held while rotation is replaced
	rotation atomic.Pointer[[]string] // the instances; nil under kv
	turns    atomic.Uint64            // pinned so far
	failing  bool                     // the last refresh failed; guarded by mu

	cancel context.CancelFunc
	done   chan struct{}
}

// NewPinned makes the driver for a frontend, its URL with or without /v1. It offers
// kv and round_robin, or round_robin alone, with the deployment's speculation, since
// no restart changes it. A nil client means one without credentials. An invalid URL
// gives an [api.FieldError].
func NewPinned(target string, offers []api.ModeState, client *http.Client, log *slog.Logger) (*Pinned, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pinned{
		target: target, redacted: u.Redacted(), client: client, log: log, cancel: cancel, done: make(chan struct{}),
		offers: offers,
	}
	go p.keepFresh(ctx)
	return p, nil
}

// Name returns "pinned".
func (p *Pinned) Name() string { return "pinned" }

// Abilities returns what the driver can do. A turn's instance is chosen when it is sent, so that every switch is in
// place, and the modes differ in who chooses it.
func (p *Pinned) Abilities() workload.Abilities {
	return workload.Abilities{
		Instance: p.Instance, Instances: p.Instances, Check: p.Check,
		SwitchWarm: p.Switch, InPlace: workload.Always, SameWorkers: workload.Always,
	}
}

// Offers lists the modes of [NewPinned].
func (p *Pinned) Offers() []api.ModeState { return slices.Clone(p.offers) }

// Instance returns the next instance under round_robin, "" under kv. While the
// instances stay the same, their numbers of turns differ by at most one.
func (p *Pinned) Instance() string {
	rotation := p.rotation.Load()
	if rotation == nil {
		return ""
	}
	turn := p.turns.Add(1) - 1
	return (*rotation)[turn%uint64(len(*rotation))]
}

// Instances returns the instances in rotation, for a caller that pins turns itself; none under kv.
func (p *Pinned) Instances() []string {
	rotation := p.rotation.Load()
	if rotation == nil {
		return nil
	}
	return slices.Clone(*rotation)
}

// Switch asks the frontend for its instances and starts the rotation, or ends it.
// The caches keep their contents. It gives an [api.FieldError] for a mode that is
// not offered, and an error where there are no instances. After an error the mode
// is unchanged.
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
	instances, err := p.instances(ctx)
	if err != nil {
		return false, err
	}
	p.set(&instances)
	report("switching", fmt.Sprintf("turns are sent to %d instances in rotation", len(instances)))
	return false, nil
}

// Check returns an error if the target cannot rotate turns among instances: it is no Dynamo frontend, or it lists no
// instance.
func (p *Pinned) Check(ctx context.Context, modes []api.ModeState) error {
	if !slices.ContainsFunc(modes, func(m api.ModeState) bool { return m.Mode == api.ModeRoundRobin }) {
		return nil
	}
	_, err := p.instances(ctx)
	return err
}

// instances returns the instances of the frontend, at least one.
func (p *Pinned) instances(ctx context.Context) ([]string, error) {
	all, err := Probe(ctx, p.target, p.client)
	if err != nil {
		return nil, fmt.Errorf("the driver pinned names the instance of each turn, which requires a Dynamo frontend: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("under Round-robin there are no instances to send turns to: /health of %s lists none with "+
			"the endpoint %q", p.redacted, generate)
	}
	return all, nil
}

// Close stops the refreshes and waits for their goroutine.
func (p *Pinned) Close() {
	p.cancel()
	<-p.done
}

func (p *Pinned) set(instances *[]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotation.Store(instances)
	p.failing = false
}

// keepFresh refreshes the rotation until ctx ends.
func (p *Pinned) keepFresh(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if before := p.rotation.Load(); before != nil {
				instances, err := Probe(ctx, p.target, p.client)
				p.refresh(ctx, before, instances, err)
			}
		}
	}
}

// refresh replaces the rotation if it is still the one from before the frontend was
// asked. If the frontend does not answer or lists no instance, the rotation stays:
// turns that fail are visible, while turns without an instance would be routed by
// the KV router and counted as round-robin.
func (p *Pinned) refresh(ctx context.Context, before *[]string, instances []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || p.rotation.Load() != before {
		return
	}
	if err == nil && len(instances) == 0 {
		err = errors.New("the frontend lists none")
	}
	failing := err != nil
	if failing && !p.failing {
		p.log.Warn("the instances cannot be refreshed; turns continue on the known ones",
			"instances", len(*before), "error", err)
	}
	p.failing = failing
	if failing || slices.Equal(*before, instances) {
		return
	}
	p.log.Info("the instances have changed", "before", *before, "now", instances)
	p.rotation.Store(&instances)
}
