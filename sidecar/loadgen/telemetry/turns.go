package telemetry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
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
	e.tracer = e.provider.Tracer("kvbooth/"+service, trace.WithInstrumentationVersion(api.ProgramVersion()),
		trace.WithSchemaURL(semconv.SchemaURL))
	e.wg.Go(func() {
		for {
			select {
			case t := <-e.turns:
				e.export(&t)
				continue
			default:
			}
			select {
			case t := <-e.turns:
				e.export(&t)
			case <-e.stop:
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
	all := []attribute.KeyValue{
		semconv.GenAIOperationNameChat, semconv.GenAIProviderNameOpenAI, semconv.GenAIRequestStream(true),
		semconv.GenAIConversationID(t.Conversation), attribute.String("kvbooth.request_id", t.RequestID),
		attribute.Int("kvbooth.turn", t.Number), attribute.Int64("kvbooth.step", t.Step),
		attribute.Bool("kvbooth.counted", t.Counted),
	}
	words := func(key attribute.Key, value string) {
		if value != "" {
			all = append(all, key.String(value))
		}
	}
	words(semconv.GenAIRequestModelKey, t.model)
	words("kvbooth.lane", t.Lane)
	words("kvbooth.arm", t.Arm)
	words("kvbooth.mode", string(t.Mode))
	words("kvbooth.speculation", string(t.Speculation))
	words("kvbooth.worker", t.Worker)
	words("kvbooth.status", string(t.Status))
	words(semconv.ErrorTypeKey, string(t.ErrorClass))
	if t.FinishReason != "" {
		all = append(all, semconv.GenAIResponseFinishReasons(t.FinishReason))
	}
	if u, err := url.Parse(t.address); err == nil {
		words(semconv.ServerAddressKey, u.Hostname())
		if port, err := strconv.Atoi(u.Port()); err == nil {
			all = append(all, semconv.ServerPort(port))
		}
	}
	tokens := func(key attribute.Key, n *int) {
		if n != nil {
			all = append(all, key.Int(*n))
		}
	}
	tokens(semconv.GenAIUsageInputTokensKey, t.PromptTokens)
	tokens(semconv.GenAIUsageCacheReadInputTokensKey, t.CachedTokens)
	if t.TokenSource == "usage" {
		tokens(semconv.GenAIUsageOutputTokensKey, t.OutputTokens)
	}
	seconds := func(key attribute.Key, s *float64) {
		if s != nil {
			all = append(all, key.Float64(*s))
		}
	}
	seconds(semconv.GenAIResponseTimeToFirstChunkKey, t.TTFT)
	seconds("kvbooth.late", t.Late)
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
