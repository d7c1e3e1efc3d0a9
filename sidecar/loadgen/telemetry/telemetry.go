// Package telemetry exports the metrics of a load generator, and one trace per turn, over OTLP to an OpenTelemetry
// collector. The variables of the OpenTelemetry SDK configure it; without an endpoint among them nothing is started.
package telemetry

import (
	"cmp"
	"context"
	"errors"
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
	maxQueued   = 2048            // turns that wait to become spans, as in the queue of the SDK
	protocol    = "http/protobuf"
	service     = "loadgen"
)

// Exporter exports metrics, traces or both. A nil Exporter exports nothing. It is safe for concurrent use.
type Exporter struct {
	failures failures
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
	e := &Exporter{stop: make(chan struct{}), turns: make(chan ended, maxQueued)}
	e.failures = failures{log: log, endpoint: cmp.Or(tracesURL, metricsURL), dropped: &e.dropped}
	otel.SetErrorHandler(&e.failures)
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	e.resource, err = resource.New(ctx, resource.WithTelemetrySDK(), resource.WithService(), resource.WithAttributes(
		semconv.ServiceName(service), semconv.ServiceVersion(api.ProgramVersion())), resource.WithFromEnv())
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
	e.failures.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var errs [2]error
	var wg sync.WaitGroup
	if e.reader != nil {
		wg.Go(func() { errs[0] = e.reader.Shutdown(ctx) })
	}
	if e.spans != nil {
		// From then on requests fail at once, which empties the queues.
		end := context.AfterFunc(ctx, func() { _ = e.spans.Shutdown(ctx) })
		defer end()
		wg.Go(func() {
			close(e.stop)
			e.wg.Wait()
			errs[1] = e.provider.Shutdown(context.WithoutCancel(ctx))
		})
	}
	wg.Wait()
	err := errors.Join(errs[:]...)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("it took longer than %s", closeWithin)
	}
	e.failures.end(err)
}

// failures logs the errors of the SDK, which has one for each batch, at most once a minute.
type failures struct {
	log      *slog.Logger
	endpoint string
	dropped  *atomic.Int64

	mu      sync.Mutex
	last    error
	count   int // since the last message
	logged  time.Time
	closing bool // the message at the end is still to come
}

// Handle implements [otel.ErrorHandler].
func (f *failures) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
	f.count++
	if !f.closing && time.Since(f.logged) >= time.Minute {
		f.report()
	}
}

func (f *failures) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closing = true
}

func (f *failures) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = cmp.Or(err, f.last)
	if err != nil || f.count > 0 || f.dropped.Load() > 0 {
		f.report()
	}
}

func (f *failures) report() {
	f.log.Warn("OpenTelemetry data was not exported completely", "endpoint", f.endpoint, "error", f.last,
		"errors", f.count, "turns_without_span", f.dropped.Load())
	f.count, f.logged = 0, time.Now()
}
