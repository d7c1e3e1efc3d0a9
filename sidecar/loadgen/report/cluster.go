package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Cluster summarizes the metrics that the serving cluster reported during a run, sampled once a second. [Started]
// returns one without samples. Cluster is not safe for concurrent use.
type Cluster struct {
	Source  string        `json:"source,omitempty"`         // prometheus or direct
	Problem string        `json:"problem,omitempty"`        // reason for missing metrics in the latest sample
	Unread  string        `json:"workers_unread,omitempty"` // reason for missing metrics of the workers in it
	Engine  string        `json:"engine,omitempty"`
	GPU     string        `json:"gpu,omitempty"`
	Workers []WorkerCount `json:"workers,omitempty"` // first number and each change, by time
	Queued  *Queue        `json:"queued,omitempty"`  // requests that waited for a worker; absent: not reported
	Hits    []Hits        `json:"hits,omitempty"`    // by source; kv_hit_ratio of the report is computed from the turns

	api.EngineUse // during the run

	before  map[string][2]float64 // counters of [api.KV] at the run's start
	engines *api.EngineTotals     // totals at the run's start; nil: not known yet
	latest  *api.EngineTotals     // nil: not known yet
	listed  map[string]bool       // ids of the workers of the latest sample with any, as far as a large cluster lists them
}

// Started returns the Cluster of a run that starts with these metrics. Later counters are compared with them.
func Started(of api.Cluster) Cluster { return Cluster{before: of.KV.Counted, engines: of.Engines} }

// WorkerCount is a number of workers and the time from which it holds. A nil N is not known.
type WorkerCount struct {
	From time.Time `json:"from"`
	N    *int      `json:"n,omitempty"`
}

// Queue summarizes the number of requests that waited at router and engines.
type Queue struct {
	Mean    float64  `json:"mean"`
	Max     float64  `json:"max"`
	Engines *float64 `json:"engines_mean,omitempty"` // of them at the engines; absent: not reported
	Seconds int      `json:"seconds"`                // number of samples, one a second

	ofEngines int // number of samples with the engines' queues
}

// Hits is the share of prompt tokens that came from a KV cache during the run, by the counters of one source. The share
// of source prediction is a mean over requests.
type Hits struct {
	Source string  `json:"source"` // prediction, frontend or engine
	Ratio  float64 `json:"ratio"`
}

// mostChanges limits the entries of [Cluster.Workers].
const mostChanges = 200

// Add adds the metrics of one second. at is the time of the sample.
func (c *Cluster) Add(at time.Time, of api.Cluster) {
	c.Problem, c.Unread = of.Problem, of.Unread.Workers
	c.addWorkers(at, of)
	if of.Engines == nil && c.AchievedShare == nil {
		c.AchievedUnknown = cmp.Or(of.Problem, "the cluster's metrics are not read")
	}
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
		if n := of.QueuedEngines; n != nil {
			q.ofEngines++
			mean := cmp.Or(q.Engines, new(0.))
			q.Engines = new(*mean + (*n-*mean)/float64(q.ofEngines))
		}
	}
	c.setHits(of.KV.Counted)
	if c.engines == nil {
		c.engines = of.Engines
	}
	c.use(of.Engines)
}

// Finish adds the counters of a reading after the end of the run, which have the turns of its last seconds.
func (c *Cluster) Finish(of api.Cluster) {
	if !of.Available {
		return
	}
	c.setHits(of.KV.Counted)
	c.use(of.Engines)
}

// use computes the figures from the totals of the latest reading.
func (c *Cluster) use(latest *api.EngineTotals) {
	if c.engines != nil && latest != nil {
		c.latest, c.EngineUse = latest, latest.Since(*c.engines)
	}
}

// cost returns the costs of a run on a deployment, by its output tokens per second and its median TPOT.
func (c *Cluster) cost(d api.Deployment, tokens, tpot *float64) api.Cost {
	var before, latest api.EngineTotals
	if c.latest != nil {
		before, latest = *c.engines, *c.latest
	}
	b := latest.CostBasis(before, d)
	b.Tokens, b.TPOT = tokens, tpot
	return b.Cost()
}

func (c *Cluster) addWorkers(at time.Time, of api.Cluster) {
	if len(of.Workers) > 0 {
		c.listed = map[string]bool{}
	}
	for i := range of.Workers {
		if id := of.Workers[i].ID; id != "" {
			c.listed[id] = true
		}
	}
	var now *int
	if of.Available && of.Unread.Workers == "" {
		now = new(of.WorkerCount())
	}
	if len(c.Workers) == 0 && (now == nil || *now == 0) || len(c.Workers) >= mostChanges {
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

// setHits computes the shares from the growth of the counters since the start. A share above 1 is left out: it comes
// from requests that began before the start.
func (c *Cluster) setHits(counted map[string][2]float64) {
	c.Hits = nil
	for _, source := range []string{"prediction", "frontend", "engine"} {
		hits, all := counted[source][0]-c.before[source][0], counted[source][1]-c.before[source][1]
		if all > 0 && hits <= all {
			c.Hits = append(c.Hits, Hits{source, hits / all})
		}
	}
}

// describe adds the metrics to a list. Values that were not reported have no entry. The turns may name more workers
// than the metrics. ttft is the mean TTFT of the turns, nil where it is not known.
func (c *Cluster) describe(s *Section, turns *Routing, ttft *float64) {
	var facts, workers, queue []string
	for _, v := range []string{c.Engine, c.GPU} {
		if v != "" {
			facts = append(facts, api.Printable(v))
		}
	}
	if c.Source != "" {
		facts = append(facts, "metrics: "+c.Source)
	}
	if c.Problem != "" {
		facts = append(facts, api.Printable(c.Problem))
	}
	reported := 0
	for i, w := range c.Workers {
		text := "not read"
		if w.N != nil {
			text = fmt.Sprint(*w.N)
			reported = max(reported, *w.N)
		}
		if i > 0 {
			text += " from " + clock(w.From)
		}
		workers = append(workers, text)
	}
	if turns != nil && len(turns.Workers) > reported {
		named := fmt.Sprintf("%d by the turns", len(turns.Workers))
		if reported > 0 {
			named += ", by the metrics " + strings.Join(workers, ", ")
		}
		workers = []string{named}
	}
	if q := c.Queued; q != nil {
		queue = []string{fmt.Sprintf("%s requests waited on average, at most %s", tenths(q.Mean), tenths(q.Max))}
		if q.Engines != nil {
			queue = append(queue, tenths(*q.Engines)+" on average at the engines")
		}
	}
	s.add("Cluster", strings.Join(facts, ", "))
	if n := len(c.Workers); n > 0 && c.Workers[n-1].N == nil && c.Unread != "" {
		workers = append(workers, api.Printable(c.Unread)+"; check cluster.metrics_urls or prometheus.url")
	}
	s.add("Workers", strings.Join(workers, ", "))
	s.add("Queue", strings.Join(queue, ", "))
	c.describeAchieved(s)
	s.add("Prompt tokens", strings.Join(c.causes(), ", "))
	s.add("Mean TTFT", strings.Join(c.firstToken(ttft), ", "))
	s.add("Speculation", strings.Join(c.speculation(), ", "))
	if c.GPUMemoryBytes != nil {
		s.add("GPU memory", gigabytes(*c.GPUMemoryBytes)+" of a GPU")
	}
}

// describeAchieved adds the share of the best placement's hit rate, or why it is not known.
func (c *Cluster) describeAchieved(s *Section) {
	switch {
	case c.AchievedShare != nil:
		s.add(achieved, api.Percent(*c.AchievedShare))
	case c.AchievedUnknown != "":
		s.add(achieved, "not known: "+api.Printable(c.AchievedUnknown))
	}
}

// causes lists the shares of the prompt tokens by what became of them, or says by how much the model of the caches is
// off. It is empty where they were not measured.
func (c *Cluster) causes() (parts []string) {
	if more := -c.HitCauses[api.CauseUnexplained]; more > api.MaxCacheError {
		return []string{"not known: " + api.Percent(more) + " more were found than the model of the caches holds"}
	}
	for i, kind := range api.CauseKinds {
		if share, known := c.HitCauses[kind]; known && share != 0 {
			parts = append(parts, api.Percent(share)+" "+strings.ToLower(causeNames[i]))
		}
	}
	return parts
}

// firstToken divides a mean TTFT in seconds by the engines' own times. It is empty where they are not known.
func (c *Cluster) firstToken(ttft *float64) (parts []string) {
	if c.FirstToken == nil || ttft == nil {
		return nil
	}
	for _, p := range c.FirstToken.Split(*ttft) {
		parts = append(parts, ms(&p.Seconds)+" ms "+p.Name)
	}
	return parts
}

// speculation describes acceptance rate and tokens per step. It is empty if no tokens were drafted.
func (c *Cluster) speculation() (parts []string) {
	if c.AcceptanceRate != nil {
		parts = append(parts, api.Percent(*c.AcceptanceRate)+" of the drafted tokens accepted")
	}
	if v := c.TokensPerStep; v != nil && (c.AcceptanceRate != nil || *v != 1) {
		parts = append(parts, hundredths(*v)+" tokens per step")
	}
	return parts
}

func clock(at time.Time) string { return at.Local().Format("15:04:05") }

// mostEvents limits the events of a summary. The JSON holds all events.
const mostEvents = 20

func (r *Run) eventLines() (lines []string) {
	for i, e := range r.Events {
		if i == mostEvents {
			return append(lines, fmt.Sprintf("and %d more", len(r.Events)-mostEvents))
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", clock(e.Time), strings.ReplaceAll(string(e.Kind), "_", " "),
			api.Printable(e.Text), api.Printable(e.By)))
	}
	return lines
}
