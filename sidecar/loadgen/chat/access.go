package chat

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"kvbooth/sidecar/api"
)

// Access says how a server is reached. The zero value adds no header, trusts the system's
// certificate authorities and presents no certificate.
type Access struct {
	Headers   map[string]string // by canonical name
	CA        []byte            // PEM; empty: the system's authorities
	Cert, Key []byte            // PEM of the client's certificate; both or neither
}

// TLS gives the configuration of TLS connections. The error is an [api.FieldError] of the field
// ca_file or cert_file, without its section.
func (a Access) TLS() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(a.CA) > 0 {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(a.CA) {
			return nil, api.Refuse("ca_file", "its content", "PEM certificates")
		}
	}
	if len(a.Cert)+len(a.Key) > 0 {
		pair, err := tls.X509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, api.Refuse("cert_file", "its content", "a PEM certificate that matches the private key in key_file")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// Apply sets the headers of a request. They replace those of the same name.
func (a Access) Apply(req *http.Request) {
	for name, value := range a.Headers {
		if name == "Host" {
			req.Host = value
		}
		req.Header[name] = []string{value}
	}
}

// Client gives a client for requests of which no time is measured. Its transport is
// the caller's, who closes its idle connections. The error is that of [Access.TLS].
func (a Access) Client() (*http.Client, error) {
	t, err := a.Transport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: Transport{t, a, ""}}, nil
}

// dialTimeout bounds the time to open a connection.
const dialTimeout = 5 * time.Second

// Transport gives a transport for TLS connections of this kind. The error is that of
// [Access.TLS].
func (a Access) Transport() (*http.Transport, error) {
	conf, err := a.TLS()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig: conf, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}, nil
}

// Transport adds headers and a query to each request.
type Transport struct {
	Base   http.RoundTripper
	Access Access
	Query  string // encoded; replaces the request's where it is not empty
}

// RoundTrip implements [http.RoundTripper]. It sends a copy of the request.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	t.Access.Apply(req)
	if t.Query != "" {
		req.URL.RawQuery = t.Query
	}
	return t.Base.RoundTrip(req)
}

// CloseIdleConnections closes those of the base.
func (t Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
