package server

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// FuzzBodies: whatever a write's body is, it is taken or refused as the document says,
// and a refusal is a problem that names what is wrong.
func FuzzBodies(f *testing.F) {
	calls := []request{
		{method: "POST", path: v1 + "/workload/start"},
		{method: "POST", path: v1 + "/workload/stop"},
		{method: "PATCH", path: v1 + "/workload"},
		{method: "PUT", path: v1 + "/cluster/mode"},
		{method: "PATCH", path: v1 + "/settings"},
		{method: "POST", path: v1 + "/baselines"},
		{method: "POST", path: v1 + "/session"},
		{method: "POST", path: v1 + "/sweeps"},
		{method: "PATCH", path: v1 + "/sweeps/a1"},
		{method: "POST", path: v1 + "/sweeps/a1/baseline"},
	}
	for i, body := range []string{
		`{"concurrency":60}`, `{"drain":true}`, `{"concurrency":1e400}`, `{"mode":"kv","speculation":"eagle3"}`, `{"title":"\ud800"}`,
		`{"name":"b","rows":[{"concurrency":1,"ttft_p50":-1}]}`, `{"token":"x"}`, `{"kind":"trial","levels":[60],"seed":"7"}`, `{"state":"paused"}`, `[]`, `{`, `null`, `{"a":{"a":{"a":[]}}}`,
	} {
		f.Add(uint8(i), body)
	}
	opts := options(&recorder{})
	opts.ParseCSV, opts.ParseJSON = baseline.ReadCSV, baseline.ReadJSON
	server, err := New(opts)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		q := calls[int(which)%len(calls)]
		r := httptest.NewRequest(q.method, "http://127.0.0.1"+q.path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		stuck := time.AfterFunc(patience, func() { panic("stuck: " + q.path + " " + strconv.Quote(body)) })
		server.ServeHTTP(w, r)
		stuck.Stop()
		if w.Code < 300 {
			return
		}
		var p api.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), "%s", w.Body)
		require.Equal(t, w.Code, p.Status)
		require.NotEmpty(t, p.Detail)
		require.Less(t, w.Code, http.StatusInternalServerError, "%s", w.Body)
	})
}

// FuzzFrames: whatever a reader of the stream sends, its stream alone ends.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x81, 0x80, 1, 2, 3, 4})                       // an empty text
	f.Add([]byte{0x89, 0xfe, 0xff, 0xff})                       // a ping longer than any may be
	f.Add([]byte{0x82, 0xff, 0x7f, 255, 255, 255, 0, 0, 0, 0})  // the length of an exabyte
	f.Add([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 232})               // a regular end
	f.Add([]byte{0xf1, 0x00, 0x80, 0x00, 0x01, 0x80, 'a', 'b'}) // reserved bits, no mask, a continuation of nothing
	backend := &recorder{}
	server, err := New(options(backend))
	require.NoError(f, err)
	ts := httptest.NewServer(server)
	f.Cleanup(func() {
		server.streams.end()
		ts.Close()
	})
	address := strings.TrimPrefix(ts.URL, "http://")
	f.Fuzz(func(t *testing.T, frames []byte) {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(c, "GET "+v1+"/stream HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		require.NoError(t, err)
		_, _ = c.Write(frames) // the server may have ended the stream before all was read
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		eventually(t, "the stream's end", func() bool { return backend.subscribers() == 0 })
	})
}
