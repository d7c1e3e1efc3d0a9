package api

import (
	"encoding/json"
	"reflect"
	"strings"
)

// TrafficKind is what decides which settings of a workload apply.
type TrafficKind struct {
	Trace    bool // recorded traffic runs
	Shape    TrafficShape
	Arrivals Arrivals // empty: not known
	Number   bool     // a number of conversations is held, and no rate can follow
}

// applicable lists the settings that some traffic ignores, by their names or those of their sections.
var applicable = []struct {
	names   string
	applies func(TrafficKind) bool
	allowed string
}{
	{
		"shape.preset", func(t TrafficKind) bool { return !t.Trace || t.Shape.Recorded() },
		"leave it out with a trace (--trace), which is itself traffic",
	},
	{
		"turns openings opening_tokens output_tokens question_tokens corpus followup",
		func(t TrafficKind) bool { return !t.Trace && t.Shape.Recorded() },
		"leave it out unless the shape (shape.preset) is recorded; a trace and other shapes plan what conversations send",
	},
	{
		"max_tokens", func(t TrafficKind) bool { return t.Shape.Recorded() },
		"leave it out unless the shape (shape.preset) is recorded; shape.answer_tokens sets the lengths of others",
	},
	{
		"arrivals burstiness max_inflight", func(t TrafficKind) bool { return !t.Number },
		"leave it out without a rate (--rate)",
	},
	{
		"burstiness", func(t TrafficKind) bool { return t.Arrivals == "" || t.Arrivals == ArrivalsGamma },
		"leave it out unless arrivals is gamma",
	},
	{
		"trace_speed trace_from trace_to trace_sessions trace_loop trace_skip_invalid trace_block_tokens trace_time_unit",
		func(t TrafficKind) bool { return t.Trace },
		"leave it out without a trace (--trace)",
	},
	{
		"shape.groups shape.prefix_tokens shape.zipf", func(t TrafficKind) bool { return t.Shape.grouped() },
		"leave it out unless prompts of the shape (shape.preset) begin with those of groups: prefix, rag, agent, few-shot, " +
			"and mixed with one of them",
	},
	{
		"shape.suffix_tokens shape.answer_tokens shape.turns shape.context_tokens",
		func(t TrafficKind) bool { return !t.Shape.Recorded() },
		"leave it out unless the shape (shape.preset) is another one than recorded",
	},
	{
		"shape.mix", func(t TrafficKind) bool { return t.Shape.Preset == ShapeMixed },
		"leave it out unless the shape (shape.preset) is mixed",
	},
}

// CheckSetting returns a [*FieldError] if the traffic ignores the setting with a name.
func (t TrafficKind) CheckSetting(name string, value any) error {
	for _, s := range applicable {
		for field := range strings.FieldsSeq(s.names) {
			if (name == field || strings.HasPrefix(name, field+".")) && !s.applies(t) {
				return Refuse(name, value, s.allowed)
			}
		}
	}
	return nil
}

// CheckShape checks the numbers of the shape like CheckSetting; 0 is that of the preset.
func (t TrafficKind) CheckShape() error { return t.checkFields("shape.", reflect.ValueOf(t.Shape)) }

// CheckRequest checks the fields that a request has like CheckSetting.
func (t TrafficKind) CheckRequest(request any) error {
	return t.checkFields("", reflect.ValueOf(request))
}

func (t TrafficKind) checkFields(path string, fields reflect.Value) error {
	for f, v := range fields.Fields() {
		if v.IsZero() {
			continue
		}
		name, _ := fieldName(f)
		value := reflect.Indirect(v).Interface()
		if shape, ok := value.(TrafficShape); ok {
			name, value = "shape.preset", shape.Preset
		}
		if isObject(reflect.TypeOf(value)) {
			text, _ := json.Marshal(value) // numbers only
			value = string(text)
		}
		if err := t.CheckSetting(path+name, value); err != nil {
			return err
		}
	}
	return nil
}
