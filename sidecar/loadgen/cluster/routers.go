package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
)

// otherRouters names the metrics of routers other than Dynamo's. It leaves out the routers that were not run, since no
// scrape confirms their names.
var otherRouters = readRouters()

// routerMetrics holds the names of the metrics of all routers by kind.
type routerMetrics struct {
	requests, running, waiting, queued metric
	// decisions are the counters of choices, and outcomes the label of each with the outcome.
	decisions metric
	outcomes  map[string]model.LabelName
	// matchSum and matchCount are those of the histograms of what routers expect to find.
	matchSum, matchCount metric
	// labels maps a metric to the label that names the worker.
	labels map[string]model.LabelName
}

func readRouters() (all routerMetrics) {
	all.labels, all.outcomes = map[string]model.LabelName{}, map[string]model.LabelName{}
	for i := range router.All {
		r := &router.All[i]
		if !r.Measured || r.ID == router.Dynamo {
			continue
		}
		for _, m := range []struct {
			to   *metric
			name string
		}{
			{&all.requests, r.Metrics.Requests},
			{&all.running, r.Metrics.Running},
			{&all.waiting, r.Metrics.Waiting},
		} {
			if m.name != "" && all.labels[m.name] == "" {
				*m.to = append(*m.to, m.name)
				all.labels[m.name] = model.LabelName(r.Metrics.Label)
			}
		}
		if r.Metrics.Queued != "" {
			all.queued = append(all.queued, r.Metrics.Queued)
		}
		if r.Metrics.Match != "" {
			all.matchSum = append(all.matchSum, r.Metrics.Match+"_sum")
			all.matchCount = append(all.matchCount, r.Metrics.Match+"_count")
		}
		for _, d := range r.Metrics.Decisions {
			if all.outcomes[d.Metric] == "" {
				all.decisions = append(all.decisions, d.Metric)
				all.outcomes[d.Metric] = model.LabelName(d.Outcome)
			}
		}
	}
	return all
}

// routedTo returns the host and port of the worker that a router's sample names. It is "" for a sample without one.
func routedTo(s Sample) string {
	label := otherRouters.labels[s.Name]
	if label == "" {
		return ""
	}
	name := string(s.Labels[label])
	if _, rest, found := strings.Cut(name, "://"); found {
		name, _, _ = strings.Cut(rest, "/")
	}
	return name
}

// decisions returns how routers chose the workers of the last 60 s, the most frequent outcome of each counter first.
func decisions(r reading) (all []api.RouterDecision) {
	for _, name := range otherRouters.decisions {
		counts := map[string]float64{}
		for _, s := range r[name] {
			counts[string(s.Labels[otherRouters.outcomes[name]])] += s.growth
		}
		first := len(all)
		for _, outcome := range slices.Sorted(maps.Keys(counts)) {
			if counts[outcome] > 0 {
				all = append(all, api.RouterDecision{Metric: name, Outcome: outcome, Requests: counts[outcome]})
			}
		}
		slices.SortStableFunc(all[first:], func(a, b api.RouterDecision) int { return cmp.Compare(b.Requests, a.Requests) })
	}
	return all
}

// routerName returns the id of the router whose metrics are in the reading, or "".
func routerName(r reading) string {
	if found := router.ByMetric(maps.Keys(r)); found != nil {
		return found.ID
	}
	return ""
}

// RouterRemarks returns a sentence if the metrics of a cluster are those of another router than target.router names.
func RouterRemarks(named string, c api.Cluster) (all []string) {
	for _, r := range router.Contradiction(named, "the metrics", c.Router) {
		all = append(all, r.String())
	}
	return all
}
