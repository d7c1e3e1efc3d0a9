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
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// defaultInterval is Prometheus' own, where it does not tell one.
const defaultInterval = time.Minute

// prometheusURL is where Prometheus is, "" where nobody said.
func (e *exam) prometheusURL() string {
	return strings.TrimRight(cmp.Or(e.PrometheusURL, e.conf("prometheus.url")), "/")
}

func (e *exam) prometheus(ctx context.Context, all *findings) {
	base := e.prometheusURL()
	if base == "" {
		if e.status == nil {
			all.skip("Prometheus: its URL is unknown", "set --prometheus-url")
			return
		}
		all.skip("Prometheus: not configured; the load generator scrapes the cluster's metrics from the target itself", "set prometheus.url or --prometheus-url; the dashboards need it")
		return
	}
	now, answered, err := e.query(ctx, "time()")
	switch {
	case err != nil && e.PrometheusURL == "" && e.seesCluster() && !isLoopback(base): // see target
		all.skip(fmt.Sprintf("%s is unreachable from here (%v), although the load generator reaches it", base, err), "run this where the load generator runs, or forward its port and set --prometheus-url")
		return
	case err != nil || len(now) != 1:
		all.problem(fmt.Sprintf("no Prometheus responds at %s: %v", base, cmp.Or(err, errors.New("it does not report its time"))), "start it, or correct prometheus.url (--prometheus-url)")
		return
	}
	all.ok(base + " responds")
	at := time.UnixMilli(int64(1000 * now[0].value))
	tellSkew(all, skew(at, at, answered.sent, answered.received))
	pages, err := e.pages(ctx)
	if err != nil {
		all.skip("what it scrapes: "+err.Error(), "a query-only server does not list its targets; check the Prometheus behind it")
	} else {
		lookPages(all, pages)
	}
	e.series(ctx, all, pages)
}

// seesCluster says whether the load generator gets a cluster's metrics from its Prometheus.
func (e *exam) seesCluster() bool {
	return e.snapshot != nil && slices.ContainsFunc(e.snapshot.Lanes, func(l api.LaneSnapshot) bool {
		return l.Cluster.Available && l.Cluster.Source == "prometheus"
	})
}

// page is a target of Prometheus.
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

// is says whether a page belongs to a namespace; "" is all.
func (p page) is(namespace string) bool { return namespace == "" || p.Labels["namespace"] == namespace }

func (p page) interval() time.Duration {
	d, err := time.ParseDuration(p.Interval)
	if err != nil {
		return defaultInterval
	}
	return d
}

// pages are all that Prometheus scrapes.
func (e *exam) pages(ctx context.Context) ([]page, error) {
	base := e.prometheusURL()
	if base == "" {
		return nil, errors.New("no Prometheus")
	}
	a, err := e.get(ctx, base+"/api/v1/targets?state=active", "")
	if err != nil {
		return nil, err
	}
	var told struct {
		Data struct {
			Active []page `json:"activeTargets"`
		} `json:"data"`
	}
	if err := a.read(&told); err != nil {
		return nil, err
	}
	if told.Data.Active == nil {
		return nil, errors.New("it lists no targets")
	}
	return told.Data.Active, nil
}

// lookPages names the pages that are down.
func lookPages(all *findings, pages []page) {
	down, waiting := 0, 0
	for _, p := range pages {
		switch p.Health {
		case "down":
			down++
			all.problem(fmt.Sprintf("it cannot scrape %s of job %s: %s", p.name(), p.Labels["job"], p.LastError), remedy(p))
		case "unknown":
			waiting++
		}
	}
	switch {
	case len(pages) == 0:
		all.problem("it has no scrape targets", "configure scrape_configs, or ServiceMonitors and PodMonitors that match its selectors")
	case waiting > 0:
		all.skip(fmt.Sprintf("%d of %d targets, which have not been scraped yet", waiting, len(pages)), "try again in a minute")
	case down == 0:
		all.ok(fmt.Sprintf("all %d targets are up", len(pages)))
	}
}

// remedy is what to do about a page that cannot be scraped.
func remedy(p page) string {
	switch reason := p.LastError; {
	case strings.Contains(reason, "connection refused"):
		return "check that it runs and listens at " + p.ScrapeURL + " (a worker of Dynamo: DYN_SYSTEM_PORT)"
	case strings.Contains(reason, "deadline exceeded"), strings.Contains(reason, "no route"), strings.Contains(reason, "timeout"):
		return "check that it runs, and that no NetworkPolicy or firewall blocks Prometheus from " + p.ScrapeURL
	case strings.Contains(reason, "404"):
		return "correct the port or path in the monitor or scrape_config: " + p.ScrapeURL + " has no metrics"
	case strings.Contains(reason, "401"), strings.Contains(reason, "403"):
		return "configure the token for that endpoint in Prometheus (the load generator's metrics_token)"
	}
	return "check what " + p.ScrapeURL + " returns"
}

// sample is one series of an instant query.
type sample struct {
	labels map[string]string
	value  float64
}

func (e *exam) query(ctx context.Context, text string) ([]sample, answer, error) {
	a, err := e.get(ctx, e.prometheusURL()+"/api/v1/query?query="+url.QueryEscape(text), "")
	if err != nil {
		return nil, a, err
	}
	var told struct {
		Data struct {
			Type   string     `json:"resultType"`
			Result jsonResult `json:"result"`
		} `json:"data"`
	}
	err = a.read(&told)
	return told.Data.Result, a, err
}

// needed is a group of series that the booth's screens are made of.
type needed struct {
	what  string
	query string // age in seconds of the newest sample, by job and instance
	least int    // pages that should have it
	none  string // what to do where nobody has it
	bare  bool   // without them there is less to see, no more
}

// series looks whether what the booth needs is there, and fresh.
func (e *exam) series(ctx context.Context, all *findings, pages []page) {
	wants := []needed{{
		what: "the load generator's series (loadgen_info)", query: age("", "loadgen_info"), least: 1,
		none: "let Prometheus scrape the load generator's /metrics with a ServiceMonitor or scrape_config",
	}}
	for _, l := range e.lanes() {
		if l.name == api.TwinLane && l.namespace == "" {
			all.skip("lane twin: its cluster's metrics are not read from Prometheus", "")
			continue
		}
		wants = append(wants, l.needs(e)...)
	}
	for _, w := range wants {
		e.lookSeries(ctx, all, w, pages)
	}
}

// needs are the series of a lane's cluster.
func (l lane) needs(e *exam) []needed {
	in, selector, gpus := "", "", ""
	if l.namespace != "" {
		in = " in namespace " + l.namespace
		selector = fmt.Sprintf("{namespace=%q%s}", l.namespace, l.pods("pod"))
		gpus = fmt.Sprintf("{exported_namespace=%q%s}", l.namespace, l.pods("exported_pod"))
	}
	ofGPUs := []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"} // of a GPU in MIG mode the latter alone
	gpuAge := age(gpus, ofGPUs...)
	if gpus != "" {
		gpuAge += " or " + age(selector, ofGPUs...)
	}
	const monitor = "let Prometheus scrape it with a PodMonitor or scrape_config whose namespace label matches prometheus.namespace"
	return []needed{
		{l.of(e) + "the frontend's series" + in, age(selector, "dynamo_frontend_model_total_kv_blocks", "dynamo_frontend_inflight_requests", "dynamo_frontend_requests_total"), 1, "if the target is a Dynamo: " + monitor, false},
		{l.of(e) + "the workers' series" + in, age(selector, "dynamo_component_inflight_requests", "dynamo_component_requests_total", "trtllm_num_requests_running", "vllm:num_requests_running", "sglang:num_running_reqs"), max(1, l.workers), monitor + "; Dynamo's workers serve their metrics on DYN_SYSTEM_PORT", false},
		{l.of(e) + "the DCGM GPU series" + in, gpuAge, 1, "GPU panels will be empty: let Prometheus scrape the DCGM exporter, without honorLabels", true},
	}
}

// pods matches those of a lane's graph where another lane's is in the same namespace.
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

// age is a query for the age of the first of these metrics that a page has.
func age(selector string, names ...string) string {
	parts := []string{}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("min by (job, instance) (time() - timestamp(%s%s))", name, selector))
	}
	return strings.Join(parts, " or ")
}

func (e *exam) lookSeries(ctx context.Context, all *findings, w needed, pages []page) {
	found, _, err := e.query(ctx, w.query)
	var stale []string
	for _, s := range found {
		interval := defaultInterval
		if i := slices.IndexFunc(pages, func(p page) bool {
			return p.Labels["job"] == s.labels["job"] && p.Labels["instance"] == s.labels["instance"]
		}); i >= 0 {
			interval = pages[i].interval()
		}
		if s.value > 3*interval.Seconds() {
			stale = append(stale, fmt.Sprintf("%s is %.0f s old", s.labels["instance"], s.value))
		}
	}
	report := all.problem
	if w.bare {
		report = all.warn
	}
	switch {
	case err != nil:
		all.skip(w.what+": "+err.Error(), "")
	case len(found) == 0:
		report(w.what+" are missing", w.none)
	case len(stale) > 0:
		report(w.what+" are stale: "+strings.Join(stale, ", "), "check that Prometheus keeps up, and that the endpoint still responds")
	case len(found) < w.least:
		report(fmt.Sprintf("%s: %d of %d endpoints have them", w.what, len(found), w.least), w.none)
	default:
		all.ok(fmt.Sprintf("%s: present and fresh, from %d endpoint(s)", w.what, len(found)))
	}
}

// number reads a value as the API writes it.
func number(v any) float64 {
	text, _ := v.(string)
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// jsonResult is a vector, or a scalar, which becomes one sample without labels.
type jsonResult []sample

// UnmarshalJSON reads either.
func (r *jsonResult) UnmarshalJSON(text []byte) error {
	var vector []struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	if err := json.Unmarshal(text, &vector); err == nil {
		for _, v := range vector {
			*r = append(*r, sample{v.Metric, number(v.Value[1])})
		}
		return nil
	}
	var scalar [2]any
	if err := json.Unmarshal(text, &scalar); err != nil {
		return err
	}
	*r = append(*r, sample{value: number(scalar[1])})
	return nil
}
