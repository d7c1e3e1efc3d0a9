package events

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// This file implements what publishing takes of ZMTP 3.0, the protocol of ZeroMQ (rfc.zeromq.org/spec/23): a greeting
// with the mechanism NULL, the command READY, and messages of one frame or several.

// Bits of the first byte of a frame.
const (
	frameMore    = 1 // another frame of the message follows
	frameLong    = 2 // the length has 8 bytes
	frameCommand = 4
)

const (
	greetingBytes  = 64
	maxFrame       = 64 << 10 // of a peer
	maxFrames      = 8        // of a peer's message
	greetingWithin = 10 * time.Second
)

var errProtocol = errors.New("the peer does not use ZMTP 3 without authentication")

// handshake greets a peer and waits until it is ready. kind is the type of this socket.
func handshake(conn net.Conn, r *bufio.Reader, kind string) error {
	if err := conn.SetDeadline(time.Now().Add(greetingWithin)); err != nil {
		return err
	}
	own := make([]byte, greetingBytes)
	own[0], own[8], own[9], own[10] = 0xff, 1, 0x7f, 3 // signature, and version 3.0
	copy(own[12:], "NULL")
	if _, err := conn.Write(own); err != nil {
		return err
	}
	peer := make([]byte, greetingBytes)
	if _, err := io.ReadFull(r, peer); err != nil {
		return err
	}
	if peer[0] != 0xff || peer[9] != 0x7f || peer[10] < 3 || !bytes.Equal(peer[12:32], own[12:32]) {
		return errProtocol
	}
	ready := append([]byte{5}, "READY"...)
	for _, property := range [][2]string{{"Socket-Type", kind}, {"Identity", ""}} {
		ready = append(append(ready, byte(len(property[0]))), property[0]...)
		ready = append(binary.BigEndian.AppendUint32(ready, uint32(len(property[1]))), property[1]...)
	}
	if _, err := conn.Write(append([]byte{frameCommand, byte(len(ready))}, ready...)); err != nil {
		return err
	}
	flags, body, err := readFrame(r)
	if err != nil {
		return err
	}
	if flags&frameCommand == 0 || !bytes.HasPrefix(body, []byte("\x05READY")) {
		return errProtocol
	}
	return conn.SetDeadline(time.Time{})
}

func readFrame(r *bufio.Reader) (flags byte, body []byte, err error) {
	if flags, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size := make([]byte, 8)
	part := size[7:]
	if flags&frameLong != 0 {
		part = size
	}
	if _, err = io.ReadFull(r, part); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint64(size)
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame has %d bytes, more than %d", n, maxFrame)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return flags, body, err
}

// readMessage returns the frames of the next message. It skips commands.
func readMessage(r *bufio.Reader) (frames [][]byte, err error) {
	for len(frames) < maxFrames {
		flags, body, err := readFrame(r)
		if err != nil {
			return nil, err
		}
		if flags&frameCommand != 0 {
			continue
		}
		frames = append(frames, body)
		if flags&frameMore == 0 {
			return frames, nil
		}
	}
	return nil, fmt.Errorf("a message has more than %d frames", maxFrames)
}

// appendMessage appends a message of the given frames.
func appendMessage(to []byte, frames ...[]byte) []byte {
	for i, frame := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = frameMore
		}
		if len(frame) < 1<<8 {
			to = append(to, flags, byte(len(frame)))
		} else {
			to = binary.BigEndian.AppendUint64(append(to, flags|frameLong), uint64(len(frame)))
		}
		to = append(to, frame...)
	}
	return to
}
