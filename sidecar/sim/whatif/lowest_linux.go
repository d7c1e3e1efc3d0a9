package whatif

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// lowerPriority gives this process the lowest priority, and makes it the first that is ended when
// memory is short. Settings that the system refuses are skipped.
//
// Priorities are per thread on Linux, and a new thread inherits that of its creator. The threads
// are therefore listed again until there is no new one.
func lowerPriority() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	seen := map[string]bool{}
	for found := true; found; {
		found = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest)
			return
		}
		for _, t := range threads {
			if seen[t.Name()] {
				continue
			}
			seen[t.Name()] = true
			found = true
			id, _ := strconv.Atoi(t.Name())
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest)
			// A thread with this policy yields to any other thread that wakes up. A thread that is only nice
			// keeps the core for the rest of its time slice.
			idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: lowest}
			_ = unix.SchedSetAttr(id, &idle, 0)
		}
	}
}

// raisePriority gives another process a small share of the cores again. Any process that may
// signal it is allowed to.
func raisePriority(process int) {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(process) + "/task")
	if err != nil {
		return // the process has exited
	}
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		normal := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: lowest}
		_ = unix.SchedSetAttr(id, &normal, 0)
	}
}

const lowest = 19
