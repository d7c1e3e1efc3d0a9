package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxFetches is the number of metrics pages that are fetched at once.
const maxFetches = 16

// Direct reads metrics pages in the Prometheus text format straight from the
// processes that expose them. It is safe for concurrent use.
type Direct struct {
	pages  []*url.URL
	client *http.Client
}

// NewDirect reads /metrics of the target (its URL with or without /v1) and of
// the further pages, which are taken as they are; one without a path means
// /metrics. A nil client means one without credentials. What is no URL gives an
// [api.FieldError].
func NewDirect(target string, further []string, client *http.Client) (*Direct, error) {
	u, err := targetURL(target)
	if err != nil {
		return nil, err
	}
	d := &Direct{pages: []*url.URL{u.JoinPath("metrics")}, client: bounded(client)}
	for _, raw := range further {
		page, err := httpURL("cluster.metrics_urls", raw)
		if err != nil {
			return nil, err
		}
		if page.Path == "" || page.Path == "/" {
			page.Path = "/metrics"
		}
		if !slices.ContainsFunc(d.pages, func(p *url.URL) bool { return p.String() == page.String() }) {
			d.pages = append(d.pages, page)
		}
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
			samples[i], errs[i] = d.page(ctx, page)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", page.Redacted(), errs[i])
			}
		})
	}
	group.Wait()
	return slices.Concat(samples...), errors.Join(errs...)
}

// page reads one page, and marks its samples with the host it came from, as
// Prometheus does. That label is what joins a worker's engine metrics, which do
// not name the worker, with those that do.
func (d *Direct) page(ctx context.Context, page *url.URL) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	vector, err := d.get(ctx, page)
	if err != nil {
		return nil, err
	}
	for _, v := range vector {
		v.Metric[model.InstanceLabel] = model.LabelValue(page.Host)
	}
	if samples := samplesOf(vector); len(samples) > 0 {
		return samples, nil
	}
	return nil, errors.New("no metrics of Dynamo, TensorRT-LLM or vLLM there")
}

func (d *Direct) get(ctx context.Context, page *url.URL) (model.Vector, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
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
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, plain(err)
	}
	return parse(body)
}

// parse reads a page in the text format and keeps the wanted metrics.
func parse(page []byte) (model.Vector, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("not in the Prometheus text format: %w", err)
	}
	kept := make([]*dto.MetricFamily, 0, len(wanted))
	for name, family := range families {
		if isWanted[name] || isWanted[name+"_sum"] {
			kept = append(kept, family)
		}
	}
	vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, kept...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(vector, func(s *model.Sample) bool {
		return !isWanted[string(s.Metric[model.MetricNameLabel])]
	}), nil
}
