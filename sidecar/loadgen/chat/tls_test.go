package chat

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

// A certificate that proves nothing is refused, and the words say what it lacks.
func TestCertificates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, row := range []struct {
		name, says string
		change     func(*x509.Certificate)
	}{
		{"expired", "expired or not valid yet; renew it", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) }},
		{"not valid yet", "expired or not valid yet; renew it", func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }},
		{"for another name", "for a different host name (gpu.example); use that name in target.url", func(c *x509.Certificate) {
			c.DNSNames, c.IPAddresses = []string{"gpu.example"}, nil
		}},
		{"of nobody whom the system knows", "unknown authority; give the authority's certificate as target.ca_file", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			cert, ca := selfSigned(t, func(c *x509.Certificate) {
				c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
				if row.change != nil {
					row.change(c)
				}
			})
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			s.StartTLS()
			defer s.Close()
			c := clientOf(t, s.URL, func(o *Options) {
				if row.change != nil {
					o.CA = ca
				}
			})
			_, models := c.Models(t.Context())
			for _, err := range []*Error{c.Do(t.Context(), Request{Messages: hello()}).Err, models} {
				wantError(t, err, api.ErrorConnect, row.says)
			}
		})
	}
}
