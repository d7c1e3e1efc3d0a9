package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
)

// errUnwell is the error of an examination with problems, whose findings have been printed.
var errUnwell = errors.New("not ready for an event; see the fix below each problem")

// doctorCmd is `booth doctor`.
type doctorCmd struct {
	LoadgenURL    string `name:"loadgen-url" placeholder:"URL" help:"URL of the load generator. Default: http://127.0.0.1:8088, where none needs to run if --target-url is set."`
	TokenFile     string `placeholder:"FILE" help:"File with the load generator's token. Default: KVBOOTH_TOKEN, if set."`
	TargetURL     string `name:"target-url" placeholder:"URL" help:"URL of lane main's target. Default: the one the load generator uses. Set LOADGEN_TARGET_API_KEY if it needs a key."`
	PrometheusURL string `name:"prometheus-url" placeholder:"URL" help:"URL of Prometheus. Default: the one the load generator uses."`
	GrafanaURL    string `name:"grafana-url" placeholder:"URL" help:"URL of Grafana as used in a browser, including any sub-path. Default: http://127.0.0.1:3000 if the load generator is on this machine. Set GRAFANA_TOKEN to a service account token if it needs a login."`

	Router bool `default:"true" negatable:"" help:"Also find out what the router of an idle target does with prompts, with some dozens of requests in about ten seconds."`

	Kubernetes bool     `help:"Also check the Kubernetes cluster. Implied if the load generator switches modes there, or by any of the following flags."`
	Kubeconfig string   `placeholder:"FILE" help:"Kubeconfig file. Default: the load generator's setting, the pod's service account, or the kubeconfig that kubectl uses."`
	Context    string   `placeholder:"NAME" help:"Context in the kubeconfig. Default: the current context."`
	Namespace  string   `placeholder:"NAME" help:"Namespace of the booth. Default: the one of the credentials."`
	Graph      []string `placeholder:"NAME" help:"DynamoGraphDeployment, as NAME or NAMESPACE/NAME; may be repeated. Default: those of the load generator."`
	Secret     []string `placeholder:"NAME" help:"Secret that must exist in the namespace and have data; may be repeated."`
	GPUs       *int64   `name:"gpus" placeholder:"N" help:"Number of GPUs that must be free. Default: those the graphs request and do not have yet."`

	JSON bool `name:"json" help:"Print the report as JSON."`
}

// Help returns the text below the list of flags.
func (c *doctorCmd) Help() string {
	return "Each line is ok, warning, problem or not checked, with a suggested fix. " +
		"Nothing is changed; an idle target gets some dozens of short requests. " +
		"Exit codes: 0 no problem, 1 at least one problem, 2 invalid flags."
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
		LoadgenURL: cmp.Or(c.LoadgenURL, "http://127.0.0.1:8088"), TargetAlone: c.LoadgenURL == "" && c.TargetURL != "",
		Token: token, TargetURL: c.TargetURL,
		TargetKey: os.Getenv("LOADGEN_TARGET_API_KEY"), TwinKey: os.Getenv("LOADGEN_TWIN_TARGET_API_KEY"),
		PrometheusURL: c.PrometheusURL, GrafanaURL: c.GrafanaURL, GrafanaToken: os.Getenv("GRAFANA_TOKEN"),
		Version: api.ProgramVersion(), Router: c.Router, Kubernetes: c.Kubernetes, Kubeconfig: c.Kubeconfig,
		Context: c.Context, Namespace: c.Namespace, Graphs: c.Graph, Secrets: c.Secret, GPUs: c.GPUs,
	}
	report, err := examine(ctx, o, stdout, stderr)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err := printReport(report, c.JSON, stdout); err != nil {
		return err
	}
	if report.Problems > 0 {
		return errUnwell
	}
	return nil
}

// examine runs the examination. On a terminal it shows the current sections.
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

// printReport prints a report with what to do below each finding, or as JSON.
func printReport(r doctor.Report, asJSON bool, w io.Writer) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Program string `json:"program"`
			doctor.Report
		}{api.BoothProgram(), r})
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
	fmt.Fprintf(w, "%s, %s, %d ok, %d not checked\n",
		counted(r.Problems, "problem"), counted(r.Warnings, "warning"), r.OK, r.NotChecked)
	return nil
}

// counted returns a number with its noun.
func counted(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// errRefused is the end of a check that found a problem, which has been printed.
var errRefused = errors.New("not ready to be applied; see the fix below each problem")

// manifestCmd is `booth manifest`.
type manifestCmd struct {
	File       string `arg:"" optional:"" help:"File with the objects as YAML. Default: standard input."`
	Kubeconfig string `placeholder:"FILE" help:"Kubeconfig file. Default: the one that kubectl uses."`
	Context    string `placeholder:"NAME" help:"Context in the kubeconfig. Without both, only the GPUs are counted."`
	Namespace  string `placeholder:"NAME" default:"kvbooth" help:"Namespace of objects that name none. Default: kvbooth."`

	JSON bool `name:"json" help:"Print the report as JSON."`
}

// Help is printed below the flags' list.
func (c *manifestCmd) Help() string {
	return "For example: helm template kvbooth deploy/chart/kvbooth -f FILE | booth manifest --context NAME. " +
		"Exit codes: 0 no problem, 1 at least one problem, 2 invalid flags or objects."
}

func (c *manifestCmd) run(ctx, _ context.Context, stdout, _ io.Writer) error {
	text := io.Reader(os.Stdin)
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return api.Refuse("file", c.File, fmt.Sprintf("a file with objects (%v)", err))
		}
		defer file.Close()
		text = file
	}
	report, err := doctor.Manifest(ctx, text, doctor.Options{
		Kubernetes: c.Context != "" || c.Kubeconfig != "",
		Kubeconfig: c.Kubeconfig, Context: c.Context, Namespace: c.Namespace,
	})
	if err != nil {
		return api.Refuse("file", cmp.Or(c.File, "standard input"), fmt.Sprintf("objects as YAML (%v)", err))
	}
	if err := printReport(report, c.JSON, stdout); err != nil {
		return err
	}
	if report.Problems > 0 {
		return errRefused
	}
	return nil
}

// healthTimeout is the timeout of the request.
const healthTimeout = 5 * time.Second

// healthCmd is `booth health`, for containers without other programs.
type healthCmd struct {
	URL string `arg:"" help:"URL that returns 200 when healthy, such as http://127.0.0.1:8000/health."`
}

func (c *healthCmd) run(ctx, _ context.Context, _, _ io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadInput, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", c.URL, resp.Status)
	}
	return nil
}
