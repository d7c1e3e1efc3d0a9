package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/plausible"
)

// maxFetches is the number of metrics pages that are fetched at once.
const maxFetches = 16

// Direct reads metrics pages in the Prometheus text format straight from the
// processes that expose them. It is safe for concurrent use.
type Direct struct {
	pages  []*page
	client *http.Client
}

// NoTarget among the further pages says that the target's own page is not read.
const NoTarget = "no-target"

// NewDirect reads /metrics of the target (its URL with or without /v1) and of
// the further pages, which are taken as they are; one without a path means
// /metrics. With [NoTarget] among them, they are all that is read. A nil client
// means one without credentials. What is no URL gives an [api.FieldError].
func NewDirect(target string, further []string, client *http.Client) (*Direct, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	d := &Direct{client: bounded(client)}
	if !slices.Contains(further, NoTarget) {
		d.pages = []*page{{URL: u.JoinPath("metrics"), own: true}}
	}
	for _, raw := range further {
		if raw == NoTarget {
			continue
		}
		u, err := httpURL("cluster.metrics_urls", raw)
		if err != nil {
			return nil, err
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/metrics"
		}
		if !slices.ContainsFunc(d.pages, func(p *page) bool { return p.String() == u.String() }) {
			d.pages = append(d.pages, &page{URL: u})
		}
	}
	if len(d.pages) == 0 {
		return nil, api.Refuse("cluster.metrics_urls", NoTarget, "also the URL of at least one page")
	}
	return d, nil
}

// Name is direct.
func (d *Direct) Name() string { return "direct" }

// Fetch reads all pages at once. Pages that fail are named in the error, beside
// the samples of the others.
func (d *Direct) Fetch(ctx context.Context) ([]Sample, error) {
	var (
		group   sync.WaitGroup
		tickets = make(chan struct{}, maxFetches)
		samples = make([][]Sample, len(d.pages))
		errs    = make([]error, len(d.pages))
	)
	for i, page := range d.pages {
		group.Go(func() {
			tickets <- struct{}{}
			defer func() { <-tickets }()
			samples[i], errs[i] = d.read(ctx, page)
			page.problem.Store(nil)
			if errs[i] != nil {
				if len(samples[i]) == 0 {
					page.problem.Store(new(errs[i].Error()))
				}
				errs[i] = fmt.Errorf("%s: %w", page.Redacted(), errs[i])
			}
		})
	}
	group.Wait()
	d.mark(samples, time.Now())
	all := slices.Concat(samples...)
	if len(all) > maxSamples {
		all = all[:maxSamples]
		errs = append(errs, fmt.Errorf("cut after %d samples of all pages", maxSamples))
	}
	return all, errors.Join(errs...)
}

// page is one metrics page.
type page struct {
	*url.URL
	own     bool // the target's
	known   catalogue
	problem atomic.Pointer[string] // of the latest reading; nil: it was read

	mu      sync.Mutex
	newest  float64   // start of the youngest process that the page has shown
	several bool      // it has shown an older one after that: a router's page, which is a worker's each time
	strayed time.Time // when it last showed a process that has no page of its own
}

// mark notes what a reading shows of its pages, and says so in the samples.
func (d *Direct) mark(read [][]Sample, now time.Time) {
	starts := make([]float64, len(read))
	known := map[float64]bool{}
	for i, p := range d.pages {
		for _, s := range read[i] {
			if slices.Contains(processStart, s.Name) {
				starts[i] = s.Value
			}
		}
		p.mu.Lock()
		p.several = p.several || starts[i] > 0 && starts[i] < p.newest
		p.newest = max(p.newest, starts[i])
		known[starts[i]] = known[starts[i]] || !p.several
		p.mu.Unlock()
	}
	for i, p := range d.pages {
		p.mu.Lock()
		if p.several && starts[i] > 0 && !known[starts[i]] {
			p.strayed = now
		}
		strays := !p.strayed.IsZero() && now.Sub(p.strayed) < window
		for k := range read[i] {
			read[i][k].own, read[i][k].several, read[i][k].strays = p.own, p.several, strays
		}
		p.mu.Unlock()
	}
}

func (d *Direct) read(ctx context.Context, p *page) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain))+", */*;q=0.1")
	res, err := d.client.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New("answered " + res.Status)
	}
	samples, err := p.parse(res.Body)
	if err == nil && !slices.ContainsFunc(samples, func(s Sample) bool { return !slices.Contains(processStart, s.Name) }) {
		return nil, errors.New("no metrics of Dynamo, TensorRT-LLM, vLLM, SGLang or DCGM found")
	}
	return samples, err
}

// parse reads a page in the text format and keeps the wanted samples. Samples
// together with an error are those of a page that was cut, or has flaws.
func (p *page) parse(body io.Reader) ([]Sample, error) {
	var (
		in    = &intake{from: plausible.Metrics}
		lines = bufio.NewReaderSize(body, maxLine)
		first []byte // of the samples' lines, which tells whether the page is in the format
		long  bool   // what comes is the rest of a line
		last  []byte // the name of the line before and what ends it, often that of this one, too
		is    bool   // and whether it is wanted
		err   error
	)
	for err == nil && !in.full {
		var line []byte
		line, err = lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long, in.unreadable, err = true, true, nil
			continue
		}
		if long || err != nil && !errors.Is(err, io.EOF) { // half a line may be half a number
			long = false
			continue
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(last) == 0 || !bytes.HasPrefix(line, last) {
			name := nameOf(line)
			_, is = wanted[string(name)]
			last = append(last[:0], line[:min(len(name)+1, len(line))]...)
		}
		if is && in.room() {
			p.take(in, line)
		}
		if first == nil {
			first = bytes.Clone(bytes.TrimSpace(line))
		}
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return in.samples, errors.Join(fmt.Errorf("cut after %d MiB", maxBody>>20), in.gaps())
	case err != nil && !errors.Is(err, io.EOF):
		return nil, plain(err)
	case len(in.samples) == 0 && len(first) > 0:
		if _, err := families(append(first, '\n')); err != nil {
			return nil, fmt.Errorf("not in the Prometheus text format: %w", err)
		}
	}
	return in.samples, in.gaps()
}

// nameOf is the name of the metric that a line tells.
func nameOf(line []byte) []byte {
	for i, c := range line {
		if c == '{' || c == ' ' || c == '\t' {
			return line[:i]
		}
	}
	return nil
}

// take reads a line: a name with or without labels, a number, and perhaps a time.
func (p *page) take(in *intake, line []byte) {
	end := bytes.LastIndexByte(line, '}') + 1
	if end == 0 {
		end = len(nameOf(line))
	}
	s, ok := p.known.find(line[:end], p.series)
	if !ok {
		in.unreadable = true
		return
	}
	number, _, _ := bytes.Cut(bytes.TrimSpace(line[end:]), []byte(" "))
	in.add(s, string(number))
}

// series parses what names a series, and adds the host that it comes from, as
// Prometheus does. That label is what joins a worker's engine metrics, which do
// not name the worker, with those that do.
func (p *page) series(text []byte) (string, model.LabelSet) {
	parsed, err := families(append(bytes.Clone(text), " 0\n"...))
	if err != nil {
		return "", nil
	}
	labels := model.LabelSet{model.InstanceLabel: model.LabelValue(p.Host)}
	for name, family := range parsed {
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetName() != model.InstanceLabel {
				labels[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
			}
		}
		return name, labels
	}
	return "", nil
}

func families(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}
