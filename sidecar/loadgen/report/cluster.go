package report

import (
	"fmt"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report/chart"
)

// Cluster is what the serving cluster reported during a run, looked at once a second. The zero
// value has seen nothing.
type Cluster struct {
	Source  string        `json:"source,omitempty"`  // prometheus or direct
	Problem string        `json:"problem,omitempty"` // why there is nothing more of it, of the last second
	Engine  string        `json:"engine,omitempty"`
	GPU     string        `json:"gpu,omitempty"`
	Workers []WorkerCount `json:"workers,omitempty"` // the first number and each change of it, ascending
	Queued  *Queue        `json:"queued,omitempty"`  // requests that waited for a worker; absent: not reported
	Hits    []Hits        `json:"hits,omitempty"`    // by source; the turns' own is the report's kv_hit_ratio

	api.EngineUse // during the run

	before  map[string][2]float64 // the counters of [api.KV] at the run's start
	engines *api.EngineTotals     // at the run's start; nil: not known yet
}

// Started gives the Cluster of a run that starts while the cluster reports this.
func Started(of api.Cluster) Cluster { return Cluster{before: of.KV.Counted, engines: of.Engines} }

// WorkerCount is how many workers there were from a time on; nil: it was not known.
type WorkerCount struct {
	From time.Time `json:"from"`
	N    *int      `json:"n,omitempty"`
}

// Queue is how many requests waited.
type Queue struct {
	Mean    float64 `json:"mean"`
	Max     float64 `json:"max"`
	Seconds int     `json:"seconds"` // with a value
}

// Hits is the share of prompt tokens that came from a KV cache during the run, by a source's counters. A prediction is
// the mean over requests.
type Hits struct {
	Source string  `json:"source"` // prediction, frontend or engine
	Ratio  float64 `json:"ratio"`
}

// mostChanges bounds what workers that come and go can make a report hold.
const mostChanges = 200

// Add takes in what the cluster reports in one second.
func (c *Cluster) Add(at time.Time, of api.Cluster) {
	c.Problem = of.Problem
	c.addWorkers(at, of)
	if !of.Available {
		return
	}
	for to, v := range map[*string]string{&c.Source: of.Source, &c.Engine: of.Engine, &c.GPU: of.GPU} {
		if v != "" {
			*to = v
		}
	}
	if of.Queued != nil {
		if c.Queued == nil {
			c.Queued = &Queue{}
		}
		q := c.Queued
		q.Seconds++
		q.Mean += (*of.Queued - q.Mean) / float64(q.Seconds)
		q.Max = max(q.Max, *of.Queued)
	}
	c.setHits(of.KV.Counted)
	if c.engines == nil {
		c.engines = of.Engines
	}
	if of.Engines != nil {
		c.EngineUse = of.Engines.Since(*c.engines)
	}
}

func (c *Cluster) addWorkers(at time.Time, of api.Cluster) {
	var now *int
	if of.Available && of.Unread.Workers == "" {
		now = new(of.WorkerCount())
	}
	if len(c.Workers) == 0 && now == nil || len(c.Workers) >= mostChanges {
		return
	}
	if len(c.Workers) > 0 {
		last := c.Workers[len(c.Workers)-1].N
		if last == now || last != nil && now != nil && *last == *now {
			return
		}
	}
	c.Workers = append(c.Workers, WorkerCount{at, now})
}

// setHits computes the shares from what the counters have grown by since the start. Ends of requests that began
// before it can make a share of more than one, which is none.
func (c *Cluster) setHits(counted map[string][2]float64) {
	c.Hits = nil
	for _, source := range []string{"prediction", "frontend", "engine"} {
		hits, all := counted[source][0]-c.before[source][0], counted[source][1]-c.before[source][1]
		if all > 0 && hits <= all {
			c.Hits = append(c.Hits, Hits{source, hits / all})
		}
	}
}

// items are what a summary has of it.
func (c *Cluster) items() (all []Item) {
	add := func(name string, parts []string) {
		if len(parts) > 0 {
			all = append(all, Item{name, strings.Join(parts, ", ")})
		}
	}
	var facts, workers, queue, hits []string
	for _, v := range []string{c.Engine, c.GPU} {
		if v != "" {
			facts = append(facts, printable(v))
		}
	}
	if c.Source != "" {
		facts = append(facts, "metrics: "+c.Source)
	}
	if c.Problem != "" {
		facts = append(facts, printable(c.Problem))
	}
	for i, w := range c.Workers {
		text := "unknown"
		if w.N != nil {
			text = fmt.Sprint(*w.N)
		}
		if i > 0 {
			text += " from " + clock(w.From)
		}
		workers = append(workers, text)
	}
	if q := c.Queued; q != nil {
		queue = []string{fmt.Sprintf("%s requests waited on average, at most %s", chart.Number(q.Mean), chart.Number(q.Max))}
	}
	for _, h := range c.Hits {
		hits = append(hits, fmt.Sprintf("%s %s", h.Source, share100(h.Ratio)))
	}
	add("Cluster", facts)
	add("Workers", workers)
	add("Queue", queue)
	add("KV hit, as reported", hits)
	add("Speculation", c.speculation())
	if c.GPUMemoryBytes != nil {
		add("GPU memory", []string{gigabytes(*c.GPUMemoryBytes) + " of a GPU"})
	}
	return all
}

// speculation is what it did; nothing where no tokens were drafted.
func (c *Cluster) speculation() (parts []string) {
	if c.AcceptanceRate != nil {
		parts = append(parts, share100(*c.AcceptanceRate)+" of the drafted tokens accepted")
	}
	if v := c.TokensPerStep; v != nil && (c.AcceptanceRate != nil || *v != 1) {
		parts = append(parts, chart.Number(*v)+" tokens per step")
	}
	return parts
}

// clock is a time of day as a summary names it.
func clock(at time.Time) string { return at.Local().Format("15:04:05") }

// mostEvents are named in a summary; the JSON has all.
const mostEvents = 20

func (r *Run) eventLines() (lines []string) {
	for i, e := range r.Events {
		if i == mostEvents {
			return append(lines, fmt.Sprintf("and %d more", len(r.Events)-mostEvents))
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", clock(e.Time), strings.ReplaceAll(string(e.Kind), "_", " "),
			printable(e.Text), printable(e.By)))
	}
	return lines
}
