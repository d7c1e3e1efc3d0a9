//go:build members && linux

package members

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/members"
)

// leaseSpan is how long a lease holds after its last renewal.
const leaseSpan = 3 * time.Second

// witness hears on the NATS server what members and coordinator say, and what the server
// acknowledges. It misses what is said in the moments in which it is not connected.
type witness struct {
	conn   *nats.Conn
	orders string // bucket

	mu     sync.Mutex
	open   map[string]string // where an acknowledgement goes → the turn
	acked  map[string]int    // turn → how often it was acknowledged
	leases map[string]*lease // by id
	blocks map[string]map[members.Block]bool
	back   time.Time
}

// lease is what a member has said of itself.
type lease struct {
	ID, Name string
	Leaves   bool
	Lanes    map[string]struct{ Active int }
	first    time.Time
	heard    time.Time
	gone     bool
}

func newWitness(t *testing.T, url, fleet string) *witness {
	t.Helper()
	w := &witness{orders: "kvbooth_" + fleet + "_orders", open: map[string]string{}, acked: map[string]int{}, leases: map[string]*lease{}, blocks: map[string]map[members.Block]bool{}}
	var err error
	w.conn, err = nats.Connect(url, nats.Name("witness"), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second),
		nats.ReconnectHandler(func(*nats.Conn) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.back = time.Now()
		}))
	require.NoError(t, err)
	// One channel, so that what is acknowledged is heard before its acknowledgement.
	heard := make(chan *nats.Msg, 1<<17)
	for _, subject := range []string{"kvbooth." + fleet + ".turn.>", "_INBOX.>", "$KV.kvbooth_" + fleet + "_leases.*", "$KV.kvbooth_" + fleet + "_orders.share.>"} {
		_, err := w.conn.ChanSubscribe(subject, heard)
		require.NoError(t, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range heard {
			w.hear(m)
		}
	}()
	t.Cleanup(func() {
		w.conn.Close()
		close(heard)
		<-done
	})
	return w
}

func (w *witness) hear(m *nats.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; {
	case strings.HasPrefix(m.Subject, "kvbooth."):
		w.turn(m)
	case strings.HasPrefix(m.Subject, "_INBOX."):
		w.ack(m)
	case strings.Contains(m.Subject, "_leases."):
		w.lease(id, m)
	default:
		w.share(id, m.Data)
	}
}

func (w *witness) turn(m *nats.Msg) {
	var said struct {
		Turn struct {
			Conversation string
			Number       int
		}
	}
	if json.Unmarshal(m.Data, &said) != nil || said.Turn.Conversation == "" || m.Reply == "" {
		return
	}
	w.open[m.Reply] = fmt.Sprintf("%s/%d", said.Turn.Conversation, said.Turn.Number)
}

func (w *witness) ack(m *nats.Msg) {
	turn, ok := w.open[m.Subject]
	if !ok {
		return
	}
	delete(w.open, m.Subject)
	var answer struct {
		Stream string
		Error  *struct{}
	}
	if json.Unmarshal(m.Data, &answer) == nil && answer.Stream != "" && answer.Error == nil {
		w.acked[turn]++
	}
}

func (w *witness) lease(id string, m *nats.Msg) {
	now := time.Now()
	var l lease
	switch {
	case len(m.Data) == 0:
		if known := w.leases[id]; known != nil {
			known.gone = true
		}
	case json.Unmarshal(m.Data, &l) == nil && l.Name != "":
		l.first, l.heard = now, now
		if known := w.leases[id]; known != nil {
			l.first = known.first
		}
		w.leases[id] = &l
	}
}

func (w *witness) share(id string, data []byte) {
	var s members.Share
	if json.Unmarshal(data, &s) != nil {
		return
	}
	if w.blocks[id] == nil {
		w.blocks[id] = map[members.Block]bool{}
	}
	for _, b := range s.Blocks {
		w.blocks[id][b] = true
	}
}

// leaseOf is the latest lease of a member that is there.
func (w *witness) leaseOf(name string) (l lease, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.leases {
		if one.Name == name && !one.gone && (!ok || one.first.After(l.first)) {
			l, ok = *one, true
		}
	}
	return l, ok
}

// given is the share that a lease has at the moment.
func (w *witness) given(id string) []byte {
	js, err := w.conn.JetStream()
	if err != nil {
		return nil
	}
	orders, err := js.KeyValue(w.orders)
	if err != nil {
		return nil
	}
	now, err := orders.Get("share.main." + id)
	if err != nil {
		return nil
	}
	return now.Value()
}

// holds says which numbers a lease was given.
func (w *witness) holds(id string) []members.Block {
	given := w.given(id) // it may have been given while nobody listened
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share(id, given)
	var all []members.Block
	for b := range w.blocks[id] {
		all = append(all, b)
	}
	return all
}

// present are how many members there are, and how many conversations they say they hold.
func (w *witness) present(now time.Time) (n, active int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if l.gone || now.Sub(l.heard) > leaseSpan {
			continue
		}
		n++
		active += l.Lanes["main"].Active
	}
	return n, active
}

// isBack is when the connection was there again last.
func (w *witness) isBack() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.back
}

// lastOf is when a lease was renewed last.
func (w *witness) lastOf(id string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.leases[id]; l != nil {
		return l.heard
	}
	return time.Time{}
}

// renewedSince is how many leases were renewed after a moment.
func (w *witness) renewedSince(at time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if !l.gone && l.heard.After(at) {
			n++
		}
	}
	return n
}

// eachOnce asserts that no number was given to two leases.
func (w *witness) eachOnce(t *testing.T) {
	t.Helper()
	type given struct {
		members.Block
		to string
	}
	var all []given
	w.mu.Lock()
	for id, blocks := range w.blocks {
		for b := range blocks {
			all = append(all, given{b, id})
		}
	}
	w.mu.Unlock()
	slices.SortFunc(all, func(a, b given) int { return cmp.Compare(a.From, b.From) })
	require.NotEmpty(t, all)
	for i, g := range all[1:] {
		assert.LessOrEqual(t, all[i].To, g.From, "the same numbers for %s and %s", all[i].to, g.to)
	}
}
