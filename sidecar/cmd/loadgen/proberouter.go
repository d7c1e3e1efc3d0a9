package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/cluster/probe"
)

// probeRouters looks at the router of each arm, or of the target, and prints what it finds. The error is a notStarted.
func probeRouters(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	type result struct {
		Program  string          `json:"program"`
		Arm      string          `json:"arm,omitempty"`
		URL      string          `json:"url"`
		Report   probe.Report    `json:"report"`
		Findings []probe.Finding `json:"findings"`
	}
	var all []result
	for _, at := range addressed(conf) {
		report, err := probeRouter(ctx, at.conf, probe.Options{Engines: conf.Probe.Engines})
		if err != nil {
			return notStarted{err}
		}
		all = append(all, result{api.Program(), at.arm, at.conf.Target.URL, report, report.Findings()})
		if conf.Probe.Format == "text" {
			printProbe(stdout, at.arm, at.conf.Target.URL, &report)
		}
	}
	if conf.Probe.Format == "text" {
		return nil
	}
	return writeJSON(stdout, all)
}

// address is an address that turns are sent to, with the configuration for it.
type address struct {
	arm  string // empty: there are no arms
	conf *config.Config
}

// addressed returns the addresses of a configuration: those of its arms or modes, or the target alone.
func addressed(conf *config.Config) (all []address) {
	for _, a := range conf.Mode.Addresses() {
		at, _ := conf.At(a)
		all = append(all, address{a.State.Text(), at})
	}
	if all == nil {
		all = []address{{"", conf}}
	}
	return all
}

// probeRouter looks at the router of one address. Without engines, it finds those among the pages of the cluster.
func probeRouter(ctx context.Context, conf *config.Config, o probe.Options) (_ probe.Report, err error) {
	if o.Chat, err = chatOptions(targetOptions(conf), conf.Target.APIKey, conf.Target.Opened); err != nil {
		return probe.Report{}, err
	}
	if len(o.Engines) == 0 {
		own, _ := url.Parse(conf.Target.URL)
		pages := slices.DeleteFunc(slices.Clone(conf.Cluster.MetricsURLs), func(page string) bool {
			u, err := url.Parse(page)
			return err == nil && own != nil && u.Host == own.Host
		})
		o.Engines = probe.FindEngines(ctx, &http.Client{Timeout: 3 * time.Second}, pages)
	}
	return probe.Run(ctx, o)
}

// lookTimeout bounds the look at a router before a trial, which takes up to 17 s in front of real engines.
const lookTimeout = 30 * time.Second

// lookAtRouters returns a function that looks at the routers of arms with addresses of their own, and says of each what
// has no effect, or is not known. A router that is not recognized, or does not answer, costs no time: the trial itself
// reports one that does not serve.
func lookAtRouters(conf *config.Config) func(context.Context, []api.ModeState) []string {
	return func(ctx context.Context, arms []api.ModeState) (all []string) {
		for _, at := range addressed(conf) {
			if !slices.ContainsFunc(arms, func(m api.ModeState) bool { return m.Text() == at.arm }) {
				continue
			}
			timed, cancel := context.WithTimeout(ctx, lookTimeout)
			report, err := probeRouter(timed, at.conf, probe.Options{RecognizedOnly: true})
			cancel()
			if err != nil || report.Router == "" {
				continue
			}
			lines := []string{fmt.Sprintf("%s is %s", at.arm, report.Router)}
			for _, f := range report.Findings() {
				if f.Verdict != probe.Yes {
					lines = append(lines, f.Text)
				}
			}
			all = append(all, strings.Join(lines, "; "))
		}
		return all
	}
}

// marks are what a line of the result begins with.
var marks = map[probe.Verdict]string{probe.Yes: "yes", probe.No: "no", probe.Unclear: "?"}

func printProbe(w io.Writer, arm, address string, r *probe.Report) {
	if arm != "" {
		arm += ", "
	}
	router := r.Router
	if router == "" {
		router = "no router is recognized"
	}
	fmt.Fprintf(w, "%s%s: %s (%.1f s)\n", arm, api.Printable(address), router, r.Seconds)
	for _, f := range r.Findings() {
		fmt.Fprintf(w, "  %-4s %s\n", marks[f.Verdict], f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(w, "       %s\n", f.Remedy)
		}
	}
}
