package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits that are needed beyond [Limits].
const (
	MaxBody     = 64 << 10 // bytes of a request's body
	MaxBaseline = 1 << 20  // bytes of a baseline
	MaxSweeps   = 1000     // that are kept

	MaxBaselines    = 100    // that are stored: imported ones and those made of a sweep
	MaxBaselineRows = 50_000 // of all of them
	MaxPageRows     = 10_000 // of a page of baselines, if it has more than one
	MaxToken        = 512    // bytes
	MaxLogin        = 190    // bytes; as long as Grafana's own

	MaxConcurrency = 100_000   // conversations
	MaxTurns       = 50        // of a conversation
	MaxTokens      = 131_072   // of an answer
	MaxOpenings    = 1_000_000 // in circulation; a conversation's own have numbers from there on
	MaxLine        = 200       // characters of a title
	MaxName        = 100       // characters of the name of a baseline
)

// Limit is what a number may be, or how long a text: from Min to Max, both included.
type Limit struct {
	Min, Max float64
	Above    bool    // Min itself is too little
	Unit     string  // in words; characters is that of texts
	Default  float64 // of a parameter that a query may leave out
}

const characters = "characters"

// Limits are the ranges that depend on no state, by the path of a field in a
// body or in the configuration, or by the name of a parameter. Times are in
// seconds. Tests hold the OpenAPI document and src/client/limits.ts against them.
var Limits = map[string]Limit{
	"concurrency":        {Min: 1, Max: MaxConcurrency},
	"max_concurrency":    {Min: 1, Max: MaxConcurrency},
	"turns.min":          {Min: 1, Max: MaxTurns},
	"turns.max":          {Min: 1, Max: MaxTurns},
	"openings":           {Min: 0, Max: MaxOpenings},
	"opening_tokens":     {Min: 200, Max: 8000},
	"max_tokens":         {Min: 1, Max: MaxTokens},
	"output_tokens.mean": {Min: 0, Max: MaxTokens},
	"output_tokens.cv":   {Min: 0, Max: 2},
	"start_rate":         {Min: 0, Max: 1000, Above: true, Unit: "conversations per second"},
	"target_rps":         {Min: 0, Max: 10_000, Unit: "requests per second"},
	"think_time":         {Min: 0, Max: 3600, Unit: "seconds"},
	"slo.ttft":           {Min: 0, Max: 3600, Above: true, Unit: "seconds"},
	"slo.tpot":           {Min: 0, Max: 3600, Above: true, Unit: "seconds"},
	"slider.min":         {Min: 1, Max: MaxConcurrency},
	"slider.max":         {Min: 1, Max: MaxConcurrency},
	"slider.increment":   {Min: 1, Max: MaxConcurrency},
	"default_baseline":   {Max: MaxName, Unit: characters},
	"title":              {Max: MaxLine, Unit: characters},
	"subtitle":           {Max: MaxLine, Unit: characters},

	"lane":                {Max: 64, Unit: characters},
	"topic":               {Max: MaxLine, Unit: characters},
	"cursor":              {Max: MaxLine, Unit: characters},
	"baseline":            {Max: MaxName, Unit: characters},
	"conversations.limit": {Min: 1, Max: 200, Default: 50},
	"baselines.limit":     {Min: 1, Max: 200, Default: 100},
	"events.limit":        {Min: 1, Max: 1000, Default: 100},
	"decisions.limit":     {Min: 1, Max: 1000, Default: 50},
}

// Allows says whether n is in range; what is not a number is not.
func (l Limit) Allows(n float64) bool {
	return n >= l.Min && n <= l.Max && (!l.Above || n > l.Min)
}

// String says what is allowed.
func (l Limit) String() string {
	low, high := plain(l.Min), plain(l.Max)
	text := low + " to " + high
	switch {
	case l.Unit == characters:
		text = "at most " + high
	case l.Above:
		text = "more than " + low + ", up to " + high
	}
	return strings.TrimSpace(text + " " + l.Unit)
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// CheckText holds the length of a text against the limit of its name, if there
// is one. The error is a [FieldError].
func CheckText(name, text string) error {
	if l, ok := Limits[name]; ok && !l.Allows(float64(utf8.RuneCountInString(text))) {
		return Refuse(name, fmt.Sprintf("%.40q…", text), l.String())
	}
	return nil
}

// CheckLimits holds the fields of a struct against [Limits], by their names in
// JSON; the least of a [Range] or [Slider] besides against its greatest. A time is taken in
// seconds, and a word has to be one that the API knows. What is left out of the
// JSON is not looked at. The error is a [FieldError].
func CheckLimits(body any) error { return checkFields(Limits, "", reflect.ValueOf(body)) }

func checkFields(limits map[string]Limit, path string, v reflect.Value) error {
	for field, value := range v.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value.IsZero() && (options == "omitempty" || value.Kind() == reflect.Pointer) {
			continue
		}
		if err := checkField(limits, path+name, reflect.Indirect(value)); err != nil {
			return err
		}
	}
	switch r := v.Interface().(type) {
	case Range:
		if r.Min > r.Max {
			return Refuse(path+"min", r.Min, fmt.Sprintf("%v to %d", limits[path+"min"].Min, r.Max))
		}
	case Slider:
		if r.Min >= r.Max {
			return Refuse(path+"min", r.Min, fmt.Sprintf("less than %d (%smax)", r.Max, path))
		}
	}
	return nil
}

func checkField(limits map[string]Limit, path string, v reflect.Value) error {
	var n float64
	switch value := v.Interface().(type) {
	case Mode:
		return OneOf(path, value, Modes)
	case Speculation:
		return OneOf(path, value, Speculations)
	case Vendor:
		return OneOf(path, value, Vendors)
	case string:
		return CheckText(path, value)
	case int:
		n = float64(value)
	case float64:
		n = value
	case time.Duration:
		n = value.Seconds()
	default:
		if v.Kind() == reflect.Struct {
			return checkFields(limits, path+".", v)
		}
		return nil
	}
	if l, ok := limits[path]; ok && !l.Allows(n) {
		return Refuse(path, v.Interface(), l.String())
	}
	return nil
}

// OneOf refuses a word that is not among those allowed. The error is a [FieldError].
func OneOf[T ~string](field string, word T, allowed []T) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, name := range allowed {
		names[i] = string(name)
	}
	return Refuse(field, fmt.Sprintf("%.40q", string(word)), "one of "+strings.Join(names, ", "))
}

// Check holds the settings against [Limits] and against one another. The error
// is a [FieldError].
func (s Settings) Check() error {
	if err := CheckLimits(s); err != nil {
		return err
	}
	switch {
	case s.Slider.Max > s.MaxConcurrency:
		return Refuse("slider.max", s.Slider.Max, fmt.Sprintf("at most %d (max_concurrency)", s.MaxConcurrency))
	case s.Slider.Increment > s.Slider.Max-s.Slider.Min:
		return Refuse("slider.increment", s.Slider.Increment, fmt.Sprintf("at most %d (slider.max - slider.min)", s.Slider.Max-s.Slider.Min))
	}
	return cmp.Or(checkLine("title", s.Title), checkLine("subtitle", s.Subtitle))
}

// checkLine refuses a text that is no one line. The error is a [FieldError].
func checkLine(field, text string) error {
	if utf8.RuneCountInString(text) > MaxLine || strings.ContainsFunc(text, unicode.IsControl) {
		return Refuse(field, fmt.Sprintf("%.40q", text), fmt.Sprintf("one line of at most %d characters", MaxLine))
	}
	return nil
}
