//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kvbooth/sidecar/api"
)

// storedMany turns with about storedChars characters each are published to a coordinator.
const (
	storedMany  = 40_000
	storedChars = 2_400
)

// storedTurns measures how many turns of members one coordinator stores per second.
func storedTurns(ctx context.Context, loadgen, natsServer string) error {
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &fleet{}
	defer f.stop()
	url, err := f.startNATS(ctx, natsServer, dir)
	if err != nil {
		return err
	}
	f.coordinator, _, err = startLoadgen(ctx, loadgen, "127.0.0.1:9", dir, 1, "--members-nats-url="+url,
		"--log-level=error")
	if err != nil {
		return err
	}
	js, closes, err := connect(url)
	if err != nil {
		return err
	}
	defer closes()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, err := unstored(ctx, js); err != nil; _, err = unstored(ctx, js) { // until the coordinator has its consumer
		if p := pause(ctx, 50*time.Millisecond); p != nil {
			return fmt.Errorf("the coordinator does not listen: %w", err)
		}
	}
	began, cpu := time.Now(), f.cpuOfBoth()
	if err := handOver(ctx, js); err != nil {
		return err
	}
	for {
		n, err := unstored(ctx, js)
		if err == nil && n == 0 {
			break
		}
		if p := pause(ctx, 20*time.Millisecond); p != nil {
			return fmt.Errorf("%d turns are not stored: %w", n, p)
		}
	}
	took := time.Since(began)
	fmt.Printf("\nOne coordinator stored %d turns of %d characters in %.1f s, %.0f a second, with %.0f %% of a core "+
		"for it and the NATS server.\n",
		storedMany, storedChars, took.Seconds(), storedMany/took.Seconds(), 100*(f.cpuOfBoth()-cpu).Seconds()/took.Seconds())
	return nil
}

func connect(url string) (js jetstream.JetStream, closes func(), err error) {
	conn, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		return nil, nil, err
	}
	js, err = jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1000))
	return js, conn.Close, err
}

// unstored returns the number of published turns that the coordinator has not stored.
func unstored(ctx context.Context, js jetstream.JetStream) (n uint64, err error) {
	c, err := js.Consumer(ctx, "kvbooth_default_turns", "store")
	if err != nil {
		return 0, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.NumPending + uint64(info.NumAckPending), nil
}

// cpuOfBoth returns the CPU time of coordinator and NATS server so far.
func (f *fleet) cpuOfBoth() time.Duration {
	one, _, _ := usage(f.coordinator.Process.Pid)
	other, _, _ := usage(f.nats.Process.Pid)
	return one + other
}

// handOver publishes turns as members do, and waits until the server has acknowledged them.
func handOver(ctx context.Context, js jetstream.JetStream) error {
	draw := rand.New(rand.NewPCG(1, 1))
	now := time.Now()
	for i := range storedMany {
		words := make([]string, storedChars/6)
		for j := range words {
			words[j] = fmt.Sprintf("%05x", draw.IntN(1<<20))
		}
		id, number := fmt.Sprintf("main-bench-%d", i/4), i%4+1
		data, err := json.Marshal(map[string]any{
			"run": "bench",
			"turn": api.Turn{
				RequestID: fmt.Sprintf("%s-%d", id, number), Conversation: id, Number: number, Lane: api.DefaultLane, Step: 1,
				Status:  api.TurnOK,
				Started: now, Ended: now, AssistantMessage: strings.Join(words, " "),
			},
			"conversation": api.Conversation{
				ID: id, Lane: api.DefaultLane, Number: int64(i / 4), Status: api.ConversationActive, TurnsPlanned: 4,
				TurnsDone: number, Started: now,
			},
		})
		if err != nil {
			return err
		}
		if _, err := js.PublishAsync("kvbooth.default.turn.main", data); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
