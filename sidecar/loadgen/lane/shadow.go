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

// startShadow runs the lane's shadow until ctx ends, if the options enable it.
func (l *Lane) startShadow(ctx context.Context) {
	if !l.opts.Shadow {
		return
	}
	l.shadow = live.New(live.Options{
		Lane: l.opts.Name, Cluster: l.Cluster, State: l.State, Log: l.process.Log,
		Capabilities: func() (ids, workers bool) {
			return l.opts.Client.Extensions()[chat.ExtTokenIDs], l.opts.Client.Recognized().Worker != ""
		},
		Router:       func() string { return l.opts.Client.Recognized().Router },
		SendsSession: func() bool { return l.opts.Client.Recognized().Session },
	})
	l.wg.Go(func() { l.shadow.Run(ctx) })
}

// Shadow returns the cache hits that other routers would have had on the lane's traffic, and why its own are what they
// are.
func (l *Lane) Shadow() api.Shadow {
	now := time.Now()
	s := l.shadow.Shadow(now)
	s.Lane = l.opts.Name
	if parts := l.opts.Cluster().FirstToken; parts != nil {
		if measured := l.record.Report(now).Window.Metrics.TTFT.Mean; measured != nil {
			s.TTFT = parts.Split(*measured)
		}
	}
	return s
}

// ShadowCollector returns the shadow's metrics, with the label lane; nil if the lane has no shadow.
func (l *Lane) ShadowCollector() prometheus.Collector {
	if l.shadow == nil {
		return nil
	}
	return l.shadow.Collector()
}

// routingObserver returns a function that makes the shadow follow a turn; nil if the lane has no
// shadow.
func (o *observer) routingObserver() func(*workload.LiveTurn) workload.RoutingObserver {
	shadow := o.lane.shadow
	if shadow == nil {
		return nil
	}
	return func(t *workload.LiveTurn) workload.RoutingObserver { return shadow.Follow(Sent(t)) }
}

// Sent returns the data of a turn that a shadow follows. It is called before the turn is sent.
func Sent(t *workload.LiveTurn) live.Sent {
	prompt, answers := t.Prompt(), 0
	for i := range prompt {
		if prompt[i].Role == chat.RoleAssistant {
			answers += len(prompt[i].Text)
		}
	}
	instance, _ := strconv.ParseUint(t.Instance, 10, 64) // 0: the turn is not pinned
	return live.Sent{
		ID: t.RequestID, Conversation: t.Conversation, Last: t.Last, Instance: instance, Concurrency: t.Level.Conversations(),
		Answers: answers,
		Messages: func(yield func(role, text string) bool) {
			for i := range prompt {
				if !yield(prompt[i].Role, chat.Text(prompt[i], t.Salt)) {
					return
				}
			}
		},
	}
}
