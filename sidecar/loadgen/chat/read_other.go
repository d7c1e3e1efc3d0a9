//go:build !unix

package chat

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func (c *conn) alive() bool { return true }

func (c *conn) reset() bool { return false }

func (s *stream) readRaw(syscall.RawConn) error { panic("no raw connections here") }
