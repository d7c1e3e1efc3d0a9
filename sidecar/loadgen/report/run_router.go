package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Routing is the distribution of a run's turns over the workers that the answers name.
type Routing struct {
	Workers []WorkerTurns `json:"workers"` // the busiest workers, at most maxWorkers, by name
	Turns   int           `json:"turns"`   // turns with a known worker
	Skew    float64       `json:"skew"`    // turns of the busiest worker / mean of the workers
	// Later counts the later turns of conversations whose worker and previous worker are known. SameWorker counts those
	// of them that went to the previous worker.
	Later      int `json:"later"`
	SameWorker int `json:"same_worker"`

	count map[string]int
	last  map[string]string // worker of the latest turn, by conversation
}

// WorkerTurns is the number of turns that a worker served.
type WorkerTurns struct {
	Worker string `json:"worker"`
	Turns  int    `json:"turns"`
}

const maxWorkers = 64

// add adds a turn that has ended. The turns of a conversation must be added in their order.
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

// finish computes the skew and sorts the workers. It returns nil if no worker is known. The workers that the cluster
// listed and that served no turn count with 0 turns, unless the answers name workers in another way than the cluster.
func (g *Routing) finish(listed map[string]bool) *Routing {
	if g.Turns == 0 {
		return nil
	}
	AddIdle(g.count, listed)
	g.Workers, g.Skew = spread(g.count)
	g.count, g.last = nil, nil
	return g
}

// AddIdle adds listed workers that served no turn to the turns by worker. It adds none if no listed worker served a
// turn, because then the two lists name workers in different ways.
func AddIdle[V any](count map[string]int, listed map[string]V) {
	if !haveCommon(count, listed) {
		return
	}
	for name := range listed {
		count[name] += 0
	}
}

func haveCommon[A, B any](a map[string]A, b map[string]B) bool {
	for key := range a {
		if _, ok := b[key]; ok {
			return true
		}
	}
	return false
}

// spread returns the busiest workers by name, and the skew over all workers. One of them must have served a turn.
func spread(count map[string]int) (workers []WorkerTurns, skew float64) {
	turns := 0
	for name, n := range count {
		workers = append(workers, WorkerTurns{name, n})
		turns += n
	}
	slices.SortFunc(workers, func(a, b WorkerTurns) int {
		return cmp.Or(b.Turns-a.Turns, strings.Compare(a.Worker, b.Worker))
	})
	skew = float64(workers[0].Turns*len(workers)) / float64(turns)
	workers = workers[:min(len(workers), maxWorkers)]
	slices.SortFunc(workers, func(a, b WorkerTurns) int { return strings.Compare(a.Worker, b.Worker) })
	return workers, skew
}

// eachWorker lists the turns of the first workers.
func eachWorker(workers []WorkerTurns) string {
	const most = 8
	var each []string
	for _, w := range workers[:min(len(workers), most)] {
		each = append(each, api.Printable(shortID(w.Worker))+" "+api.Count(w.Turns))
	}
	if n := len(workers) - most; n > 0 {
		each = append(each, fmt.Sprintf("%d more", n))
	}
	return strings.Join(each, ", ")
}

// cachedSources maps [api.Target.CachedSource] to the words of the report.
var cachedSources = map[string]string{
	"usage": "the answers' usage", "frontend": "the frontend's counters", "engine": "the engines' counters",
}

// routerLines describes the router and the distribution of the turns over the workers.
func (r *Run) routerLines() (lines []string) {
	t := r.Target
	known := []string{cmp.Or(t.Router, "not recognized")}
	if t.WorkerSource == "" {
		known = append(known, "the worker of a turn is not known")
	} else {
		known = append(known, "worker of a turn from "+api.Printable(t.WorkerSource))
	}
	if source := cachedSources[t.CachedSource]; source != "" {
		known = append(known, "cached tokens from "+source)
	} else {
		known = append(known, "cached tokens not known")
	}
	if r.Workload.Session != "" {
		known = append(known, "session by "+r.Workload.Session)
	}
	if r.Workload.NoRequestID {
		known = append(known, "no X-Request-Id")
	}
	lines = append(lines, strings.Join(known, ", "))
	for _, n := range t.Notices {
		if strings.HasPrefix(n, "target.") { // on a setting; the others are on the answers
			lines = append(lines, api.Printable(n))
		}
	}
	g := r.Routing
	if g == nil {
		return lines
	}
	lines = append(lines, fmt.Sprintf("turns by worker: %s; the busiest has %s times the mean",
		eachWorker(g.Workers), hundredths(g.Skew)))
	if g.Later > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d later turns (%s) went to the worker of the turn before",
			g.SameWorker, g.Later, api.Percent(float64(g.SameWorker)/float64(g.Later))))
	}
	return lines
}
