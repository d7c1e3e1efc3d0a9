package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster/probe"
	"kvbooth/sidecar/loadgen/cluster/router"
)

const (
	checkTimeout = 30 * time.Second // for one server
	checkTokens  = 16               // of the answer
	slowFirst    = 5 * time.Second  // a first token that takes longer is a warning
)

// errNotServing ends a check that found a server to which a run could not send turns. The problem has been printed.
var errNotServing = errors.New("a run would fail; fix the problems above first")

// errNoAnswer is the error of a server that is too slow for a check.
var errNoAnswer = fmt.Errorf("no answer to a short prompt within %v: it may be overloaded, or load its model",
	checkTimeout)

// checkTargets asks the server of the target, or that of each arm with an address, for an answer as a run would, and
// prints what it reports. The error is a notStarted where a run would fail.
func checkTargets(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	bad := false
	for _, at := range addressed(conf) {
		name := api.Printable(at.conf.Target.URL)
		if at.arm != "" {
			name = at.arm + ", " + name
		}
		fmt.Fprintln(stdout, name)
		if err := checkTarget(ctx, at.conf, func(mark, text string) {
			fmt.Fprintf(stdout, "  %-8s %s\n", mark, text)
		}); err != nil {
			bad = true
			fmt.Fprintf(stdout, "  %-8s %s\n", "problem", err)
		}
	}
	if bad {
		return notStarted{errNotServing}
	}
	return nil
}

// checkTarget prints what a server reports. The error says why a run would fail.
func checkTarget(ctx context.Context, conf *config.Config, line func(mark, text string)) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	options, err := chatOptions(targetOptions(conf), conf.Target.APIKey, conf.Target.Opened)
	if err != nil {
		return err
	}
	client, err := chat.New(options)
	if err != nil {
		return err
	}
	defer client.Close()
	if failure := client.Probe(ctx); failure != nil {
		if ctx.Err() != nil {
			return errNoAnswer
		}
		return failure
	}
	line("ok", "it serves the model "+client.Model())
	r, err := probe.Ask(ctx, client, chat.Request{
		Conversation: "check", MaxTokens: checkTokens,
		Messages: []chat.Message{{Role: chat.RoleUser, Text: "Count from one to ten in words."}},
	})
	switch first, streams := r.TTFT(); {
	case ctx.Err() != nil:
		return errNoAnswer
	case err != nil:
		return err
	case !streams:
		return errors.New("its answer has no text; check the model and target.fields")
	default:
		tokens, _ := r.OutputTokens()
		last, _ := r.Latency()
		line("ok", fmt.Sprintf("an answer of %s tokens: the first after %s, the last after %s", api.Count(tokens),
			api.Milliseconds(first.Seconds()), api.Milliseconds(last.Seconds())))
		if first > slowFirst {
			line("warning", "its first token is slow for a short prompt: it may be loading its model, or serve others, too")
		}
	}
	if r.Buffered() {
		line("warning", "the answer came at once: TPOT and ITL are unknown; see that the server streams, and that no proxy "+
			"holds its answers back")
	}
	if r.Usage == nil {
		line("warning", "it reports no usage: output tokens are the number of chunks, and prompt tokens are unknown")
	}
	recognized(client.Recognized(), line)
	return nil
}

// recognized prints what a server showed of itself and of its router.
func recognized(found chat.Recognized, line func(mark, text string)) {
	if !found.Cached {
		line("warning", "it reports no cached tokens: the hit rate then comes from the metrics of the engines "+
			"(cluster.metrics_urls), if at all")
	}
	if found.ContextTokens > 0 {
		line("ok", fmt.Sprintf("prompt and answer may have %s tokens together", api.Count(found.ContextTokens)))
	}
	if front := router.ByID(found.Router); front != nil {
		line("ok", "the router is "+front.Name)
	}
	if found.Worker == "" {
		line("warning", "answers do not name their worker; see target.worker_header")
	}
	for _, remark := range found.Remarks {
		line("warning", remark)
	}
}
