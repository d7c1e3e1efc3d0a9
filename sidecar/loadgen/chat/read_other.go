//go:build !linux

package chat

import (
	"io"
	"net"
)

// reader returns the connection.
func reader(nc net.Conn) io.Reader { return nc }
