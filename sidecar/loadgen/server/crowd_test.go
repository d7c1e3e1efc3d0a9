package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
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

// requireStatus asks for the status over a connection that may be in use already. The answer comes at once.
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

// A crowd that sends half a request and stops keeps no caller out: not from another
// address, not from its own, and it ends no connection of a caller with the token.
func TestHalfOpenCrowdKeepsNoCallerOut(t *testing.T) {
	for name, half := range map[string]string{
		"heads": halfHead, "bodies": halfBody, "nothing": "", "exchanges": strings.Replace(halfBody, "workload/stop", "session", 1),
	} {
		inBubble(t, &recorder{}, func(o *Options) { o.Token, o.MaxConnections = token, 8 }, func(t *testing.T, b *bubble) {
			before := b.connect(t, "127.0.0.1", "")
			requireStatus(t, before, name)
			for range 20 {
				b.connect(t, "127.0.0.1", half)
			}
			synctest.Wait()
			requireStatus(t, b.connect(t, "127.0.0.2", ""), name)
			requireStatus(t, b.connect(t, "127.0.0.1", ""), name)
			requireStatus(t, before, name+": the operator's connection stays")
		})
	}
}

// A refused body is not waited for: the answer comes at once, and the connection ends.
func TestRefusedBodyEndsTheConnection(t *testing.T) {
	inBubble(t, &recorder{}, withToken, func(t *testing.T, b *bubble) {
		for text, status := range map[string]int{
			halfBody: http.StatusUnauthorized,
			strings.Replace(halfBody, "Content-Length: 14", "Transfer-Encoding: chunked", 1): http.StatusUnauthorized,
			strings.Replace(halfBody, v1, "/nowhere", 1):                                     http.StatusNotFound,
		} {
			began := time.Now()
			c := b.connect(t, "127.0.0.1", text)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
			require.Equal(t, status, res.StatusCode)
			require.True(t, res.Close)
			_, err = io.Copy(io.Discard, c)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), refusedTimeout)
		}
	})
}

// When there is one connection too many, the oldest of the address that has most
// goes. A connection with the token stays, and one that is closed makes room.
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

	third, excess := add("192.0.2.2", false)
	require.Same(t, first, excess, "of two addresses with two each, the oldest")
	require.NoError(t, excess.Close())
	_, excess = add("192.0.2.3", false)
	require.Same(t, other, excess)
	require.NoError(t, excess.Close())
	require.NoError(t, excess.Close(), "again")
	require.Len(t, b.open, 4)

	operator.trusted, second.trusted, third.trusted = true, true, true
	b.open[3].trusted = true
	last, excess := add("192.0.2.4", false)
	require.Same(t, last, excess, "there is no room but what callers with the token have")
	require.NoError(t, excess.Close())
	require.NoError(t, operator.Close())
	_, excess = add("192.0.2.4", false)
	require.Nil(t, excess)
}

// Over TLS, too, a call finds its connection, so that a flood closes none of a caller with the token.
func TestConnectionBelowTLS(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &conn{Conn: ours}
	require.Same(t, c, withConn(t.Context(), c).Value(connKey{}))
	require.Same(t, c, withConn(t.Context(), tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12})).Value(connKey{}))
}
