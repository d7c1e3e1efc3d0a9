package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	noWait      = kube.HookOnlyStrategy // of Helm; apply waits itself
	hooksWithin = 10 * time.Minute
	historyKept = 10 // revisions
	lookEvery   = 500 * time.Millisecond
	sayEvery    = 15 * time.Second // while nothing changes
)

type applyCommand struct {
	planCommand `embed:""`
	waiting
}

// Run prints the plan, does it, and waits until everything is ready, with a line for each change of what is missing.
func (c *applyCommand) Run(ctx context.Context, out io.Writer) error {
	con, p, err := c.plan(ctx, out)
	if err != nil {
		return err
	}
	defer con.close()
	if err := p.refused(); err != nil {
		return err
	}
	made, err := con.run(ctx, p.loaded, p.given, p.current, p.takeOver || p.forces, action.DryRunNone)
	if err != nil {
		return con.inWords(err)
	}
	fmt.Fprintf(out, "Release %s, revision %d: every object is in the cluster. Waiting until everything is ready.\n", con.Release, made.Version)
	applied, err := objects(made.Manifest)
	if err != nil {
		return err
	}
	if err := con.wait(ctx, applied, c.Timeout, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "Everything is ready.\n\n%s", made.Info.Notes)
	return nil
}

// wait looks until all objects of the release are ready, one fails for good, or the time is over.
func (c *connection) wait(ctx context.Context, all []*unstructured.Unstructured, within time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not everything was ready within %s", within))
	defer cancel()
	began, tick := time.Now(), time.NewTicker(lookEvery)
	defer tick.Stop()
	var said string
	var saidAt time.Time
	for {
		states, err := c.states(ctx, all)
		missing := notReady(states)
		switch i := slices.IndexFunc(states, func(s state) bool { return s.lost }); {
		case ctx.Err() != nil:
			missing = nil // it was not looked at to the end
		case err != nil:
			missing = []string{err.Error()} // an API server may be away for a while
		case len(missing) == 0:
			return nil
		case i >= 0:
			return fmt.Errorf("%s has failed: %s; the release stays as it is", states[i].name, states[i].said)
		}
		if text := strings.Join(missing, "\n    "); text != "" && (text != said || time.Since(saidAt) > sayEvery) {
			fmt.Fprintf(out, "%3.0f s: not ready yet:\n    %s\n", time.Since(began).Seconds(), text)
			said, saidAt = text, time.Now()
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, context.Canceled) {
				cause = errors.New("interrupted")
			}
			return fmt.Errorf("%w; the release stays as it is, and what was missing last is:\n    %s", cause, said)
		case <-tick.C:
		}
	}
}
