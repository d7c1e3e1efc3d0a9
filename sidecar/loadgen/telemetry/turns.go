package telemetry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"kvbooth/sidecar/api"
)

// ended is a turn with the model and the address that it was sent to.
type ended struct {
	api.Turn
	model, address string
}

// Traces reports whether turns are exported as traces.
func (e *Exporter) Traces() bool { return e != nil && e.spans != nil }

// startTraces starts the goroutine that makes spans. The SDK's queue makes it wait, so that turns are dropped, and
// counted, in one place.
func (e *Exporter) startTraces() {
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(e.resource), sdktrace.WithIDGenerator(requestIDs{}),
		sdktrace.WithBatcher(e.spans, sdktrace.WithBlocking()))
	e.tracer = e.provider.Tracer("kvbooth/loadgen", trace.WithInstrumentationVersion(api.ProgramVersion()),
		trace.WithSchemaURL(semconv.SchemaURL))
	e.wg.Go(func() {
		for {
			select {
			case t := <-e.turns:
				e.export(&t)
			case <-e.stop:
				for len(e.turns) > 0 {
					t := <-e.turns
					e.export(&t)
				}
				return
			}
		}
	})
}

// Turn exports a turn that has ended, which was sent to a model at a URL. It does not block: it drops and counts turns
// that the queue has no room for. It must not be called unless [Exporter.Traces] is true.
func (e *Exporter) Turn(t *api.Turn, model, address string) {
	turn := ended{*t, model, address}
	turn.UserMessage, turn.AssistantMessage = "", ""
	select {
	case e.turns <- turn:
	default:
		e.dropped.Add(1)
	}
}

// TraceParent returns the header of the same name for a turn's request. The span of [Exporter.Turn] has the same ids,
// and the same decision of the sampler, since both follow from the request id. It must not be called unless
// [Exporter.Traces] is true.
func (e *Exporter) TraceParent(requestID string) string {
	_, span := e.tracer.Start(withRequestID(requestID), "") // is never ended, hence never exported
	c := span.SpanContext()
	return fmt.Sprintf("00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags())
}

// export makes the span of a turn from its times.
func (e *Exporter) export(t *ended) {
	_, span := e.tracer.Start(withRequestID(t.RequestID), strings.TrimSpace("chat "+t.model),
		trace.WithTimestamp(t.Started), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes(t)...))
	if t.TTFT != nil {
		at := t.Started.Add(time.Duration(*t.TTFT * float64(time.Second)))
		span.AddEvent("kvbooth.first_token", trace.WithTimestamp(at))
	}
	if t.Status == api.TurnError {
		span.SetStatus(codes.Error, t.ErrorMessage)
	}
	span.End(trace.WithTimestamp(t.Ended))
}

// attributes returns a span's attributes: those of OpenTelemetry's conventions for generative AI where they have one,
// and kvbooth.* otherwise. Unknown values are absent.
func attributes(t *ended) []attribute.KeyValue {
	address, _ := url.Parse(t.address) // of the configuration, which has parsed it
	all := slices.DeleteFunc([]attribute.KeyValue{
		semconv.GenAIOperationNameChat, semconv.GenAIProviderNameOpenAI, semconv.GenAIRequestStream(true),
		semconv.GenAIConversationID(t.Conversation), semconv.GenAIRequestModel(t.model),
		semconv.ServerAddress(address.Hostname()), semconv.ErrorTypeKey.String(string(t.ErrorClass)),
		attribute.String("kvbooth.request_id", t.RequestID), attribute.Int("kvbooth.turn", t.Number),
		attribute.Int64("kvbooth.step", t.Step), attribute.Bool("kvbooth.counted", t.Counted),
		attribute.String("kvbooth.lane", t.Lane), attribute.String("kvbooth.arm", t.Arm),
		attribute.String("kvbooth.mode", string(t.Mode)), attribute.String("kvbooth.speculation", string(t.Speculation)),
		attribute.String("kvbooth.worker", t.Worker), attribute.String("kvbooth.status", string(t.Status)),
	}, func(a attribute.KeyValue) bool { return a.Value == attribute.StringValue("") })
	if port, err := strconv.Atoi(address.Port()); err == nil {
		all = append(all, semconv.ServerPort(port))
	}
	if t.FinishReason != "" {
		all = append(all, semconv.GenAIResponseFinishReasons(t.FinishReason))
	}
	if t.PromptTokens != nil {
		all = append(all, semconv.GenAIUsageInputTokens(*t.PromptTokens))
	}
	if t.CachedTokens != nil {
		all = append(all, semconv.GenAIUsageCacheReadInputTokens(*t.CachedTokens))
	}
	if t.OutputTokens != nil && t.TokenSource == "usage" {
		all = append(all, semconv.GenAIUsageOutputTokens(*t.OutputTokens))
	}
	if t.TTFT != nil {
		all = append(all, semconv.GenAIResponseTimeToFirstChunk(*t.TTFT))
	}
	if t.Late != nil {
		all = append(all, attribute.Float64("kvbooth.late", *t.Late))
	}
	return all
}

type requestIDKey struct{}

func withRequestID(id string) context.Context {
	return context.WithValue(context.Background(), requestIDKey{}, id)
}

// requestIDs derives the ids of a trace and its span from a request id.
type requestIDs struct{}

// NewIDs implements [sdktrace.IDGenerator].
func (requestIDs) NewIDs(ctx context.Context) (traceID trace.TraceID, spanID trace.SpanID) {
	id, _ := ctx.Value(requestIDKey{}).(string)
	sum := sha256.Sum256([]byte(id))
	copy(traceID[:], sum[:])
	copy(spanID[:], sum[len(traceID):])
	return traceID, spanID
}

// NewSpanID implements [sdktrace.IDGenerator]. A trace has one span, so that nothing calls it.
func (g requestIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}
