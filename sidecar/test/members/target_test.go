//go:build members && linux

package members

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/sim"
)

// target is the simulated cluster, which records requests.
type target struct {
	address string

	mu       sync.Mutex
	asked    []asked
	answered map[string]bool // request IDs of completely read answers
}

// asked is a received request.
type asked struct {
	id     string
	number int64  // of the conversation
	by     string // key of the sending process
	at     time.Time
}

// startTarget starts a target.
func startTarget(t *testing.T) *target {
	t.Helper()
	profile := sim.H200()
	profile.Workers = 32 // enough, since the cluster is not what is measured
	o := sim.DefaultOptions(profile)
	o.Mode, o.Seed, o.Restart = api.ModeKV, 1, 500*time.Millisecond
	cluster, err := httpd.New(httpd.Options{Cluster: o, Engine: "trtllm", Speed: 1})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &target{address: l.Addr().String(), answered: map[string]bool{}}
	server := &http.Server{Handler: s.noting(cluster.Frontend()), ReadHeaderTimeout: time.Minute}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, server, l, time.Second) }()
	t.Cleanup(func() {
		stop()
		cluster.Close()
		assert.NoError(t, <-served)
	})
	return s
}

func (s *target) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		parts := strings.Split(id, "-")
		if len(parts) < 3 { // a probe
			next.ServeHTTP(w, r)
			return
		}
		number, _ := strconv.ParseInt(parts[len(parts)-2], 10, 64)
		a := asked{id: id, number: number, by: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), at: time.Now()}
		s.mu.Lock()
		s.asked = append(s.asked, a)
		s.mu.Unlock()
		next.ServeHTTP(w, r)
		if r.Context().Err() == nil {
			s.mu.Lock()
			s.answered[id] = true
			s.mu.Unlock()
		}
	})
}

// all returns the requests so far.
func (s *target) all() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[:len(s.asked):len(s.asked)]
}
