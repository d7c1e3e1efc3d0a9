package cluster

import (
	"maps"
	"strings"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/cluster/router"
)

// ofRouters has the metrics of routers other than Dynamo's, from the table of package router. Of routers that were only
// read about, no names are known from a scrape.
var ofRouters = readRouters()

// routerMetrics holds the names of the metrics that any router has of one kind.
type routerMetrics struct {
	requests, running, waiting, queued metric
	// labels names the label with the worker, by metric.
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

// routedTo returns the host and port of the worker in a sample of a router; empty: it is of no router, or names none.
func routedTo(s Sample) string {
	label := ofRouters.labels[s.Name]
	if label == "" {
		return ""
	}
	name := string(s.Labels[label])
	if _, rest, found := strings.Cut(name, "://"); found {
		name, _, _ = strings.Cut(rest, "/")
	}
	return name
}

// routerName returns the router whose metrics are in the reading; empty: none is.
func routerName(r reading) string {
	if found := router.ByMetric(maps.Keys(r)); found != nil {
		return found.ID
	}
	return ""
}
