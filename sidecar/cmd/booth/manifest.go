package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
)

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
