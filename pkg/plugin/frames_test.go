package plugin

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var noon = time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)

func live(s api.Snapshot) message { return message{at: noon, snapshot: &s} }

var gone = message{at: noon, since: noon.Add(-4 * time.Second), problem: "it is silent"}

// values returns a row of a frame by field, nil where null, as it arrives in Grafana.
func values(t testing.TB, f *data.Frame, row int) map[string]any {
	t.Helper()
	text, err := data.FrameToJSON(f, data.IncludeAll)
	require.NoError(t, err)
	var back struct {
		Schema struct{ Fields []struct{ Name string } }
		Data   struct{ Values [][]any }
	}
	require.NoError(t, json.Unmarshal(text, &back))
	got := map[string]any{}
	for i, field := range back.Schema.Fields {
		got[field.Name] = back.Data.Values[i][row]
	}
	require.InDelta(t, noon.UnixMilli(), got["time"], .5, "the time is when it was known here")
	delete(got, "time")
	return got
}

func nulls(of map[string]any, but map[string]any) map[string]any {
	all := map[string]any{}
	for name := range of {
		all[name] = but[name]
	}
	return all
}

func TestKPI(t *testing.T) {
	running := values(t, kpi("main", live(sample())), 0)
	require.Equal(t, map[string]any{
		"rps": 4.5, "requests": 900., "output_tokens_per_second": 3168., "queued": 0., "inflight": 117.,
		"kv_hit_ratio": .72, "kv_predicted_ratio": .75, "kv_achievable_ratio": nil,
		"errors": 9., "error_ratio": .01, "awaiting": 3., "awaiting_oldest_seconds": .4, "concurrency": 118.,
	}, running)

	idle := sample()
	idle.Lanes[0].Window.Awaiting = api.Awaiting{}
	oldest := values(t, kpi("main", live(idle)), 0)["awaiting_oldest_seconds"]
	require.Nil(t, oldest, "without a waiting turn there is no age, not 0 s")

	silent := sample()
	silent.Lanes[0].KV = api.KV{NotReported: "the engine does not report cached tokens"}
	require.Nil(t, values(t, kpi("main", live(silent)), 0)["kv_hit_ratio"])
	noValue := func(s api.Snapshot) string {
		field, _ := kpi("main", live(s)).FieldByName("kv_hit_ratio")
		return field.Config.NoValue
	}
	require.Equal(t, "not reported", noValue(silent), "the engine does not report it")
	require.Equal(t, "—", noValue(sample()))
	deaf := sample()
	deaf.Lanes[0].Cluster.Unread = api.Unread{Workers: "Prometheus does not scrape the workers"}
	of := workers("main", live(deaf), map[string]time.Time{})
	for name, want := range map[string]string{"cache_use": "not read", "waiting": "not read", "gpu_utilisation": "—"} {
		field, _ := of.FieldByName(name)
		require.Equal(t, want, field.Config.NoValue, name)
	}

	stopped := sample()
	stopped.Lanes[0].State.Running = false
	for name, f := range map[string]*data.Frame{
		"lost": kpi("main", gone), "stopped": kpi("main", live(stopped)), "another lane": kpi("twin", live(sample())),
	} {
		require.Equal(t, nulls(running, nil), values(t, f, 0), name)
	}
}

func TestTTFTByTurn(t *testing.T) {
	got := values(t, ttftByTurn("main", live(sample())), 0)
	require.Equal(t, nulls(got, map[string]any{"turn_1_p50": .5, "turn_1_p95": .7, "turn_6_plus_p50": .2, "slo": .6}), got)
	require.Len(t, got, 13)
	require.Equal(t, nulls(got, nil), values(t, ttftByTurn("main", gone), 0))
}

func TestState(t *testing.T) {
	got := values(t, state("main", live(sample())), 0)
	require.Equal(t, map[string]any{
		"sidecar": "connected", "problem": nil, "running": true, "phase": "running", "mode": "kv", "speculation": "off",
		"mode_change": nil, "settling": true, "step": 7., "target_concurrency": 120., "target_reachable": true,
		"client": "ok",
	}, got)

	s := sample()
	s.Lanes[0].State.ModeChange = &api.ModeChange{Phase: "starting"}
	s.Lanes[0].Target = api.Target{Problem: "connection refused"}
	changing := values(t, state("main", live(s)), 0)
	require.Equal(t, "starting", changing["mode_change"])
	require.Equal(t, "connection refused", changing["problem"])
	require.Equal(t, false, changing["target_reachable"])

	lost := map[string]any{"sidecar": "lost", "problem": "it is silent"}
	require.Equal(t, nulls(got, lost), values(t, state("main", gone), 0))
	unknown := map[string]any{"sidecar": "connected", "problem": "there is no lane twin", "client": "ok"}
	require.Equal(t, nulls(got, unknown), values(t, state("twin", live(sample())), 0))
}

func TestWorkers(t *testing.T) {
	seen := map[string]time.Time{}
	f := workers("main", live(sample()), seen)
	require.Equal(t, 2, f.Rows())
	require.Equal(t, map[string]any{
		"worker": "dynamo-worker-1", "inflight": 57., "waiting": nil, "queue_seconds": nil, "cache_use": .8,
		"gpu_utilisation": .9, "gpu_memory_used": 60e9, "gpu_memory_total": 80e9,
	}, values(t, f, 0))
	second := values(t, f, 1)
	require.Equal(t, "dynamo-worker-2", second["worker"])
	require.InDelta(t, .6, second["gpu_utilisation"], 1e-9, "the mean of its GPUs")
	require.InDelta(t, 160e9, second["gpu_memory_total"], 1, "the sum of its GPUs")

	half := sample()
	half.Lanes[0].Cluster.Workers[0].GPUs[1].Utilisation = nil
	require.Nil(t, values(t, workers("main", live(half), seen), 1)["gpu_utilisation"], "half of a mean is none")
}

// The memory for removed workers is bounded, even where names change with every snapshot.
func TestWorkersRememberedAreBounded(t *testing.T) {
	seen := map[string]time.Time{}
	m := live(sample())
	for i := range 20 {
		m.at = m.at.Add(time.Second)
		m.snapshot.Lanes[0].Cluster.Workers = make([]api.Worker, 1000)
		for k := range m.snapshot.Lanes[0].Cluster.Workers {
			m.snapshot.Lanes[0].Cluster.Workers[k].Name = fmt.Sprint(i, " ", k)
		}
		require.LessOrEqual(t, workers("main", m, seen).Rows(), mostRemembered+1000)
	}
	require.NotEmpty(t, seen)
}

// A table shows each worker's last row. It must be one of nulls soon after the worker, the metrics or the sidecar are
// lost.
func TestWorkersGone(t *testing.T) {
	without := sample()
	without.Lanes[0].Cluster.Workers = without.Lanes[0].Cluster.Workers[:1]
	stale := sample()
	stale.Lanes[0].Cluster.Available = false
	for name, m := range map[string]message{"one": live(without), "the metrics": live(stale), "the sidecar": gone} {
		seen := map[string]time.Time{}
		early := live(sample())
		early.at = noon.Add(-time.Second)
		workers("main", early, seen)
		f := workers("main", m, seen)
		require.Equal(t, 2, f.Rows(), name)
		first := values(t, f, 0)
		require.Equal(t, nulls(first, map[string]any{"worker": "dynamo-worker-1"}), first, name)

		m.at = noon.Add(2 * remembered)
		workers("main", m, seen)
		if m.snapshot == nil {
			require.Empty(t, seen, "not for ever")
		}
	}
	require.Zero(t, workers("main", gone, map[string]time.Time{}).Rows())
}

// A channel's frames always have one schema, otherwise Grafana would drop its buffer. Every field has its name, title,
// unit and decimals.
func TestSchema(t *testing.T) {
	listed, err := os.ReadFile("testdata/fields.txt")
	require.NoError(t, err)
	var have strings.Builder
	for _, channel := range []struct {
		name string
		of   func(string, message) *data.Frame
	}{
		{"kpi", kpi},
		{"ttft-by-turn", ttftByTurn},
		{"state", state},
		{"workers", func(lane string, m message) *data.Frame { return workers(lane, m, map[string]time.Time{}) }},
	} {
		schema := func(lane string, m message) string {
			text, err := data.FrameToJSON(channel.of(lane, m), data.IncludeSchemaOnly)
			require.NoError(t, err)
			return string(text)
		}
		want := schema("main", live(sample()))
		require.JSONEq(t, want, schema("main", gone), channel.name)
		require.JSONEq(t, want, schema("main", live(api.Snapshot{})), channel.name)
		require.JSONEq(t, want, schema("twin", live(sample())), channel.name)

		f := channel.of("main", live(sample()))
		require.Equal(t, data.FieldTypeTime, f.Fields[0].Type())
		fmt.Fprintf(&have, "# %s\n", f.Name)
		for _, field := range f.Fields[1:] {
			require.Equal(t, dash, field.Config.NoValue)
			fmt.Fprintf(&have, "%s: %s", field.Name, field.Config.DisplayNameFromDS)
			if field.Type() == data.FieldTypeNullableFloat64 {
				require.NotEmpty(t, field.Config.Unit, "%s: %s has no unit", f.Name, field.Name)
				fmt.Fprintf(&have, ", %s with %d decimals", field.Config.Unit, *field.Config.Decimals)
			}
			have.WriteString("\n")
		}
	}
	require.Equal(t, string(listed), have.String(),
		"testdata/fields.txt lists name, title, unit and decimals of every field")
}
