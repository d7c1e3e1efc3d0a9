// Command kube holds a whole Kubernetes control plane in one file: etcd, the API server, the controllers, the
// scheduler and kubectl, each as its project publishes it, and KWOK, which plays the nodes, so that pods run nothing.
// The first argument says which of them to be; "kube stages" prints how KWOK is to play the pods here.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and the machine may have none

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs are what kube can be. Each finds its own name and arguments in os.Args and gives its exit code.
var programs = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return run(apiserver.NewAPIServerCommand) },
	"kube-controller-manager": func() int { return run(controllers.NewControllerManagerCommand) },
	"kube-scheduler":          func() int { return run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }) },
	"kubectl": func() int {
		return run(func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() })
	},
	"kwok":   kwok,
	"stages": stages,
}

func main() {
	os.Args = os.Args[1:]
	if len(os.Args) == 0 || programs[os.Args[0]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kube", strings.Join(slices.Sorted(maps.Keys(programs)), "|"), "[ARGUMENTS]")
		os.Exit(2)
	}
	os.Exit(programs[os.Args[0]]())
}

// run makes a command only when it is asked for: making one registers flags and metrics for the whole process.
func run(command func() *cobra.Command) int { return cli.Run(command()) }
