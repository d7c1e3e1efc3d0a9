package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"kvbooth/sidecar/api"
)

const (
	frameTimeout    = shutdownTimeout  // for one frame, or one ping
	readerLost      = 10 * time.Second // without a pong: the reader does not read
	pingPause       = readerLost / 4
	answerTimeout   = time.Second     // for the first pong, within which a new stream counts as read
	farewellTimeout = time.Second / 2 // between the end of a stream and that of its connection
	maxMessage      = 512             // bytes of a client's message, which is discarded
)

// maxStreams is how many streams are open at a time. It is less where the server keeps few connections, see [streams].
const maxStreams = 256

// maxOfOne is how many of them one address or session has. It does not apply to an address that sends the token, as
// Grafana does, or to this machine's own, as a proxy's, because such an address may serve many readers.
const maxOfOne = 16

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// stream sends snapshots until the caller, its session, the backend or the server ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, _ none) error {
	open, err := s.streams.begin(r.Context(), s.reader(r))
	if err != nil {
		return err
	}
	defer s.streams.done(open)
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // refuseUpgrade has answered
	}
	// A stalled reader blocks a write, and the closing message after it.
	defer context.AfterFunc(open, func() { time.AfterFunc(farewellTimeout, func() { _ = conn.NetConn().Close() }) })()
	readerDone := make(chan struct{})
	go func() {
		defer close(readerDone)
		defer open.end(nil)
		s.listen(conn, open)
	}()
	s.send(conn, open)
	open.end(nil)
	_ = conn.Close()
	<-readerDone
	return nil
}

// refuseUpgrade answers a request that is no WebSocket handshake.
func (s *Server) refuseUpgrade(w http.ResponseWriter, r *http.Request, status int, reason error) {
	s.fail(w, r, &refused{status: status, detail: reason.Error()})
}

// listen reads until the client closes, sends nothing for [readerLost] or sends too much. Reading answers pings and
// receives pongs; messages are discarded.
func (s *Server) listen(conn *websocket.Conn, open *stream) {
	conn.SetReadLimit(maxMessage)
	conn.SetPongHandler(func(string) error {
		s.streams.reads(open)
		return conn.SetReadDeadline(deadline(readerLost))
	})
	_ = conn.SetReadDeadline(deadline(readerLost))
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// send writes frames as they arrive. A slow reader delays only its own stream, because the backend replaces a frame
// that was not received by the newest. The first ping is sent at once, so that the reader's state is known from the
// beginning.
func (s *Server) send(conn *websocket.Conn, open *stream) {
	frames, unsubscribe := s.opts.Backend.Subscribe()
	defer unsubscribe()
	ping := time.NewTicker(pingPause)
	defer ping.Stop()
	connected := pinged(conn)
	for connected {
		select {
		case <-open.Done():
			goodbye(conn, context.Cause(open))
			return
		case <-ping.C:
			connected = pinged(conn)
		case frame, ok := <-frames:
			if !ok {
				goodbye(conn, errEnding)
				return
			}
			connected = conn.SetWriteDeadline(deadline(frameTimeout)) == nil &&
				conn.WriteMessage(websocket.TextMessage, frame) == nil
		}
	}
}

func pinged(conn *websocket.Conn) bool {
	return conn.WriteControl(websocket.PingMessage, nil, deadline(frameTimeout)) == nil
}

// The reasons for which the server ends a stream, besides [errSessionOver].
var (
	errEnding    = errors.New("the load generator is shutting down")
	errDisplaced = errors.New("this stream was not read, and another reader needed its place")
)

// goodbye sends the reason for ending the stream, and does not wait for the client's answer.
func goodbye(conn *websocket.Conn, why error) {
	code := websocket.CloseGoingAway
	switch {
	case errors.Is(why, errSessionOver):
		code = websocket.ClosePolicyViolation
	case errors.Is(why, errDisplaced):
		code = websocket.CloseTryAgainLater
	case !errors.Is(why, errEnding):
		return // the client has disconnected
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why.Error()),
		deadline(farewellTimeout))
}

// reader is the caller of a stream, for the limits.
type reader struct {
	share    string // of an address or a session
	most     int    // streams of the share
	operator bool   // has sent the token, and may use the reserved streams
}

// reader returns the reader of an admitted request.
func (s *Server) reader(r *http.Request) reader {
	of, many := network(r.RemoteAddr), s.streams.limit/2
	one := min(maxOfOne, many)
	if _, ok := tokenOf(r); ok && s.opts.Token != "" {
		return reader{share: "token " + of.String(), most: many, operator: true}
	}
	if session, ok := s.sessions.of(r).(session); ok {
		return reader{share: session.id, most: one, operator: true}
	}
	if of.Addr().IsLoopback() {
		return reader{share: of.String(), most: many}
	}
	return reader{share: of.String(), most: one}
}

// stream is an open stream. Its context ends with it, with the reason.
type stream struct {
	reader
	context.Context

	end   context.CancelCauseFunc
	until time.Time // until when its reader counts as active
}

// streams are the open streams, which end with the server. The limit is at most half of the connections that the server
// keeps, so that no stream is ever closed to make room for another connection. A quarter of it is reserved for callers
// with the token.
type streams struct {
	limit int

	mu     sync.Mutex
	open   []*stream // oldest first
	closed bool
	wg     sync.WaitGroup
}

// begin makes room for a stream. Where a limit is reached, the oldest stream within it that is not read ends. Where all
// are read, the new one is refused.
func (s *streams) begin(ctx context.Context, who reader) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: the server is shutting down", api.ErrUnavailable)
	}
	if err := s.makeRoom(who); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	opened := &stream{reader: who, Context: ctx, end: end, until: deadline(answerTimeout)}
	s.open = append(s.open, opened)
	s.wg.Add(1)
	return opened, nil
}

// makeRoom is called with the lock held.
func (s *streams) makeRoom(who reader) error {
	ofShare, n := 0, len(s.open)
	for _, each := range s.open {
		if each.share == who.share {
			ofShare++
		}
	}
	var err error
	switch {
	case n >= s.limit:
		err = tooMany("%d streams are open, which is the limit; close one", s.limit)
	case n >= s.limit-s.limit/4 && !who.operator:
		err = tooMany("%d streams are open, and the remaining ones are reserved for callers with the token; close "+
			"one, or send the token", n)
	case ofShare >= who.most:
		err = tooMany("%d streams are open from this address or session, which is its limit; close one", who.most)
	default:
		return nil
	}
	now := time.Now()
	i := slices.IndexFunc(s.open, func(each *stream) bool {
		mayGo := each.share == who.share || ofShare < who.most && (who.operator || !each.operator)
		return mayGo && each.until.Before(now)
	})
	if i < 0 {
		return err
	}
	s.open[i].end(errDisplaced)
	s.open = slices.Delete(s.open, i, i+1)
	return nil
}

func tooMany(format string, n int) error {
	return &refused{
		status: http.StatusServiceUnavailable, detail: fmt.Sprintf(format, n),
		header: http.Header{"Retry-After": {"5"}},
	}
}

// reads records that a stream's reader has answered a ping.
func (s *streams) reads(open *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open.until = deadline(2 * pingPause)
}

// done releases the place of a stream, unless another one has replaced it.
func (s *streams) done(open *stream) {
	open.end(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.open, open); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.wg.Done()
}

// refuse ends the streams and opens no more.
func (s *streams) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, each := range s.open {
		each.end(errEnding)
	}
}

// end ends the streams as refuse does, and waits for the last one.
func (s *streams) end() {
	s.refuse()
	s.wg.Wait()
}
