// Package selfcheck watches the load generator itself and says when the client,
// not the server, is what the figures show.
//
// Two probes run beside the workload. A sentinel timer tells how late the
// process gets to run at all: that is what a busy machine does to it. A canary,
// a stream from a tiny server within the process, carries its own send times
// through the very transport that measures the target: that is what a busy
// program does to itself. A time stamp is as wrong as the later of the two.
package selfcheck

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

const (
	interval = 20 * time.Millisecond // between two samples of a probe
	canaries = 50                    // chunks of one canary answer, so that one takes a second
	span     = 10 * time.Second      // that the verdict looks back
	// tooLate is the lag from which the verdict blames the client. A quiet
	// machine shows about 1 ms, because Go's timers are that coarse.
	tooLate = 3 * time.Millisecond
	enough  = 2 * int(time.Second/interval) // samples before there is a verdict
)

// Watch is the running self-check. It is safe for concurrent use.
type Watch struct {
	// Simulated, if set, says whether a what-if simulation has been computed on this
	// machine since a moment. It is set before [Watch.Run].
	Simulated func(since time.Time) bool

	mu       sync.Mutex
	sentinel lags
	canary   lags
	cpu      float64
	problem  string
}

// Health is the verdict of this moment.
func (w *Watch) Health(now time.Time) api.ClientHealth {
	w.mu.Lock()
	defer w.mu.Unlock()
	timer, n := w.sentinel.p95(now)
	stream, m := w.canary.p95(now)
	lag := max(timer, stream)
	h := api.ClientHealth{Verdict: api.VerdictFine, CPURatio: w.cpu, LagSeconds: lag.Seconds()}
	switch {
	case w.problem != "":
		h.Verdict, h.Reason = api.VerdictUnknown, w.problem
	case n < enough || m < enough:
		h.Verdict, h.Reason = api.VerdictUnknown, "the first seconds of the self-check"
	case lag >= tooLate:
		h.Verdict = api.VerdictBottleneck
		h.Reason = fmt.Sprintf("the load generator itself is %.1f ms late (p95 of the last 10 s) and uses %.0f %% of the machine: its latencies are too high by about that much; %s", milliseconds(lag), 100*w.cpu, w.remedy(now))
	default:
		h.Reason = fmt.Sprintf("the load generator is at most %.1f ms late (p95 of the last 10 s)", milliseconds(lag))
	}
	return h
}

// remedy says what to do about a lag.
func (w *Watch) remedy(now time.Time) string {
	if w.Simulated != nil && w.Simulated(now.Add(-span)) {
		return "a what-if simulation is running on the same machine: cancel it; if the load generator is still late, give it more CPU or fewer conversations"
	}
	return "give it more CPU or fewer conversations"
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Lag is how late the load generator was between two times, of which nothing older
// than five minutes is remembered: the p95 of the later probe. It is false where the
// probes told too little then.
func (w *Watch) Lag(from, to time.Time) (p95 time.Duration, ok bool) {
	w.mu.Lock()
	timer, stream := w.sentinel.past.between(from, to), w.canary.past.between(from, to)
	w.mu.Unlock()
	if len(timer) < enough || len(stream) < enough {
		return 0, false
	}
	return max(nearest95(timer), nearest95(stream)), true
}

// Run watches until ctx ends; then everything that it started has ended.
func (w *Watch) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the canary's server: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(sing), ReadHeaderTimeout: time.Second}
	client, err := chat.New(chat.Options{URL: "http://" + l.Addr().String(), Model: "canary", FirstTokenTimeout: 30 * time.Second})
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

// watchTimer samples how late a timer fires.
func (w *Watch) watchTimer(ctx context.Context) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	due := time.Now().Add(interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		w.add(&w.sentinel, now, now.Sub(due))
		due = now.Add(interval)
		timer.Reset(interval)
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
	for i, c := range r.Chunks {
		ns, err := strconv.ParseInt(sent[i], 10, 64)
		if err != nil {
			continue
		}
		read := r.Sent.Add(c.At)
		w.canary.add(read, read.Sub(epoch.Add(time.Duration(ns))))
	}
}

func (w *Watch) add(l *lags, at time.Time, lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.add(at, lag)
}

// epoch lets a send time travel as a number and keep its monotonic clock.
var epoch = time.Now()

// sing streams one canary answer; each token is the time at which it is sent.
func sing(rw http.ResponseWriter, req *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(rw)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range canaries {
		select {
		case <-req.Context().Done():
			return
		case <-tick.C:
		}
		_, err := fmt.Fprintf(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" %d\"}}]}\n\n", time.Since(epoch).Nanoseconds())
		if err != nil || control.Flush() != nil {
			return
		}
	}
	fmt.Fprint(rw, "data: [DONE]\n\n")
}

// lags are the samples of the last span, and behind them those of the past.
type lags struct {
	at   []time.Time
	lag  []time.Duration
	past past
}

func (l *lags) add(at time.Time, lag time.Duration) {
	l.past.add(at, lag)
	l.at, l.lag = append(l.at, at), append(l.lag, lag)
	old := 0
	for old < len(l.at) && at.Sub(l.at[old]) > span {
		old++
	}
	l.at, l.lag = slices.Delete(l.at, 0, old), slices.Delete(l.lag, 0, old)
}

// p95 is the nearest-rank 95th percentile of what is not older than the span,
// and the number of those samples.
func (l *lags) p95(now time.Time) (time.Duration, int) {
	var recent []time.Duration
	for i, at := range l.at {
		if now.Sub(at) <= span {
			recent = append(recent, l.lag[i])
		}
	}
	if len(recent) == 0 {
		return 0, 0
	}
	return nearest95(recent), len(recent)
}

// nearest95 is the nearest-rank 95th percentile of some samples. It sorts them.
func nearest95(samples []time.Duration) time.Duration {
	slices.Sort(samples)
	return samples[(95*len(samples)+99)/100-1]
}

// past holds the samples of the last five minutes by the second, and a few more.
type past [304]struct {
	second int64
	lags   []time.Duration
}

func (p *past) add(at time.Time, lag time.Duration) {
	second := at.Unix()
	slot := &p[second%int64(len(p))]
	if slot.second != second {
		slot.second, slot.lags = second, slot.lags[:0]
	}
	slot.lags = append(slot.lags, lag)
}

// between are the samples of the seconds that two times lie in, and of those between.
func (p *past) between(from, to time.Time) []time.Duration {
	var all []time.Duration
	for i := range p {
		if slot := &p[i]; from.Unix() <= slot.second && slot.second <= to.Unix() {
			all = append(all, slot.lags...)
		}
	}
	return all
}
