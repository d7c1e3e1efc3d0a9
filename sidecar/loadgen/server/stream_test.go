package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/inmem"
	"kvbooth/internal/wait"
)

// A stream requires the access of a read. A refusal is a problem document.
func TestStreamGuard(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		header map[string]string
		origin string
		status int
	}{
		{"the plugin", withToken, bearer(token), "", 101},
		{"the page", withToken, cookie("of the session"), "http://localhost", 101},
		{"the public page", publicPage, nil, "http://localhost", 101},
		{"no token", withToken, nil, "", 401},
		{"a wrong token at the public page", publicPage, bearer("wrong"), "", 401},
		{"another site with the cookie", withToken, cookie("of the session"), "http://evil.example", 403},
		{"another site at the public page", publicPage, nil, "http://evil.example", 403},
	} {
		inBubble(t, &recorder{}, tt.change, func(t *testing.T, b *bubble) {
			header := map[string]string{}
			maps.Copy(header, tt.header)
			if header["Cookie"] != "" {
				header = cookie(signIn(t, b.Server, nil).Value)
			}
			if tt.origin != "" {
				header["Origin"] = tt.origin
			}
			_, res, err := b.stream(t, header)
			require.Equal(t, tt.status, res.StatusCode, tt.name)
			require.Equal(t, tt.status != 101, err != nil, tt.name)
			if err != nil {
				require.Equal(t, tt.status, readProblem(t, res).Status)
			}
		})
	}
}

// open opens a stream from this machine.
func (b *bubble) open(t *testing.T, header map[string]string) *websocket.Conn {
	t.Helper()
	conn, _, err := b.stream(t, header)
	require.NoError(t, err)
	return conn
}

// readFrame returns the next frame of a stream.
func readFrame(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	_, text, err := c.ReadMessage()
	require.NoError(t, err)
	return string(text)
}

// drain reads a stream until it ends, and then delivers its error.
func drain(c *websocket.Conn) <-chan error {
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			_, _, err = c.ReadMessage()
		}
		ended <- err
	}()
	return ended
}

// An active reader receives every frame. A stalled one misses some, receives the newest in the end, and delays no
// other.
func TestSlowReaderGetsTheNewest(t *testing.T) {
	r := &recorder{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		fast := b.open(t, nil)
		slow := b.open(t, nil)
		readFrame(t, fast) // the frame that is sent at once
		synctest.Wait()
		for i := range 24 {
			r.publish(fmt.Append(nil, i))
			require.Equal(t, fmt.Sprint(i), readFrame(t, fast), "the fast reader gets them all")
		}
		require.Equal(t, "23", readFrame(t, slow))
	})
}

// A disconnected client, however it disconnects, leaves nothing behind. Messages from a client are ignored.
func TestStreamEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(*websocket.Conn){
		"closes": func(c *websocket.Conn) {
			_ = c.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Second))
		},
		"vanishes":       func(c *websocket.Conn) { _ = c.NetConn().Close() },
		"sends too much": func(c *websocket.Conn) { _ = c.WriteMessage(websocket.TextMessage, make([]byte, maxMessage+1)) },
	} {
		r := &recorder{}
		inBubble(t, r, nil, func(t *testing.T, b *bubble) {
			conn := b.open(t, nil)
			require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"concurrency":1000}`)))
			readFrame(t, conn)
			r.publish([]byte(`{}`))
			require.Equal(t, `{}`, readFrame(t, conn))
			require.Empty(t, r.calls)
			require.Equal(t, 1, r.subscribers())
			leave(conn)
			wait.Eventually(t, name, func() (any, bool) { n := r.subscribers(); return n, n == 0 })
		})
	}
}

// A reader that does not read, or that answers no ping, loses its stream. An active one keeps it.
func TestUnresponsiveReadersLoseTheirStreams(t *testing.T) {
	r := &recorder{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		healthy, unread, mute := b.open(t, nil), b.open(t, nil), b.open(t, nil)
		ended := drain(healthy)
		go func() { _, _ = io.Copy(io.Discard, mute.NetConn()) }()
		for _, step := range []struct {
			after time.Duration
			left  int
		}{{0, 3}, {frameTimeout + time.Second, 2}, {readerLost - frameTimeout, 1}, {time.Minute, 1}} {
			wait.Advance(step.after)
			synctest.Wait()
			require.Equal(t, step.left, r.subscribers(), "after another %v", step.after)
		}
		_ = unread.Close()
		require.NoError(t, b.end())
		require.True(t, websocket.IsCloseError(<-ended, websocket.CloseGoingAway))
	})
}

// The end of the backend and the end of Serve end a stream with a closing message. Serve waits for its streams and
// accepts no new calls.
func TestStreamEndsWithAFarewell(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *recorder, *bubble){
		"the backend": func(_ *testing.T, r *recorder, _ *bubble) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for c := range r.subs {
				close(c)
			}
		},
		"Serve": func(t *testing.T, r *recorder, b *bubble) {
			require.NoError(t, b.end())
			require.Zero(t, r.subscribers())
			_, _, err := b.stream(t, nil)
			require.Error(t, err)
		},
	} {
		r := &recorder{}
		inBubble(t, r, nil, func(t *testing.T, b *bubble) {
			conn := b.open(t, nil)
			readFrame(t, conn)
			closed := drain(conn)
			synctest.Wait()
			end(t, r, b)
			err := <-closed
			require.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "%s: %v", name, err)
		})
	}
}

// No caller gets more streams than a share, readers without the token leave some to callers with it, and the total is
// limited. A refusal names the limit and what to do. A stream that ends makes room, and so does one that is not read,
// where it is within the limit and not of a caller with more rights.
func TestStreamsAreBounded(t *testing.T) {
	s := newServer(t, &recorder{}, publicPage)
	with := cookie(signIn(t, s, nil).Value)
	of := func(addr string, header map[string]string) reader {
		r := httptest.NewRequest("GET", v1+"/stream", nil)
		r.RemoteAddr = addr
		for name, value := range header {
			r.Header.Set(name, value)
		}
		return s.reader(r)
	}
	var open []*stream
	begin := func(who reader) error {
		opened, err := s.streams.begin(t.Context(), who)
		if err == nil {
			s.streams.reads(opened)
			open = append(open, opened)
		}
		return err
	}
	end := func() {
		for _, each := range open {
			s.streams.done(each)
		}
		open = nil
		require.Empty(t, s.streams.open)
	}
	fill := func(who reader, n int, why string) {
		t.Helper()
		for range n {
			require.NoError(t, begin(who))
		}
		var r *refused
		require.ErrorAs(t, begin(who), &r)
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "5", r.header.Get("Retry-After"))
		require.Contains(t, r.detail, why)
	}
	const (
		maxReaders, maxOfMany = 192, 128

		ofOne  = "16 streams are open from this address or session, which is its limit; close one"
		ofMany = "128 streams are open from this address or session, which is its limit; close one"
		kept   = "192 streams are open, and the remaining ones are reserved for callers with the token; close one, " +
			"or send the token"
		all = "256 streams are open, which is the limit; close one"
	)
	fill(of("192.0.2.1:1", nil), maxOfOne, ofOne)
	fill(of("192.0.2.1:2", map[string]string{"Authorization": "Basic " + token}), 0, ofOne)
	fill(of("[2001:db8::1]:1", nil), maxOfOne, ofOne)
	fill(of("[2001:db8::2]:1", nil), 0, ofOne) // the same network
	fill(of("127.0.0.1:1", nil), maxOfMany, ofMany)
	fill(of("192.0.2.2:1", nil), maxOfOne, ofOne)
	fill(of("192.0.2.3:1", nil), maxReaders-maxOfMany-3*maxOfOne, kept)
	fill(of("192.0.2.1:1", with), maxOfOne, ofOne)
	fill(of("192.0.2.1:1", bearer(token)), maxStreams-maxReaders-maxOfOne, all)
	call := request{path: v1 + "/stream", header: bearer(token)}
	require.Contains(t, refusal(t, s, call).Detail, all)

	unread := func(i int) *stream {
		open[i].until = time.Now().Add(-time.Second)
		return open[i]
	}
	operator, other := unread(len(open)-1), unread(maxOfOne)
	fill(of("192.0.2.1:1", nil), 0, all) // it has its share, and all are read
	fill(of("192.0.2.4:1", nil), 1, all)
	require.ErrorIs(t, context.Cause(other), errDisplaced)
	require.NoError(t, operator.Err(), "a reader without the token must not displace one with it")
	fill(of("192.0.2.2:1", bearer(token)), 1, all)
	require.ErrorIs(t, context.Cause(operator), errDisplaced)

	end()
	fill(of("192.0.2.1:1", bearer(token)), maxOfMany, ofMany)
	require.NoError(t, begin(of("192.0.2.2:1", bearer(token))))
	end()
	require.Equal(t, http.StatusBadRequest, refusal(t, s, call).Status, "there is room for a handshake")
}

// Active readers keep their streams, and get a new one, whatever the number of unread streams: from the same address,
// opened before and after.
func TestReadersThatReadAreKept(t *testing.T) {
	r := &recorder{}
	manyConnections := func(o *Options) { o.MaxConnections = 64 } // 32 streams, 16 of loopback
	inBubble(t, r, manyConnections, func(t *testing.T, b *bubble) {
		hostile := func() {
			for range 40 {
				go func() { _, _, _ = b.stream(t, nil) }()
			}
			synctest.Wait()
		}
		hostile()
		_, res, err := b.stream(t, nil)
		require.Error(t, err, "the others may still answer the first ping")
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		wait.Advance(answerTimeout + time.Millisecond)
		var readers []*websocket.Conn
		for range 10 {
			conn := b.open(t, nil)
			readFrame(t, conn)
			synctest.Wait()
			readers = append(readers, conn)
		}
		hostile()
		for i := range 20 { // seconds
			r.publish(fmt.Append(nil, i))
			for _, conn := range readers {
				require.Equal(t, fmt.Sprint(i), readFrame(t, conn))
			}
			wait.Advance(time.Second)
		}
	})
}

// Whatever ends a session ends its reads, within a second, and an active reader receives the reason.
func TestStreamEndsWithItsSession(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *bubble, header map[string]string){
		"signing out": func(t *testing.T, b *bubble, header map[string]string) {
			res, err := b.send(t, request{method: "DELETE", path: v1 + "/session", header: header})
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusNoContent, res.StatusCode)
		},
		"its time": func(*testing.T, *bubble, map[string]string) { wait.Advance(sessionLife) },
		"a thousand sign-ins": func(_ *testing.T, b *bubble, _ map[string]string) {
			for range maxSessions {
				b.sessions.begin()
			}
		},
	} {
		r := &recorder{}
		inBubble(t, r, withToken, func(t *testing.T, b *bubble) {
			r.follow = make(chan struct{})
			header := cookie(signIn(t, b.Server, nil).Value)
			conn := b.open(t, header)
			token := b.open(t, bearer(token))
			closed, _ := drain(conn), drain(token)
			unread := b.open(t, header)
			synctest.Wait()
			end(t, b, header)
			synctest.Wait()
			require.True(t, websocket.IsCloseError(<-closed, websocket.ClosePolicyViolation), name)
			wait.Advance(time.Second)
			synctest.Wait()
			_, err := unread.NetConn().Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, name)
			require.Equal(t, 1, r.subscribers(), "%s: that of the token goes on", name)
		})
	}
}

// slowBackend blocks until it is released.
type slowBackend struct {
	recorder
	let chan struct{}
}

func (b *slowBackend) Lane(name string) (Lane, error) {
	<-b.let
	return b.recorder.Lane(name)
}

// A call in progress is answered although the server stops, and the server accepts no new connection meanwhile.
func TestServeFinishesCalls(t *testing.T) {
	r := &slowBackend{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		r.let = make(chan struct{})
		status := make(chan int, 1)
		go func() {
			res, err := b.send(t, request{method: http.MethodDelete, path: v1 + "/cluster/mode"})
			if err == nil {
				_ = res.Body.Close()
				status <- res.StatusCode
			}
			close(status)
		}()
		synctest.Wait()
		go func() { _ = b.end() }()
		synctest.Wait()
		_, err := b.DialFrom(t.Context(), "127.0.0.1")
		require.ErrorIs(t, err, net.ErrClosed)
		close(r.let)
		require.Equal(t, http.StatusAccepted, <-status)
	})
}

// Serve returns the error of its listener.
func TestServeFails(t *testing.T) {
	l := inmem.Listen()
	require.NoError(t, l.Close())
	require.ErrorIs(t, newServer(t, &recorder{}, nil).Serve(t.Context(), l), net.ErrClosed)
}
