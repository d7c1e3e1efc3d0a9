package workload

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer is a kernel timer. It wakes the process like data at a socket, and is exact, while Go's own
// timers are late by up to a millisecond on an idle machine.
type Timer struct {
	Start time.Time // one interval before the first expiry
	file  *os.File
}

// NewTimer starts a timer that expires at every interval.
func NewTimer(interval time.Duration) (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	every := unix.NsecToTimespec(interval.Nanoseconds())
	t := &Timer{Start: time.Now(), file: os.NewFile(uintptr(fd), "timerfd")}
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Wait blocks until the timer has expired at least once since the last call, and returns how often.
func (t *Timer) Wait() (uint64, error) {
	var n [8]byte
	_, err := t.file.Read(n[:])
	return binary.NativeEndian.Uint64(n[:]), err
}

// Close ends the timer and a call of Wait.
func (t *Timer) Close() { t.file.Close() }
