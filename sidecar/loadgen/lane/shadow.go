package lane

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// startShadow follows the lane's turns until ctx ends, where the options say so.
func (l *Lane) startShadow(ctx context.Context) {
	if !l.opts.Shadow {
		return
	}
	l.shadow = live.New(live.Options{
		Lane: l.opts.Name, Cluster: l.opts.Cluster, State: l.State, Log: l.process.Log,
		Tells: func() (ids, workers bool) {
			used := l.opts.Client.Extensions()
			return used[chat.ExtTokenIDs], used[chat.ExtNVExt]
		},
	})
	l.wg.Go(func() { l.shadow.Run(ctx) })
}

// Shadow is what other routers would have hit on the lane's traffic.
func (l *Lane) Shadow() api.Shadow {
	s := l.shadow.Shadow(time.Now())
	s.Lane = l.opts.Name
	return s
}

// ShadowCollector gives the shadow's metrics, with the label lane; nil where there is none.
func (l *Lane) ShadowCollector() prometheus.Collector {
	if l.shadow == nil {
		return nil
	}
	return l.shadow.Collector()
}

var _ workload.Witness = (*observer)(nil)

// witness is the observer where there is a shadow.
func (o *observer) witness() workload.Witness {
	if o.lane.shadow == nil {
		return nil
	}
	return o
}

// Sent begins to follow a turn in the shadow.
func (o *observer) Sent(t *workload.Turn) func(ids []uint32) {
	prompt := t.Prompt()
	instance, _ := strconv.ParseUint(t.Instance, 10, 64) // 0: it is not pinned
	m, _ := o.marks.Load(t)
	step, _ := m.(mark)
	turn := o.lane.shadow.Follow(live.Sent{
		ID: t.RequestID, Conversation: t.Conversation.ID, Instance: instance, Concurrency: step.step.Concurrency,
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
	o.followed.Store(t, turn)
	if !turn.WantsIDs() {
		return nil
	}
	return turn.Routed
}

// FirstToken tells the shadow where a turn went.
func (o *observer) FirstToken(t *workload.Turn) {
	if turn, ok := o.followed.Load(t); ok {
		turn.(*live.Turn).FirstToken(t.Live.Worker())
	}
}

// shadowEnded tells the shadow what was measured.
func (o *observer) shadowEnded(t *workload.Turn, r *chat.Result) {
	turn, ok := o.followed.LoadAndDelete(t)
	if !ok {
		return
	}
	result := live.Result{OK: r.OK(), Worker: r.Worker, CachedTokens: -1, Bytes: len(r.Content)}
	result.OutputTokens, _ = r.OutputTokens()
	if u := r.Usage; u != nil {
		result.PromptTokens = u.Prompt
		if u.HasCached {
			result.CachedTokens = u.Cached
		}
	}
	turn.(*live.Turn).Ended(result)
}
