// Package selfcheck measures how late the load generator's own time stamps are, so
// that its part in a figure can be told from the server's.
//
// Two probes run beside the workload. A timer, which arrives as a socket's data do,
// shows how late the process gets to run at all: that is what a busy machine does to
// it. A canary, a stream from a tiny server within the process, carries its own send
// times through the very transport that measures the target: that is what a busy
// program does to itself. What the two mean for a figure is in package stats: [stats.Lag].
package selfcheck

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	interval = 20 * time.Millisecond // between two samples of a probe
	canaries = 10                    // chunks of one canary answer
	span     = 10 * time.Second      // that the health of a moment looks back
)

// Watch is the running self-check. It is safe for concurrent use.
type Watch struct {
	// Simulated, if set, says whether a what-if simulation has been computed on this
	// machine since a moment. It is set before [Watch.Run].
	Simulated func(since time.Time) bool

	mu      sync.Mutex
	history stats.LagHistory
	taken   stats.Lag // of the history's total; see Take
	cpu     float64
	problem string
}

// Health is how late the load generator is at this moment. What that means for the
// figures, and so the verdict, depends on the lanes; without any, it is in order.
func (w *Watch) Health(now time.Time) api.ClientHealth {
	lag, known := w.Lag(now.Add(-span), now)
	w.mu.Lock()
	defer w.mu.Unlock()
	h := api.ClientHealth{Verdict: api.VerdictUnknown, CPURatio: w.cpu, LagSeconds: lag.Quantile(.95)}
	switch {
	case w.problem != "":
		h.Reason = w.problem
	case !known:
		h.Reason = "the first seconds of the self-check"
	default:
		h.Verdict = api.VerdictFine
		h.Reason = fmt.Sprintf("the load generator is at most %.1f ms late (p95 of the last 10 s)", 1000*h.LagSeconds)
		h.Simulating = w.Simulated != nil && w.Simulated(now.Add(-span))
	}
	return h
}

// Lag is how late the load generator was between two times, of which nothing older
// than five minutes is remembered. It is false where the probes told too little then.
func (w *Watch) Lag(from, to time.Time) (stats.Lag, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := w.history.Between(from, to)
	return lag, lag.Known()
}

// Total is how late it was since it began to run.
func (w *Watch) Total() stats.Lag {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.Total()
}

// Take is how late it was since the last call.
func (w *Watch) Take() stats.Lag {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := w.history.Total()
	since := total.Since(w.taken)
	w.taken = total
	return since
}

// Run watches until ctx ends; then everything that it started has ended.
func (w *Watch) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the canary's server: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(sing), ReadHeaderTimeout: time.Second}
	client, err := chat.New(
		chat.Options{URL: "http://" + l.Addr().String(), Model: "canary", FirstTokenTimeout: 30 * time.Second},
	)
	if err != nil {
		l.Close()
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	wg.Go(func() { w.watchTimer(ctx) })
	wg.Go(func() { w.watchCPU(ctx) })
	wg.Go(func() { w.listen(ctx, client) })
	<-ctx.Done()
	err = server.Close()
	client.Close()
	wg.Wait()
	return err
}

// watchTimer samples how late a timer arrives. Each expiry that is due while the process
// does not run is a sample of its own: what arrives then is stamped as late.
func (w *Watch) watchTimer(ctx context.Context) {
	timer, err := newTimer(interval)
	if err != nil {
		w.fail(ctx, err)
		return
	}
	stop := context.AfterFunc(ctx, timer.close)
	defer stop()
	for due := timer.start; ; {
		n, err := timer.wait()
		now := time.Now()
		if err != nil || ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		for range n {
			due = due.Add(interval)
			w.history.AddTimer(now, now.Sub(due))
		}
		w.mu.Unlock()
	}
}

func (w *Watch) watchCPU(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, used := time.Now(), cpuTime()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, u := time.Now(), cpuTime()
		ratio := (u - used).Seconds() / now.Sub(last).Seconds() / float64(runtime.NumCPU())
		last, used = now, u
		w.mu.Lock()
		w.cpu = ratio
		w.mu.Unlock()
	}
}

// listen hears one canary after the other.
func (w *Watch) listen(ctx context.Context, client *chat.Client) {
	for ctx.Err() == nil {
		r := client.Do(ctx, chat.Request{MaxTokens: canaries})
		if r.Err != nil {
			w.fail(ctx, r.Err)
			continue
		}
		w.hear(&r)
	}
}

// fail keeps the verdict back while the canary does not work, and waits a moment.
func (w *Watch) fail(ctx context.Context, err error) {
	w.mu.Lock()
	w.problem = "the self-check failed: " + err.Error()
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// hear compares the send times that the chunks carry with their time stamps.
func (w *Watch) hear(r *chat.Result) {
	sent := strings.Fields(r.Content)
	if r.Cancelled || len(sent) != len(r.Chunks) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem = ""
	if ns, err := strconv.ParseInt(sent[0], 10, 64); err == nil { // when the request had come
		w.history.AddSend(r.Sent, epoch.Add(time.Duration(ns)).Sub(r.Sent))
	}
	for i, c := range r.Chunks {
		ns, err := strconv.ParseInt(sent[i], 10, 64)
		if err != nil {
			continue
		}
		read := r.Sent.Add(c.At)
		w.history.AddStream(read, read.Sub(epoch.Add(time.Duration(ns))))
	}
}

// epoch lets a send time travel as a number and keep its monotonic clock.
var epoch = time.Now()

// sing streams one canary answer; each token is the time at which it is sent, which for the
// first one is when the request has come.
func sing(rw http.ResponseWriter, req *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(rw)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := range canaries {
		if i > 0 {
			select {
			case <-req.Context().Done():
				return
			case <-tick.C:
			}
		}
		_, err := fmt.Fprintf(
			rw,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" %d\"}}]}\n\n",
			time.Since(epoch).Nanoseconds(),
		)
		if err != nil || control.Flush() != nil {
			return
		}
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}
