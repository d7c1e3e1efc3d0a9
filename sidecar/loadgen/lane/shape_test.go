package lane

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// Every setting that changes the load at a concurrency is in the shape. A new setting fails the test until it is added.
func TestShapeHasEverySettingOfTheLoad(t *testing.T) {
	besides := map[string]string{
		"Level":        "it is the level of a row",
		"Arrivals":     "they are of a rate",
		"Ramp":         "it is of a rate",
		"Burstiness":   "it is of a rate",
		"MaxInflight":  "it is of a rate, and what it drops is counted",
		"TrafficShape": "others have no effect with it, so it is changed at the end",
		"StartRate":    "a step that it holds below its target has a row of the concurrency at which it was held",
	}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		shape := func() api.WorkloadShape { return b.lane.State().Shape }
		changes := map[string]func(){
			"questioner": func() { b.lane.opts.Questioner = corpus.FixedQuestioner{Text: "Why is that so?"} },
			"question":   func() { b.lane.opts.Questioner = corpus.FixedQuestioner{Text: "Why not? Explain it at length."} },
			"timeouts":   func() { b.lane.opts.Timeouts = &api.Timeouts{FirstToken: 1, Stall: 2, Turn: 3} },
			"request":    func() { b.lane.opts.Request = `{"ignore_eos":true}` },
			"session":    func() { b.lane.opts.Session = "header:X-Session-Id" },
			"request id": func() { f.noRequestID = true },
			"corpus":     func() { b.lane.corpus = b.lane.corpus.Sized(300) },
		}
		settings := reflect.ValueOf(&b.lane.settings).Elem()
		for i := range settings.NumField() {
			name, field := settings.Type().Field(i).Name, settings.Field(i)
			if besides[name] == "" {
				changes[name] = func() {
					switch v := field.Addr().Interface().(type) {
					case *api.Range:
						v.Max++
					case *api.Distribution:
						*v = api.Distribution{Mean: 10}
					case *workload.Openings:
						*v = 3
					case *int:
						*v++
					case *float64:
						*v++
					case *time.Duration:
						*v += time.Second
					default:
						require.Fail(t, "a setting of another kind", "%s is a %T", name, v)
					}
				}
			}
		}
		for name, change := range changes {
			before := shape()
			change()
			assert.NotEqual(t, before, shape(), name)
		}
		before := shape()
		b.lane.settings.TrafficShape.Preset = api.ShapeChat
		assert.NotEqual(t, before, shape())
	})
}
