package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"kvbooth/sidecar/api"
)

const (
	frameTimeout = shutdownTimeout  // for one frame, or one ping
	readerLost   = 10 * time.Second // without a pong: the reader does not read
	pingPause    = readerLost / 4
	maxMessage   = 512 // of what a client sends, which nobody reads
)

// Streams open at a time: of all callers, of those who have not shown the token,
// and of one address or session. An address may stand for many readers where it
// shows the token, as Grafana does, or where it is this machine's own, as a proxy's.
const (
	maxStreams = 256
	maxReaders = maxStreams - 64
	maxOfOne   = 16
	maxOfMany  = maxStreams / 2
)

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// stream sends snapshots until the caller, the backend or the server ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	who := s.reader(r)
	if err := s.streams.begin(who); err != nil {
		return err
	}
	defer s.streams.done(who)
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // refuseUpgrade has answered
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // net/http watches no hijacked connection
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer cancel()
		listen(conn)
	}()
	s.send(ctx, conn)
	cancel()
	_ = conn.Close()
	<-heard
	return nil
}

// refuseUpgrade answers what is no WebSocket handshake.
func (s *Server) refuseUpgrade(w http.ResponseWriter, r *http.Request, status int, reason error) {
	s.fail(w, r, &refused{status: status, detail: reason.Error()})
}

// listen reads until the client closes, goes silent or sends too much. Reading
// is what answers pings and hears pongs; messages are thrown away.
func listen(conn *websocket.Conn) {
	alive := func(string) error { return conn.SetReadDeadline(deadline(readerLost)) }
	conn.SetReadLimit(maxMessage)
	conn.SetPongHandler(alive)
	_ = alive("")
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// send writes frames as they come. A reader that is slow makes only this wait;
// the backend puts the newest frame in the place of the one not yet taken.
func (s *Server) send(ctx context.Context, conn *websocket.Conn) {
	frames, unsubscribe := s.opts.Backend.Subscribe()
	defer unsubscribe()
	ping := time.NewTicker(pingPause)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.streams.ending:
			goodbye(conn)
			return
		case <-ping.C:
			if conn.WriteControl(websocket.PingMessage, nil, deadline(frameTimeout)) != nil {
				return
			}
		case frame, ok := <-frames:
			if !ok {
				goodbye(conn)
				return
			}
			if conn.SetWriteDeadline(deadline(frameTimeout)) != nil || conn.WriteMessage(websocket.TextMessage, frame) != nil {
				return
			}
		}
	}
}

// goodbye tells the client that the server ends, and does not wait for its answer.
func goodbye(conn *websocket.Conn) {
	bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the load generator is shutting down")
	_ = conn.WriteControl(websocket.CloseMessage, bye, deadline(time.Second))
}

// reader is whose share of the streams a caller has.
type reader struct {
	share    string // of an address or a session
	most     int    // streams of the share
	operator bool   // knows the token, and may have what is kept for those
}

// reader is who makes an admitted request.
func (s *Server) reader(r *http.Request) reader {
	of := network(r.RemoteAddr)
	if _, ok := tokenOf(r); ok && s.opts.Token != "" {
		return reader{share: "token " + of.String(), most: maxOfMany, operator: true}
	}
	if s.inSession(r) {
		c, _ := r.Cookie(cookieName) // it is there
		return reader{share: c.Value, most: maxOfOne, operator: true}
	}
	if of.Addr().IsLoopback() {
		return reader{share: of.String(), most: maxOfMany}
	}
	return reader{share: of.String(), most: maxOfOne}
}

// streams counts the open ones, and ends them with the server.
type streams struct {
	ending chan struct{}

	mu     sync.Mutex
	open   int
	of     map[string]int // by share
	closed bool
	wg     sync.WaitGroup
}

func (s *streams) begin(who reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("%w: the server is shutting down", api.ErrUnavailable)
	case s.open >= maxStreams:
		return tooMany("%d streams are open, which is the limit; close one", maxStreams)
	case s.open >= maxReaders && !who.operator:
		return tooMany("%d streams are open, and the remaining ones are reserved for callers with the token; close one, or send the token", s.open)
	case s.of[who.share] >= who.most:
		return tooMany("%d streams are open from this address or session, which is its limit; close one", who.most)
	}
	s.open++
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[who.share]++
	s.wg.Add(1)
	return nil
}

func tooMany(format string, n int) error {
	return &refused{
		status: http.StatusServiceUnavailable, detail: fmt.Sprintf(format, n),
		header: http.Header{"Retry-After": {"5"}},
	}
}

func (s *streams) done(who reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.of[who.share]--; s.of[who.share] == 0 {
		delete(s.of, who.share)
	}
	s.wg.Done()
}

// refuse ends the streams and opens no more.
func (s *streams) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ending)
	}
}

// end is refuse, and waits for the last stream's end.
func (s *streams) end() {
	s.refuse()
	s.wg.Wait()
}
