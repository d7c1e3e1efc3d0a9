//go:build torture && linux

package torture

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// fault is one row of the table.
type fault struct {
	name    string
	brief   bool     // part of the suite's selection
	flags   []string // of the load generator
	most    int      // MB of memory, if the default is too little
	disk    string   // command that mounts the data's disk at $0 in a mount namespace; empty: the test's disk
	jumps   bool     // needs a load generator whose clock jumps
	inflict func(ctx context.Context, r *rig)
}

// whole selects every fault, for half a minute each.
var whole = os.Getenv("TORTURE") != ""

func TestTorture(t *testing.T) {
	span := 5 * time.Second
	if whole {
		span = 30 * time.Second
	}
	for _, f := range faults() {
		if !whole && !f.brief {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			r := newRig(t, f)
			c := r.suffer(span, f.inflict)
			text := fmt.Sprintf("%s: slowest answer %d ms, %d turns lost, recovery %.2f s, memory %.0f MB, lag %.1f ms",
				f.name, c.slowest.Milliseconds(), c.lost, c.recovery.Seconds(), float64(c.memory)/1e6, 1000*c.lag)
			if c.cpu > 0 { // the process was not restarted
				text += fmt.Sprintf(", CPU %.0f %%", 100*c.cpu)
			}
			if !math.IsNaN(c.ttft) {
				text += fmt.Sprintf(", TTFT p95 %+.1f ms off what the target sent", 1000*c.ttft)
			}
			figure.Report(t, "%s", text)
			assert.Zero(t, c.unanswered, "requests of the operator were not answered")
			assert.Zero(t, c.lost, "turns that were reported as stored are not stored")
			assert.LessOrEqual(t, c.memory, uint64(max(f.most, 150))*1e6, "memory")
		})
	}
}

func faults() []fault {
	return []fault{
		{name: "none", brief: true, inflict: func(ctx context.Context, _ *rig) { <-ctx.Done() }},
		{name: "a clock that jumps by an hour both ways", brief: true, jumps: true, inflict: clockJumps},
		{name: "the load generator is suspended", brief: true, inflict: suspended},
		{name: "a full disk", brief: true, disk: tmpfs, inflict: fullDisk},
		{name: "900 half-open bodies without a token", brief: true, inflict: halfOpen},
		{name: "900 idle connections with the token", brief: true, inflict: idlers},
		{name: "900 WebSocket readers that do not read", brief: true, inflict: stalledReaders},
		{
			name:    "wrong tokens as fast as they go",
			inflict: calls(func(i, n int) string { return fmt.Sprintf("wrong-%d-%d", i, n) }),
		},
		{name: "status calls as fast as they go", inflict: calls(func(int, int) string { return token })},
		{name: "turns.csv by slow readers", inflict: slowExports},
		{
			name: "answers of empty deltas without an end", brief: true,
			inflict: answering(endless(`data: {"choices":[{"index":0,"delta":{}}]}`+"\n\n", time.Millisecond)),
		},
		{
			name:    "answers without an end",
			inflict: answering(endless(`data: {"choices":[{"index":0,"delta":{"content":" more and more"}}]}`+"\n\n", 0)),
		},
		{name: "events without an end", brief: true, inflict: answering(endless(strings.Repeat("x", 4096), 0, "data: "))},
		{
			name: "impossible numbers",
			inflict: answering(once(`data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1e23,` +
				`"completion_tokens":-7},"nvext":{"timing":{"ttft_ms":-1e308,"kv_hit_rate":55}}}` + "\n\ndata: [DONE]\n\n")),
		},
		{name: "answers of [DONE] alone", inflict: answering(once("data: [DONE]\n\n"))},
		{
			name:    "garbage in place of HTTP",
			inflict: answering(func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xff, 0, '\n'}, 4096)) }),
		},
		{name: "connections that are cut", inflict: answering(func(net.Conn) {})},
		{name: "a metrics page of 2,000 workers", brief: true, inflict: paging(workers(2000))},
		{name: "a metrics page without an end", inflict: paging(func(w io.Writer) error {
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(w, "family_%d 1\n", i); err != nil {
					return err
				}
			}
		}), most: 400},
	}
}

// Turns that were reported as stored right before each of 50 kills must be stored.
func TestKillsLoseNoStoredTurn(t *testing.T) {
	const kills = 50
	r := newRig(t, fault{flags: []string{"--store-max-conversations=1000000"}})
	var reported totals
	var recovery time.Duration
	for range kills {
		s, err := r.status()
		require.NoError(t, err)
		r.part.Kill()
		reported.add(s.Store.StoredTurns)
		reported.add(0)
		began := time.Now()
		r.part.Start(t)
		r.until("turns that could be lost", func(s api.Status) bool { return s.Store.StoredTurns > conversations/4 })
		recovery = max(recovery, time.Since(began))
	}
	found := map[string]bool{}
	for _, turn := range r.stored() {
		id := fmt.Sprint(turn.Lane, turn.Conversation, turn.Number)
		require.False(t, found[id], "a turn is stored twice: %s", id)
		found[id] = true
	}
	figure.Headline(t, "%d kills -9: %d turns reported as stored, %d found, storing again after %.2f s at most",
		kills, reported.sum(), len(found), recovery.Seconds())
	assert.GreaterOrEqual(t, int64(len(found)), reported.sum())
}

// suspended stops the process for two of three seconds, as a suspended machine does.
func suspended(ctx context.Context, r *rig) {
	for ctx.Err() == nil {
		rest(ctx)
		assert.NoError(r, syscall.Kill(r.part.PID(), syscall.SIGSTOP))
		rest(ctx)
		rest(ctx)
		assert.NoError(r, syscall.Kill(r.part.PID(), syscall.SIGCONT))
	}
}

// The data's file system becomes read-only, as after a disk error: the load continues, the status has the problem, and
// stored turns can be read.
func TestReadOnlyDiskKeepsLoadRunning(t *testing.T) {
	r := newRig(t, fault{disk: `truncate -s 32M "$0.img" && mkfs.ext4 -q -F "$0.img" && mount -o loop "$0.img" "$0"`})
	s, err := r.status()
	require.NoError(t, err)
	require.NoError(t, exec.CommandContext(t.Context(), "nsenter", "-m", "-t", strconv.Itoa(r.part.PID()),
		"mount", "-o", "remount,abort", r.dir).Run())
	noticed := r.until("the status has the problem", func(s api.Status) bool { return !s.Store.OK })
	r.until("the load goes on", func(now api.Status) bool {
		return now.Lanes[0].Totals.OK > s.Lanes[0].Totals.OK+2*conversations
	})
	problem := r.client.Ready(t.Context())
	assert.ErrorContains(t, problem, "turns are not stored")
	assert.ErrorContains(t, problem, "make it writable")
	assert.GreaterOrEqual(t, int64(len(r.stored())), s.Store.StoredTurns)
	figure.Report(t, "a file system that becomes read-only: reported after %.2f s", noticed.Seconds())
}

// fill fills the data's disk, and returns the path of the file that does.
func (r *rig) fill() (path string) {
	path = fmt.Sprintf("/proc/%d/root%s/ballast", r.part.PID(), r.dir)
	ballast, err := os.Create(path)
	if !assert.NoError(r, err) {
		return path
	}
	defer ballast.Close()
	for err = nil; err == nil; {
		_, err = ballast.Write(make([]byte, 4096))
	}
	assert.ErrorIs(r, err, syscall.ENOSPC)
	return path
}

// fullDisk fills the data's disk with another file.
func fullDisk(ctx context.Context, r *rig) {
	ballast := r.fill()
	<-ctx.Done()
	assert.NoError(r, os.Remove(ballast))
	r.until("all turns are stored", func(api.Status) bool { return len(r.stored()) >= int(r.reported.sum()) })
}

// clockJumps checks that jumps of the clock do not influence snapshots, sessions and the duration of turns.
func clockJumps(ctx context.Context, r *rig) {
	body := strings.NewReader(`{"token":"` + token + `"}`)
	res, err := http.Post("http://"+r.address+api.Prefix+"/session", "application/json", body)
	if !assert.NoError(r, err) {
		return
	}
	res.Body.Close()
	assert.Positive(r, healthyReader(ctx, r), "no snapshot came")
	req, err := http.NewRequest(http.MethodGet, "http://"+r.address+api.Prefix+"/status", http.NoBody)
	assert.NoError(r, err)
	for _, c := range res.Cookies() {
		req.AddCookie(c)
	}
	if res, err = http.DefaultClient.Do(req); assert.NoError(r, err) {
		assert.Equal(r, http.StatusOK, res.StatusCode, "the session ended")
		res.Body.Close()
	}
	for _, t := range r.stored() {
		took := t.Ended.Sub(t.Started)
		assert.True(r, took >= 0 && took < time.Minute, "a turn took %v", took)
	}
}

// crowd runs n callers until the fault ends.
func crowd(ctx context.Context, n int, call func(ctx context.Context, i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(ctx, i) })
	}
	all.Wait()
}

// from is the loopback address of the fault's clients. Operators use another.
var from = &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: wait.Limit}

// halfOpen repeatedly sends only the beginning of a body.
func halfOpen(ctx context.Context, r *rig) {
	holdOpen(ctx, r, fmt.Sprintf("POST /api/v1/workload/start HTTP/1.1\r\nHost: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", r.address))
}

// idlers request the status once with the token, and keep the connection.
func idlers(ctx context.Context, r *rig) {
	holdOpen(ctx, r, fmt.Sprintf("GET %s/status HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n",
		api.Prefix, r.address, token))
}

// holdOpen runs clients that send a request, keep the connection until the server closes it, and begin again.
func holdOpen(ctx context.Context, r *rig, request string) {
	crowd(ctx, 900, func(ctx context.Context, _ int) {
		for ctx.Err() == nil {
			c, err := from.DialContext(ctx, "tcp", r.address)
			if err != nil {
				rest(ctx)
				continue
			}
			stop := context.AfterFunc(ctx, func() { c.Close() })
			_, _ = io.WriteString(c, request)
			_, _ = io.Copy(io.Discard, c)
			stop()
			c.Close()
			rest(ctx)
		}
	})
}

// rest delays the next attempt of a refused client, since the clients share the machine's cores with the operator and
// the target.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// stalledReaders opens streams with the token and never reads them. A healthy reader must get its snapshots
// nevertheless.
func stalledReaders(ctx context.Context, r *rig) {
	crowd(ctx, 901, func(ctx context.Context, i int) {
		if i == 900 {
			assert.Positive(r, healthyReader(ctx, r), "a healthy reader got no snapshot")
			return
		}
		d := websocket.Dialer{NetDialContext: from.DialContext}
		for ctx.Err() == nil {
			ws, res, err := d.DialContext(ctx, "ws://"+r.address+api.Prefix+"/stream",
				http.Header{"Authorization": {"Bearer " + token}})
			if err != nil {
				if res != nil {
					res.Body.Close()
				}
				rest(ctx)
				continue
			}
			<-ctx.Done()
			ws.Close()
		}
	})
}

// healthyReader counts the snapshots of a reader that connects last.
func healthyReader(ctx context.Context, r *rig) (snapshots int) {
	rest(ctx)
	for ctx.Err() == nil {
		for _, err := range r.client.StreamText(ctx) {
			if err != nil {
				break
			}
			snapshots++
		}
		rest(ctx)
	}
	return snapshots
}

// calls requests the status on eight connections, one request after the other.
func calls(token func(i, n int) string) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext, MaxIdleConnsPerHost: 8}}
		defer client.CloseIdleConnections()
		crowd(ctx, 8, func(ctx context.Context, i int) {
			for n := 0; ctx.Err() == nil; n++ {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+api.Prefix+"/status", nil)
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer "+token(i, n))
				if res, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
}

// slowExports reads the turns byte by byte.
func slowExports(ctx context.Context, r *rig) {
	crowd(ctx, 8, func(ctx context.Context, _ int) {
		c, err := from.DialContext(ctx, "tcp", r.address)
		if err != nil {
			return
		}
		defer context.AfterFunc(ctx, func() { c.Close() })()
		_, _ = fmt.Fprintf(c, "GET %s/turns.csv HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", api.Prefix,
			r.address, token)
		for one := make([]byte, 64); ; rest(ctx) {
			if _, err := c.Read(one); err != nil {
				return
			}
		}
	})
}

// answering sets the target's hostile answer until the fault ends.
func answering(answer func(net.Conn)) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		r.hostile.Store(&answer)
		<-ctx.Done()
		r.hostile.Store(nil)
	}
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

func once(events string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, head+events) }
}

// endless begins an answer and continues it until the client disconnects.
func endless(piece string, pause time.Duration, before ...string) func(net.Conn) {
	return func(c net.Conn) {
		w := bufio.NewWriter(c)
		_, err := w.WriteString(head + strings.Join(before, ""))
		for err == nil {
			<-time.After(pause)
			if _, err = w.WriteString(piece); err == nil {
				err = w.Flush()
			}
		}
	}
}

// paging sets the cluster's metrics page until the fault ends.
func paging(page func(io.Writer) error) func(context.Context, *rig) {
	return func(ctx context.Context, r *rig) {
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = page(w) })
		r.metrics.Store(&answer)
		<-ctx.Done()
	}
}

// workers returns a page with n instances behind one frontend.
func workers(n int) func(io.Writer) error {
	var page bytes.Buffer
	for _, name := range []string{"dynamo_component_inflight_requests", "dynamo_component_requests_total"} {
		fmt.Fprintf(&page, "# TYPE %s gauge\n", name)
		for i := range n {
			fmt.Fprintf(&page,
				"%s{dynamo_component=\"backend\",dynamo_endpoint=\"generate\",dynamo_namespace=\"dynamo\",worker_id=\"%x\"} %d\n",
				name, 0x694d000000000000+i, i%7)
		}
	}
	return func(w io.Writer) error {
		_, err := w.Write(page.Bytes())
		return err
	}
}
