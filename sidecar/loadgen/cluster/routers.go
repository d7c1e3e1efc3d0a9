package cluster

import (
	"maps"
	"strings"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/cluster/router"
)

// Metrics of routers other than Dynamo's, from the table of package router. Of routers that were only read, no names
// are known from a scrape.
var (
	routerRequests, routerRunning, routerWaiting, routerQueued metric

	// routerLabels names the label with the worker, by metric.
	routerLabels = map[string]model.LabelName{}
)

// ofRouters fills the variables above. It is called before they are used in wanted.
func ofRouters() {
	for i := range router.All {
		r := &router.All[i]
		if !r.Measured || r.ID == router.Dynamo {
			continue
		}
		for _, m := range []struct {
			to   *metric
			name string
		}{
			{&routerRequests, r.Metrics.Requests},
			{&routerRunning, r.Metrics.Running},
			{&routerWaiting, r.Metrics.Waiting},
		} {
			if m.name != "" && routerLabels[m.name] == "" {
				*m.to = append(*m.to, m.name)
				routerLabels[m.name] = model.LabelName(r.Metrics.Label)
			}
		}
		if r.Metrics.Queued != "" {
			routerQueued = append(routerQueued, r.Metrics.Queued)
		}
	}
}

// routedTo returns the host and port of the worker in a sample of a router; empty: it is of no router, or names none.
func routedTo(s Sample) string {
	label := routerLabels[s.Name]
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
