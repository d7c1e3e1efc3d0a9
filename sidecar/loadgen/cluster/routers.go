package cluster

import (
	"maps"
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
	// labels maps a metric to the label that names the worker.
	labels map[string]model.LabelName
}

func readRouters() (all routerMetrics) {
	all.labels = map[string]model.LabelName{}
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
