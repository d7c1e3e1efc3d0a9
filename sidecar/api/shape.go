package api

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ShapePreset names a kind of traffic.
type ShapePreset string

// The presets. Package traffic has their numbers with the sources.
const (
	ShapeRecorded ShapePreset = "recorded" // the workload behind the recorded results
	ShapeChat     ShapePreset = "chat"     // conversations with lengths and turns of ShareGPT
	ShapePrefix   ShapePreset = "prefix"   // single requests of groups with a shared prefix
	ShapeRAG      ShapePreset = "rag"      // short questions about long documents
	ShapeAgent    ShapePreset = "agent"    // many turns with tool results on a shared system prompt
	ShapeFewShot  ShapePreset = "few-shot" // short questions behind templates with examples
	ShapeBatch    ShapePreset = "batch"    // single requests that share nothing
	ShapeMixed    ShapePreset = "mixed"    // several of the above, by weights
)

// ShapeInfo describes a preset.
type ShapeInfo struct {
	Preset      ShapePreset
	Label       string // name on screens
	Description string
	Grouped     bool // prompts begin with one of several groups, documents or templates
}

// Shapes lists all presets. It must not be modified.
var Shapes = []ShapeInfo{
	{ShapeRecorded, "Recorded", "The workload behind the recorded results", false},
	{ShapeChat, "Chat", "Conversations with the lengths and turns of ShareGPT", false},
	{ShapePrefix, "Prefix", "Single requests of groups with a shared prefix", true},
	{ShapeRAG, "RAG", "Short questions about long documents", true},
	{ShapeAgent, "Agent", "Many turns with results of tools, behind a shared system prompt", true},
	{ShapeFewShot, "Few-shot", "Short questions behind templates with examples", true},
	{ShapeBatch, "Batch", "Single requests that share nothing", false},
	{ShapeMixed, "Mixed", "Several of these, by weights", false},
}

// ShapePresets lists all presets by their names.
var ShapePresets = shapePresets()

func shapePresets() (all []ShapePreset) {
	for _, s := range Shapes {
		all = append(all, s.Preset)
	}
	return all
}

// grouped reports whether prompts of any part begin with a group's text.
func (s TrafficShape) grouped() bool {
	parts, _ := s.Parts() // parts that are refused have no groups
	return slices.ContainsFunc(parts, func(p ShapePart) bool {
		return Shapes[slices.Index(ShapePresets, p.Preset)].Grouped
	})
}

// TrafficShape is what conversations send. A number of 0 is that of the preset. Numbers apply to each part of a mix.
type TrafficShape struct {
	Preset        ShapePreset `json:"preset,omitempty" aliases:"shape" basic:"" default:"recorded" oneof:"recorded chat prefix rag agent few-shot batch mixed" help:"Traffic to send: recorded is the workload behind the recorded results (preset, turns, openings and the settings of answers and questions, which other shapes do not have); chat, rag, agent, few-shot and batch imitate published traffic; prefix is groups with a shared prefix; mixed is several of them, as in shape.mix."`
	Groups        int         `json:"groups,omitempty" label:"Groups" default:"0" minimum:"0" maximum:"1000000" help:"Number of groups, documents (rag) or templates (few-shot) that prompts begin with. 0: as the shape has."`
	PrefixTokens  int         `json:"prefix_tokens,omitempty" label:"Shared prefix" default:"0" minimum:"0" maximum:"131072" unit:"tokens" help:"Length of each of them; of agent, that of the system prompt with its tools. 0: as the shape has."`
	SuffixTokens  int         `json:"suffix_tokens,omitempty" label:"Added by a turn" default:"0" minimum:"0" maximum:"131072" unit:"tokens" help:"Mean length of what each turn adds to the prompt: a question, a suffix or the result of a tool. 0: as the shape has."`
	AnswerTokens  int         `json:"answer_tokens,omitempty" label:"Answer length" default:"0" minimum:"0" maximum:"131072" unit:"tokens" help:"Mean length of an answer. 0: as the shape has."`
	Zipf          float64     `json:"zipf,omitempty" label:"Zipf exponent" default:"0" minimum:"0" maximum:"4" help:"Exponent of the popularity of groups: the n-th is drawn in proportion to 1 / n^zipf. 0: as the shape has, which is even for prefix."`
	Turns         int         `json:"turns,omitempty" label:"Turns" default:"0" minimum:"0" maximum:"1000" help:"Number of turns of each conversation, up to its context. 0: as the shape has."`
	ContextTokens int         `json:"context_tokens,omitempty" label:"Longest context" default:"0" minimum:"0" maximum:"10000000" unit:"tokens" help:"Maximum length of prompt and answer together, before which a conversation ends. 0: the context of the model, else 131072."`
	Mix           string      `json:"mix,omitempty" maxLength:"200" placeholder:"SHAPE=WEIGHT,…" help:"Parts of the shape mixed with their weights, such as chat=3,agent=1. A part may name a model or an adapter: chat@NAME=1. Default: chat=6,rag=2,agent=1,batch=1."`
}

// DefaultMix is the mix of the shape mixed where none is set.
const DefaultMix = "chat=6,rag=2,agent=1,batch=1"

// ShapePart is a part of a [TrafficShape.Mix].
type ShapePart struct {
	Preset ShapePreset
	Model  string // empty: that of the target
	Weight float64
}

const allowedMix = "parts with weights of 0 or more, such as chat=3,agent@adapter=1, with presets from chat to batch " +
	"(shape.preset) and a sum above 0"

// Parts returns the parts of the shape: those of the mix, else the preset alone. The recorded one has none. The error
// is a [*FieldError].
func (s TrafficShape) Parts() ([]ShapePart, error) {
	if s.Recorded() {
		return nil, nil
	}
	if s.Preset != ShapeMixed {
		return []ShapePart{{Preset: s.Preset, Weight: 1}}, nil
	}
	mix := s.Mix
	if mix == "" {
		mix = DefaultMix
	}
	var parts []ShapePart
	sum := 0.
	for entry := range strings.SplitSeq(mix, ",") {
		what, weight, _ := strings.Cut(strings.TrimSpace(entry), "=")
		preset, model, named := strings.Cut(what, "@")
		p := ShapePart{Preset: ShapePreset(preset), Model: model}
		w, err := strconv.ParseFloat(weight, 64)
		single := slices.Contains(ShapePresets[1:len(ShapePresets)-1], p.Preset)
		if err != nil || !single || named && model == "" || !(w >= 0) || math.IsInf(w, 1) {
			return nil, Refuse("shape.mix", fmt.Sprintf("%.60q", entry), allowedMix)
		}
		p.Weight = w
		sum += w
		parts = append(parts, p)
	}
	if sum == 0 {
		return nil, Refuse("shape.mix", mix, allowedMix)
	}
	return parts, nil
}

// Check checks the shape. The error is a [*FieldError] of a field of the workload.
func (s TrafficShape) Check() error {
	if err := CheckLimits(struct {
		Shape TrafficShape `json:"shape"`
	}{s}); err != nil {
		return err
	}
	if _, err := s.Parts(); err != nil {
		return err
	}
	return TrafficKind{Shape: s}.CheckShape()
}

// Recorded reports whether the shape is that of the recorded results.
func (s TrafficShape) Recorded() bool { return s.Preset == "" || s.Preset == ShapeRecorded }

// String describes the shape, such as "prefix (groups 600, prefix_tokens 1000)".
func (s TrafficShape) String() string {
	var set []string
	for f, v := range reflect.ValueOf(s).Fields() {
		if name, _ := fieldName(f); name != "preset" && !v.IsZero() {
			set = append(set, fmt.Sprintf("%s %v", name, v.Interface()))
		}
	}
	text := string(cmp.Or(s.Preset, ShapeRecorded))
	if len(set) > 0 {
		text += " (" + strings.Join(set, ", ") + ")"
	}
	return text
}
