package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
)

// defaultInterval is Prometheus' default scrape interval.
const defaultInterval = time.Minute

// prometheusURL returns the URL of Prometheus, or "" if it is unknown.
func (e *exam) prometheusURL() string {
	return strings.TrimRight(cmp.Or(e.PrometheusURL, e.setting("prometheus.url")), "/")
}

func (e *exam) prometheus(ctx context.Context, all *findings) {
	base := e.prometheusURL()
	if base == "" {
		if e.status == nil {
			all.skip("Prometheus: its URL is unknown", "set --prometheus-url")
			return
		}
		all.skip("Prometheus: not configured; the load generator scrapes the cluster's metrics from the target itself",
			"set prometheus.url or --prometheus-url; the dashboards need it")
		return
	}
	now, answered, err := e.query(ctx, "time()")
	switch {
	case err != nil && e.PrometheusURL == "" && e.readsCluster() && !isLoopback(base): // see target
		all.skip(fmt.Sprintf("%s is unreachable from here (%v), although the load generator reaches it", base, err),
			"run this where the load generator runs, or forward its port and set --prometheus-url")
		return
	case err != nil || len(now) != 1:
		reason := cmp.Or(err, errors.New("it does not report its time"))
		all.problem(fmt.Sprintf("no Prometheus responds at %s: %v", base, reason),
			"start it, or correct prometheus.url (--prometheus-url)")
		return
	}
	all.ok(base + " responds")
	at := time.UnixMilli(int64(1000 * now[0].Value))
	reportSkew(all, skew(at, at, answered.sent, answered.received))
	pages, err := e.pages(ctx)
	if err != nil {
		all.skip("what it scrapes: "+err.Error(),
			"a query-only server does not list its targets; check the Prometheus behind it")
	} else {
		checkScrapes(all, pages)
	}
	e.series(ctx, all, pages)
}

// readsCluster reports whether the load generator reads a cluster's metrics from its Prometheus.
func (e *exam) readsCluster() bool {
	return e.snapshot != nil && slices.ContainsFunc(e.snapshot.Lanes, func(l api.LaneSnapshot) bool {
		return l.Cluster.Available && l.Cluster.Source == "prometheus"
	})
}

// page is a scrape target of Prometheus.
type page struct {
	Labels    map[string]string `json:"labels"`
	ScrapeURL string            `json:"scrapeUrl"`
	LastError string            `json:"lastError"`
	Health    string            `json:"health"` // up, down, unknown before the first scrape
	Interval  string            `json:"scrapeInterval"`
}

func (p page) name() string {
	return strings.TrimSpace(p.Labels["pod"] + " " + p.Labels["instance"])
}

// inNamespace reports whether a target is in a namespace; "" matches all.
func (p page) inNamespace(namespace string) bool {
	return namespace == "" || p.Labels["namespace"] == namespace
}

func (p page) interval() time.Duration {
	d, err := time.ParseDuration(p.Interval)
	if err != nil {
		return defaultInterval
	}
	return d
}

// pages returns all scrape targets.
func (e *exam) pages(ctx context.Context) ([]page, error) {
	base := e.prometheusURL()
	if base == "" {
		return nil, errors.New("no Prometheus")
	}
	a, err := e.get(ctx, base+"/api/v1/targets?state=active", "")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data struct {
			Active []page `json:"activeTargets"`
		} `json:"data"`
	}
	if err := a.read(&list); err != nil {
		return nil, err
	}
	if list.Data.Active == nil {
		return nil, errors.New("it lists no targets")
	}
	return list.Data.Active, nil
}

// checkScrapes adds a problem for each target that is down.
func checkScrapes(all *findings, pages []page) {
	down, waiting := 0, 0
	for _, p := range pages {
		switch p.Health {
		case "down":
			down++
			all.problem(fmt.Sprintf("it cannot scrape %s of job %s: %s", p.name(), p.Labels["job"], p.LastError),
				remedy(p))
		case "unknown":
			waiting++
		}
	}
	switch {
	case len(pages) == 0:
		all.problem("it has no scrape targets",
			"configure scrape_configs, or ServiceMonitors and PodMonitors that match its selectors")
	case waiting > 0:
		all.skip(fmt.Sprintf("%d of %d targets, which have not been scraped yet", waiting, len(pages)),
			"try again in a minute")
	case down == 0:
		all.ok(fmt.Sprintf("all %d targets are up", len(pages)))
	}
}

// remedy returns what to do about a target that cannot be scraped.
func remedy(p page) string {
	has := func(text string) bool { return strings.Contains(p.LastError, text) }
	switch {
	case has("connection refused"):
		text := "check that it runs and listens at " + p.ScrapeURL
		if strings.Contains(p.name()+p.Labels["job"], "worker") {
			text += " (a worker of Dynamo: DYN_SYSTEM_PORT)"
		}
		return text
	case has("deadline exceeded"), has("no route"), has("timeout"):
		return "check that it runs, and that no NetworkPolicy or firewall blocks Prometheus from " + p.ScrapeURL
	case has("404"):
		return "correct the port or path in the monitor or scrape_config: " + p.ScrapeURL + " has no metrics"
	case has("401"), has("403"):
		return "configure the token for that endpoint in Prometheus (the load generator's metrics_token)"
	}
	return "check what " + p.ScrapeURL + " returns"
}

// query makes an instant query. A scalar is returned as one sample without labels.
func (e *exam) query(ctx context.Context, text string) (model.Vector, answer, error) {
	a, err := e.get(ctx, e.prometheusURL()+"/api/v1/query?query="+url.QueryEscape(text), "")
	if err != nil {
		return nil, a, err
	}
	var response struct {
		Data struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := a.read(&response); err != nil {
		return nil, a, err
	}
	if response.Data.Type == model.ValScalar.String() {
		var scalar model.Scalar
		err = json.Unmarshal(response.Data.Result, &scalar)
		return model.Vector{{Value: scalar.Value}}, a, err
	}
	var all model.Vector
	err = json.Unmarshal(response.Data.Result, &all)
	return all, a, err
}

// needed is a group of series that the booth's screens require.
type needed struct {
	name     string
	query    string // age in seconds of the newest sample, by job and instance
	least    int    // expected number of targets
	remedy   string // what to do if the series are missing
	optional bool   // missing series are a warning, not a problem
}

// series checks whether the required series exist and are fresh.
func (e *exam) series(ctx context.Context, all *findings, pages []page) {
	wants := []needed{{
		name: "the load generator's series (loadgen_info)", query: age("", "loadgen_info"), least: 1,
		remedy: "let Prometheus scrape the load generator's /metrics with a ServiceMonitor or scrape_config",
	}}
	for _, l := range e.lanes() {
		if l.name == api.TwinLane && l.namespace == "" {
			all.skip("lane twin: its cluster's metrics are not read from Prometheus", "")
			continue
		}
		wants = append(wants, l.needs(e)...)
	}
	for _, w := range wants {
		e.checkSeries(ctx, all, w, pages)
	}
}

// needs returns the series of a lane's cluster.
func (l lane) needs(e *exam) []needed {
	in, selector, gpus := "", "", ""
	if l.namespace != "" {
		in = " in namespace " + l.namespace
		selector = fmt.Sprintf("{namespace=%q%s}", l.namespace, l.pods("pod"))
		gpus = fmt.Sprintf("{exported_namespace=%q%s}", l.namespace, l.pods("exported_pod"))
	}
	// A GPU in MIG mode has only the second one.
	ofGPUs := []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"}
	gpuAge := age(gpus, ofGPUs...)
	if gpus != "" {
		gpuAge += " or " + age(selector, ofGPUs...)
	}
	const monitor = "let Prometheus scrape it with a PodMonitor or scrape_config " +
		"whose namespace label matches prometheus.namespace"
	return []needed{
		{
			name: l.prefix(e) + "the frontend's series" + in,
			query: age(selector, "dynamo_frontend_model_total_kv_blocks", "dynamo_frontend_inflight_requests",
				"dynamo_frontend_requests_total"),
			least: 1, remedy: "if the target is a Dynamo: " + monitor,
		},
		{
			name: l.prefix(e) + "the workers' series" + in,
			query: age(selector, "dynamo_component_inflight_requests", "dynamo_component_requests_total",
				"trtllm_num_requests_running", "vllm:num_requests_running", "sglang:num_running_reqs"),
			least: max(1, l.workers), remedy: monitor + "; Dynamo's workers serve their metrics on DYN_SYSTEM_PORT",
		},
		{
			name: l.prefix(e) + "the DCGM GPU series" + in, query: gpuAge, least: 1, optional: true,
			remedy: "GPU panels will be empty: let Prometheus scrape the DCGM exporter, without honorLabels",
		},
	}
}

// pods returns a matcher for the pods of a lane's graph, if another lane's graph is in the same namespace.
func (l lane) pods(label string) string {
	if l.graph == "" {
		return ""
	}
	text := fmt.Sprintf(",%s=~%q", label, regexp.QuoteMeta(l.graph)+"-.+")
	if strings.HasPrefix(l.beside, l.graph+"-") {
		text += fmt.Sprintf(",%s!~%q", label, regexp.QuoteMeta(l.beside)+"-.+")
	}
	return text
}

// age returns a query for the age of the first of these metrics that a target has.
func age(selector string, names ...string) string {
	parts := []string{}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("min by (job, instance) (time() - timestamp(%s%s))", name, selector))
	}
	return strings.Join(parts, " or ")
}

func (e *exam) checkSeries(ctx context.Context, all *findings, w needed, pages []page) {
	found, _, err := e.query(ctx, w.query)
	var stale []string
	for _, s := range found {
		interval := defaultInterval
		i := slices.IndexFunc(pages, func(p page) bool {
			return p.Labels["job"] == string(s.Metric["job"]) && p.Labels["instance"] == string(s.Metric["instance"])
		})
		if i >= 0 {
			interval = pages[i].interval()
		}
		if float64(s.Value) > 3*interval.Seconds() {
			stale = append(stale, fmt.Sprintf("%s is %.0f s old", s.Metric["instance"], s.Value))
		}
	}
	report := all.problem
	if w.optional {
		report = all.warn
	}
	switch {
	case err != nil:
		all.skip(w.name+": "+err.Error(), "")
	case len(found) == 0:
		report(w.name+" are missing", w.remedy)
	case len(stale) > 0:
		report(w.name+" are stale: "+strings.Join(stale, ", "),
			"check that Prometheus keeps up, and that the endpoint still responds")
	case len(found) < w.least:
		report(fmt.Sprintf("%s: %d of %d endpoints have them", w.name, len(found), w.least), w.remedy)
	default:
		all.ok(fmt.Sprintf("%s: present and fresh, from %d endpoint(s)", w.name, len(found)))
	}
}
