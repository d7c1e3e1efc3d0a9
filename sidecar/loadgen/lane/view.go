package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// View shows the lanes of a process and their catalog. It changes nothing. It is safe for
// concurrent use.
type View struct {
	process  Process
	catalog  *Catalog
	lanes    []*Lane
	started  time.Time
	snapshot document
	status   document
	frames   broadcast
	judged   atomic.Pointer[[]api.ClientError] // own errors in the latest snapshot
}

// NewView returns a view of all lanes of a catalog. No lane may be added afterwards.
func NewView(c *Catalog) *View {
	v := &View{process: c.process, catalog: c, lanes: c.lanes, started: time.Now()}
	v.snapshot = document{changed: c.changed, make: func() any { return v.Snapshot() }}
	v.status = document{changed: c.changed, make: func() any { return v.Status() }}
	return v
}

// Run publishes snapshots until ctx ends and every lane has stopped. The end of ctx must end the
// lanes, too.
func (v *View) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		v.publish()
		select {
		case <-ctx.Done():
			for _, l := range v.lanes {
				<-l.ended
			}
			v.frames.close()
			return
		case <-tick.C:
		case <-v.catalog.changed.c:
		}
	}
}

// publish encodes one snapshot for all subscribers, if there are any.
func (v *View) publish() {
	if !v.frames.hasSubscribers() {
		return
	}
	frame, err := v.snapshot.renew()
	if err != nil {
		v.process.Log.Error("the snapshot cannot be written", "error", err)
		return
	}
	v.frames.publish(frame)
}

// Subscribe delivers encoded snapshots: one at once, then one a second and one after each change.
// The channel holds only the newest, so that a slow reader skips some. It is closed when the view
// ends. unsubscribe may be called more than once.
func (v *View) Subscribe() (frames <-chan []byte, unsubscribe func()) {
	frames, unsubscribe = v.frames.subscribe()
	v.catalog.changed.raise()
	return frames, unsubscribe
}

// Snapshot returns everything that a screen shows now.
func (v *View) Snapshot() api.Snapshot {
	now := time.Now()
	store := v.process.Store.Status()
	s := api.Snapshot{
		Time: now, Settings: v.catalog.Settings(), Client: v.process.Health(now),
		StoreProblem: cmp.Or(store.Problem, store.Damage, store.Notice),
	}
	if v.process.Members != nil {
		s.Members = v.process.Members(now)
	}
	for _, l := range v.lanes {
		s.Lanes = append(s.Lanes, l.read(now).snapshot())
	}
	s.Client = v.judge(s)
	return s
}

// judge returns the health of the process for the figures of a snapshot, and keeps the errors for
// [View.Noticeable].
func (v *View) judge(s api.Snapshot) api.ClientHealth {
	var all []api.ClientError
	for i := range s.Lanes {
		if l := &s.Lanes[i]; l.State.Running {
			all = append(all, Judge(l.Name, &l.Window.Metrics, &l.Baseline, s.Settings.SLO)...)
		}
	}
	v.judged.Store(&all)
	return Verdict(s.Client, all)
}

// Noticeable reports whether a lag would be noticeable in the TTFT or the latency of the latest
// snapshot. It takes no lock.
func (v *View) Noticeable(lag *stats.Lag) bool {
	all := v.judged.Load()
	return all != nil && slices.ContainsFunc(*all, func(e api.ClientError) bool {
		return (e.Metric == "ttft" || e.Metric == "latency") && lag.Quantile(.95) >= negligibleOfP50*e.P50Seconds
	})
}

// SnapshotJSON returns the snapshot in JSON. It is at most a second old and contains every change
// made before the call. Readers share it, and must not modify it.
func (v *View) SnapshotJSON() ([]byte, error) { return v.snapshot.latest() }

// StatusJSON returns the status in JSON, under the same conditions as [View.SnapshotJSON].
func (v *View) StatusJSON() ([]byte, error) { return v.status.latest() }

// Status returns the state, the configuration in force and the health of the process.
func (v *View) Status() api.Status {
	now := time.Now()
	s := api.Status{
		Version: v.process.Version, GoVersion: runtime.Version(), Started: v.started,
		UptimeSeconds: now.Sub(v.started).Seconds(), Settings: v.catalog.Settings(), Client: v.Snapshot().Client,
		Store: v.process.Store.Status(), Config: v.process.Config,
	}
	for _, l := range v.lanes {
		s.Lanes = append(s.Lanes, l.read(now).status())
	}
	return s
}

// Ready returns the reason why a target cannot serve, why turns are not stored, or which stored ones
// are damaged; nil if there is none.
func (v *View) Ready() error {
	for _, l := range v.lanes {
		if problem, _ := l.target.state(); problem != "" {
			return fmt.Errorf("lane %s: %s", l.opts.Name, problem)
		}
	}
	store := v.process.Store.Status()
	if problem := cmp.Or(store.Problem, store.Damage); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Lane returns the lane with the name. The error is an [api.ErrNotFound].
func (v *View) Lane(name string) (*Lane, error) {
	for _, l := range v.lanes {
		if l.opts.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%w: no lane %q", api.ErrNotFound, name)
}

// Conversation returns a conversation with its ended turns and the one under way. The error is an
// [api.ErrNotFound] or the store's.
func (v *View) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	var live *api.LiveTurn // read before the store, which then has the turns before it
	for _, l := range v.lanes {
		if r := l.running(); r != nil {
			live = cmp.Or(r.workload.LiveTurn(id), live)
		}
	}
	c, err := v.process.Store.Conversation(ctx, id)
	if err == nil && live != nil && live.Number > len(c.Turns) {
		c.Live = live
	}
	return c, err
}
