package plugin

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// Timeouts of connections. A handshake and the pause before it together stay below 5 s, within which a recovered load
// generator must be detected.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 2500 * time.Millisecond
	maxTimeout       = 5 * time.Minute
)

// limits are the limits that tests reduce.
type limits struct {
	answer  int64         // bytes of an answer at most, except of exports
	answers int           // held at once
	exports int           // at once
	stall   time.Duration // without progress, after which an export is ended
	silence time.Duration // since the last snapshot, after which the load generator is lost
	repeat  time.Duration // between two messages that it is lost
	linger  time.Duration // how long the connection outlives its last listener
	pauses  [2]time.Duration
	refused time.Duration // the pause after a refusal, which repeated attempts would only prolong
}

// normal are the limits outside tests. Ten wrong tokens lock out an address, and one of them expires every 6 s.
var normal = limits{
	answer: 16 << 20, answers: 4, exports: 2, stall: 30 * time.Second,
	silence: 3 * time.Second, repeat: time.Second, linger: 30 * time.Second,
	pauses: [2]time.Duration{250 * time.Millisecond, 2 * time.Second}, refused: 10 * time.Second,
}

// message is the newest state of a relay: a snapshot, or that there is none.
type message struct {
	at       time.Time     // when it was received; the load generator's clock may differ
	text     []byte        // in JSON: the snapshot as it came, or [lost]
	snapshot *api.Snapshot // nil: the load generator is lost
	since    time.Time     // lost since: its last snapshot, or the first attempt
	problem  string        // why it is lost
}

// lost is the message of the snapshot channel during a loss.
type lost struct {
	Lost    bool      `json:"lost"` // true
	Since   time.Time `json:"since"`
	Problem string    `json:"problem"`
}

var errDisposed = errors.New("the app's settings have changed; subscribe again")

// relay holds one stream of snapshots for any number of listeners. The stream is opened for the first of them, reopened
// whenever it ends, and closed some time after the last one has left. During a loss, it publishes that every second. It
// is safe for concurrent use.
type relay struct {
	open    func(context.Context) iter.Seq2[[]byte, error]
	explain func(error) fault
	limits  limits
	running sync.WaitGroup

	mu        sync.Mutex // of the fields below
	closed    bool
	listeners map[chan message]struct{}
	latest    *message
	stop      context.CancelFunc // of the stream; nil: there is none
	linger    *time.Timer        // runs while there are no listeners; nil: there are some
}

func newRelay(open func(context.Context) iter.Seq2[[]byte, error], explain func(error) fault, t limits) *relay {
	return &relay{open: open, explain: explain, limits: t, listeners: map[chan message]struct{}{}}
}

// subscribe delivers messages: the newest at once, if there is one. The channel holds one message, so a slow reader
// misses those between. It is closed with the relay, and must not be read after unsubscribe. The error is errDisposed.
func (f *relay) subscribe() (messages <-chan message, unsubscribe func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, errDisposed
	}
	if f.linger != nil {
		f.linger.Stop()
		f.linger = nil
	}
	if f.stop == nil {
		f.start()
	}
	c := make(chan message, 1)
	if f.latest != nil {
		c <- *f.latest
	}
	f.listeners[c] = struct{}{}
	return c, func() { f.leave(c) }, nil
}

func (f *relay) leave(c chan message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, c)
	if len(f.listeners) == 0 && f.stop != nil && f.linger == nil {
		f.linger = time.AfterFunc(f.limits.linger, f.rest)
	}
}

// rest ends the stream, if there are still no listeners.
func (f *relay) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.linger != nil && len(f.listeners) == 0 && f.stop != nil {
		f.linger = nil
		f.halt()
	}
}

// start begins a stream; the lock is held.
func (f *relay) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.latest = cancel, nil
	s := &receiver{relay: f, began: time.Now(), wake: make(chan struct{}, 1)}
	f.running.Go(func() { s.receive(ctx) })
	f.running.Go(func() { s.watch(ctx) })
}

// halt ends the stream. The lock is held, so nothing is published afterwards.
func (f *relay) halt() {
	f.stop()
	f.stop, f.latest = nil, nil
}

// close ends everything and waits for its end.
func (f *relay) close() {
	f.mu.Lock()
	if f.linger != nil {
		f.linger.Stop()
	}
	if f.stop != nil {
		f.halt()
	}
	for c := range f.listeners {
		close(c)
	}
	f.listeners, f.closed = nil, true
	f.mu.Unlock()
	f.running.Wait()
}

// publish sends a message to every listener. It replaces a message that the listener has not received yet. Messages
// of a stream that was ended are dropped.
func (f *relay) publish(ctx context.Context, m message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.latest = &m
	for c := range f.listeners {
		select {
		case <-c:
		default:
		}
		c <- m
	}
}
