//go:build members && linux

package members

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"kvbooth/internal/natstest"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const fleet = "test"

// rig is a coordinator with its members, their NATS server, and the cluster.
type rig struct {
	*testing.T

	conversations int
	target        *target
	nats          *natstest.Server
	coordinator   *part
	members       []*part
	client        *api.Client
	dir           string      // of the stored data
	killed        []time.Time // when a coordinator was killed
	db            *sql.DB
}

// part is a process that can be killed and restarted.
type part struct {
	role, name string
	command    process.Command
	process    *process.Process
	starts     int
}

// newRig starts a coordinator with a maximum of conversations and n members.
func newRig(t *testing.T, conversations, n int) *rig {
	t.Helper()
	bin := boothtest.Programs(t)
	r := &rig{T: t, conversations: conversations, target: startTarget(t), nats: natstest.Start(t), dir: t.TempDir()}
	loadgen := filepath.Join(bin, "loadgen")
	// A think time of 25 ms per conversation gives 40 turns per second with any number of conversations.
	think := time.Duration(conversations) * 25 * time.Millisecond
	r.coordinator = &part{role: "coordinator", command: process.Command{Path: loadgen, Args: []string{
		"--members-nats-url=" + r.nats.URL(), "--members-fleet=" + fleet, "--listen=127.0.0.1:0", "--data-dir=" + r.dir,
		"--target-url=http://" + r.target.address, "--target-rps=0", "--think-time=" + think.String(),
		fmt.Sprintf("--concurrency=%d", conversations/4), fmt.Sprintf("--max-concurrency=%d", conversations),
		fmt.Sprintf("--start-rate=%d", max(50, conversations/8)),
		"--max-tokens=64", "--output-tokens-mean=24", "--output-tokens-cv=.15",
		"--store-max-conversations=1000000", "--no-shadow-enabled",
	}}}
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		args := []string{"member", "--join=" + r.nats.URL(), "--members-fleet=" + fleet, "--members-name=" + name}
		r.members = append(r.members, &part{
			role: "member", name: name, command: process.Command{Path: loadgen, Args: args},
		})
	}
	t.Cleanup(r.stop)
	for _, m := range r.members {
		r.start(m)
	}
	r.startCoordinator()
	r.until("the coordinator is ready", func() bool { return r.client.Ready(t.Context()) == nil })
	var err error
	r.db, err = sql.Open(
		"sqlite", "file:"+filepath.Join(r.dir, "kvbooth.db")+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)",
	)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.db.Close()) })
	r.until("all members are there", func() bool { return r.present() == n })
	return r
}

// start starts a process with a new key.
func (r *rig) start(p *part) {
	r.Helper()
	c := p.command
	p.starts++
	c.Name = fmt.Sprint(p.role, p.name, ".", p.starts)
	c.Log = boothtest.Log(r.T, c.Name)
	require.NoError(r, os.RemoveAll(c.Log)) // from an earlier run
	c.Env = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+p.key())
	p.command.Log = c.Log
	var err error
	p.process, err = process.Start(c)
	require.NoError(r, err)
}

var prints = regexp.MustCompile(`load generator started" address=(http://\S+)`)

// startCoordinator starts the coordinator on any free port, and the client of its API.
func (r *rig) startCoordinator() {
	r.Helper()
	r.start(r.coordinator)
	wait.Eventually(r, "the coordinator prints its address", func() (any, bool) {
		text, err := os.ReadFile(r.coordinator.command.Log)
		address := prints.FindSubmatch(text)
		if err != nil || address == nil {
			return string(text), false
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r.client, err = api.NewClient(client, string(address[1]), "")
		return err, err == nil
	})
}

// key returns the API key by which the target identifies the process.
func (p *part) key() string { return fmt.Sprintf("%s.%d", p.name, p.starts) }

// stop stops all processes, the coordinator first.
func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, p := range append([]*part{r.coordinator}, r.members...) {
		if p.process != nil {
			p.process.Stop(ctx)
		}
	}
}

// present returns the number of members that are present.
func (r *rig) present() (n int) {
	s, err := r.client.Snapshot(r.Context())
	if err != nil {
		return 0
	}
	for i := range s.Members {
		if s.Members[i].State == api.MemberPresent || s.Members[i].State == api.MemberLate {
			n++
		}
	}
	return n
}

// until waits for a condition. A failure shows the concurrency and the members.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	wait.Within(r, 2*time.Minute, what, func() (any, bool) { return r, holds() })
}

func (r *rig) String() string {
	s, err := r.client.Snapshot(context.Background())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%+v, %+v", s.Lanes[0].State.Concurrency, s.Members)
}

// held reports whether n conversations are in progress.
func (r *rig) held(n int) bool {
	s, err := r.client.Snapshot(r.Context())
	return err == nil && s.Lanes[0].State.Concurrency.Actual == n
}

// lane returns the only lane's snapshot.
func (r *rig) lane() api.LaneSnapshot {
	s, err := r.client.Snapshot(r.Context())
	require.NoError(r, err)
	return s.Lanes[0]
}

// whole returns the first column of a query's rows.
func (r *rig) whole(query string) (all []string) {
	r.Helper()
	rows, err := r.db.QueryContext(r.Context(), query)
	require.NoError(r, err)
	defer rows.Close()
	for rows.Next() {
		var v string
		require.NoError(r, rows.Scan(&v))
		all = append(all, v)
	}
	require.NoError(r, rows.Err())
	return all
}
