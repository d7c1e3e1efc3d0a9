package selfcheck

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timer is one of the kernel's. It wakes the process as data at a socket do, and is
// exact, where Go's own timers are late by up to a millisecond on an idle machine.
type timer struct {
	start time.Time // an interval before the first expiry
	file  *os.File
}

func newTimer(interval time.Duration) (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	every := unix.NsecToTimespec(interval.Nanoseconds())
	t := &timer{start: time.Now(), file: os.NewFile(uintptr(fd), "timerfd")}
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// wait returns after one expiry or more that no call has returned yet, and says how many.
func (t *timer) wait() (uint64, error) {
	var n [8]byte
	_, err := t.file.Read(n[:])
	return binary.NativeEndian.Uint64(n[:]), err
}

func (t *timer) close() { t.file.Close() }
