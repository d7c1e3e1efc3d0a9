package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"kvbooth/sidecar/cmd/loadgen/internal/config"
)

// scheme returns the scheme of the addresses that it serves.
func scheme(conf *config.Config) string {
	if conf.TLSCertFile != "" {
		return "https"
	}
	return "http"
}

// serverTLS returns the TLS configuration of HTTPS, nil where the configuration names no certificate.
func serverTLS(conf *config.Config, log *slog.Logger) (*tls.Config, error) {
	if conf.TLSCertFile == "" {
		return nil, nil
	}
	c := &certificate{certFile: conf.TLSCertFile, keyFile: conf.TLSKeyFile, log: log}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// certificate is a pair of files that may be renewed while they are in use. It is safe
// for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	read   [2][]byte        // certificate and key, as of the latest reading
	inUse  *tls.Certificate // nil: none could be read yet
	failed error            // why the latest reading gave none
}

// get returns the certificate, parsed again where the contents of one of the files have changed; the file's time may be
// the same. Where the new one is invalid, such as in the middle of a renewal, the old one is kept.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, err := os.ReadFile(c.certFile)
	key, unread := os.ReadFile(c.keyFile)
	err = cmp.Or(err, unread)
	if err == nil && c.inUse != nil && bytes.Equal(cert, c.read[0]) && bytes.Equal(key, c.read[1]) {
		return c.inUse, nil
	}
	var pair tls.Certificate
	if err == nil {
		c.read = [2][]byte{cert, key}
		pair, err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		if c.inUse == nil {
			return nil, fmt.Errorf("tls_cert_file: %w", err)
		}
		if c.failed == nil {
			c.log.Warn("the new certificate is invalid; still using the previous one", "tls_cert_file", c.certFile, "error", err)
		}
		c.failed = err
		return c.inUse, nil
	}
	if c.inUse != nil && !bytes.Equal(c.inUse.Certificate[0], pair.Certificate[0]) {
		c.log.Info("certificate reloaded", "tls_cert_file", c.certFile, "valid_until", pair.Leaf.NotAfter)
	}
	c.inUse, c.failed = &pair, nil
	return c.inUse, nil
}

// healthClient returns a client for the load generator of a configuration on this machine. The certificate has other
// names than loopback's, so the client requires exactly the configured certificate instead.
func healthClient(conf *config.Config) (*http.Client, error) {
	transport := &http.Transport{}
	if conf.TLSCertFile != "" {
		own, err := tls.LoadX509KeyPair(conf.TLSCertFile, conf.TLSKeyFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, // VerifyConnection is stricter
			VerifyConnection: func(s tls.ConnectionState) error {
				if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
					return errors.New("the server's certificate is not the one in tls_cert_file")
				}
				return nil
			},
		}
	}
	return &http.Client{Transport: transport}, nil
}
