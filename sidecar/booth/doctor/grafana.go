package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const (
	app            = "kvbooth-inference-app"
	dataSource     = "kvbooth-prometheus" // uid, as provisioned
	defaultGrafana = "http://127.0.0.1:3000"
	grafanaNeeded  = "12.2"
)

func (e *exam) grafana(ctx context.Context, all *findings) {
	base := strings.TrimRight(e.GrafanaURL, "/")
	guessed := base == ""
	if guessed {
		if e.TargetAlone && e.status == nil { // another program may listen at the default
			all.skip("Grafana: not checked without a load generator", "set --grafana-url")
			return
		}
		if !isLoopback(e.LoadgenURL) {
			all.skip("Grafana: its URL is unknown", "set --grafana-url")
			return
		}
		base = defaultGrafana
	}
	a, err := e.get(ctx, base+"/api/health", "")
	if err != nil {
		if guessed {
			all.skip(fmt.Sprintf("Grafana: %s is unreachable (%v)", base, err), "set --grafana-url")
			return
		}
		all.problem(fmt.Sprintf("%s is unreachable: %v", base, err), "start Grafana, or correct --grafana-url")
		return
	}
	if a.code/100 == 3 {
		all.problem(fmt.Sprintf("%s redirects to %s", base, a.header.Get("Location")),
			"include the sub-path in --grafana-url, and set GF_SERVER_ROOT_URL to the same address "+
				"with GF_SERVER_SERVE_FROM_SUB_PATH=true")
		return
	}
	var health struct{ Database, Version string }
	if err := a.read(&health); err != nil || health.Database == "" {
		all.problem(fmt.Sprintf("%s is not Grafana, or is unhealthy: %s", base, a.describe()),
			"set --grafana-url to the URL used in a browser, including any sub-path; see Grafana's log")
		return
	}
	if health.Database == "ok" {
		all.ok(base + " responds, and its database is healthy")
	} else {
		all.problem("its database is "+health.Database, "check Grafana's log, and whether its volume is full")
	}
	checkGrafanaVersion(all, health.Version)
	a.date(all)
	e.subPath(ctx, all, base)
	e.app(ctx, all, base)
	e.dataSource(ctx, all, base)
}

func checkGrafanaVersion(all *findings, version string) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		all.skip("its version, which it does not disclose", "the app needs Grafana "+grafanaNeeded)
		return
	}
	if major < 12 || major == 12 && minor < 2 {
		all.problem("its version is "+version, "the app needs Grafana "+grafanaNeeded+" or later")
		return
	}
	all.ok("its version is " + version)
}

var baseElement = regexp.MustCompile(`<base href="([^"]*)"`)

// subPath compares the path in the address with the path in Grafana's pages.
func (e *exam) subPath(ctx context.Context, all *findings, base string) {
	a, err := e.get(ctx, base+"/login", "")
	if err != nil {
		all.skip("its pages: "+err.Error(), "")
		return
	}
	if a.code/100 == 3 { // without a login, the home page has the path too
		a, err = e.get(ctx, base+"/", "")
	}
	found := baseElement.FindSubmatch(a.body)
	if err != nil || found == nil {
		all.skip("its pages: "+a.describe(), "")
		return
	}
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // Options.Check has parsed it
	}
	want, has := strings.TrimRight(u.Path, "/")+"/", string(found[1])
	if !strings.HasSuffix(has, want) {
		all.problem(fmt.Sprintf("its pages expect the path %s but are served under %s: "+
			"browsers cannot load its scripts", has, want),
			"set GF_SERVER_ROOT_URL to the URL used in a browser, and GF_SERVER_SERVE_FROM_SUB_PATH=true if it has a path")
		return
	}
	all.ok("its pages are served under " + has)
}

func (e *exam) app(ctx context.Context, all *findings, base string) {
	e.healthOf(ctx, all, "the app", base+"/api/plugins/"+app, func() {
		all.problem("the app "+app+" is not installed or not enabled",
			"install it into Grafana's plugins directory, "+
				"allow it (GF_PLUGINS_ALLOW_LOADING_UNSIGNED_PLUGINS="+app+"), and provision it")
	}, "open its configuration page (/plugins/"+app+"), correct URL and token, and press Test connection")
}

func (e *exam) dataSource(ctx context.Context, all *findings, base string) {
	e.healthOf(ctx, all, "the data source", base+"/api/datasources/uid/"+dataSource, func() {
		all.warn("no data source has the UID "+dataSource,
			"provision it, or select your own Prometheus in the dashboards' variable")
	}, "correct the URL of the data source (KVBOOTH_PROMETHEUS_URL)")
}

// healthOf reports the health of a part of Grafana. absent is called if the part does not exist; do is the remedy if
// it is unhealthy.
func (e *exam) healthOf(ctx context.Context, all *findings, part, address string, absent func(), do string) {
	a, err := e.get(ctx, address+"/health", e.GrafanaToken)
	switch {
	case err != nil:
		all.skip(part+": "+err.Error(), "")
		return
	case a.code == http.StatusUnauthorized || a.code == http.StatusForbidden:
		all.skip(fmt.Sprintf("%s: Grafana requires a login (%d)", part, a.code),
			"set GRAFANA_TOKEN to the token of a service account")
		return
	case a.code == http.StatusNotFound:
		absent()
		return
	}
	var health struct{ Status, Message string } // present with any status code
	err = json.Unmarshal(a.body, &health)
	if err == nil && a.code == http.StatusOK && strings.EqualFold(health.Status, "ok") {
		all.ok(part + ": " + health.Message)
		return
	}
	all.problem(part+": "+cmp.Or(health.Message, a.describe()), do)
}
