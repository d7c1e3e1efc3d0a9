// Package telemetry exports the metrics of a load generator, and one trace per turn, over OTLP to an OpenTelemetry
// collector. The variables of the OpenTelemetry SDK configure it; without an endpoint among them nothing is started.
package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"kvbooth/sidecar/api"
)

const (
	closeWithin = 5 * time.Second // the longest time that [Exporter.Close] takes
	maxQueued   = 2048            // turns that wait to become spans
	protocol    = "http/protobuf"
)

// Exporter exports metrics, traces or both. A nil Exporter exports nothing. It is safe for concurrent use.
type Exporter struct {
	log      *slog.Logger
	endpoint string // for messages
	resource *resource.Resource
	metrics  metric.Exporter       // nil: no metrics
	reader   *metric.MeterProvider // nil before [Exporter.Start]
	spans    sdktrace.SpanExporter // nil: no traces
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	turns    chan ended
	dropped  atomic.Int64
	stop     chan struct{}
	wg       sync.WaitGroup

	mu     sync.Mutex
	last   error
	errors int // since the last message
	logged time.Time
}

// Open reads the environment and returns an exporter, nil if the environment names no endpoint. It connects to nothing.
// An error is an [api.FieldError] that names the variable, or comes from the SDK.
func Open(ctx context.Context, log *slog.Logger) (*Exporter, error) {
	metricsURL, err := endpoint("METRICS")
	if err != nil {
		return nil, err
	}
	tracesURL, err := endpoint("TRACES")
	if err != nil || metricsURL == "" && tracesURL == "" {
		return nil, err
	}
	e := &Exporter{
		log: log, endpoint: cmp.Or(tracesURL, metricsURL), turns: make(chan ended, maxQueued), stop: make(chan struct{}),
	}
	otel.SetErrorHandler(e)
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	e.resource, err = resource.New(ctx, resource.WithTelemetrySDK(), resource.WithService(), resource.WithAttributes(
		semconv.ServiceName("loadgen"), semconv.ServiceVersion(api.ProgramVersion())), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if metricsURL != "" {
		if e.metrics, err = otlpmetrichttp.New(ctx); err != nil {
			return nil, err
		}
	}
	if tracesURL != "" {
		if e.spans, err = otlptracehttp.New(ctx); err != nil {
			return nil, err
		}
		e.startTraces()
	}
	return e, nil
}

// endpoint returns the URL to which a signal, METRICS or TRACES, is exported; "" for none.
func endpoint(signal string) (string, error) {
	name, value := variable(signal, "ENDPOINT")
	selected := "OTEL_" + signal + "_EXPORTER"
	if value == "" || os.Getenv(selected) == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	if exporter := os.Getenv(selected); exporter != "" && exporter != "otlp" {
		return "", api.Refuse(selected, exporter, "otlp, or none")
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", api.Refuse(name, value, "a URL such as http://collector:4318")
	}
	if name, value := variable(signal, "PROTOCOL"); value != "" && value != protocol {
		return "", api.Refuse(name, value, protocol+", to which collectors listen on port 4318")
	}
	return u.Redacted(), nil
}

// variable returns the variable of a signal, else that of all signals.
func variable(signal, setting string) (name, value string) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	name = prefix + signal + "_" + setting
	if value = os.Getenv(name); value == "" {
		name = prefix + setting
		value = os.Getenv(name)
	}
	return name, value
}

// Start begins to export the registry's metrics, in the SDK's interval. It is called at most once.
func (e *Exporter) Start(registry prometheus.Gatherer) {
	if e == nil || e.metrics == nil {
		return
	}
	e.reader = metric.NewMeterProvider(metric.WithResource(e.resource), metric.WithReader(metric.NewPeriodicReader(
		e.metrics, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(registry))))))
}

// Close exports what is left, for at most 5 s, and logs a warning if that fails. No method is called after it.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.logged = time.Now() // so that errors from here on are in the message below alone
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var wg sync.WaitGroup
	if e.reader != nil {
		wg.Go(func() { e.failed(e.reader.Shutdown(ctx)) })
	}
	if e.spans != nil {
		// At the timeout, requests begin to fail at once, which empties the queues.
		defer context.AfterFunc(ctx, func() { _ = e.spans.Shutdown(ctx) })()
		wg.Go(func() {
			close(e.stop)
			e.wg.Wait()
			e.failed(e.provider.Shutdown(context.WithoutCancel(ctx)))
		})
	}
	wg.Wait()
	e.failed(ctx.Err())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.errors > 0 || e.dropped.Load() > 0 {
		e.report()
	}
}

// Handle implements [otel.ErrorHandler]. The SDK has an error for each batch.
func (e *Exporter) Handle(err error) {
	e.failed(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.logged) >= time.Minute {
		e.report()
	}
}

// failed counts an error; nil is none.
func (e *Exporter) failed(err error) {
	if err == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
	e.errors++
}

// report logs what has failed. The caller holds the lock.
func (e *Exporter) report() {
	e.log.Warn("OpenTelemetry data was not exported completely", "endpoint", e.endpoint, "error", e.last,
		"errors", e.errors, "turns_without_span", e.dropped.Load())
	e.errors, e.logged = 0, time.Now()
}
