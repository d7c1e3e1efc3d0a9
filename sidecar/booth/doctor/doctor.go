// Package doctor looks at a booth and its cluster before an event: the load generator, its
// targets, Prometheus, Grafana and Kubernetes. Each finding says what was found and what to do.
// It changes nothing; a target without a workload gets a few short requests.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/kubernetes"
)

// NotChecked is the severity of what could not be looked at. It never counts as well.
const NotChecked kubernetes.Severity = "not checked"

// The sections of a report.
const (
	LoadGenerator = "Load generator"
	Target        = "Target"
	Prometheus    = "Prometheus"
	Grafana       = "Grafana"
	Kubernetes    = "Kubernetes"
)

// How long the parts of an examination may take: the load generator, which is asked first, then
// the others at once.
const (
	firstWithin  = 5 * time.Second
	othersWithin = 13 * time.Second
	callWithin   = 4 * time.Second
)

// Options say what to look at. An empty URL is taken from the load generator.
type Options struct {
	LoadgenURL    string
	Token         string // of the load generator; empty: none
	TargetURL     string // with or without /v1
	TargetKey     string // that lane main's target wants; empty: none
	TwinKey       string // that lane twin's target wants; empty: none
	PrometheusURL string
	GrafanaURL    string
	GrafanaToken  string // of a service account; empty: what everybody sees
	Version       string // of this program, which the load generator's is compared with

	Kubernetes bool // look there, even if the load generator does not say that it is there
	Kubeconfig string
	Context    string
	Namespace  string   // of the booth
	Graphs     []string // NAME or NAMESPACE/NAME; none: the load generator's
	Secrets    []string // that must be in Namespace, with data
	GPUs       *int64   // that must be free; nil: what the graphs ask for and do not have yet

	// Progress hears when a section begins and ends, from several goroutines; may be nil.
	Progress func(section string, done bool)
}

// Report is what was found.
type Report struct {
	Sections   []Section `json:"sections"`
	OK         int       `json:"ok"`
	Warnings   int       `json:"warnings"`
	Problems   int       `json:"problems"`
	NotChecked int       `json:"not_checked"`
}

// Section is what was found of one part, in the order in which it was looked at.
type Section struct {
	Name     string               `json:"name"`
	Findings []kubernetes.Finding `json:"findings"`
}

// Check refuses options that name nothing: an [api.FieldError].
func (o Options) Check() error {
	urls := []struct{ field, value string }{
		{"loadgen-url", o.LoadgenURL}, {"target-url", o.TargetURL}, {"prometheus-url", o.PrometheusURL}, {"grafana-url", o.GrafanaURL},
	}
	for i, u := range urls {
		if u.value == "" && i > 0 {
			continue
		}
		if parsed, err := url.Parse(u.value); err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
			return api.Refuse(u.field, "the value", "an http:// or https:// URL with a host, optional port and path, and no password") // which it may hold
		}
	}
	if len(o.Token) > api.MaxToken {
		return api.Refuse("token", fmt.Sprintf("a token of %d characters", len(o.Token)), fmt.Sprintf("at most %d characters", api.MaxToken))
	}
	if o.GPUs != nil && *o.GPUs < 0 {
		return api.Refuse("gpus", *o.GPUs, "at least 0")
	}
	if o.Kubeconfig != "" {
		if _, err := os.Stat(o.Kubeconfig); err != nil {
			return api.Refuse("kubeconfig", o.Kubeconfig, fmt.Sprintf("a file (%v)", err))
		}
	}
	return o.checkNames()
}

// checkNames refuses what is no name of a graph or a Secret.
func (o Options) checkNames() error {
	for _, g := range o.Graphs {
		if ns, name, both := strings.Cut(g, "/"); ns == "" || both && (name == "" || strings.Contains(name, "/")) {
			return api.Refuse("graph", g, "NAME or NAMESPACE/NAME")
		}
	}
	for _, s := range o.Secrets {
		if s == "" || strings.Contains(s, "/") {
			return api.Refuse("secret", s, "the name of a Secret in --namespace")
		}
	}
	return nil
}

// Examine looks at everything and reports in less than 20 s, earlier where ctx ends. The error
// is that of [Options.Check]; whatever else goes wrong is a finding.
func Examine(ctx context.Context, o Options) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	e := &exam{Options: o, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: callWithin}).DialContext},
	}}
	defer e.http.CloseIdleConnections()
	parts := []struct {
		name string
		look func(context.Context, *findings)
	}{{LoadGenerator, e.loadgen}, {Target, e.targets}, {Prometheus, e.prometheus}, {Grafana, e.grafana}, {Kubernetes, e.kubernetes}}
	r := Report{Sections: make([]Section, len(parts))}
	look := func(i int, within time.Duration) {
		e.progress(parts[i].name, false)
		defer e.progress(parts[i].name, true)
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		all := findings{}
		parts[i].look(ctx, &all)
		r.Sections[i] = Section{parts[i].name, all}
	}
	look(0, firstWithin)
	var wg sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		wg.Go(func() { look(i, othersWithin) })
	}
	wg.Wait()
	r.count()
	return r, nil
}

func (r *Report) count() {
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			switch f.Severity {
			case kubernetes.Good:
				r.OK++
			case kubernetes.Warning:
				r.Warnings++
			case kubernetes.Problem:
				r.Problems++
			default:
				r.NotChecked++
			}
		}
	}
}

// exam is one examination. What the load generator told is set before the other parts begin.
type exam struct {
	Options
	http     *http.Client
	status   *api.Status   // nil: it did not tell
	snapshot *api.Snapshot // nil: it did not tell
}

func (e *exam) progress(section string, done bool) {
	if e.Progress != nil {
		e.Progress(section, done)
	}
}

// conf is a value of the load generator's configuration, "" where it is not known.
func (e *exam) conf(field string) string {
	if e.status == nil {
		return ""
	}
	return e.status.Config[field]
}

// lane is a target with what the load generator tells of it.
type lane struct {
	name, url string
	base      *url.URL // of the API
	model     string   // that is asked for; "": the first one that is served
	namespace string   // of its series in Prometheus
	graph     string   // that its series are of, where another lane's is in the same namespace
	beside    string   // the other lane's
	workers   int      // that should serve; 0: not known
	mode      api.Mode
	seen      bool              // the load generator reaches it
	live      *api.LaneSnapshot // nil: not told
}

// lanes are those of the load generator, or what the flags tell without it. Their order is that
// of the status.
func (e *exam) lanes() (all []lane) {
	if e.status == nil {
		if e.TargetURL == "" {
			return nil
		}
		l := lane{name: api.DefaultLane, base: &url.URL{}}
		l.reachAt(e.TargetURL, "")
		return []lane{l}
	}
	for i, s := range e.status.Lanes {
		l := lane{
			name: s.Name, base: &url.URL{}, model: s.Target.Model, workers: s.Target.Deployment.Workers,
			mode: s.State.Mode, seen: s.Target.Reachable, namespace: e.conf("prometheus.namespace"),
		}
		if l.namespace == e.conf("twin.prometheus.namespace") {
			l.graph, l.beside = e.graphs()
		}
		reached := cmp.Or(s.Target.Endpoint, s.Target.URL) + "/v1"
		if s.Name == api.TwinLane {
			l.namespace = e.conf("twin.prometheus.namespace")
			l.graph, l.beside = l.beside, l.graph
			l.reachAt(reached, e.conf("twin.target.url"))
		} else {
			l.reachAt(reached, e.conf("target.url"))
			l.reachAt(e.TargetURL, "")
		}
		if e.snapshot != nil && i < len(e.snapshot.Lanes) {
			l.live = &e.snapshot.Lanes[i]
		}
		all = append(all, l)
	}
	return all
}

// graphs are the DynamoGraphDeployments of the lane main and of the twin; "" where one is not known.
func (e *exam) graphs() (main, twin string) {
	return cmp.Or(e.conf("mode.kubernetes.name"), kubernetes.GraphOf(e.conf("target.url"))),
		cmp.Or(e.conf("twin.mode.kubernetes.name"), kubernetes.GraphOf(e.conf("twin.target.url")))
}

// reachAt sets the address of a lane, which stays as it is where there is none. Where it is the one of the configuration,
// that says the path and the query of the API.
func (l *lane) reachAt(address, configured string) {
	u, err := api.ParseTarget(address)
	if err != nil {
		return
	}
	if known, err := api.ParseTarget(configured); err == nil && api.TargetRoot(known).String() == api.TargetRoot(u).String() {
		u = known
	}
	l.url, l.base = api.TargetRoot(u).String(), u
}

// at is the address of one of the API's paths.
func (l lane) at(path string) string { return l.base.JoinPath(path).String() }

// of names a lane where there are two.
func (l lane) of(e *exam) string {
	if e.status == nil || len(e.status.Lanes) < 2 {
		return ""
	}
	return "lane " + l.name + ": "
}

// findings are collected by one goroutine.
type findings []kubernetes.Finding

func (f *findings) add(s kubernetes.Severity, found, do string) {
	*f = append(*f, kubernetes.Finding{Severity: s, Found: found, Do: do})
}

func (f *findings) ok(found string)          { f.add(kubernetes.Good, found, "") }
func (f *findings) warn(found, do string)    { f.add(kubernetes.Warning, found, do) }
func (f *findings) problem(found, do string) { f.add(kubernetes.Problem, found, do) }
func (f *findings) skip(why, do string)      { f.add(NotChecked, why, do) }

// isLoopback says whether an address is one of this machine alone.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
