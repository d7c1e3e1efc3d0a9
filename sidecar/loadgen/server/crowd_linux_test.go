package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// connect opens a connection from an address of this machine and sends the text.
func connect(t *testing.T, base, from, text string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

const (
	halfHead = "POST " + v1 + "/workload/stop HTTP/1.1\r\nHost: localhost\r\n"
	halfBody = halfHead + "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"
)

// status asks for the status over a connection that may be in use already.
func status(t *testing.T, c net.Conn, token string) error {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, _ = fmt.Fprintf(c, "GET %s/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", v1, token)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	require.Equal(t, http.StatusOK, res.StatusCode)
	return err
}

// A crowd that sends half a request and stops keeps nobody out: not from another
// address, not from its own, and it ends no connection of who knows the token.
func TestHalfOpen(t *testing.T) {
	for name, half := range map[string]string{"heads": halfHead, "bodies": halfBody, "nothing": "", "exchanges": strings.Replace(halfBody, "workload/stop", "session", 1)} {
		t.Run(name, func(t *testing.T) {
			base, end := serve(t, &recorder{}, withToken)
			before := connect(t, base, "127.0.0.1", "")
			require.NoError(t, status(t, before, token))
			crowd := make([]net.Conn, 900)
			for i := range crowd {
				crowd[i] = connect(t, base, "127.0.0.1", half)
			}
			for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
				began := time.Now()
				require.NoError(t, status(t, connect(t, base, from, ""), token))
				require.Less(t, time.Since(began), time.Second)
			}
			require.NoError(t, status(t, before, token), "the operator's connection stays")
			for _, c := range crowd {
				_ = c.Close()
			}
			require.NoError(t, end())
		})
	}
}

// A refused body is not waited for: the answer comes at once, and the connection
// ends.
func TestRefusedBody(t *testing.T) {
	base, end := serve(t, &recorder{}, withToken)
	var refused []net.Conn
	for _, text := range []string{halfBody, strings.Replace(halfBody, "Content-Length: 14", "Transfer-Encoding: chunked", 1), strings.Replace(halfBody, v1, "/nowhere", 1)} {
		c := connect(t, base, "127.0.0.1", text)
		require.NoError(t, c.SetDeadline(time.Now().Add(readHeaderTimeout)))
		began := time.Now()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Less(t, time.Since(began), refusedTimeout)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound}, res.StatusCode)
		require.True(t, res.Close)
		refused = append(refused, c)
	}
	for _, c := range refused {
		_, err := io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection ended")
	}
	require.NoError(t, end())
}

// When there is one connection too many, the oldest of the address that has most
// goes. Who knows the token stays, and who closes a connection makes room.
func TestBounded(t *testing.T) {
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

// Readers that do not read lose their streams after 10 s. Meanwhile another
// address and callers with the token get theirs, and who reads keeps his.
func TestDeadReaders(t *testing.T) {
	t.Parallel()
	b := &recorder{}
	base, end := serve(t, b, func(o *Options) { o.Token, o.PublicPage = token, true })
	refused := 0
	for range 900 {
		_, res, err := dial(t, base, nil)
		if err != nil {
			require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
			refused++
		}
	}
	require.Equal(t, 900-maxOfMany, refused)

	from := func(ip string) *websocket.Dialer {
		d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		return &websocket.Dialer{NetDialContext: d.DialContext}
	}
	healthy := make(chan error)
	readers := 0
	read := func(d *websocket.Dialer, header http.Header) {
		conn, _, err := d.Dial(wsURL(base), header)
		require.NoError(t, err)
		readers++
		go func() {
			defer conn.Close()
			for err == nil {
				_, _, err = conn.ReadMessage()
			}
			healthy <- err
		}()
	}
	for range 32 {
		read(from("127.0.0.2"), nil)
		read(from("127.0.0.1"), http.Header{"Authorization": {"Bearer " + token}})
	}
	eventually(t, "every stream", func() bool { return b.subscribers() == maxOfMany+readers })
	require.Eventually(t, func() bool { return b.subscribers() == readers }, 2*readerLost, 100*time.Millisecond)
	require.NoError(t, end())
	for range readers {
		require.True(t, websocket.IsCloseError(<-healthy, websocket.CloseGoingAway))
	}
}
