// Package replay records what a load generator shows in a file, and plays it back.
//
// A recording is gzipped JSON, one [line] per line: the header, the answers that every page reads, a
// snapshot each second, and finally all answers that the pages read. Each line is flushed, so that
// the recording of a killed recorder can be played.
package replay

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"kvbooth/sidecar/api"
)

// format is the version of the file's format.
const format = 1

// Limits of a recording, so that it fits in memory.
const (
	maxConversations = 50 // newest ones, with their transcripts, of each lane
	maxSweeps        = 10 // newest ones
)

// line is one line of a recording. One of its three parts is set.
type line struct {
	Header   *header         `json:"header,omitempty"`
	Seconds  float64         `json:"seconds,omitempty"` // since the first snapshot
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Path     string          `json:"path,omitempty"` // of the API, with the lane as its query
	Answer   json.RawMessage `json:"answer,omitempty"`
}

type header struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of the program that recorded
}

// Record writes the snapshots over d, or until ctx ends, and then the answers to the calls that the
// pages make. progress is called with each snapshot. If the stream breaks off, its error is
// returned after the recording so far has been completed.
func Record(ctx context.Context, w io.Writer, c *api.Client, d time.Duration, progress func(time.Duration)) error {
	z := gzip.NewWriter(w)
	out := flushed{z, json.NewEncoder(z)}
	if err := out.Encode(line{Header: &header{Format: format, Version: api.ProgramVersion()}}); err != nil {
		return err
	}
	start := &recorder{out: out}
	if start.settings(ctx, c); start.err != nil {
		return start.err
	}
	lanes, err := recordSnapshots(ctx, out, c, d, progress)
	if len(lanes) == 0 {
		return cmp.Or(err, ctx.Err())
	}
	return errors.Join(err, recordAnswers(context.WithoutCancel(ctx), out, c, lanes), z.Close())
}

// flushed encodes lines and flushes each.
type flushed struct {
	z *gzip.Writer
	*json.Encoder
}

// Encode writes a line.
func (f flushed) Encode(l line) error {
	if err := f.Encoder.Encode(l); err != nil {
		return err
	}
	return f.z.Flush()
}

// recordSnapshots returns the names of the lanes; none before the first snapshot.
func recordSnapshots(
	ctx context.Context, out flushed, c *api.Client, d time.Duration, progress func(time.Duration),
) (lanes []string, err error) {
	var first, last time.Time
	for text, err := range c.StreamText(ctx) {
		if err != nil && ctx.Err() != nil {
			return lanes, nil
		}
		if err != nil {
			return lanes, err
		}
		var s api.Snapshot
		if err := json.Unmarshal(text, &s); err != nil {
			return lanes, err
		}
		if lanes == nil {
			first = s.Time
			for _, l := range s.Lanes {
				lanes = append(lanes, l.Name)
			}
		} else if s.Time.Sub(last) < time.Second/2 { // an extra snapshot after a change
			continue
		}
		last = s.Time
		at := last.Sub(first)
		if err := out.Encode(line{Seconds: at.Seconds(), Snapshot: text}); err != nil {
			return lanes, err
		}
		if progress(at); at >= d {
			return lanes, nil
		}
	}
	return lanes, nil
}

// recordAnswers records the answers. It skips those that give [api.ErrNotFound] or [api.ErrUnavailable].
func recordAnswers(ctx context.Context, out flushed, c *api.Client, lanes []string) error {
	r := &recorder{out: out}
	r.settings(ctx, c)
	r.answer("/events", nil)(c.Events(ctx, "", 0))
	r.answer("/twin", nil)(c.Twin(ctx))
	r.answer("/simulations", nil)(c.Simulations(ctx))
	sweeps, err := c.Sweeps(ctx)
	sweeps.Sweeps = sweeps.Sweeps[:min(len(sweeps.Sweeps), maxSweeps)]
	r.answer("/sweeps", nil)(sweeps, err)
	for _, s := range sweeps.Sweeps {
		r.answer("/sweeps/"+s.ID, nil)(c.Sweep(ctx, s.ID))
	}
	for _, lane := range lanes {
		query := url.Values{"lane": {lane}}
		r.answer("/history", query)(c.History(ctx, lane))
		r.answer("/cluster", query)(c.Cluster(ctx, lane))
		r.answer("/decisions", query)(c.Decisions(ctx, lane, 0))
		r.answer("/shadow", query)(c.Shadow(ctx, lane))
		list, err := c.Conversations(ctx, api.ConversationQuery{Lane: lane, Limit: maxConversations})
		list.NextCursor = "" // older ones are not in the recording
		r.answer("/conversations", query)(list, err)
		for _, one := range list.Conversations {
			r.answer("/conversations/"+url.PathEscape(one.ID), nil)(c.Conversation(ctx, one.ID))
		}
	}
	return r.err
}

// recorder writes answers and keeps the first error.
type recorder struct {
	out flushed
	err error
}

// settings records the answers that every page reads.
func (r *recorder) settings(ctx context.Context, c *api.Client) {
	r.answer("/status", nil)(c.Status(ctx))
	r.answer("/settings", nil)(c.Settings(ctx))
	r.answer("/baselines", nil)(c.Baselines(ctx))
}

func (r *recorder) answer(path string, query url.Values) func(any, error) {
	return func(answer any, err error) {
		if errors.Is(err, api.ErrNotFound) || errors.Is(err, api.ErrUnavailable) || r.err != nil {
			return
		}
		if err != nil {
			r.err = fmt.Errorf("recording %s: %w", path, err)
			return
		}
		text, err := json.Marshal(answer)
		if err == nil {
			err = r.out.Encode(line{Path: key(path, query), Answer: text})
		}
		r.err = err
	}
}

// key names an answer by its path and lane. Without a lane it is that of the main lane.
func key(path string, query url.Values) string {
	return path + "?" + cmp.Or(query.Get("lane"), api.DefaultLane)
}
