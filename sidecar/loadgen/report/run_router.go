package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Routing is how the turns of a run were spread over the workers, as their answers name them.
type Routing struct {
	Workers []WorkerTurns `json:"workers"` // by name; at most mostServers, the busiest ones
	Turns   int           `json:"turns"`   // whose worker is known
	Skew    float64       `json:"skew"`    // turns of the busiest worker over the workers' mean
	// Later counts the turns after the first of their conversation of which both workers are known, and SameWorker those
	// that went to the worker of the turn before.
	Later      int `json:"later"`
	SameWorker int `json:"same_worker"`

	count map[string]int
	last  map[string]string // the worker of a conversation's last turn
}

// WorkerTurns is how many turns a worker served.
type WorkerTurns struct {
	Worker string `json:"worker"`
	Turns  int    `json:"turns"`
}

// mostServers bounds the listed workers.
const mostServers = 64

// add takes in a turn that ended. The turns of a conversation come in their order.
func (g *Routing) add(t *api.Turn) {
	if t.Worker == "" {
		delete(g.last, t.Conversation)
		return
	}
	name := strings.Clone(t.Worker)
	g.count[name]++
	g.Turns++
	if before := g.last[t.Conversation]; t.Number > 1 && before != "" {
		g.Later++
		if before == name {
			g.SameWorker++
		}
	}
	g.last[strings.Clone(t.Conversation)] = name
}

// finish returns the spread; nil where no worker is known.
func (g *Routing) finish() *Routing {
	if g.Turns == 0 {
		return nil
	}
	for name, n := range g.count {
		g.Workers = append(g.Workers, WorkerTurns{name, n})
	}
	slices.SortFunc(g.Workers, func(a, b WorkerTurns) int {
		return cmp.Or(b.Turns-a.Turns, strings.Compare(a.Worker, b.Worker))
	})
	g.Skew = float64(g.Workers[0].Turns*len(g.Workers)) / float64(g.Turns)
	g.Workers = g.Workers[:min(len(g.Workers), mostServers)]
	slices.SortFunc(g.Workers, func(a, b WorkerTurns) int { return strings.Compare(a.Worker, b.Worker) })
	g.count, g.last = nil, nil
	return g
}

// cachedSources says where cached tokens come from.
var cachedSources = map[string]string{
	"usage": "the answers' usage", "frontend": "the frontend's counters", "engine": "the engines' counters",
}

// routerLines say what stands in front of the workers and how it spread the turns.
func (r *Run) routerLines() (lines []string) {
	t := r.Target
	known := []string{cmp.Or(t.Router, "not recognized")}
	if t.WorkerSource == "" {
		known = append(known, "the worker of a turn is not known")
	} else {
		known = append(known, "worker of a turn from "+printable(t.WorkerSource))
	}
	known = append(known, "cached tokens from "+cmp.Or(cachedSources[t.CachedSource], "nothing: they are not known"))
	if r.Workload.Session != "" {
		known = append(known, "session by "+r.Workload.Session)
	}
	if r.Workload.NoRequestID {
		known = append(known, "no X-Request-Id")
	}
	lines = append(lines, strings.Join(known, ", "))
	g := r.Routing
	if g == nil {
		return lines
	}
	const most = 8
	var each []string
	for _, w := range g.Workers[:min(len(g.Workers), most)] {
		each = append(each, fmt.Sprintf("%s %d", printable(w.Worker), w.Turns))
	}
	if n := len(g.Workers) - most; n > 0 {
		each = append(each, fmt.Sprintf("%d more", n))
	}
	lines = append(lines, fmt.Sprintf("turns by worker: %s; the busiest has %.2f times the mean", strings.Join(each, ", "),
		g.Skew))
	if g.Later > 0 {
		lines = append(lines, fmt.Sprintf("%s of %d later turns went to the worker of the turn before",
			share100(float64(g.SameWorker)/float64(g.Later)), g.Later))
	}
	return lines
}
