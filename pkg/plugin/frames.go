package plugin

import (
	"slices"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/data"

	"kvbooth/sidecar/api"
)

// The frames of the core panels. A channel's frames always have the same fields in the same order, otherwise Grafana
// would clear its buffer. Unknown values are null. A field's name is for queries and does not change; its display name,
// unit and decimals are for readers.

const (
	dash           = "—"
	unreadText     = "not read"     // shown for a value whose source is not scraped
	unreportedText = "not reported" // shown for a value that the source does not report
	remembered     = time.Minute    // for which a removed worker keeps its row

	mostRemembered = 10_000 // workers; beyond that, all removed ones are dropped
)

// column makes a field of rows.
type column[R any] func(rows []R) *data.Field

// field returns a column whose values are computed by value; nil is a null.
func field[R, V any](name, title, unit string, decimals uint16, value func(R) *V) column[R] {
	return func(rows []R) *data.Field {
		values := make([]*V, len(rows))
		for i, r := range rows {
			values[i] = value(r)
		}
		f := data.NewField(name, nil, values)
		f.Config = &data.FieldConfig{DisplayNameFromDS: title, Unit: unit, NoValue: dash}
		if unit != "" {
			f.Config.Decimals = &decimals
		}
		return f
	}
}

// frame returns a frame with a row for each of rows, all of the same time.
func frame[R any](name string, at time.Time, rows []R, columns []column[R]) *data.Frame {
	times := make([]time.Time, len(rows))
	for i := range times {
		times[i] = at.Truncate(time.Millisecond) // otherwise every field would have nanoseconds
	}
	f := data.NewFrame(name, data.NewField("time", nil, times))
	f.RefID = name // for a panel's transformations
	for _, c := range columns {
		f.Fields = append(f.Fields, c(rows))
	}
	return f
}

// laneView is a message from the point of view of one lane.
type laneView struct {
	message
	lane    *api.LaneSnapshot // nil: lost, or the lane does not exist
	problem string
}

func at(lane string, m message) laneView {
	if m.snapshot == nil {
		return laneView{message: m, problem: m.problem}
	}
	i := slices.IndexFunc(m.snapshot.Lanes, func(l api.LaneSnapshot) bool { return l.Name == lane })
	if i < 0 {
		return laneView{message: m, problem: "there is no lane " + lane}
	}
	l := &m.snapshot.Lanes[i]
	return laneView{message: m, lane: l, problem: l.Target.Problem}
}

// ofLane returns a field of a lane, which is null where the lane does not exist.
func ofLane[V any](name, title, unit string, decimals uint16, value func(*api.LaneSnapshot) *V) column[laneView] {
	return field(name, title, unit, decimals, func(m laneView) *V {
		if m.lane == nil {
			return nil
		}
		return value(m.lane)
	})
}

func count[N int | int64](n N) *float64 {
	f := float64(n)
	return &f
}

// kpiColumns holds the column of each key figure that has a field.
var kpiColumns = func() (columns []column[laneView]) {
	for _, f := range api.Figures {
		if f.Frame.Name != "" {
			columns = append(columns, ofLane(f.Frame.Name, f.Frame.Title, grafanaUnit(f.Unit), f.Frame.Decimals, f.Live))
		}
	}
	return columns
}()

// grafanaUnit returns what Grafana calls a unit.
func grafanaUnit(u api.Unit) string {
	switch u {
	case api.UnitSeconds:
		return "s"
	case api.UnitRatio:
		return "percentunit"
	case api.UnitRequestsPerSecond:
		return "reqps"
	}
	return "locale" // with separators of thousands
}

// kpi returns a row of figures. They are null for a workload that does not run.
func kpi(lane string, m message) *data.Frame {
	now := at(lane, m)
	if now.lane != nil && !now.lane.State.Running {
		now.lane = nil
	}
	f := frame("kpi", m.at, []laneView{now}, kpiColumns)
	if now.lane != nil && now.lane.KV.NotReported != "" {
		if field, _ := f.FieldByName("kv_hit_ratio"); field != nil {
			field.Config.NoValue = unreportedText
		}
	}
	return f
}

var turnColumns = func() (columns []column[laneView]) {
	for _, turn := range []string{"1", "2", "3", "4", "5", "6+"} {
		name := "turn_" + strings.Replace(turn, "+", "_plus", 1)
		find := func(l *api.LaneSnapshot) (t api.TurnFigures) {
			if i := slices.IndexFunc(l.TTFTByTurn, func(t api.TurnFigures) bool { return t.Turn == turn }); i >= 0 {
				t = l.TTFTByTurn[i]
			}
			return t
		}
		columns = append(columns,
			ofLane(name+"_p50", "Turn "+turn+", p50", "s", 3, func(l *api.LaneSnapshot) *float64 { return find(l).P50 }),
			ofLane(name+"_p95", "Turn "+turn+", p95", "s", 3, func(l *api.LaneSnapshot) *float64 { return find(l).P95 }))
	}
	return append(columns, field("slo", "SLO, p95", "s", 3, func(m laneView) *float64 {
		if m.snapshot == nil {
			return nil
		}
		return &m.snapshot.Settings.SLO.TTFT
	}))
}()

// ttftByTurn returns a row of the TTFT of each turn over the last 60 s, with the SLO.
func ttftByTurn(lane string, m message) *data.Frame {
	return frame("ttft-by-turn", m.at, []laneView{at(lane, m)}, turnColumns)
}

var stateColumns = []column[laneView]{
	field("sidecar", "Load generator", "", 0, func(m laneView) *string {
		s := "connected"
		if m.snapshot == nil {
			s = "lost"
		}
		return &s
	}),
	field("problem", "Problem", "", 0, func(m laneView) *string { return word(m.problem) }),
	ofLane("running", "Running", "", 0, func(l *api.LaneSnapshot) *bool { return &l.State.Running }),
	ofLane("phase", "Phase", "", 0, func(l *api.LaneSnapshot) *string { return word(l.State.Phase) }),
	ofLane("mode", "Mode", "", 0, func(l *api.LaneSnapshot) *string { return word(l.State.Mode) }),
	ofLane("speculation", "Speculation", "", 0, func(l *api.LaneSnapshot) *string { return word(l.State.Speculation) }),
	ofLane("mode_change", "Mode change", "", 0, func(l *api.LaneSnapshot) *string {
		if l.State.ModeChange == nil {
			return nil
		}
		return word(l.State.ModeChange.Phase)
	}),
	ofLane("settling", "Settling", "", 0, func(l *api.LaneSnapshot) *bool { return &l.State.Settling }),
	ofLane("step", "Step", "none", 0, func(l *api.LaneSnapshot) *float64 { return count(l.State.Step.ID) }),
	ofLane("target_concurrency", "Target concurrency", "none", 0,
		func(l *api.LaneSnapshot) *float64 { return new(l.State.Concurrency.Target.Value) }),
	ofLane("target_reachable", "Target reachable", "", 0, func(l *api.LaneSnapshot) *bool { return &l.Target.Reachable }),
	field("client", "Client", "", 0, func(m laneView) *string {
		if m.snapshot == nil {
			return nil
		}
		return word(m.snapshot.Client.Verdict)
	}),
}

func word[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

// state returns a row of texts.
func state(lane string, m message) *data.Frame {
	return frame("state", m.at, []laneView{at(lane, m)}, stateColumns)
}

var workerColumns = []column[api.Worker]{
	field("worker", "Worker", "", 0, func(w api.Worker) *string { return word(w.Name) }),
	field("inflight", "In flight", "none", 0, func(w api.Worker) *float64 { return w.Inflight }),
	field("waiting", "Waiting", "none", 0, func(w api.Worker) *float64 { return w.Waiting }),
	field("queue_seconds", "Queue time", "s", 3, func(w api.Worker) *float64 { return w.QueueSeconds }),
	field("cache_use", "KV cache use", "percentunit", 1, func(w api.Worker) *float64 { return w.CacheUse }),
	field("gpu_utilisation", "GPU utilization", "percentunit", 0, func(w api.Worker) *float64 {
		sum := total(w.GPUs, func(g api.GPU) *float64 { return g.Utilisation })
		if sum != nil {
			*sum /= float64(len(w.GPUs))
		}
		return sum
	}),
	field("gpu_memory_used", "GPU memory used", "bytes", 1, func(w api.Worker) *float64 {
		return total(w.GPUs, func(g api.GPU) *float64 { return g.MemoryUsed })
	}),
	field("gpu_memory_total", "GPU memory", "bytes", 1, func(w api.Worker) *float64 {
		return total(w.GPUs, func(g api.GPU) *float64 { return g.MemoryTotal })
	}),
}

// total returns the sum over GPUs; nil if there are none, or if one of them does not report the value.
func total(gpus []api.GPU, value func(api.GPU) *float64) *float64 {
	var sum float64
	for _, g := range gpus {
		v := value(g)
		if v == nil {
			return nil
		}
		sum += *v
	}
	if len(gpus) == 0 {
		return nil
	}
	return &sum
}

// workers returns a frame with a row per worker, in the order of their names. A removed worker has rows of nulls for a
// while, because a table shows each worker's last row. seen holds the time of each worker's last report.
func workers(lane string, m message, seen map[string]time.Time) *data.Frame {
	var rows []api.Worker
	if now := at(lane, m); now.lane != nil && now.lane.Cluster.Available {
		rows = slices.Clone(now.lane.Cluster.Workers)
	}
	if len(seen) > mostRemembered {
		clear(seen)
	}
	for _, w := range rows {
		seen[w.Name] = m.at
	}
	for name, when := range seen {
		switch {
		case m.at.Sub(when) > remembered:
			delete(seen, name)
		case !when.Equal(m.at):
			rows = append(rows, api.Worker{Name: name})
		}
	}
	slices.SortFunc(rows, func(a, b api.Worker) int { return strings.Compare(a.Name, b.Name) })
	f := frame("workers", m.at, rows, workerColumns)
	if now := at(lane, m); now.lane != nil {
		setUnread(f, now.lane.Cluster.Unread)
	}
	return f
}

// setUnread marks the missing values of sources that are not scraped as not read: whether the engines report them
// is unknown.
func setUnread(f *data.Frame, unread api.Unread) {
	for _, field := range f.Fields {
		why := unread.Workers
		if strings.HasPrefix(field.Name, "gpu_") {
			why = unread.GPUs
		}
		if why != "" && field.Config != nil {
			field.Config.NoValue = unreadText
		}
	}
}
