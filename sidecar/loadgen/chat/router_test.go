package chat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering returns a server whose answers have further headers, and a channel with its requests.
func answering(t *testing.T, headers string) (url string, got chan call) {
	got = make(chan call, 8)
	s := serve(t, func(c call) bool {
		if strings.HasSuffix(c.req.URL.Path, "/list") {
			c.write(withLength(200, "", `{"urls":[]}`))
			return true
		}
		got <- c
		c.write(strings.Replace(streamHead, "\r\n", "\r\n"+headers, 1) + framed(workerEvent, doneEvent) + lastChunk)
		return true
	})
	return s.url, got
}

func TestWorkerOfATurn(t *testing.T) {
	for headers, want := range map[string]string{
		"": "9", // Dynamo's, from the stream
		"X-Smg-Routed-Worker-Id: http://10.0.0.1:8000/v1\r\n":        "10.0.0.1:8000",
		"X-Engine: engine-2\r\nX-Smg-Routed-Worker-Id: http://a\r\n": "engine-2",
	} {
		url, _ := answering(t, headers)
		c := clientOf(t, url, func(o *Options) { o.WorkerHeaders = []string{"X-Engine", "X-Smg-Routed-Worker-Id"} })
		live := new(Live)
		r := c.Do(t.Context(), Request{Messages: hello(), Live: live})
		require.True(t, r.OK(), outcome(r))
		assert.Equal(t, want, r.Worker)
		assert.Equal(t, want, live.Worker())
	}
}

// A session is shown in one way only, and the token that a server returns is sent back.
func TestSession(t *testing.T) {
	for _, row := range []struct {
		session         Session
		header, body, s string
	}{
		{Session{}, "", "", ""},
		{Session{SessionHeader, "X-Session-Id"}, "conversation-1", "", "header:X-Session-Id"},
		{Session{SessionReturned, "X-Session-Id"}, "token-1", "", "returned:X-Session-Id"},
		{Session{SessionBody, "user"}, "", `"user":"conversation-1"`, "body:user"},
	} {
		url, got := answering(t, "X-Session-Id: token-2\r\n")
		c := clientOf(t, url, func(o *Options) { o.Session = row.session })
		r := c.Do(t.Context(), Request{Messages: hello(), Conversation: "conversation-1", Token: "token-1"})
		require.True(t, r.OK(), outcome(r))
		in := <-got
		assert.Equal(t, row.header, in.req.Header.Get("X-Session-Id"))
		assert.Contains(t, string(in.body), row.body)
		assert.Equal(t, row.body != "", strings.Contains(string(in.body), "conversation-1"))
		assert.Equal(t, row.session.Kind == SessionReturned, r.Token == "token-2")
		assert.Equal(t, row.s, row.session.String())
	}
}

// What a probe recognizes decides on the request id of later turns.
func TestRequestIDOfARecognizedServer(t *testing.T) {
	url, got := answering(t, "X-Worker: w\r\n")
	c := clientOf(t, url, func(o *Options) {
		o.Recognize = func(e Evidence) Recognized {
			status, body := e.Get("/list")
			return Recognized{Router: e.Header.Get("X-Worker") + string(body), NoRequestID: status == 200 && e.Instance}
		}
	})
	require.Nil(t, c.Probe(t.Context()))
	assert.Equal(t, Recognized{Router: `w{"urls":[]}`, NoRequestID: true, Worker: "nvext.worker_id"}, c.Recognized())
	<-got
	r := c.Do(t.Context(), Request{ID: "42-3", Messages: hello()})
	require.True(t, r.OK(), outcome(r))
	assert.Empty(t, (<-got).req.Header.Get("X-Request-Id"))
}
