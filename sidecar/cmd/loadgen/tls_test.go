//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// certFiles are the files of a certificate.
type certFiles struct{ cert, key string }

// issue writes a new self-signed certificate for loopback and returns the pool that trusts only this one. The files
// keep their time, as unpacked or deployed ones do.
func (p certFiles) issue(t *testing.T, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"loadgen.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	p.write(t, p.cert, "CERTIFICATE", der)
	p.write(t, p.key, "PRIVATE KEY", secret)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return pool
}

func (p certFiles) write(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	always := time.Unix(1, 0)
	require.NoError(t, os.Chtimes(path, always, always))
}

// A load generator with a certificate serves only HTTPS, which applies to the page's origin, the session's cookie, the
// stream and the health check. A renewed certificate is in force from the next connection on, an invalid one is not.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	dir := t.TempDir()
	files := certFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	first := files.issue(t, 1)

	p := newProgram(t, "--tls-cert-file="+files.cert, "--tls-key-file="+files.key)
	p.environ = append(p.environ, "LOADGEN_TOKEN="+token)
	trusting := func(pool *x509.CertPool) {
		p.http.CloseIdleConnections()
		p.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		p.connect(token)
	}
	p.serve(server.URL)
	trusting(first)
	require.True(t, strings.HasPrefix(p.address, "https://"), p.address)
	p.eventually("it is ready", p.ready)

	for snapshot, err := range p.client.Stream(t.Context()) {
		require.NoError(t, err)
		require.Len(t, snapshot.Lanes, 1)
		break
	}
	unencrypted := strings.Replace(p.address, "https", "http", 1)
	for origin, want := range map[string]int{p.address: http.StatusOK, unencrypted: http.StatusForbidden} {
		got, body := p.call(api.Prefix+"/status", bearer+token+"\nOrigin: "+origin)
		assert.Equal(t, want, got, "%s: %s", origin, body)
	}
	res, err := p.http.Post(p.address+api.Prefix+"/session", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Len(t, res.Cookies(), 1)
	assert.True(t, res.Cookies()[0].Secure)

	res, err = p.http.Get(unencrypted + "/readyz")
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, errors.Join(err, res.Body.Close()))
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	assert.Contains(t, string(text), "HTTP request to an HTTPS server")

	health := func(files certFiles) (code int, stderr string) {
		return p.health(server.URL, "--tls-cert-file="+files.cert, "--tls-key-file="+files.key)
	}
	code, stderr := health(files)
	assert.Equal(t, success, code, stderr)

	second := files.issue(t, 2)
	trusting(second)
	p.eventually("it serves the renewed certificate", p.ready)
	p.prints("certificate reloaded")
	code, stderr = health(files)
	assert.Equal(t, success, code, stderr)

	require.NoError(t, os.WriteFile(files.key, []byte("half a fi"), 0o600))
	p.http.CloseIdleConnections()
	p.eventually("it keeps the one that works", p.ready)
	p.prints("the new certificate is invalid; still using the previous one")
	third := files.issue(t, 3)
	trusting(third)
	p.eventually("it serves the next one that can be used", p.ready)

	other := certFiles{filepath.Join(dir, "other.crt"), filepath.Join(dir, "other.key")}
	other.issue(t, 4)
	code, stderr = health(other)
	assert.Equal(t, broken, code)
	assert.Contains(t, stderr, "the server's certificate is not the one in tls_cert_file")
	p.endsWell()
}
