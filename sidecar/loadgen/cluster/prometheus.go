package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-json"
	"github.com/prometheus/common/model"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// Prometheus reads the samples that a Prometheus server has scraped. It is safe
// for concurrent use. Samples are as old as the last scrape. A target disappears
// with the first scrape that fails.
type Prometheus struct {
	client  *http.Client
	url     string // base URL of the API
	wanted  string // the query for all wanted metrics
	scope   Scope
	known   seriesCache
	address string // address for messages, without a password

	mu      sync.Mutex
	targets targets
}

// Scope selects the series of one cluster on a Prometheus server. The zero value selects all.
type Scope struct {
	Namespace string // Kubernetes namespace
	// Graph is the DynamoGraphDeployment whose name prefixes the names of its pods. It requires Namespace.
	Graph string
	// ExcludeGraph is a second graph in the namespace, whose pods are left out. Its name may begin with Graph.
	ExcludeGraph string
}

// matchers returns the matchers on the pods' labels, each after a comma. prefix comes before each label.
func (w Scope) matchers(prefix string) string {
	if w.Namespace == "" {
		return ""
	}
	text := fmt.Sprintf(",%snamespace=%q", prefix, w.Namespace)
	if w.Graph == "" {
		return text
	}
	text += fmt.Sprintf(",%spod=~%q", prefix, regexp.QuoteMeta(w.Graph)+"-.+")
	if strings.HasPrefix(w.ExcludeGraph, w.Graph+"-") {
		text += fmt.Sprintf(",%spod!~%q", prefix, regexp.QuoteMeta(w.ExcludeGraph)+"-.+")
	}
	return text
}

// NewPrometheus reads the series of a cluster from the server at address. A nil client means one without
// credentials. An invalid address gives an [api.FieldError].
func NewPrometheus(address string, scope Scope, client *http.Client) (*Prometheus, error) {
	u, err := httpURL("cluster.prometheus_url", address)
	if err != nil {
		return nil, err
	}
	return &Prometheus{
		client: withMaxBody(client), url: u.JoinPath("api/v1").String(),
		wanted: promQuery(scope), scope: scope, address: u.Redacted(),
	}, nil
}

// promQuery selects every wanted metric by name, and the start times of the
// processes that write an engine's metrics. The DCGM exporter's series carry the
// namespace of the pod that uses the GPU; a scrape without honor_labels renames it
// to exported_namespace. "or" in PromQL compares labels without the metric's name,
// so it adds no series beside one of the left side for the same GPU.
func promQuery(scope Scope) string {
	own := scope.matchers("")
	all := fmt.Sprintf("{__name__=~%q%s}", strings.Join(wantedNames, "|"), own)
	if own != "" {
		all += fmt.Sprintf(" or {__name__=~%q%s}", strings.Join(gpuMetrics, "|"), scope.matchers("exported_"))
	}
	return fmt.Sprintf("%s or on(__name__, job, instance) (%s and on(job, instance) {__name__=~%q%s})", all,
		processStart[0], strings.Join(running, "|"), own)
}

// errNoneScraped reports a server that answers and has no metrics of a cluster.
var errNoneScraped = errors.New("it has scraped no metrics of Dynamo, TensorRT-LLM, vLLM, SGLang or DCGM")

// Name returns "prometheus".
func (p *Prometheus) Name() string { return "prometheus" }

// Fetch makes one instant query at the server's own time.
func (p *Prometheus) Fetch(ctx context.Context) ([]Sample, error) {
	in := &intake{from: plausible.Prometheus}
	err := p.ask(ctx, in)
	if err == nil && len(in.samples) == 0 && in.omissions() == nil {
		err = fmt.Errorf("%w%s", errNoneScraped, p.scopeText())
	}
	if err = cmp.Or(err, in.omissions()); err != nil {
		err = fmt.Errorf("Prometheus at %s: %w", p.address, err)
	}
	return in.samples, err
}

// queryResponse is the response of the query API. The value of a sample stays text,
// so that a number out of range does not end the decoding.
type queryResponse struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Type   string `json:"resultType"`
		Result []struct {
			Metric json.RawMessage `json:"metric"`
			Value  json.RawMessage `json:"value"` // time and value
		} `json:"result"`
	} `json:"data"`
}

// get makes a call of the API. Only a call without a complete response is an error: the caller checks the status.
func (p *Prometheus) get(ctx context.Context, call string, parameters url.Values) (body []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/"+call+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, 0, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, 0, readable(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		return nil, 0, readable(err)
	}
	return body, res.StatusCode, nil
}

// query makes an instant query for a vector.
func (p *Prometheus) query(ctx context.Context, text string) (response queryResponse, err error) {
	body, status, err := p.get(ctx, "query", url.Values{"query": {text}, "timeout": {readTimeout.String()}})
	if err != nil {
		return response, err
	}
	err = json.Unmarshal(body, &response)
	switch {
	case response.Error != "":
		return response, errors.New(response.Error)
	case status != http.StatusOK:
		return response, fmt.Errorf("answered %d %s", status, http.StatusText(status))
	case err != nil && !errors.As(err, new(*json.UnmarshalTypeError)): // a field of another type leaves a gap
		return response, fmt.Errorf("not an answer of the Prometheus API: %w", err)
	case response.Data.Type != "vector":
		return response, fmt.Errorf("it answers a query for a vector with a %q", response.Data.Type)
	}
	return response, nil
}

func (p *Prometheus) ask(ctx context.Context, in *intake) error {
	response, err := p.query(ctx, p.wanted)
	if err != nil {
		return err
	}
	for _, r := range response.Data.Result {
		if !in.room() {
			break
		}
		s, ok := p.known.find(r.Metric, seriesOf)
		if !ok {
			in.unreadable = true
			continue
		}
		_, number, _ := bytes.Cut(bytes.TrimRight(r.Value, "\" ]"), []byte(`"`)) // value is [1435781451.781,"12"]
		in.add(s, string(number))
	}
	return nil
}

// seriesOf parses a sample's labels, its name among them.
func seriesOf(text []byte) (string, model.LabelSet) {
	var labels model.LabelSet
	if json.Unmarshal(text, &labels) != nil {
		return "", nil
	}
	name := string(labels[model.MetricNameLabel])
	delete(labels, model.MetricNameLabel)
	return name, labels
}

// scopeText describes the scope as the end of a message.
func (p *Prometheus) scopeText() string {
	switch w := p.scope; {
	case w.Namespace == "":
		return ""
	case w.Graph != "":
		return fmt.Sprintf(" of %s in namespace %q", w.Graph, w.Namespace)
	}
	return fmt.Sprintf(" in namespace %q", p.scope.Namespace)
}
