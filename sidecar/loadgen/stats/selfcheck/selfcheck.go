// Package selfcheck measures how late the load generator's own time stamps are, so
// that its part in a figure can be separated from the server's.
//
// Two probes run beside the workload. A timer, whose expiry arrives like data at a
// socket, shows how late the process is scheduled, such as on a busy machine. A
// canary, which is a stream from a small server within the process, carries its own
// send times through the transport that also measures the target. It shows the delay
// within a busy process. [stats.Lag] defines what the two mean for a figure.
package selfcheck

import (
	"cmp"
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
	"kvbooth/sidecar/loadgen/workload"
)

const (
	interval = 20 * time.Millisecond // between two samples of a probe
	canaries = 10                    // chunks of one canary answer
	span     = 10 * time.Second      // the time before now that the health is based on
)

// Watch is the self-check. The zero value is ready for Run. It is safe for concurrent use.
type Watch struct {
	// Simulated reports whether a what-if simulation has been computed on this machine since a time;
	// nil: none has. It is set before [Watch.Run].
	Simulated func(since time.Time) bool

	mu       sync.Mutex
	history  stats.LagHistory
	taken    stats.Lag // the history's total at the last call of Take
	cpu      float64
	problems [2]string // by probe
}

// The probes.
const (
	timerProbe = iota
	canaryProbe
)

// Health returns how late the load generator is now. The final verdict depends on the figures of
// the lanes; without lanes, it is fine.
func (w *Watch) Health(now time.Time) api.ClientHealth {
	lag, known := w.Lag(now.Add(-span), now)
	w.mu.Lock()
	defer w.mu.Unlock()
	h := api.ClientHealth{Verdict: api.VerdictUnknown, CPURatio: w.cpu, LagSeconds: lag.Quantile(.95)}
	switch {
	case w.problems != [2]string{}:
		h.Reason = cmp.Or(w.problems[:]...)
	case !known:
		h.Reason = "the first seconds of the self-check"
	default:
		h.Verdict = api.VerdictFine
		h.Reason = fmt.Sprintf("the load generator is at most %.1f ms late (p95 of the last 10 s)", 1000*h.LagSeconds)
		h.Simulating = w.Simulated != nil && w.Simulated(now.Add(-span))
	}
	return h
}

// Lag returns how late the load generator was between two times. Data older than five minutes is
// gone. It returns false if there are too few samples.
func (w *Watch) Lag(from, to time.Time) (stats.Lag, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := w.history.Between(from, to)
	return lag, lag.Known()
}

// Total returns how late it was since the start.
func (w *Watch) Total() stats.Lag {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.Total()
}

// Take returns how late it was since the last call.
func (w *Watch) Take() stats.Lag {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := w.history.Total()
	since := total.Since(w.taken)
	w.taken = total
	return since
}

// Run runs the probes until ctx ends, and returns when everything that it started has ended.
func (w *Watch) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the canary's server: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(serveCanary), ReadHeaderTimeout: time.Second}
	client, err := chat.New(chat.Options{
		URL: "http://" + l.Addr().String(), Model: "canary", Settings: chat.Settings{FirstTokenTimeout: 30 * time.Second},
	})
	if err != nil {
		l.Close()
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	wg.Go(func() { w.watchTimers(ctx, workload.NewTimer) })
	wg.Go(func() { w.watchCPU(ctx) })
	wg.Go(func() { w.runCanary(ctx, client) })
	<-ctx.Done()
	err = server.Close()
	client.Close()
	wg.Wait()
	return err
}

// watchTimers watches a timer, and begins a new one whenever it fails.
func (w *Watch) watchTimers(ctx context.Context, start func(time.Duration) (*workload.Timer, error)) {
	for ctx.Err() == nil {
		timer, err := start(interval)
		if err == nil {
			err = w.watchTimer(ctx, timer)
		}
		if ctx.Err() == nil {
			w.fail(ctx, timerProbe, err)
		}
	}
}

// watchTimer samples how late a timer expires. Each expiry that is due while the process does not
// run is a sample of its own, since data that arrives then gets an equally late time stamp.
func (w *Watch) watchTimer(ctx context.Context, timer *workload.Timer) error {
	defer timer.Close()
	stop := context.AfterFunc(ctx, timer.Close)
	defer stop()
	for due := timer.Start; ; {
		n, err := timer.Wait()
		now := time.Now()
		if err != nil || ctx.Err() != nil {
			return err
		}
		w.mu.Lock()
		w.problems[timerProbe] = ""
		for range n {
			due = due.Add(interval)
			w.history.AddTimer(now, now.Sub(due))
		}
		w.mu.Unlock()
	}
}

// watchCPU samples the share of the CPUs that the process uses, once a second.
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

// runCanary requests one canary answer after the other.
func (w *Watch) runCanary(ctx context.Context, client *chat.Client) {
	for ctx.Err() == nil {
		r := client.Do(ctx, chat.Request{MaxTokens: canaries})
		if r.Err != nil {
			w.fail(ctx, canaryProbe, r.Err)
			continue
		}
		w.recordCanary(&r)
	}
}

// fail records that a probe failed, which makes the verdict unknown, and waits a second.
func (w *Watch) fail(ctx context.Context, probe int, err error) {
	w.mu.Lock()
	w.problems[probe] = "the self-check failed: " + err.Error()
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// recordCanary adds the delays of one canary answer to the history and clears the problem. Each chunk holds the time at
// which the canary's server wrote it; its delay is the time from then until the chunk was read. The first chunk's time
// is also when the request arrived; the delay of sending is the time from r.Sent until then. An answer that was
// cancelled, or whose words are not one per chunk, changes nothing.
func (w *Watch) recordCanary(r *chat.Result) {
	sent := strings.Fields(r.Content)
	if r.Cancelled || len(sent) != len(r.Chunks) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems[canaryProbe] = ""
	if ns, err := strconv.ParseInt(sent[0], 10, 64); err == nil { // when the request arrived
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

// epoch makes it possible to send a time as a number without losing its monotonic reading.
var epoch = time.Now()

// serveCanary streams one canary answer. Each token is the time at which it is sent. For the first
// one, that is when the request has arrived.
func serveCanary(rw http.ResponseWriter, req *http.Request) {
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
		_, err := fmt.Fprintf(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" %d\"}}]}\n\n",
			time.Since(epoch).Nanoseconds())
		if err != nil || control.Flush() != nil {
			return
		}
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}
