package server

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Over TLS, too, a call finds its connection, so that a flood closes none of a caller
// who knows the token.
func TestConnectionBelowTLS(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &conn{Conn: ours}
	require.Same(t, c, withConn(t.Context(), c).Value(connKey{}))
	require.Same(t, c, withConn(t.Context(), tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12})).Value(connKey{}))
}
