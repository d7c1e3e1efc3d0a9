package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
)

// errUnwell is the end of an examination that found a problem, which has been printed.
var errUnwell = errors.New("not ready for an event; what to do stands below each problem")

// doctorCmd is `booth doctor`.
type doctorCmd struct {
	LoadgenURL    string `name:"loadgen-url" default:"http://127.0.0.1:8088" placeholder:"URL" help:"Address of the load generator."`
	TokenFile     string `placeholder:"FILE" help:"File with the load generator's token. Without it, KVBOOTH_TOKEN, if that is set."`
	TargetURL     string `name:"target-url" placeholder:"URL" help:"Address of lane main's target. Without it, the one that the load generator uses. LOADGEN_TARGET_API_KEY is its key, if it wants one."`
	PrometheusURL string `name:"prometheus-url" placeholder:"URL" help:"Address of Prometheus. Without it, the one that the load generator uses."`
	GrafanaURL    string `name:"grafana-url" placeholder:"URL" help:"Address of Grafana as a browser has it, with its sub-path. Without it, http://127.0.0.1:3000 where the load generator is on this machine. GRAFANA_TOKEN is the token of a service account, if it wants one."`

	Kubernetes bool     `help:"Look at the Kubernetes cluster, too. It is looked at without this where the load generator switches modes there, or where one of the following flags is given."`
	Kubeconfig string   `placeholder:"FILE" help:"Credentials for the API server. Without it, the load generator's setting, those of the pod, or those that kubectl takes."`
	Context    string   `placeholder:"NAME" help:"Context in the kubeconfig. Without it, its current one."`
	Namespace  string   `placeholder:"NAME" help:"Namespace of the booth. Without it, that of the credentials."`
	Graph      []string `placeholder:"NAME" help:"DynamoGraphDeployment, as NAME or NAMESPACE/NAME; may be given several times. Without it, those of the load generator."`
	Secret     []string `placeholder:"NAME" help:"Secret that must be in the namespace, with data; may be given several times."`
	GPUs       *int64   `name:"gpus" placeholder:"N" help:"GPUs that must be free. Without it, those that the graphs ask for and do not have yet."`

	JSON bool `name:"json" help:"Print the report as JSON."`
}

// Help is printed below the flags' list.
func (c *doctorCmd) Help() string {
	return "Each line says ok, warning, problem or not checked, and what to do. Nothing is changed; a target whose workload stands still gets up to six short requests. " +
		"It exits with 0 where there is no problem, with 1 where there is one, and with 2 on a flag that is not allowed."
}

func (c *doctorCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	token := os.Getenv("KVBOOTH_TOKEN")
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return api.Refuse("token-file", c.TokenFile, fmt.Sprintf("a file with the token (%v)", err))
		}
		token = strings.TrimSpace(string(text))
	}
	o := doctor.Options{
		LoadgenURL: c.LoadgenURL, Token: token, TargetURL: c.TargetURL, TargetKey: os.Getenv("LOADGEN_TARGET_API_KEY"), TwinKey: os.Getenv("LOADGEN_TWIN_TARGET_API_KEY"),
		PrometheusURL: c.PrometheusURL, GrafanaURL: c.GrafanaURL, GrafanaToken: os.Getenv("GRAFANA_TOKEN"), Version: api.ProgramVersion(),
		Kubernetes: c.Kubernetes, Kubeconfig: c.Kubeconfig, Context: c.Context, Namespace: c.Namespace, Graphs: c.Graph, Secrets: c.Secret, GPUs: c.GPUs,
	}
	report, err := examine(ctx, o, stdout, stderr)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err := c.print(report, stdout); err != nil {
		return err
	}
	if report.Problems > 0 {
		return errUnwell
	}
	return nil
}

// examine shows on a terminal what is looked at while it lasts.
func examine(ctx context.Context, o doctor.Options, stdout, stderr io.Writer) (doctor.Report, error) {
	out := newScreen(stdout, stderr)
	var mu sync.Mutex
	var at []string
	o.Progress = func(section string, done bool) {
		mu.Lock()
		defer mu.Unlock()
		if at = slices.DeleteFunc(at, func(s string) bool { return s == section }); !done {
			at = append(at, section)
		}
	}
	defer out.waiting(func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(at, ", ")
	})()
	return doctor.Examine(ctx, o)
}

func (c *doctorCmd) print(r doctor.Report, w io.Writer) error {
	if c.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	for _, s := range r.Sections {
		fmt.Fprintf(w, "%s\n", s.Name)
		for _, f := range s.Findings {
			fmt.Fprintf(w, "  %-11s  %s\n", f.Severity, f.Found)
			if f.Do != "" {
				fmt.Fprintf(w, "  %-11s  -> %s\n", "", f.Do)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s, %s, %d ok, %d not checked\n", counted(r.Problems, "problem"), counted(r.Warnings, "warning"), r.OK, r.NotChecked)
	return nil
}

// counted is a number with its word.
func counted(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}
