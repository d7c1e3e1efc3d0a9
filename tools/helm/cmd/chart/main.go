// Command chart renders, checks and applies KV Booth's Helm chart with Helm as a library, so that nobody needs a helm
// of their own. Releases are Helm's: whoever has helm can go on with them.
//
// It exits with 2 where the arguments, the values or the chart are wrong, and with 1 where the cluster is.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"helm.sh/helm/v4/pkg/kube"
)

const (
	exitFailed   = 1
	exitBadInput = 2
)

// badInput is what whoever calls the program has to mend, in what they wrote.
type badInput struct{ error }

func (e badInput) Unwrap() error { return e.error }

func badf(format string, args ...any) error { return badInput{fmt.Errorf(format, args...)} }

// program is the command line.
type program struct {
	Render renderCommand `cmd:"" help:"Print the objects that the chart makes of the values. Needs no cluster."`
	Lint   lintCommand   `cmd:"" help:"Check the chart and the values. Needs no cluster."`
	Plan   planCommand   `cmd:"" help:"Say what apply would create, change, leave and delete, after the API server has checked every object. Changes nothing."`
	Apply  applyCommand  `cmd:"" help:"Do what plan says, and wait until everything is ready."`
	Status statusCommand `cmd:"" help:"Say what of the release is ready, and what is missing."`
	Delete deleteCommand `cmd:"" help:"Say what deleting the release removes and what stays; with --yes, delete it."`
}

// source are the chart and its values.
type source struct {
	Chart  string   `help:"Chart directory, deploy/chart/kvbooth unless given." default:"deploy/chart/kvbooth" placeholder:"DIR"`
	Values []string `short:"f" help:"Values file; later ones win over earlier ones." placeholder:"FILE" sep:"none"`
	Set    []string `help:"A single value, overriding the files, such as gateway.enabled=true." placeholder:"PATH=VALUE" sep:"none"`
}

// release names what is installed, and where in a cluster.
type release struct {
	Release   string `help:"Name of the Helm release." default:"kvbooth"`
	Namespace string `short:"n" help:"Namespace of the release." default:"kvbooth"`
}

// cluster says which cluster: never a default, since the wrong one is expensive.
type cluster struct {
	Context    string `required:"" help:"Context of the kubeconfig."`
	Kubeconfig string `help:"The kubeconfig; otherwise $KUBECONFIG or ~/.kube/config." placeholder:"FILE"`
}

type waiting struct {
	Timeout time.Duration `help:"How long to wait until everything is ready." default:"30m"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program with its arguments. Results go to out, and what is wrong to errs. It gives the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm tells of each link that it follows
	kube.ManagedFieldsManager = "helm"     // as helm's own program: either may go on with what the other applied
	var p program
	exited := -1
	parser, err := kong.New(&p, kong.Name("chart"), kong.Description("Renders, checks and applies KV Booth's Helm chart."),
		kong.Writers(out, errs), kong.Exit(func(code int) { exited = code }), kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(out, (*io.Writer)(nil)))
	if err != nil {
		fmt.Fprintln(errs, "chart:", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // it was asked for help
		return exited
	}
	if err != nil {
		fmt.Fprintln(errs, "chart:", err)
		return exitBadInput
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(errs, "chart:", err)
		if errors.As(err, new(badInput)) {
			return exitBadInput
		}
		return exitFailed
	}
	return 0
}
