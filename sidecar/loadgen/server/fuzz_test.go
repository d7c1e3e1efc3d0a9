package server

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/loadgen/baseline"
)

// FuzzBodies requires that any body of a write is accepted or refused as documented, and that a refusal is a problem
// that names what is wrong.
func FuzzBodies(f *testing.F) {
	for i, body := range []string{
		`{"concurrency":60}`, `{"drain":true}`, `{"concurrency":1e400}`, `{"mode":"kv","speculation":"eagle3"}`, `{"title":"\ud800"}`,
		`{"name":"b","rows":[{"concurrency":1,"ttft_p50":-1}]}`, `{"token":"x"}`, `{"kind":"trial","levels":[60],"seed":"7"}`, `{"state":"paused"}`, `[]`, `{`, `null`, `{"a":{"a":{"a":[]}}}`,
	} {
		f.Add(uint8(i), body)
	}
	server := newServer(f, &recorder{}, func(o *Options) { o.ParseCSV, o.ParseJSON = baseline.ReadCSV, baseline.ReadJSON })
	writes := slices.DeleteFunc(everyRoute(server),
		func(q routeCall) bool { return q.method == "GET" || q.method == "DELETE" })
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		q := writes[int(which)%len(writes)]
		q.body = body
		res, text := do(t, server, q.request)
		if res.StatusCode < 300 {
			return
		}
		res.Body = io.NopCloser(strings.NewReader(text))
		readProblem(t, res)
		require.Less(t, res.StatusCode, http.StatusInternalServerError, text)
	})
}

// FuzzFrames requires that any message of a stream's reader ends at most its own stream.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x81, 0x80, 1, 2, 3, 4})                       // an empty text
	f.Add([]byte{0x89, 0xfe, 0xff, 0xff})                       // a ping longer than any may be
	f.Add([]byte{0x82, 0xff, 0x7f, 255, 255, 255, 0, 0, 0, 0})  // the length of an exabyte
	f.Add([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 232})               // a regular end
	f.Add([]byte{0xf1, 0x00, 0x80, 0x00, 0x01, 0x80, 'a', 'b'}) // reserved bits, no mask, a continuation of nothing
	backend := &recorder{}
	address := strings.TrimPrefix(start(f, backend, nil), "http://")
	f.Fuzz(func(t *testing.T, frames []byte) {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(wait.Limit)))
		_, err = io.WriteString(c,
			"GET "+v1+"/stream HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		require.NoError(t, err)
		_, _ = c.Write(frames) // the server may end the stream before it has read everything
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		wait.Eventually(t, "the stream has ended", func() (any, bool) { n := backend.subscribers(); return n, n == 0 })
	})
}
