package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

const (
	settleWithin  = 3 * time.Minute
	pollEvery     = 200 * time.Millisecond
	sampleEvery   = time.Second
	storedWithin  = 500 * time.Millisecond // turns are committed within 200 ms
	answerWithin  = 10 * time.Second
	meanOutput    = 830 // tokens: mock answers end nowhere by themselves
	outputVaries  = .15
	startRate     = 10 // conversations a second
	workloadReady = 30 * time.Second
)

// measurer does all runs.
type measurer struct {
	clusters     *clusters
	warmUp, span time.Duration
	together     bool
	progress     *progress
}

func newMeasurer(o options, c *clusters, settings, sides int, to io.Writer) *measurer {
	runs := settings * sides
	if o.Together {
		runs = settings
	}
	return &measurer{
		clusters: c, warmUp: time.Duration(o.WarmUp) * time.Second, span: time.Duration(o.Seconds) * time.Second,
		together: o.Together, progress: newProgress(to, runs),
	}
}

// pair measures both sides in one setting.
func (m *measurer) pair(ctx context.Context, s setting, sides []side) (*pair, error) {
	var results []result
	groups := [][]side{sides}
	if !m.together {
		groups = [][]side{sides[:1], sides[1:]}
	}
	for _, group := range groups {
		r, err := m.group(ctx, s, group)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		results = append(results, r...)
	}
	return &pair{setting: s, profile: m.clusters.profile, simulated: results[0], real: results[1]}, nil
}

// group measures some sides at the same time, from the start of their clusters to
// their end.
func (m *measurer) group(ctx context.Context, s setting, sides []side) ([]result, error) {
	var names []string
	for _, side := range sides {
		names = append(names, side.name)
	}
	m.progress.next(strings.Join(names, " and ") + ", " + s.String())
	defer m.progress.done()
	var runs []*running
	defer func() {
		for _, r := range runs {
			r.stop()
		}
	}()
	for _, side := range sides {
		r, err := m.start(ctx, s, side)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.name, err)
		}
		runs = append(runs, r)
	}
	for _, r := range runs {
		if err := r.settle(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", r.side, err)
		}
	}
	return m.observe(ctx, runs)
}

// running is a cluster with a load generator against it.
type running struct {
	side    string
	out     string // folder of what it leaves behind
	target  *target
	loadgen *local.Process
	client  *api.Client

	samples   int
	spreads   []float64
	last      api.LaneSnapshot
	mistrusts int    // samples in which the load generator mistrusted itself
	mistrust  string // why, in the last of them
}

func (m *measurer) start(ctx context.Context, s setting, side side) (_ *running, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	name := fmt.Sprintf("%d-%s-%s", s.level, s.mode, strings.ReplaceAll(side.name, " ", "-"))
	r := &running{side: side.name, out: filepath.Join(m.clusters.out, name)}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}
	if r.target, err = side.start(ctx, s.mode, r.out); err != nil {
		return nil, err
	}
	if err := r.startLoadgen(ctx, m.clusters, s); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *running) startLoadgen(ctx context.Context, c *clusters, s setting) error {
	port, err := consecutive(firstPort, 1)
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp(c.dir, "data-")
	if err != nil {
		return err
	}
	base := "http://" + local.Loopback(port)
	if r.client, err = api.NewClient(&http.Client{Timeout: answerWithin}, base, ""); err != nil {
		return err
	}
	r.loadgen, err = local.Start(local.Command{
		Name: "load generator", Path: c.loadgen, Log: filepath.Join(r.out, "loadgen.log"),
		Args: []string{
			"--target-url=" + r.target.url, "--target-model=" + c.profile.Model, "--cluster-metrics-urls=" + strings.Join(r.target.metrics, ","),
			"--listen=" + local.Loopback(port), "--data-dir=" + data, "--start",
			"--concurrency=" + strconv.Itoa(s.level), "--seed=" + strconv.FormatUint(c.seed, 10), fmt.Sprintf("--start-rate=%d", startRate), "--target-rps=0",
			fmt.Sprintf("--output-tokens-mean=%d", meanOutput), fmt.Sprintf("--output-tokens-cv=%v", outputVaries),
			"--mode-driver=manual", "--mode-mode=" + string(s.mode), "--mode-offers=" + string(s.mode),
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, workloadReady)
	defer cancel()
	return local.Ready(ctx, base+"/healthz", r.loadgen)
}

// stop stops the load generator, then the cluster.
func (r *running) stop() {
	if r.loadgen != nil {
		stopNow(r.loadgen.Stop)
	}
	stopNow(r.target.stop)
}

// settle waits until all conversations have begun.
func (r *running) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		s, err := r.client.Status(ctx)
		if err == nil && s.Lanes[0].State.Step.Settled != nil {
			return nil
		}
		if pause(ctx, pollEvery) != nil {
			return errors.Join(errors.New("the conversations did not all begin"), err)
		}
	}
}

// observe lets the warm-up and the span pass, and collects what each run measured.
func (m *measurer) observe(ctx context.Context, runs []*running) ([]result, error) {
	began := time.Now()
	from := began.Add(m.warmUp)
	to := from.Add(m.span)
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for now := began; now.Before(to); {
		m.progress.left(to.Sub(now))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case now = <-ticker.C:
		}
		if now.Before(from) {
			continue
		}
		for _, r := range runs {
			if err := r.sample(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", r.side, err)
			}
		}
	}
	if err := pause(ctx, storedWithin); err != nil {
		return nil, err
	}
	var results []result
	for _, r := range runs {
		got, err := r.collect(ctx, from, to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.side, err)
		}
		results = append(results, got)
	}
	return results, nil
}

// sample notes what the load generator sees now.
func (r *running) sample(ctx context.Context) error {
	s, err := r.client.Snapshot(ctx)
	if err != nil {
		return err
	}
	r.last = s.Lanes[0]
	r.samples++
	if spread := r.last.Cluster.Spread; spread != nil {
		r.spreads = append(r.spreads, *spread)
	}
	if s.Client.Verdict == api.VerdictBottleneck {
		r.mistrusts++
		r.mistrust = s.Client.Reason
	}
	return nil
}

// collect reads the turns and makes the result of them.
func (r *running) collect(ctx context.Context, from, to time.Time) (result, error) {
	var raw bytes.Buffer
	if err := r.client.TurnsCSV(ctx, &raw, "", 0); err != nil {
		return result{}, err
	}
	if err := os.WriteFile(filepath.Join(r.out, "turns.csv"), raw.Bytes(), 0o644); err != nil {
		return result{}, err
	}
	turns, err := api.ReadTurns(&raw)
	if err != nil {
		return result{}, err
	}
	got := summarise(turns, from, to)
	if got.turns == 0 {
		return result{}, fmt.Errorf("no turn ended well in the span; failed: %s. %s", classes(got.failed), r.last.Target.Problem)
	}
	got.side, got.itl, got.spread = r.side, r.last.Window.Metrics.ITL, mean(r.spreads)
	if r.mistrusts > 0 {
		got.mistrust = fmt.Sprintf("in %d of %d seconds: %s", r.mistrusts, r.samples, r.mistrust)
	}
	return got, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
