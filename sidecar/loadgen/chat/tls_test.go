package chat

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// selfSigned makes a certificate that is its own authority, for a loopback address and the host of scripts. Each of
// change changes it first.
func selfSigned(t *testing.T, change ...func(*x509.Certificate)) (cert tls.Certificate, inPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"script"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	inPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, inPEM
}

// tlsServer answers over TLS with a certificate of its own.
func tlsServer(
	t *testing.T, handler http.HandlerFunc, change ...func(*x509.Certificate),
) (s *httptest.Server, trust func(*Options)) {
	t.Helper()
	cert, ca := selfSigned(t, change...)
	s = httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, func(o *Options) { o.CA = ca }
}

func TestTLSKeepsItsConnection(t *testing.T) {
	addresses := map[string]bool{}
	s, trust := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range dynamoEvents(t) {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	})
	c := clientOf(t, s.URL, trust)
	for range 3 {
		if r := do(t, c); r.Content != "roughputsweeprove" || len(r.Chunks) != 3 {
			t.Errorf("got %s", outcome(r))
		}
	}
	assert.Len(t, addresses, 1)
}

// A certificate that proves nothing is refused, and the message names what it lacks.
func TestCertificates(t *testing.T) {
	now, other := time.Now(), net.IPv4(192, 0, 2, 1)
	_, stranger := selfSigned(t)
	trustNone, trustStranger := func(*Options) {}, func(o *Options) { o.CA = stranger }
	issuedTo := func(names []string, addresses ...net.IP) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = names, addresses }
	}
	const outdated = "expired or not valid yet; renew it"
	const unknown = "unknown authority; give the authority's certificate as target.ca_file"
	for _, row := range []struct {
		name, says string
		trust      func(*Options) // nil: its authority
		change     func(*x509.Certificate)
	}{
		{"expired", outdated, nil, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) }},
		{"early", outdated, nil, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }},
		{
			"another name", "different host name (gpu.example); use that name in target.url", nil,
			issuedTo([]string{"gpu.example"}),
		},
		{
			"two other names", "other hosts (gpu.example, 192.0.2.1); use one of these in target.url", nil,
			issuedTo([]string{"gpu.example"}, other),
		},
		{"another address", "different host name (192.0.2.1)", nil, issuedTo(nil, other)},
		{"no name", "names no host; issue one with 127.0.0.1 as a subject alternative name", nil, issuedTo(nil)},
		{"unknown", unknown, trustNone, func(*x509.Certificate) {}},
		{"a stranger's", unknown, trustStranger, func(*x509.Certificate) {}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, trust := tlsServer(t, http.NotFound, row.change)
			if row.trust != nil {
				trust = row.trust
			}
			c := clientOf(t, s.URL, trust)
			_, models := c.Models(t.Context())
			for _, err := range []*Error{c.Do(t.Context(), Request{Messages: hello()}).Err, models} {
				wantError(t, err, api.ErrorConnect, row.says)
			}
		})
	}
}

// The protocol in target.url is the wrong one, or the server never answers the handshake.
func TestTLSMismatch(t *testing.T) {
	s, _ := tlsServer(t, http.NotFound)
	r := clientOf(t, strings.Replace(s.URL, "https", "http", 1)).Do(t.Context(), Request{Messages: hello()})
	wantError(t, r.Err, api.ErrorHTTP4xx, "HTTP request to an HTTPS server")
	for says, handle := range map[string]func(*server, net.Conn){
		"use http:// in target.url": func(_ *server, c net.Conn) { _, _ = io.WriteString(c, oneToken) },
		"target.connect_timeout":    func(s *server, _ net.Conn) { <-s.gone },
	} {
		c := clientOf(t, strings.Replace(serveRaw(t, handle).url, "http", "https", 1), func(o *Options) {
			if says == "target.connect_timeout" {
				o.ConnectTimeout = 100 * time.Millisecond
			}
		})
		wantError(t, c.Do(t.Context(), Request{Messages: hello()}).Err, api.ErrorConnect, says)
	}
}

// Over TLS, too, limits hold, though the server reads nothing.
func TestTLSLimits(t *testing.T) {
	release := make(chan struct{})
	s, trust := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") == "stall" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event("a"))
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release: // its context does not end before its body is read
		case <-r.Context().Done():
		}
	})
	defer close(release)
	limit := 300 * time.Millisecond
	stalls := clientOf(t, s.URL, trust, func(o *Options) { o.StallTimeout = limit })
	r := stalls.Do(t.Context(), Request{ID: "stall", Messages: hello()})
	wantError(t, r.Err, api.ErrorStall)
	assert.Equal(t, "a", r.Content)
	waits := clientOf(t, s.URL, trust, func(o *Options) { o.FirstTokenTimeout = limit })
	wantError(t, sendHuge(t.Context(), waits).Err, api.ErrorTimeout)
}
