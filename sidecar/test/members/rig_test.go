//go:build members && linux

package members

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/members"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	soon  = 2 * time.Minute // when every condition has come true, however busy the machine is
	look  = 50 * time.Millisecond
	fleet = "test"
)

// rig is a coordinator with its members, a NATS server between them, and the cluster.
type rig struct {
	*testing.T

	conversations int
	think         time.Duration
	target        *target
	witness       *witness
	nats          *part
	coordinator   *part
	members       []*part
	client        *api.Client
	dir           string // of the data
	db            *sql.DB
	cpu           map[string]time.Duration // of processes that are gone, by role
}

// part is a process that is killed and started again.
type part struct {
	role, name string
	command    process.Command
	process    *process.Process
	starts     int
}

// newRig starts a coordinator of so many conversations at most with n members, on this target; flags are
// more of the coordinator's.
func newRig(t *testing.T, on *target, conversations, n int, flags ...string) *rig {
	t.Helper()
	bin := boothtest.Programs(t)
	server, err := process.FindNATS(bin)
	boothtest.Need(t, err, process.ErrNoNATS, "no nats-server")
	ports, err := process.FreePorts(24222, 2)
	require.NoError(t, err)
	r := &rig{T: t, conversations: conversations, target: on, dir: t.TempDir(), cpu: map[string]time.Duration{}}
	url, listen := "nats://"+process.Loopback(ports[0]), process.Loopback(ports[1])
	r.nats = &part{role: "nats-server", command: process.Command{
		Path: server, Args: []string{"-js", "-sd", t.TempDir(), "-a", "127.0.0.1", "-p", strconv.Itoa(ports[0])},
	}}
	loadgen := filepath.Join(bin, "loadgen")
	// A pause of 25 ms for each conversation: so there are 40 turns a second, however many
	// conversations there are.
	r.think = time.Duration(conversations) * 25 * time.Millisecond
	r.coordinator = &part{role: "coordinator", command: process.Command{Path: loadgen, Args: append([]string{
		"--members-nats-url=" + url, "--members-fleet=" + fleet, "--listen=" + listen, "--data-dir=" + r.dir, "--target-url=http://" + r.target.address,
		fmt.Sprintf("--concurrency=%d", conversations/4), fmt.Sprintf("--max-concurrency=%d", conversations), fmt.Sprintf("--start-rate=%d", max(50, conversations/8)),
		"--target-rps=0", "--think-time=" + r.think.String(), "--max-tokens=64", "--output-tokens-mean=24", "--output-tokens-cv=.15",
		"--store-max-conversations=1000000", "--no-shadow-enabled",
	}, flags...)}}
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		r.members = append(r.members, &part{role: "member", name: name, command: process.Command{Path: loadgen, Args: []string{
			"member", "--join=" + url, "--members-fleet=" + fleet, "--members-name=" + name,
		}}})
	}
	r.client, err = api.NewClient(&http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+listen, "")
	require.NoError(t, err)
	t.Cleanup(r.stop)
	r.start(r.nats)
	r.witness = newWitness(t, url, fleet)
	for _, m := range r.members {
		r.start(m)
	}
	r.start(r.coordinator)
	r.until("the coordinator is up", func() bool {
		select {
		case <-r.coordinator.process.Done():
			require.Fail(t, "the coordinator has ended", "%s", process.Tail(boothtest.Log(t, "coordinator")))
		default:
		}
		err := r.client.Ready(t.Context())
		return err == nil
	})
	r.db, err = sql.Open("sqlite", "file:"+filepath.Join(r.dir, "kvbooth.db")+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.db.Close()) })
	r.until("all members are there", func() bool { now, _ := r.witness.present(time.Now()); return now == n })
	return r
}

// start starts a process, which the target can tell from those before it.
func (r *rig) start(p *part) {
	r.Helper()
	c := p.command
	p.starts++
	c.Name = fmt.Sprint(p.role, p.name, ".", p.starts)
	c.Log = boothtest.Log(r.T, p.role+p.name)
	c.Env = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+p.key())
	var err error
	p.process, err = process.Start(c)
	require.NoError(r, err)
}

// key is what the target knows the process by.
func (p *part) key() string { return fmt.Sprintf("%s.%d", p.name, p.starts) }

// kill kills the process as a crash would.
func (r *rig) kill(p *part) {
	if used, err := used(p); err == nil {
		r.cpu[p.role] += used
	}
	p.process.Kill()
}

// stop ends all, those with nothing to say last.
func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, p := range append([]*part{r.coordinator}, append(r.members, r.nats)...) {
		if p.process != nil {
			p.process.Stop(ctx)
		}
	}
}

// used is the CPU time of a process.
func used(p *part) (time.Duration, error) {
	proc, err := procfs.NewProc(p.process.PID())
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// costs are the CPU times by role.
func (r *rig) costs() map[string]time.Duration {
	r.Helper()
	all := map[string]time.Duration{}
	for role, d := range r.cpu {
		all[role] = d
	}
	for _, p := range append(r.members, r.coordinator, r.nats) {
		d, err := used(p)
		require.NoError(r, err)
		all[p.role] += d
	}
	self, err := procfs.NewProc(os.Getpid())
	require.NoError(r, err)
	stat, err := self.Stat()
	require.NoError(r, err)
	all["cluster and test"] = time.Duration(stat.CPUTime() * float64(time.Second))
	return all
}

// holder is the next member, from one on, that holds conversations: one that was late may hold none.
func (r *rig) holder(from int) (m *part) {
	r.Helper()
	r.until("a member holds conversations", func() bool {
		for i := range r.members {
			m = r.members[(from+i)%len(r.members)]
			if l, ok := r.witness.leaseOf(m.name); ok && l.Lanes["main"].Active > 0 {
				return true
			}
		}
		return false
	})
	return m
}

// until waits for a condition.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	deadline, tick := time.After(soon), time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			s, err := r.client.Snapshot(r.Context())
			n, active := r.witness.present(time.Now())
			if err == nil {
				r.Logf("concurrency on the screen: %+v; %d members say %d", s.Lanes[0].State.Concurrency, n, active)
			}
			require.Fail(r, "not in time: "+what, err)
		}
	}
}

// held says whether so many conversations are in progress, on the screen and by what members
// say.
func (r *rig) held(n int) bool {
	s, err := r.client.Snapshot(r.Context())
	_, active := r.witness.present(time.Now())
	if err != nil || s.Lanes[0].State.Concurrency.Actual != n {
		return false
	}
	return active == n
}

// set moves the slider and says how long it took until all members together followed.
func (r *rig) set(n int) time.Duration {
	r.Helper()
	began := time.Now()
	_, err := r.client.Patch(r.Context(), api.DefaultLane, api.WorkloadPatch{Concurrency: &n})
	require.NoError(r, err)
	r.until(fmt.Sprintf("%d conversations", n), func() bool { return r.held(n) })
	return time.Since(began)
}

// listed is how many conversations of these numbers the store has as active.
func (r *rig) listed(blocks []members.Block) (n int) {
	r.Helper()
	for _, b := range blocks {
		var some int
		err := r.db.QueryRowContext(r.Context(), "SELECT count(*) FROM conversations WHERE status = 'active' AND number >= ? AND number < ?", b.From, b.To).Scan(&some)
		require.NoError(r, err)
		n += some
	}
	return n
}

// whole reads the first column of a query.
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
	require.NoError(r, errors.Join(rows.Err()))
	return all
}
