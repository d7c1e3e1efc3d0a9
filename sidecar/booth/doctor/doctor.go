// Package doctor checks a booth and its cluster before an event: the load generator, its targets, Prometheus, Grafana
// and Kubernetes. Each finding says what was found and what to do. It changes nothing; a target without a workload
// gets a few short requests.
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
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

// NotChecked is the severity of something that could not be checked. It never counts as ok.
const NotChecked kubernetes.Severity = "not checked"

// The sections of a report.
const (
	LoadGenerator = "Load generator"
	Target        = "Target"
	Prometheus    = "Prometheus"
	Grafana       = "Grafana"
	Kubernetes    = "Kubernetes"
)

// Timeouts of an examination: for the load generator, which is examined first, for the other parts, which are examined
// concurrently, and for a single request.
const (
	loadgenTimeout = 5 * time.Second
	partTimeout    = 13 * time.Second
	routerTimeout  = 25 * time.Second // more for what the router does with prompts
	callTimeout    = 4 * time.Second
)

// Options configure an examination. An empty URL is taken from the load generator's configuration.
type Options struct {
	LoadgenURL    string
	TargetAlone   bool   // examine TargetURL alone where no load generator responds
	Token         string // the load generator's token; "" for none
	TargetURL     string // with or without /v1
	TargetKey     string // API key for the target of lane main; "" for none
	TwinKey       string // API key for the target of lane twin; "" for none
	PrometheusURL string
	GrafanaURL    string
	GrafanaToken  string // token of a service account; "" uses anonymous access
	Version       string // version of this program, to compare with the load generator's

	Router bool // look at what the router of an idle target does, with some dozens of requests

	Kubernetes bool // examine Kubernetes even if the load generator does not use it
	Kubeconfig string
	Context    string
	Namespace  string   // Kubernetes namespace of the booth
	Graphs     []string // NAME or NAMESPACE/NAME; empty means those of the load generator
	Secrets    []string // required in Namespace, with data
	GPUs       *int64   // required number of free GPUs; nil means those that the graphs request and do not have yet

	// Progress, if set, is called when a section begins and ends, from several goroutines.
	Progress func(section string, done bool)
}

// Report is the result of an examination.
type Report struct {
	Sections   []Section `json:"sections"`
	OK         int       `json:"ok"`
	Warnings   int       `json:"warnings"`
	Problems   int       `json:"problems"`
	NotChecked int       `json:"not_checked"`
}

// Section holds the findings on one part, in the order of the checks.
type Section struct {
	Name     string               `json:"name"`
	Findings []kubernetes.Finding `json:"findings"`
}

// Check returns an [api.FieldError] for invalid options, or nil.
func (o Options) Check() error {
	urls := []struct{ field, value string }{
		{"loadgen-url", o.LoadgenURL},
		{"target-url", o.TargetURL},
		{"prometheus-url", o.PrometheusURL},
		{"grafana-url", o.GrafanaURL},
	}
	for i, u := range urls {
		if u.value == "" && i > 0 {
			continue
		}
		if !validURL(u.value) {
			// The message omits the value, which may contain a password.
			return api.Refuse(u.field, "the value",
				"an http:// or https:// URL with a host, optional port and path, and no password")
		}
	}
	if len(o.Token) > api.MaxToken {
		return api.Refuse("token", fmt.Sprintf("a token of %d characters", len(o.Token)),
			fmt.Sprintf("at most %d characters", api.MaxToken))
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

// validURL reports whether a value is an HTTP URL with a host and without a user.
func validURL(value string) bool {
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// checkNames returns an error for invalid names of graphs and Secrets.
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

// Examine examines all parts. It returns after less than 20 s, or when ctx ends. Invalid options give the error of
// [Options.Check]. Every other failure is a finding of the report.
func Examine(ctx context.Context, o Options) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	e := &exam{Options: o, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: callTimeout}).DialContext,
		},
	}}
	defer e.http.CloseIdleConnections()
	parts := []struct {
		name    string
		examine func(context.Context, *findings)
	}{
		{LoadGenerator, e.loadgen},
		{Target, e.targets},
		{Prometheus, e.prometheus},
		{Grafana, e.grafana},
		{Kubernetes, e.kubernetes},
	}
	r := Report{Sections: make([]Section, len(parts))}
	examine := func(i int, timeout time.Duration) {
		e.progress(parts[i].name, false)
		defer e.progress(parts[i].name, true)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		all := findings{}
		parts[i].examine(ctx, &all)
		r.Sections[i] = Section{parts[i].name, all}
	}
	examine(0, loadgenTimeout)
	var wg sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		timeout := partTimeout
		if parts[i].name == Target && e.Router {
			timeout += routerTimeout
		}
		wg.Go(func() { examine(i, timeout) })
	}
	wg.Wait()
	r.count()
	return r, nil
}

// count counts the findings by severity.
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

// exam is one examination. The load generator's status and snapshot are set before the other parts begin.
type exam struct {
	Options
	http     *http.Client
	status   *api.Status   // nil if unknown
	snapshot *api.Snapshot // nil if unknown
}

func (e *exam) progress(section string, done bool) {
	if e.Progress != nil {
		e.Progress(section, done)
	}
}

// setting returns a value of the load generator's configuration, or "" if it is unknown.
func (e *exam) setting(field string) string {
	if e.status == nil {
		return ""
	}
	return e.status.Config[field]
}

// lane is a target with the load generator's information on it.
type lane struct {
	name, url string
	base      *url.URL // base URL of the API
	model     string   // requested model; "" means the first one served
	namespace string   // namespace of its series in Prometheus
	graph     string   // its graph, set if another lane's graph is in the same namespace
	beside    string   // the other lane's graph
	workers   int      // expected number; 0 means unknown
	mode      api.Mode
	seen      bool              // reachable for the load generator
	live      *api.LaneSnapshot // nil if unknown
}

// lanes returns the lanes of the load generator in the order of its status. Without a status, it returns the target of
// the flags.
func (e *exam) lanes() (all []lane) {
	if e.status == nil {
		if e.TargetURL == "" {
			return nil
		}
		l := lane{name: api.DefaultLane, base: &url.URL{}}
		l.setAddress(e.TargetURL, "")
		return []lane{l}
	}
	for i, s := range e.status.Lanes {
		l := lane{
			name: s.Name, base: &url.URL{}, model: s.Target.Model, workers: s.Target.Deployment.Workers,
			mode: s.State.Mode, seen: s.Target.Reachable, namespace: e.setting("prometheus.namespace"),
		}
		if l.namespace == e.setting("twin.prometheus.namespace") {
			l.graph, l.beside = e.graphs()
		}
		reached := cmp.Or(s.Target.Endpoint, s.Target.URL) + "/v1"
		if s.Name == api.TwinLane {
			l.namespace = e.setting("twin.prometheus.namespace")
			l.graph, l.beside = l.beside, l.graph
			l.setAddress(reached, e.setting("twin.target.url"))
		} else {
			l.setAddress(reached, e.setting("target.url"))
			l.setAddress(e.TargetURL, "")
		}
		if e.snapshot != nil && i < len(e.snapshot.Lanes) {
			l.live = &e.snapshot.Lanes[i]
		}
		all = append(all, l)
	}
	return all
}

// graphs returns the DynamoGraphDeployments of the lanes main and twin; "" for an unknown one.
func (e *exam) graphs() (main, twin string) {
	return cmp.Or(e.setting("mode.kubernetes.name"), kubernetes.GraphOf(e.setting("target.url"))),
		cmp.Or(e.setting("twin.mode.kubernetes.name"), kubernetes.GraphOf(e.setting("twin.target.url")))
}

// setAddress sets the address of a lane; an invalid address has no effect. If the configured URL has the same root, its
// path and query are used too.
func (l *lane) setAddress(address, configured string) {
	u, err := api.ParseTarget(address)
	if err != nil {
		return
	}
	known, err := api.ParseTarget(configured)
	if err == nil && api.TargetRoot(known).String() == api.TargetRoot(u).String() {
		u = known
	}
	l.url, l.base = api.TargetRoot(u).String(), u
}

// at returns the URL of a path of the API.
func (l lane) at(path string) string { return l.base.JoinPath(path).String() }

// prefix returns a prefix with the lane's name if there are two lanes.
func (l lane) prefix(e *exam) string {
	if e.status == nil || len(e.status.Lanes) < 2 {
		return ""
	}
	return "lane " + l.name + ": "
}

// findings collects findings. It is not safe for concurrent use.
type findings []kubernetes.Finding

func (f *findings) add(s kubernetes.Severity, found, do string) {
	*f = append(*f, kubernetes.Finding{Severity: s, Found: found, Do: do})
}

func (f *findings) ok(found string)          { f.add(kubernetes.Good, found, "") }
func (f *findings) warn(found, do string)    { f.add(kubernetes.Warning, found, do) }
func (f *findings) problem(found, do string) { f.add(kubernetes.Problem, found, do) }
func (f *findings) skip(why, do string)      { f.add(NotChecked, why, do) }

// isLoopback reports whether a URL points to this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
