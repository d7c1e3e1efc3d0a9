package chat

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// corked is a connection that gathers what is written until it is sent.
type corked struct {
	net.Conn
	held *bytes.Buffer // nil: each write goes out at once
}

func (c *corked) Write(p []byte) (int, error) {
	if c.held != nil {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

// records are the TLS records of some plaintexts, one each.
func records(t *testing.T, wire *corked, secure *tls.Conn, texts ...string) string {
	wire.held = new(bytes.Buffer)
	defer func() { wire.held = nil }()
	for _, text := range texts {
		if _, err := io.WriteString(secure, text); err != nil {
			t.Error(err)
		}
	}
	return wire.held.String()
}

// A chunk's time is that of the read that brought its last byte, whatever reads,
// events, HTTP chunks and TLS records have to do with each other. Each piece here
// comes in a read of its own, 10 ms after the one before.
func TestStamps(t *testing.T) {
	a, b, c := framed(event("a")), framed(event("b")), framed(event("c"))
	whole := func(pieces ...string) []string { return slices.Concat([]string{streamHead}, pieces) }
	together := framed(event("a") + event("b") + event("c"))
	inB := strings.Index(together, event("b")) + 9
	for _, row := range []struct {
		name   string
		secure bool
		pieces []string // over TLS: "|" parts the records of a read
		want   []int    // the read that brought each chunk, from 1
	}{
		{"one event a read", false, whole(a, b), []int{2, 3}},
		{"the first event comes with the head", false, []string{streamHead + a, b}, []int{1, 2}},
		{"one event over several reads", false, whole(a[:20], a[20:40], a[40:]), []int{4}},
		{
			"one event over several reads and HTTP chunks", false,
			whole(framed(event("a")[:9]), framed(event("a")[9:30]), framed(event("a")[30:])),
			[]int{4},
		},
		{"several events in one read", false, whole(a + b + c), []int{2, 2, 2}},
		{"an event and half of the next in one read", false, whole(a+b[:30], b[30:]), []int{2, 3}},
		{
			"several events of one HTTP chunk over several reads", false, whole(together[:inB], together[inB:]),
			[]int{2, 3, 3},
		},
		{"the end of the response comes late", false, append(whole(framed(event("a"), doneEvent)+"0\r\n"), "\r\n"), []int{2}},
		{"until the connection ends", false, []string{closingHead, event("a") + event("b"), event("c")}, []int{2, 2, 3}},
		{"several TLS records in one read", true, whole(a + "|" + b + "|" + c), []int{2, 2, 2}},
		{"one event over several TLS records in one read", true, whole(a[:20] + "|" + a[20:] + "|" + b), []int{2, 2}},
		{"one event over several TLS records and reads", true, whole(a[:20], a[20:]), []int{3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			end := framed(doneEvent) + lastChunk
			if row.pieces[0] == closingHead {
				end = doneEvent
			}
			r := played(t, row.secure, append(row.pieces, end))
			var got []int
			for _, c := range r.Chunks {
				got = append(got, int(c.At/(10*time.Millisecond)))
			}
			if !r.OK() || !slices.Equal(got, row.want) {
				t.Errorf("chunks with the reads %v, want %v; %s", got, row.want, outcome(r))
			}
		})
	}
}

// played sends one request in virtual time to a server that answers with one
// write every 10 ms.
func played(t *testing.T, secure bool, writes []string) (r Result) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Model: "m"}
		cert, ca := selfSigned(t)
		if secure {
			o.URL, o.CA = "https://script", ca
		}
		r = piped(t, o, func(far net.Conn) {
			wire := &corked{Conn: far}
			inner := tls.Server(wire, &tls.Config{Certificates: []tls.Certificate{cert}})
			from := net.Conn(wire)
			if secure {
				from = inner
			}
			if takeRequest(from) != nil {
				return
			}
			for _, w := range writes {
				if secure {
					w = records(t, wire, inner, strings.Split(w, "|")...)
				}
				if after(far, 10*time.Millisecond, w) != nil {
					return
				}
			}
		})
	})
	return r
}

// The environment's proxy is used, though never for a loopback address: for
// that, every other test stands, whose environment has the same proxy.
func TestProxy(t *testing.T) {
	r := do(t, clientOf(t, "http://target.example:8000"))
	assert.Equal(t, "through the proxy to target.example:8000", r.Content)
	c := clientOf(t, "https://target.example")
	_, models := c.Models(t.Context())
	for _, err := range []*Error{c.Do(t.Context(), Request{Messages: hello()}).Err, models} {
		wantError(t, err, api.ErrorConnect, "the proxy blocks it (403 Forbidden); check HTTP_PROXY, HTTPS_PROXY and NO_PROXY")
	}
}
