package plugin

import (
	"context"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/data"

	"kvbooth/sidecar/api"
)

// publisher sends the content of one message on one channel.
type publisher func(*backend.StreamSender, message) error

// channels are the live channels of a lane, by name. Their addresses are plugin/kvbooth-inference-app/<lane>/<name>:
// scope "plugin", the plugin's id as the namespace (from Grafana 12.4 called the stream), and the rest as the path.
// Each message of a frame channel contains the whole frame, so a late subscriber needs no earlier message.
var channels = map[string]func(lane string) publisher{
	"snapshot": func(string) publisher {
		return func(to *backend.StreamSender, m message) error { return to.SendJSON(m.text) }
	},
	"kpi":          framed(kpi),
	"ttft-by-turn": framed(ttftByTurn),
	"state":        framed(state),
	"workers": func(lane string) publisher {
		seen := map[string]time.Time{}
		return func(to *backend.StreamSender, m message) error {
			return to.SendFrame(workers(lane, m, seen), data.IncludeAll)
		}
	},
}

func framed(frame func(lane string, m message) *data.Frame) func(string) publisher {
	return func(lane string) publisher {
		return func(to *backend.StreamSender, m message) error {
			return to.SendFrame(frame(lane, m), data.IncludeAll)
		}
	}
}

// A path may end with a subscriber's nonce, because Grafana can return a stale error to a new subscriber of a path that
// has ended.
var (
	laneSyntax  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	nonceSyntax = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// channel returns the publisher of a path: <lane>/<name> or <lane>/<name>/<nonce>; nil: the path is unknown.
func channel(path string) publisher {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || len(parts) > 3 || !laneSyntax.MatchString(parts[0]) || len(parts) == 3 &&
		!nonceSyntax.MatchString(parts[2]) {
		return nil
	}
	open := channels[parts[1]]
	if open == nil {
		return nil
	}
	return open(parts[0])
}

// SubscribeStream accepts every subscription that Grafana passes on, to a path that exists. Whether the lane exists
// is reported in the messages.
func (a *App) SubscribeStream(_ context.Context,
	req *backend.SubscribeStreamRequest,
) (*backend.SubscribeStreamResponse, error) {
	if channel(req.Path) == nil {
		return &backend.SubscribeStreamResponse{Status: backend.SubscribeStreamStatusNotFound}, nil
	}
	return &backend.SubscribeStreamResponse{Status: backend.SubscribeStreamStatusOK}, nil
}

// PublishStream denies every publication.
func (a *App) PublishStream(context.Context, *backend.PublishStreamRequest) (*backend.PublishStreamResponse, error) {
	return &backend.PublishStreamResponse{Status: backend.PublishStreamStatusPermissionDenied}, nil
}

// RunStream publishes on one channel until ctx ends. Faults of the load generator are published too. It returns an
// error if the app was disposed of, after which Grafana calls the new instance, or if there are no subscribers left.
func (a *App) RunStream(ctx context.Context, req *backend.RunStreamRequest, to *backend.StreamSender) error {
	publish := channel(req.Path)
	if publish == nil {
		return api.ErrNotFound
	}
	messages, unsubscribe, err := a.relay.subscribe()
	if err != nil {
		return err
	}
	defer unsubscribe()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return errDisposed
			}
			if err := publish(to, m); err != nil {
				return err
			}
		}
	}
}

// stream returns the load generator's stream of snapshots, or why there is none.
func (a *App) stream(ctx context.Context) iter.Seq2[[]byte, error] {
	if a.problem != nil {
		return func(yield func([]byte, error) bool) { yield(nil, a.problem) }
	}
	return a.client.StreamText(ctx)
}
