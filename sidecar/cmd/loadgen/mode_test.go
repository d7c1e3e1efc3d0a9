package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

var clusterMode = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationEagle3}

// The mode at the start is the cluster's. A cluster that does not answer is waited for, except after a permanent error.
// Afterwards the configured mode is in force.
func TestModeIsTheClusters(t *testing.T) {
	configured := api.ModeState{Mode: api.ModeKV}
	down := errors.New("connection refused")
	for name, row := range map[string]struct {
		answers func(waited time.Duration) error
		stopped time.Duration // by a signal; 0: never
		want    error
		mode    api.ModeState
		after   time.Duration
	}{
		"up":   {answers: func(time.Duration) error { return nil }, mode: clusterMode},
		"down": {answers: func(time.Duration) error { return down }, mode: configured, after: clusterPatience},
		"comes up": {answers: func(waited time.Duration) error {
			if waited < 3*time.Second {
				return down
			}
			return nil
		}, mode: clusterMode, after: 3 * time.Second},
		"never will": {
			answers: func(time.Duration) error { return &api.FieldError{Field: "mode.driver"} },
			want:    &api.FieldError{Field: "mode.driver"}, mode: configured,
		},
		"stopped": {
			answers: func(time.Duration) error { return down }, stopped: time.Second, want: context.Canceled,
			mode: configured, after: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.stopped > 0 {
					time.AfterFunc(row.stopped, cancel)
				}
				var log strings.Builder
				s := &side{mode: configured, log: slog.New(slog.NewTextHandler(&log, nil))}
				began := time.Now()
				current := func(context.Context) (api.ModeState, error) { return clusterMode, row.answers(time.Since(began)) }
				err := s.takeMode(ctx, current, "the cluster has not reported its mode")
				assert.Equal(t, row.want, err)
				assert.Equal(t, row.mode, s.mode)
				assert.InDelta(t, row.after.Seconds(), time.Since(began).Seconds(), .3)
				warned := strings.Contains(log.String(), "has not reported its mode yet; using the configured mode")
				assert.Equal(t, name == "down", warned)
			})
		})
	}
}
