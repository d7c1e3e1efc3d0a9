package whatif

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// standBack makes this process the last that gets a core and the first that is ended
// when memory is short. What the system does not let it do, it does not do.
//
// Priorities are per thread on Linux; a new thread has that of the one that makes it.
// So the threads are gone through until there is none left that has not been seen.
func standBack() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	seen := map[string]bool{}
	for again := true; again; {
		again = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest)
			return
		}
		for _, t := range threads {
			if seen[t.Name()] {
				continue
			}
			seen[t.Name()], again = true, true
			id, _ := strconv.Atoi(t.Name())
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest)
			// A thread of this policy gives way to any other that wakes up; one that is only
			// nice keeps the core for the rest of its slice.
			_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: lowest}, 0)
		}
	}
}

// stepForward gives another process a share of the cores again, if a small one: that is
// allowed to whoever may signal it.
func stepForward(process int) {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(process) + "/task")
	if err != nil {
		return // it has ended
	}
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: lowest}, 0)
	}
}

const lowest = 19
