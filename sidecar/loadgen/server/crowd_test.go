package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	halfHead = "POST " + v1 + "/workload/stop HTTP/1.1\r\nHost: localhost\r\n"
	halfBody = halfHead + "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"
)

// requireStatus requests the status over a connection that may be in use already. The answer arrives at once.
func requireStatus(t *testing.T, c net.Conn, why string) {
	t.Helper()
	began := time.Now()
	_, err := fmt.Fprintf(c, "GET %s/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", v1, token)
	require.NoError(t, err, why)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err, why)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err, why)
	require.Equal(t, http.StatusOK, res.StatusCode, why)
	require.Zero(t, time.Since(began), why)
}

// Health, readiness and calls are answered at once, whatever the number of connections and their traffic, with the
// token or without, and from the address of the others, too. Clients without the token end no connection of a caller
// with it.
func TestCrowdKeepsNoCallerOut(t *testing.T) {
	authorized := "Authorization: Bearer " + token + "\r\n"
	idle := "GET " + v1 + "/status HTTP/1.1\r\nHost: localhost\r\n" + authorized + "\r\n"
	for name, text := range map[string]string{
		"nothing": "", "idle": strings.Replace(idle, authorized, "", 1), "idle with the token": idle,
		"half heads": halfHead, "half heads with the token": idle + halfHead,
		"half bodies": halfBody, "half bodies with the token": strings.Replace(halfBody, "\r\n", "\r\n"+authorized, 1),
		"half exchanges": strings.Replace(halfBody, "workload/stop", "session", 1),
		"streams":        strings.Replace(streaming, authorized, "", 1), "streams with the token": streaming,
	} {
		for _, change := range []func(*Options){withToken, publicPage, func(*Options) {}} {
			inBubble(t, &recorder{}, func(o *Options) { change(o); o.MaxConnections = 16 }, func(t *testing.T, b *bubble) {
				before := b.connect(t, "127.0.0.1", "")
				requireStatus(t, before, name)
				for range 40 {
					c := b.connect(t, "127.0.0.1", "")
					go func() { _, _ = io.Copy(io.Discard, c) }()
					go func() { _, _ = io.WriteString(c, text) }()
					synctest.Wait()
				}
				for _, path := range []string{"/healthz", "/readyz", v1 + "/status"} {
					began := time.Now()
					res, err := b.send(t, request{method: "GET", path: path, header: bearer(b.opts.Token)})
					require.NoError(t, err, "%s: %s", name, path)
					require.NoError(t, res.Body.Close())
					require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", name, path)
					require.Zero(t, time.Since(began))
				}
				requireStatus(t, b.connect(t, "127.0.0.2", ""), name)
				if b.opts.Token != "" && !strings.HasSuffix(name, "with the token") {
					requireStatus(t, before, name+": the operator's connection stays")
				}
			})
		}
	}
}

const streaming = "GET " + v1 + "/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Authorization: Bearer " + token + "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
	"AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

// bodied are calls that take a body.
var bodied = []string{
	"POST " + v1 + "/workload/stop", "PATCH " + v1 + "/settings", "PUT " + v1 + "/cluster/mode", "POST " + v1 + "/session",
	"POST " + v1 + "/baselines?name=x", "POST " + v1 + "/sweeps", "POST " + v1 + "/simulations",
}

const (
	sized   = "Content-Length: 500\r\n\r\n"
	chunked = "Transfer-Encoding: chunked\r\n\r\n"
)

// requireRefusal sends a call and requires that it is refused and its connection ends.
func requireRefusal(t *testing.T, c net.Conn, call, rest string, status int) {
	t.Helper()
	_, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\n%s", call, token, rest)
	require.NoError(t, err)
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite() // fails where the server has closed the connection
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err, "%s: %q", call, rest)
	require.Equal(t, status, readProblem(t, res).Status, "%s: %q", call, rest)
	require.True(t, res.Close)
}

// A body that stalls is the caller's error, and the call has no effect.
func TestStalledBodyIsRefused(t *testing.T) {
	for _, rest := range []string{
		sized, sized + stop, chunked, chunked + "e\r\n" + stop + "\r\n",
		chunked + "ff\r\n" + stop,
	} {
		r := &recorder{}
		inBubble(t, r, withToken, func(t *testing.T, b *bubble) {
			for _, call := range bodied {
				began := time.Now()
				requireRefusal(t, b.connect(t, "127.0.0.1", ""), call, rest, http.StatusRequestTimeout)
				require.Equal(t, readTimeout, time.Since(began))
			}
		})
		require.Empty(t, r.calls)
	}
}

// A truncated or wrongly framed body is the caller's error, and the call has no effect.
func TestBrokenBodyIsRefused(t *testing.T) {
	var log bytes.Buffer
	r := &recorder{}
	base := start(t, r, func(o *Options) { o.Token, o.Log = token, slog.New(slog.NewTextHandler(&log, nil)) })
	for name, rest := range map[string]string{
		"cut":                            sized + stop,
		"cut at once":                    sized,
		"cut after a chunk":              chunked + "e\r\n" + stop + "\r\n",
		"cut within a chunk":             chunked + "ff\r\n" + stop,
		"a chunk without a length":       chunked + "e\r\n" + stop + "\r\nxyz\r\n",
		"a chunk longer than it says":    chunked + "2\r\n" + stop + "\r\n0\r\n\r\n",
		"a negative length":              chunked + "-1\r\n" + stop + "\r\n0\r\n\r\n",
		"a length beyond all bounds":     chunked + strings.Repeat("f", 40) + "\r\n",
		"a length of thousands of bytes": chunked + strings.Repeat("0", 5000) + "\r\n",
		"trailers that are none":         chunked + "e\r\n" + stop + "\r\n0\r\n\x00\r\n\r\n",
	} {
		for _, call := range bodied {
			c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			require.NoError(t, err, name)
			requireRefusal(t, c, call, rest, http.StatusBadRequest)
			require.NoError(t, c.Close())
		}
	}
	require.Empty(t, r.calls)
	require.NotContains(t, log.String(), "ERROR")
}

// A call without a body takes effect and is answered within a second, although it announces a body that does not
// arrive.
func TestUnneededBodyIsNotWaitedFor(t *testing.T) {
	r := &recorder{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		for _, call := range []string{"DELETE " + v1 + "/cluster/mode", "GET " + v1 + "/status", "GET /healthz"} {
			began := time.Now()
			c := b.connect(t, "127.0.0.1", strings.Replace(halfBody, "POST "+v1+"/workload/stop", call, 1))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			require.Equal(t, 2, res.StatusCode/100, call)
			require.LessOrEqual(t, time.Since(began), refusedTimeout, call)
			require.NoError(t, res.Body.Close())
		}
		require.Equal(t, "cancel mode", r.last().name)
	})
}

// With one connection too many, the server closes the one whose state is oldest, of the address with the most.
// Connections of callers with the token stay, unless they leave no room for others: then idle ones are closed first.
// Streams stay, and one that is closed makes room.
func TestConnectionsAreBounded(t *testing.T) {
	b := &bounded{limit: 4}
	add := func(of string, trusted bool) (c, excess *conn) {
		near, far := net.Pipe()
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		c = &conn{Conn: near, of: network(of + ":1"), in: b, trusted: trusted}
		return c, b.add(c)
	}
	operator, _ := add("192.0.2.1", true)
	first, _ := add("192.0.2.1", false)
	second, _ := add("192.0.2.1", false)
	other, excess := add("192.0.2.2", false)
	require.Nil(t, excess)
	noteState(first, http.StateActive)

	third, excess := add("192.0.2.2", false)
	require.Same(t, second, excess, "of two addresses with two each, the one without a sign of life for longest")
	require.NoError(t, excess.Close())
	require.NoError(t, excess.Close(), "again")
	noteState(second, http.StateClosed)
	require.Len(t, b.open, 4)

	for _, c := range []*conn{operator, first, other, third} {
		c.trusted = true
	}
	noteState(operator, http.StateHijacked)
	noteState(third, http.StateIdle)
	for _, want := range []*conn{third, other, first} {
		_, excess := add("192.0.2.4", false)
		require.Same(t, want, excess, "the newest is the only one without the token")
		require.NoError(t, excess.Close())
		b.open[len(b.open)-1].trusted, b.open[len(b.open)-1].state = true, http.StateHijacked
	}
	last, excess := add("192.0.2.4", false)
	require.Same(t, last, excess, "streams stay")
	require.NoError(t, excess.Close())
	require.NoError(t, operator.Close())
	_, excess = add("192.0.2.4", false)
	require.Nil(t, excess)
}

// Over TLS, too, a call finds its connection, so a flood closes none of a caller with the token.
func TestConnectionBelowTLS(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &conn{Conn: ours}
	require.Same(t, c, withConn(t.Context(), c).Value(connKey{}))
	require.Same(t, c, withConn(t.Context(), tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12})).Value(connKey{}))
}
