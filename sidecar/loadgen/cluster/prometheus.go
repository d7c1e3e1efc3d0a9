package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Prometheus reads the samples that a Prometheus server has scraped. It is safe
// for concurrent use. What it reads is as old as the last scrape; a target that
// a scrape does not reach any more vanishes with that scrape.
type Prometheus struct {
	api       promv1.API
	query     string
	namespace string
	address   string // for messages: without a password
}

// NewPrometheus reads from the server at address. A namespace that is not empty
// limits the reading to one Kubernetes namespace. A nil client means one without
// credentials. An address that is no URL gives an [api.FieldError].
func NewPrometheus(address, namespace string, client *http.Client) (*Prometheus, error) {
	u, err := httpURL("cluster.prometheus_url", address)
	if err != nil {
		return nil, err
	}
	c, err := promapi.NewClient(promapi.Config{Address: u.String(), Client: bounded(client)})
	if err != nil {
		return nil, fmt.Errorf("cluster.prometheus_url: %w", err)
	}
	return &Prometheus{api: promv1.NewAPI(c), query: promQuery(namespace), namespace: namespace, address: u.Redacted()}, nil
}

// promQuery selects every wanted metric by name. The DCGM exporter's series
// carry the namespace of the pod that uses the GPU; a scrape that does not
// honour the exporter's own labels renames it to exported_namespace. Prometheus'
// "or" compares labels without the metric's name, so the series that it adds
// never stand beside a series of the left side for the same GPU.
func promQuery(namespace string) string {
	names := strings.Join(wanted, "|")
	if namespace == "" {
		return fmt.Sprintf("{__name__=~%q}", names)
	}
	return fmt.Sprintf("{__name__=~%q,namespace=%q} or {__name__=~%q,exported_namespace=%q}",
		names, namespace, strings.Join(gpuMetrics, "|"), namespace)
}

// Name is prometheus.
func (p *Prometheus) Name() string { return "prometheus" }

// Fetch makes one instant query at the server's own time.
func (p *Prometheus) Fetch(ctx context.Context) ([]Sample, error) {
	value, _, _, err := p.api.Query(ctx, p.query, time.Time{}, promv1.WithTimeout(readTimeout))
	if err != nil {
		return nil, fmt.Errorf("Prometheus at %s: %w", p.address, queryError(err))
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("Prometheus at %s answers a query for a vector with %T", p.address, value)
	}
	if samples := samplesOf(vector); len(samples) > 0 {
		return samples, nil
	}
	return nil, fmt.Errorf("Prometheus at %s has scraped no metrics of Dynamo, TensorRT-LLM or vLLM%s", p.address, p.where())
}

func (p *Prometheus) where() string {
	if p.namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", p.namespace)
}

// queryError keeps what Prometheus said, and drops what varies from call to call.
func queryError(err error) error {
	var said *promv1.Error
	if errors.As(err, &said) {
		return errors.New(said.Msg)
	}
	return plain(err)
}
