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

	"kvbooth/sidecar/loadgen/plausible"
)

// Prometheus reads the samples that a Prometheus server has scraped. It is safe
// for concurrent use. What it reads is as old as the last scrape; a target that
// a scrape does not reach any more vanishes with that scrape.
type Prometheus struct {
	client  *http.Client
	url     string // of the API
	wanted  string // the query for all that is wanted
	within  Within
	known   catalogue
	address string // for messages: without a password

	mu      sync.Mutex
	targets targets
}

// Within says which of a Prometheus server's series are a cluster's; the zero value is all of them.
type Within struct {
	Namespace string // in Kubernetes
	// Graph is the DynamoGraphDeployment, with whose name the names of its pods begin. It needs a namespace.
	Graph string
	// Beside is another one in that namespace, whose pods are left out: their names may begin with Graph, too.
	Beside string
}

// matchers are those of the pods' labels, which may have a prefix; each begins with a comma.
func (w Within) matchers(prefix string) string {
	if w.Namespace == "" {
		return ""
	}
	text := fmt.Sprintf(",%snamespace=%q", prefix, w.Namespace)
	if w.Graph == "" {
		return text
	}
	text += fmt.Sprintf(",%spod=~%q", prefix, regexp.QuoteMeta(w.Graph)+"-.+")
	if strings.HasPrefix(w.Beside, w.Graph+"-") {
		text += fmt.Sprintf(",%spod!~%q", prefix, regexp.QuoteMeta(w.Beside)+"-.+")
	}
	return text
}

// NewPrometheus reads from the server at address the series of a cluster. A nil client means one without
// credentials. An address that is no URL gives an [api.FieldError].
func NewPrometheus(address string, within Within, client *http.Client) (*Prometheus, error) {
	u, err := httpURL("cluster.prometheus_url", address)
	if err != nil {
		return nil, err
	}
	return &Prometheus{
		client: bounded(client), url: u.JoinPath("api/v1").String(),
		wanted: promQuery(within), within: within, address: u.Redacted(),
	}, nil
}

// promQuery selects every wanted metric by name, and when the processes began that write an engine's, which are few of
// all that a Prometheus knows. The DCGM exporter's series
// carry the namespace of the pod that uses the GPU; a scrape that does not
// honour the exporter's own labels renames it to exported_namespace. Prometheus'
// "or" compares labels without the metric's name, so the series that it adds
// never stand beside a series of the left side for the same GPU.
func promQuery(within Within) string {
	own := within.matchers("")
	all := fmt.Sprintf("{__name__=~%q%s}", strings.Join(wantedNames, "|"), own)
	if own != "" {
		all += fmt.Sprintf(" or {__name__=~%q%s}", strings.Join(gpuMetrics, "|"), within.matchers("exported_"))
	}
	return fmt.Sprintf("%s or on(__name__, job, instance) (%s and on(job, instance) {__name__=~%q%s})", all,
		processStart[0], strings.Join(running, "|"), own)
}

// errNoneScraped is that of a server that answers, and has nothing of a cluster.
var errNoneScraped = errors.New("it has scraped no metrics of Dynamo, TensorRT-LLM, vLLM, SGLang or DCGM")

// Name is prometheus.
func (p *Prometheus) Name() string { return "prometheus" }

// Fetch makes one instant query at the server's own time.
func (p *Prometheus) Fetch(ctx context.Context) ([]Sample, error) {
	in := &intake{from: plausible.Prometheus}
	err := p.ask(ctx, in)
	if err == nil && len(in.samples) == 0 && in.gaps() == nil {
		err = fmt.Errorf("%w%s", errNoneScraped, p.where())
	}
	if err = cmp.Or(err, in.gaps()); err != nil {
		err = fmt.Errorf("Prometheus at %s: %w", p.address, err)
	}
	return in.samples, err
}

// answer is that of the query API. The value of a sample is a number's text, so
// that a number beyond all bounds does not end the decoding.
type answer struct {
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

// get makes a call of the API.
func (p *Prometheus) get(ctx context.Context, call string, parameters url.Values) (body []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/"+call+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, 0, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, 0, plain(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		return nil, 0, plain(err)
	}
	return body, res.StatusCode, nil
}

// query makes an instant query for a vector.
func (p *Prometheus) query(ctx context.Context, text string) (told answer, err error) {
	body, status, err := p.get(ctx, "query", url.Values{"query": {text}, "timeout": {readTimeout.String()}})
	if err != nil {
		return told, err
	}
	switch err := json.Unmarshal(body, &told); {
	case told.Error != "":
		return told, errors.New(told.Error)
	case status != http.StatusOK:
		return told, fmt.Errorf("answered %d %s", status, http.StatusText(status))
	case err != nil && !errors.As(err, new(*json.UnmarshalTypeError)): // those leave a gap
		return told, fmt.Errorf("not an answer of the Prometheus API: %w", err)
	case told.Data.Type != "vector":
		return told, fmt.Errorf("it answers a query for a vector with a %q", told.Data.Type)
	}
	return told, nil
}

func (p *Prometheus) ask(ctx context.Context, in *intake) error {
	told, err := p.query(ctx, p.wanted)
	if err != nil {
		return err
	}
	for _, r := range told.Data.Result {
		if !in.room() {
			break
		}
		s, ok := p.known.find(r.Metric, seriesOf)
		if !ok {
			in.unreadable = true
			continue
		}
		_, number, _ := bytes.Cut(bytes.TrimRight(r.Value, "\" ]"), []byte(`"`)) // of [1435781451.781,"12"]
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

func (p *Prometheus) where() string {
	switch w := p.within; {
	case w.Namespace == "":
		return ""
	case w.Graph != "":
		return fmt.Sprintf(" of %s in namespace %q", w.Graph, w.Namespace)
	}
	return fmt.Sprintf(" in namespace %q", p.within.Namespace)
}
