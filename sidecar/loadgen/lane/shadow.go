package lane

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// startShadow runs the lane's shadow until ctx ends, if the options enable it.
func (l *Lane) startShadow(ctx context.Context) {
	if !l.opts.Shadow {
		return
	}
	l.shadow = live.New(live.Options{
		Lane: l.opts.Name, Cluster: l.opts.Cluster, State: l.State, Log: l.process.Log,
		Capabilities: func() (ids, workers bool) {
			used := l.opts.Client.Extensions()
			return used[chat.ExtTokenIDs], used[chat.ExtNVExt]
		},
	})
	l.wg.Go(func() { l.shadow.Run(ctx) })
}

// Shadow returns what other routers would have hit on the lane's traffic.
func (l *Lane) Shadow() api.Shadow {
	s := l.shadow.Shadow(time.Now())
	s.Lane = l.opts.Name
	return s
}

// ShadowCollector returns the shadow's metrics, with the label lane; nil if the lane has no shadow.
func (l *Lane) ShadowCollector() prometheus.Collector {
	if l.shadow == nil {
		return nil
	}
	return l.shadow.Collector()
}

var _ workload.RoutingObserver = (*observer)(nil)

// routingObserver returns the observer if the lane has a shadow, else nil.
func (o *observer) routingObserver() workload.RoutingObserver {
	if o.lane.shadow == nil {
		return nil
	}
	return o
}

// Sent begins to follow a turn in the shadow.
func (o *observer) Sent(t *workload.Turn) func(ids []uint32) {
	return o.followed.Sent(t, o.marks.Step(t).Concurrency, o.lane.shadow.Follow)
}

// FirstToken passes the worker of a turn to the shadow.
func (o *observer) FirstToken(t *workload.Turn) { o.followed.FirstToken(t) }

// Shadow returns the lane's shadow.
func (o *observer) Shadow() *live.Live { return o.lane.shadow }

// Followed holds the turns of a workload that a shadow follows. The zero value is ready. It is safe
// for concurrent use.
type Followed struct {
	turns sync.Map // *workload.Turn → *live.Turn
}

// Sent begins to follow a turn, unless follow returns nil. See [workload.RoutingObserver] for the
// result.
func (f *Followed) Sent(t *workload.Turn, concurrency int, follow func(live.Sent) *live.Turn) func(ids []uint32) {
	prompt := t.Prompt()
	instance, _ := strconv.ParseUint(t.Instance, 10, 64) // 0: the turn is not pinned
	turn := follow(live.Sent{
		ID: t.RequestID, Conversation: t.Conversation.ID, Last: t.Number == t.Conversation.Planned,
		Instance: instance, Concurrency: concurrency,
		Messages: func(yield func(role, text string) bool) {
			for i := range prompt {
				if !yield(prompt[i].Role, prompt[i].Content) {
					return
				}
			}
		},
	})
	if turn == nil {
		return nil
	}
	f.turns.Store(t, turn)
	if !turn.WantsIDs() {
		return nil
	}
	return turn.Routed
}

// FirstToken passes the worker of a turn to the shadow.
func (f *Followed) FirstToken(t *workload.Turn) {
	if turn, ok := f.turns.Load(t); ok {
		turn.(*live.Turn).FirstToken(t.Live.Worker())
	}
}

// Ended passes the results of a turn to the shadow.
func (f *Followed) Ended(t *workload.Turn, r *chat.Result) {
	turn, ok := f.turns.LoadAndDelete(t)
	if !ok {
		return
	}
	result := live.Result{OK: r.OK(), Worker: r.Worker, CachedTokens: -1, Bytes: len(r.Content)}
	result.OutputTokens, _ = r.OutputTokens()
	if u := r.Usage; u != nil && u.Prompt > 0 {
		result.PromptTokens = u.Prompt
		if u.HasCached {
			result.CachedTokens = u.Cached
		}
	}
	turn.(*live.Turn).Ended(result)
}
