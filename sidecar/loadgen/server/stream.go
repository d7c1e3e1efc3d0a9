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
	frameTimeout = shutdownTimeout // for one frame, or one ping, to a reader that does not read
	pingPause    = 20 * time.Second
	pongTimeout  = 2*pingPause + frameTimeout
	maxMessage   = 512 // of what a client sends, which nobody reads
	maxStreams   = 256
)

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// stream sends snapshots until the caller, the backend or the server ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	if err := s.streams.begin(); err != nil {
		return err
	}
	defer s.streams.done()
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
	alive := func(string) error { return conn.SetReadDeadline(deadline(pongTimeout)) }
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
	bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the load generator ends")
	_ = conn.WriteControl(websocket.CloseMessage, bye, deadline(time.Second))
}

// streams counts the open ones, and ends them with the server.
type streams struct {
	ending chan struct{}

	mu     sync.Mutex
	open   int
	closed bool
	wg     sync.WaitGroup
}

func (s *streams) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("%w: the server ends", api.ErrUnavailable)
	case s.open >= maxStreams:
		return &refused{
			status: http.StatusServiceUnavailable, detail: fmt.Sprintf("%d streams are open, and no more are allowed; close one", maxStreams),
			header: http.Header{"Retry-After": {"5"}},
		}
	}
	s.open++
	s.wg.Add(1)
	return nil
}

func (s *streams) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
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
