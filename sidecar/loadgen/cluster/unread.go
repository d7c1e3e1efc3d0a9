package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
)

// An explainer is a [Source] that can explain why its reading lacks parts of the
// cluster: they may report nothing, or the source may not read them.
type explainer interface {
	// explain returns the reason for each part without samples, and "" where the
	// reason is unknown. It returns soon after ctx ends.
	explain(ctx context.Context, samples []Sample) api.Unread
}

// parts are the parts of a cluster that have their own metrics.
type parts struct{ frontend, workers, gpus bool }

// partsOf reports which parts have samples. A frontend also writes figures about its
// workers; those do not count as the workers' own. Those of another router count, since they have its workers' load.
func partsOf(samples []Sample) (p parts) {
	for _, s := range samples {
		switch {
		case engineOf(s.Name) != "", slices.Contains(workerInflight, s.Name), slices.Contains(workerRequests, s.Name),
			routedTo(s) != "":
			p.workers = true
		case slices.Contains(gpuMetrics, s.Name):
			p.gpus = true
		case strings.HasPrefix(s.Name, "dynamo_frontend_"):
			p.frontend = true
		}
	}
	return p
}

const mostNamed = 3 // places named in a message

// listed joins the first few of all, and the number of the others.
func listed(all []string) string {
	if more := len(all) - mostNamed; more > 0 {
		all = append(slices.Clone(all[:mostNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// explain reports the failures of the latest reading of each page.
func (d *Direct) explain(_ context.Context, samples []Sample) (u api.Unread) {
	has := partsOf(samples)
	var failing []string
	further := 0
	for _, p := range d.pages {
		if !p.own {
			further++
		}
		switch problem := p.problem.Load(); {
		case problem == nil:
		case !p.own:
			failing = append(failing, p.Redacted()+": "+*problem)
		case !has.frontend:
			u.Frontend = fmt.Sprintf("the metrics page of the target fails: %s: %s", p.Redacted(), *problem)
		}
	}
	if further == len(d.pages) && !has.frontend {
		u.Frontend = "cluster.metrics_urls excludes the metrics page of the target (" + NoTarget + ")"
	}
	why := func(wanted string) string {
		switch {
		case further == 0:
			return "cluster.metrics_urls names no page"
		case len(failing) > 0:
			return "pages in cluster.metrics_urls fail: " + listed(failing)
		}
		return "no page in cluster.metrics_urls is " + wanted
	}
	if !has.workers {
		u.Workers = "the workers' metrics are not read; " + why("a worker's")
	}
	if !has.gpus {
		u.GPUs = "no DCGM exporter is read; " + why("that of one")
	}
	return u
}

// explain asks the server for the targets whose scrape fails. Targets of a job that
// has samples come first, since the others may belong to another cluster.
func (p *Prometheus) explain(ctx context.Context, samples []Sample) (u api.Unread) {
	has := partsOf(samples)
	if has == (parts{true, true, true}) {
		return u
	}
	found := p.failingTargets(ctx)
	if !found.known {
		return p.unread(has, "has no metrics of", nil, nil)
	}
	sampledJobs := map[model.LabelValue]bool{}
	for _, s := range samples {
		sampledJobs[s.Labels[model.JobLabel]] = true
	}
	slices.SortStableFunc(found.failing, func(a, b scrapeTarget) int {
		return boolOrder(sampledJobs[a.job], sampledJobs[b.job])
	})
	var gpus, others []string
	for _, t := range found.failing {
		if t.isGPU() {
			gpus = append(gpus, t.String())
		} else {
			others = append(others, t.String())
		}
	}
	return p.unread(has, "does not scrape", gpus, others)
}

// unread words the reasons. Where no scrape fails, a missing part is not scraped.
func (p *Prometheus) unread(has parts, verb string, gpus, others []string) (u api.Unread) {
	reason := func(part string, failing []string) string {
		if len(failing) == 0 {
			return fmt.Sprintf("Prometheus %s %s%s", verb, part, p.scopeText())
		}
		return fmt.Sprintf("Prometheus has no metrics of %s%s, and a scrape of its own fails: %s", part, p.scopeText(),
			listed(failing))
	}
	if !has.frontend {
		u.Frontend = reason("a Dynamo frontend", others)
	}
	if !has.workers {
		u.Workers = reason("the workers", others)
	}
	if !has.gpus {
		u.GPUs = reason("a DCGM exporter", gpus)
	}
	return u
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// scrapeTarget is a target whose scrape fails.
type scrapeTarget struct {
	job, instance model.LabelValue
	reason        string // "" where the server does not report it
}

func (t scrapeTarget) String() string {
	text := fmt.Sprintf("%s (job %s)", t.instance, t.job)
	if t.reason != "" {
		text += ": " + t.reason
	}
	return text
}

// isGPU recognizes a DCGM exporter by its usual name or port, since a failing target
// has no metrics.
func (t scrapeTarget) isGPU() bool {
	name := strings.ToLower(string(t.job + " " + t.instance))
	return strings.Contains(name, "dcgm") || strings.HasSuffix(name, ":9400")
}

// targets is the last known state of a server's scrapes.
type targets struct {
	at      time.Time
	known   bool // the server reports the health of its targets
	failing []scrapeTarget
}

// targetsEvery is the interval between requests for the failing scrapes, while parts
// of the cluster are missing.
const targetsEvery = 10 * time.Second

func (p *Prometheus) failingTargets(ctx context.Context) targets {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.targets.at) >= targetsEvery {
		p.targets = p.askTargets(ctx)
	}
	found := p.targets
	found.failing = slices.Clone(found.failing)
	return found
}

// upQuery selects the failing targets, and one sample without labels where the server
// has the health of any target. A DCGM exporter is often in another namespace.
func upQuery(scope Scope) string {
	own := strings.TrimPrefix(scope.matchers(""), ",")
	if own == "" {
		return "up == 0 or count(up)"
	}
	return fmt.Sprintf(`up{%s} == 0 or up{job=~".*dcgm.*"} == 0 or count(up)`, own)
}

func (p *Prometheus) askTargets(ctx context.Context) targets {
	found := targets{at: time.Now()}
	response, err := p.query(ctx, upQuery(p.scope))
	if err != nil {
		return found
	}
	for _, r := range response.Data.Result {
		var labels model.LabelSet
		if json.Unmarshal(r.Metric, &labels) != nil {
			continue
		}
		if labels[model.InstanceLabel] == "" {
			found.known = true
		} else {
			found.failing = append(found.failing, scrapeTarget{
				job:      labels[model.JobLabel],
				instance: labels[model.InstanceLabel],
			})
		}
	}
	if len(found.failing) > 0 {
		p.addReasons(ctx, found.failing)
	}
	return found
}

// addReasons sets the reasons of failing scrapes. They stay empty for a server that
// has only the query API.
func (p *Prometheus) addReasons(ctx context.Context, failing []scrapeTarget) {
	var response struct {
		Data struct {
			Active []struct {
				Labels model.LabelSet `json:"labels"`
				Error  string         `json:"lastError"`
			} `json:"activeTargets"`
		} `json:"data"`
	}
	body, status, err := p.get(ctx, "targets", url.Values{"state": {"active"}})
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &response) != nil {
		return
	}
	for i, t := range failing {
		for _, a := range response.Data.Active {
			if a.Labels[model.JobLabel] == t.job && a.Labels[model.InstanceLabel] == t.instance {
				failing[i].reason = shorten(a.Error)
			}
		}
	}
}

// shorten removes the address from a scrape's error, since the message names it
// already, and the local port, which changes each time.
func shorten(reason string) string {
	if i := strings.LastIndex(reason, ": connect: "); i >= 0 {
		return reason[i+len(": connect: "):]
	}
	if _, rest, found := strings.Cut(reason, `": `); found && strings.HasPrefix(reason, `Get "`) {
		return rest
	}
	return reason
}
