//go:build page

package page

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// replay is a proxy of a load generator whose stream sends a requested number of snapshots as fast as the page reads
// them.
type replay struct {
	mu    sync.Mutex
	conns map[*websocket.Conn]bool
	last  api.Snapshot
	ended chan struct{}
}

// startReplay starts the proxy and returns its URL. POST /replay?n=…&title=… sends n snapshots, the last one with the
// title.
func startReplay(t *testing.T, loadgen string) string {
	t.Helper()
	target, err := url.Parse(loadgen)
	require.NoError(t, err)
	client, err := api.NewClient(nil, loadgen, "")
	require.NoError(t, err)
	p := &replay{conns: map[*websocket.Conn]bool{}, ended: make(chan struct{})}
	if p.last, err = client.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Origin") // the proxy's, not the load generator's
	}})
	mux.HandleFunc("GET "+api.Prefix+"/stream", p.stream)
	mux.HandleFunc("POST /replay", p.play)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(p.end) // the server does not close hijacked connections
	return server.URL
}

// stream sends a snapshot per second while it does not replay, as a load generator does.
func (p *replay) stream(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns[conn] = true
	p.mu.Unlock()
	p.speak(conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// speak returns when the page has disconnected, or the test ends.
func (p *replay) speak(conn *websocket.Conn) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for p.send(conn) == nil {
		select {
		case <-second.C:
		case <-p.ended:
			return
		}
	}
}

func (p *replay) send(conn *websocket.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return conn.WriteJSON(p.last)
}

func (p *replay) play(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range n {
		p.next(i)
		if i == n-1 {
			p.last.Settings.Title = r.FormValue("title")
		}
		for conn := range p.conns {
			if conn.WriteJSON(p.last) != nil {
				http.Error(w, "the page has gone", http.StatusInternalServerError)
				return
			}
		}
	}
}

// next changes the snapshot to that of the next second: most figures change a little, and a step begins every ten
// minutes.
func (p *replay) next(i int) {
	p.last.Time = p.last.Time.Add(time.Second)
	for j := range p.last.Lanes {
		l := &p.last.Lanes[j]
		l.Totals.OK += int64(5 + i%3)
		l.Totals.OutputTokens += int64(3000 + i%97)
		l.Window.RequestsPerSecond = 5 + float64(i%17)/10
		l.Window.OutputTokensPerSecond = 3000 + float64(i%101)
		for k := range l.Cluster.Workers {
			l.Cluster.Workers[k].Inflight = new(float64(10 + (i+k)%9))
		}
		if i%600 == 0 {
			l.State.Step.ID++
		}
	}
}

func (p *replay) end() {
	close(p.ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}
