package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/server/page"
	"kvbooth/sidecar/loadgen/server/replay"
)

// recordTimeout is the timeout of an answer that is recorded.
const recordTimeout = 30 * time.Second

// record writes the API's answers of a load generator into a file. The error is a notStarted where there is nothing to
// record.
func record(ctx context.Context, conf *config.Config, stderr io.Writer) error {
	if len(conf.Output) > 0 {
		return recordTraffic(ctx, conf, stderr)
	}
	asked := conf.Record
	client, err := api.NewClient(&http.Client{Timeout: recordTimeout}, asked.From, string(conf.Token))
	if err != nil {
		return notStarted{err}
	}
	if _, err := client.Snapshot(ctx); err != nil {
		return notStarted{api.Refuse("from", asked.From,
			fmt.Sprintf("the URL of a running load generator, with its token in LOADGEN_TOKEN if it has one; %v", err))}
	}
	f, err := os.OpenFile(asked.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return notStarted{api.Refuse("file", asked.File,
			fmt.Sprintf("a file that can be made and does not exist yet; %v", err))}
	}
	next := time.Duration(0)
	err = replay.Record(ctx, f, client, asked.For, func(at time.Duration) {
		if at >= next {
			fmt.Fprintf(stderr, "recorded %s of %s\n", at.Round(time.Second), asked.For)
			next = at.Truncate(progressEvery) + progressEvery
		}
	})
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(stderr, "wrote %s; show it with: loadgen replay %s\n", asked.File, asked.File)
	}
	return err
}

// progressEvery is how often the progress of a recording is printed.
const progressEvery = 10 * time.Second

// playBack serves a recording until ctx ends.
func playBack(ctx context.Context, conf *config.Config, stderr io.Writer) error {
	f, err := os.Open(conf.Replay)
	if err != nil {
		return notStarted{api.Refuse("file", conf.Replay, fmt.Sprintf("a readable file; %v", err))}
	}
	player, err := replay.Open(f, conf.Replay)
	f.Close()
	if err != nil {
		return notStarted{err}
	}
	log := newLog(conf, stderr)
	certificate, err := serverTLS(conf, log)
	if err != nil {
		return notStarted{err}
	}
	s, err := server.New(server.Options{
		Playback: player, Metrics: http.NotFoundHandler(), ParseCSV: baseline.ReadCSV, ParseJSON: baseline.ReadJSON,
		TLS: certificate, Token: string(conf.Token), MetricsToken: string(conf.MetricsToken), Hosts: conf.Hosts,
		PublicPage: conf.PublicPage,
		Page:       page.Handler(), Log: log,
	})
	if err != nil {
		return notStarted{err}
	}
	l, err := listen(conf)
	if err != nil {
		return notStarted{err}
	}
	log.Info("replay started", "address", scheme(conf)+"://"+l.Addr().String(), "file", conf.Replay,
		"recorded", player.RecordedAt().Format(time.RFC3339), "length", player.Length().Round(time.Second))
	if damage := player.Damage(); damage != "" {
		log.Warn("the recording is damaged; the rest of it is played", "file", conf.Replay, "problem", damage)
	}
	return s.Serve(ctx, l)
}
