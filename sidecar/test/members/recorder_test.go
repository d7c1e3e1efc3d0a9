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

// leaseSpan is the validity of a lease after its last renewal.
const leaseSpan = 3 * time.Second

// recorder records the messages of members, coordinator and server on the NATS server. It misses messages while it is
// not connected.
type recorder struct {
	conn   *nats.Conn
	orders string // bucket

	mu     sync.Mutex
	open   map[string]string // turn by the subject of its acknowledgement
	acked  map[string]int    // number of acknowledgements by turn
	leases map[string]*lease // by ID
	blocks map[string]map[members.Block]bool
	back   time.Time
}

// lease is a member's lease.
type lease struct {
	ID, Name string
	Lanes    map[string]struct{ Active int }
	first    time.Time
	renewed  time.Time
	gone     bool
}

func newRecorder(t *testing.T, url, fleet string) *recorder {
	t.Helper()
	w := &recorder{
		orders: "kvbooth_" + fleet + "_orders", open: map[string]string{}, acked: map[string]int{},
		leases: map[string]*lease{}, blocks: map[string]map[members.Block]bool{},
	}
	var err error
	w.conn, err = nats.Connect(url, nats.Name("recorder"), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second),
		nats.ReconnectHandler(func(*nats.Conn) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.back = time.Now()
		}))
	require.NoError(t, err)
	// One channel keeps messages and their acknowledgements in order.
	messages := make(chan *nats.Msg, 1<<17)
	for _, subject := range []string{
		"kvbooth." + fleet + ".turn.>", "_INBOX.>", "$KV.kvbooth_" + fleet + "_leases.*",
		"$KV.kvbooth_" + fleet + "_orders.share.>",
	} {
		_, err := w.conn.ChanSubscribe(subject, messages)
		require.NoError(t, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range messages {
			w.receive(m)
		}
	}()
	t.Cleanup(func() {
		w.conn.Close()
		close(messages)
		<-done
	})
	return w
}

func (w *recorder) receive(m *nats.Msg) {
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

func (w *recorder) turn(m *nats.Msg) {
	var message struct {
		Turn struct {
			Conversation string
			Number       int
		}
	}
	if json.Unmarshal(m.Data, &message) != nil || message.Turn.Conversation == "" || m.Reply == "" {
		return
	}
	w.open[m.Reply] = fmt.Sprintf("%s/%d", message.Turn.Conversation, message.Turn.Number)
}

func (w *recorder) ack(m *nats.Msg) {
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

func (w *recorder) lease(id string, m *nats.Msg) {
	now := time.Now()
	var l lease
	switch {
	case len(m.Data) == 0:
		if known := w.leases[id]; known != nil {
			known.gone = true
		}
	case json.Unmarshal(m.Data, &l) == nil && l.Name != "":
		l.first, l.renewed = now, now
		if known := w.leases[id]; known != nil {
			l.first = known.first
		}
		w.leases[id] = &l
	}
}

func (w *recorder) share(id string, data []byte) {
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

// leaseOf returns the latest valid lease of a member.
func (w *recorder) leaseOf(name string) (l lease, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.leases {
		if one.Name == name && !one.gone && (!ok || one.first.After(l.first)) {
			l, ok = *one, true
		}
	}
	return l, ok
}

// given returns the current share of a lease.
func (w *recorder) given(id string) []byte {
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

// holds returns the numbers that a lease has.
func (w *recorder) holds(id string) []members.Block {
	given := w.given(id) // the message may have been missed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share(id, given)
	var all []members.Block
	for b := range w.blocks[id] {
		all = append(all, b)
	}
	return all
}

// present returns the number of members with a valid lease, and the conversations that they report.
func (w *recorder) present(now time.Time) (n, active int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if l.gone || now.Sub(l.renewed) > leaseSpan {
			continue
		}
		n++
		active += l.Lanes["main"].Active
	}
	return n, active
}

// isBack returns when the connection was restored last.
func (w *recorder) isBack() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.back
}

// lastOf returns when a lease was renewed last.
func (w *recorder) lastOf(id string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.leases[id]; l != nil {
		return l.renewed
	}
	return time.Time{}
}

// renewedSince returns the number of leases that were renewed after a time.
func (w *recorder) renewedSince(at time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if !l.gone && l.renewed.After(at) {
			n++
		}
	}
	return n
}

// eachOnce requires that no number is in two leases.
func (w *recorder) eachOnce(t *testing.T) {
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
		assert.LessOrEqual(t, all[i].To, g.From, "%s and %s have the same numbers", all[i].to, g.to)
	}
}
