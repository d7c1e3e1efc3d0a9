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

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/chat/plausible"
	"kvbooth/sidecar/loadgen/cluster/router"
)

// maxFetches is the number of metrics pages that are fetched at once.
const maxFetches = 16

// Direct reads metrics pages in the Prometheus text format from the processes
// that expose them. It is safe for concurrent use.
type Direct struct {
	// Router returns the id of the router behind the target's address, "" while unknown. Where that router has a metrics
	// page of its own and one of the further pages is that page, the target's page is not read. nil means unknown. It
	// must be set before the first Fetch.
	Router func() string

	pages  []*page
	client *http.Client
}

// NoTarget is the value among the further pages that excludes the target's own page.
const NoTarget = "no-target"

// NewDirect reads /metrics of the target (its URL with or without /v1) and the
// further pages. A further page without a path means /metrics. With [NoTarget]
// among the further pages, the target's page is skipped; [NoTarget] alone reads no
// page. A nil client means one without credentials. An invalid URL gives an [api.FieldError].
func NewDirect(target string, further []string, client *http.Client) (*Direct, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	d := &Direct{client: withMaxBody(client)}
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
	return d, nil
}

// Name returns "direct".
func (d *Direct) Name() string { return "direct" }

// Fetch reads all pages concurrently and returns the samples of the readable ones. The
// error names the pages that fail.
func (d *Direct) Fetch(ctx context.Context) ([]Sample, error) {
	var (
		group   sync.WaitGroup
		tickets = make(chan struct{}, maxFetches)
		samples = make([][]Sample, len(d.pages))
		errs    = make([]error, len(d.pages))
		apart   = d.routerApart()
	)
	if len(d.pages) == 0 {
		return nil, errors.New("cluster.metrics_urls names no page to read (" + NoTarget + ")")
	}
	for i, page := range d.pages {
		if page.own && d.names(apart) {
			page.problem.Store(nil)
			continue
		}
		group.Go(func() {
			tickets <- struct{}{}
			defer func() { <-tickets }()
			samples[i], errs[i] = d.read(ctx, page)
			for k := range samples[i] {
				samples[i][k].own = page.own && !samples[i][k].relayed
			}
			page.problem.Store(nil)
			if apart != nil && slices.ContainsFunc(samples[i], func(s Sample) bool { return apart.Writes(s.Name) }) {
				page.router.Store(apart)
			}
			if errs[i] != nil {
				if len(samples[i]) == 0 {
					if apart != nil && page.own {
						errs[i] = fmt.Errorf("%w; %s has its metrics at %s, so add that page to cluster.metrics_urls", errs[i],
							apart.Name, apart.Metrics.Page)
					}
					page.problem.Store(new(errs[i].Error()))
				}
				errs[i] = fmt.Errorf("%s: %w", page.Redacted(), errs[i])
			}
		})
	}
	group.Wait()
	all := slices.Concat(samples...)
	if len(all) > maxSamples {
		all = all[:maxSamples]
		errs = append(errs, fmt.Errorf("cut after %d samples of all pages", maxSamples))
	}
	return all, errors.Join(errs...)
}

// routerApart returns the router behind the target's address if its metrics are on a page of its own, else nil.
func (d *Direct) routerApart() *router.Router {
	if d.Router == nil {
		return nil
	}
	r := router.ByID(d.Router())
	if r == nil || r.Metrics.Page == "" {
		return nil
	}
	return r
}

// names reports whether one of the further pages has shown metrics of r.
func (d *Direct) names(r *router.Router) bool {
	return r != nil && slices.ContainsFunc(d.pages, func(p *page) bool { return !p.own && p.router.Load() == r })
}

// page is one metrics page.
type page struct {
	*url.URL
	own     bool // the page belongs to the target
	known   seriesCache
	problem atomic.Pointer[string]        // error of the latest reading; nil after a success
	router  atomic.Pointer[router.Router] // router apart whose metrics the page has shown; nil: none
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
		return nil, readable(err)
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
// together with an error come from a page that was cut or has invalid lines.
func (p *page) parse(body io.Reader) ([]Sample, error) {
	var (
		in    = &intake{from: plausible.Metrics}
		lines = bufio.NewReaderSize(body, maxLine)
		first []byte // the first sample's line, which shows whether the page is in the format
		long  bool   // the next bytes continue a line that is too long
		last  []byte // name and delimiter of the previous line, which are often those of the next
		keep  bool   // the metric with the name in last is wanted
		err   error
	)
	for err == nil && !in.full {
		var line []byte
		line, err = lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			in.unreadable = true
			err = nil
			if first == nil {
				first = bytes.Clone(bytes.TrimSpace(line))
			}
			continue
		}
		if long || err != nil && !errors.Is(err, io.EOF) { // a cut line may end in a cut number
			long = false
			continue
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(last) == 0 || !bytes.HasPrefix(line, last) {
			name := metricName(line)
			_, keep = wanted[string(name)]
			last = append(last[:0], line[:min(len(name)+1, len(line))]...)
		}
		if keep && in.room() {
			p.addLine(in, line)
		}
		if first == nil {
			first = bytes.Clone(bytes.TrimSpace(line))
		}
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return in.samples, errors.Join(fmt.Errorf("cut after %d MiB", maxBody>>20), in.omissions())
	case err != nil && !errors.Is(err, io.EOF):
		return nil, readable(err)
	case len(in.samples) == 0 && len(first) > 0:
		return in.samples, notPrometheus(first, in.omissions())
	}
	return in.samples, in.omissions()
}

// notPrometheus returns why a page with this first line is not in the text format, or else the error otherwise.
func notPrometheus(first []byte, otherwise error) error {
	if first[0] == '[' || first[0] == '{' {
		return errors.New("it is JSON, such as the iterations of TensorRT-LLM; trtllm-serve has its Prometheus page " +
			"at /prometheus/metrics (return_perf_metrics: true), so name that in cluster.metrics_urls, with " + NoTarget)
	}
	if _, err := families(append(first, '\n')); err != nil {
		return fmt.Errorf("not in the Prometheus text format: %w", err)
	}
	return otherwise
}

// metricName returns the name of the metric on a line of a page.
func metricName(line []byte) []byte {
	for i, c := range line {
		if c == '{' || c == ' ' || c == '\t' {
			return line[:i]
		}
	}
	return nil
}

// addLine adds a sample line to in: a name with or without labels, a number and optionally a time.
func (p *page) addLine(in *intake, line []byte) {
	line = withoutExemplar(line)
	end := bytes.LastIndexByte(line, '}') + 1
	if end == 0 {
		end = len(metricName(line))
	}
	s, ok := p.known.find(line[:end], p.series)
	if !ok {
		in.unreadable = true
		return
	}
	number, _, _ := bytes.Cut(bytes.TrimSpace(line[end:]), []byte(" "))
	in.add(s, string(number))
}

// withoutExemplar cuts the exemplar off a line of OpenMetrics. The value of a label may look like the start of one.
func withoutExemplar(line []byte) []byte {
	mark := []byte(" # {")
	if !bytes.Contains(line, mark) {
		return line
	}
	quoted := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case !quoted && bytes.HasPrefix(line[i:], mark):
			return line[:i]
		}
	}
	return line
}

// series parses the name and labels of a series and adds the page's host as the
// label instance. It renames the page's own instance and pod, as Prometheus does.
// Engine metrics do not name their worker; that label joins them with the metrics
// that do.
func (p *page) series(text []byte) (string, model.LabelSet) {
	parsed, err := families(append(bytes.Clone(text), " 0\n"...))
	if err != nil {
		return "", nil
	}
	labels := model.LabelSet{model.InstanceLabel: model.LabelValue(p.Host)}
	for name, family := range parsed {
		for _, l := range family.GetMetric()[0].GetLabel() {
			label := model.LabelName(l.GetName())
			if label == model.InstanceLabel || label == "pod" && !slices.Contains(gpuMetrics, name) {
				label = model.ExportedLabelPrefix + label
			}
			labels[label] = model.LabelValue(l.GetValue())
		}
		return name, labels
	}
	return "", nil
}

func families(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}
