package main

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/server"
)

// keptBack is the number of open files reserved for the store, the log, the readers of metrics and corpora, and
// everything that is not counted elsewhere.
const keptBack = 64

// openFiles divides the open files that the system allows this process. Those of the API are reserved, so that a call
// that lowers the load always gets one.
type openFiles struct {
	limit         int // all of them, ulimit -n
	connections   int // to the API
	conversations int // possible with the others
	each          int // per conversation
}

// divide divides a number of open files; 0 is a system without such a limit.
func divide(limit, each int) openFiles {
	if limit == 0 {
		return openFiles{connections: server.DefaultConnections, conversations: math.MaxInt}
	}
	f := openFiles{limit: limit, each: each, connections: min(server.DefaultConnections, limit/4)}
	f.conversations = max(0, (limit-f.connections-keptBack)/each)
	return f
}

// filesEach returns the number of open files per conversation: its connection to the target, and the one to the model
// that writes its questions, on each lane.
func filesEach(conf *config.Config) int {
	each := 1
	if conf.Followup.URL != "" {
		each++
	}
	if conf.ForTwin() != nil {
		each *= 2
	}
	return each
}

// check refuses a concurrency that cannot be served. The error is an [api.FieldError].
func (f openFiles) check(field string, n int) error {
	if n <= f.conversations {
		return nil
	}
	return api.Refuse(field, n, fmt.Sprintf("at most %d, because this process may open only %d files (ulimit -n); "+
		"for %d, raise the limit to %d",
		f.conversations, f.limit, n, n*f.each+keptBack+server.DefaultConnections))
}
