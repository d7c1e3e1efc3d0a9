package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

// errNotReady ends a check that found a problem. The problem has already been printed.
var errNotReady = errors.New("the mode cannot be switched; fix the problems above first")

// checkCluster prints whether the mode of each lane's cluster can be switched. The error is a
// notStarted where it cannot.
func checkCluster(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	lanes := []*config.Config{conf}
	if own := conf.ForTwin(); own != nil {
		lanes = append(lanes, own)
	}
	bad := false
	for i, c := range lanes {
		if c.Mode.Driver != "kubernetes" {
			return notStarted{api.Refuse("cluster", "true",
				"leave it out with mode.driver "+c.Mode.Driver+"; it needs mode.driver kubernetes")}
		}
		d, err := openKubernetes(ctx, c, conf.Listen, slog.New(slog.DiscardHandler))
		if err != nil {
			return notStarted{err}
		}
		if len(lanes) > 1 {
			fmt.Fprintf(stdout, "\nLane %s\n", [...]string{api.DefaultLane, api.TwinLane}[i])
		}
		for _, f := range d.Check(ctx) {
			bad = bad || f.Severity == kubernetes.Problem
			fmt.Fprintf(stdout, "%-8s %s\n", f.Severity, f.Found)
			if f.Do != "" {
				fmt.Fprintf(stdout, "%-8s -> %s\n", "", f.Do)
			}
		}
	}
	if bad {
		return notStarted{errNotReady}
	}
	return nil
}
