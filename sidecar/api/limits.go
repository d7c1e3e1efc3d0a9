package api

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits that are not the range of a field in [Limits].
const (
	MaxBody     = 64 << 10 // bytes of a request's body
	MaxBaseline = 1 << 20  // bytes of a baseline
	MaxSweeps   = 1000     // stored sweeps

	MaxBaselines    = 100    // stored baselines, imported or made of a sweep
	MaxBaselineRows = 50_000 // rows of all stored baselines
	MaxPageRows     = 10_000 // rows on a page of several baselines
	MaxToken        = 512    // bytes
	MaxLogin        = 190    // bytes, the limit of Grafana

	MaxConcurrency = 100_000   // conversations
	MaxRate        = 10_000    // conversations that begin in a second
	MaxTurns       = 1000      // turns of a conversation: of 131 tokens each, they fill MaxTokens
	MaxTokens      = 131_072   // tokens of an answer or an opening text, which is the context of most models
	MaxOpenings    = 1_000_000 // shared opening texts; openings of a single conversation have higher numbers
	MaxLine        = 200       // characters of a title
)

// Limit is the range of a number, or of a text's length, from Min to Max. Both are included unless Above is set.
type Limit struct {
	Min, Max float64
	Above    bool    // values must be greater than Min
	Unit     string  // in words; "characters" for texts
	Default  float64 // value of a query parameter that is left out
}

const characters = "characters"

// Limits holds the ranges that do not depend on state. The key is the path of a field in a body or in the
// configuration. For a query parameter it is the name of the list and of the parameter. Times are in seconds.
var Limits = limitsOf[struct {
	WorkloadPatch
	SettingsPatch

	// settings of the configuration
	OpeningTokens int          `json:"opening_tokens"`
	OutputTokens  Distribution `json:"output_tokens"`
	ThinkTime     float64      `json:"think_time"`
	Burstiness    float64      `json:"burstiness"`
	MaxInflight   int          `json:"max_inflight"`

	// parameters of queries
	Conversations ConversationQuery `json:"conversations"`
	Baselines     BaselineQuery     `json:"baselines"`
	Comparison    ComparisonQuery   `json:"comparison"`
	Decisions     DecisionQuery     `json:"decisions"`
	Events        EventQuery        `json:"events"`
}]()

// limitsOf returns the limits of a struct's fields by their paths.
func limitsOf[T any]() map[string]Limit {
	all := map[string]Limit{}
	addLimits(all, "", reflect.TypeFor[T](), "")
	return all
}

// addLimits adds the limits of the fields of t to all. outer is the tag of the field of type t.
func addLimits(all map[string]Limit, path string, t reflect.Type, outer reflect.StructTag) {
	for f := range t.Fields() {
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		name, _ := fieldName(f)
		l, ok := FieldLimit(path+name, tagOf(f.Tag, outer))
		switch {
		case f.Anonymous:
			addLimits(all, path, inner, "")
		case isObject(inner):
			addLimits(all, path+name+".", inner, f.Tag)
		case ok:
			all[path+name] = l
		}
	}
}

// isObject reports whether a type is an object in JSON that has fields of its own. A [Level] is a single value.
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Level]()
}

// fieldName returns the name of a field in JSON or in a query, and the options of its tag.
func fieldName(f reflect.StructField) (name, options string) {
	name, options, _ = strings.Cut(cmp.Or(f.Tag.Get("json"), f.Tag.Get("query")), ",")
	return name, options
}

// LimitOf returns the limit in the tags of a field. The tags have the names of JSON Schema: minimum or
// exclusiveMinimum, and maximum for a number or for the numbers in an object or list; maxLength for a text. The tag
// unit is the unit, and default the default of a query parameter. ok is false if no tag sets a limit.
func LimitOf(tag reflect.StructTag) (l Limit, ok bool) {
	l = Limit{Max: math.MaxInt64, Unit: tag.Get("unit")}
	for key, to := range map[string]*float64{
		"minimum": &l.Min, "exclusiveMinimum": &l.Min, "maximum": &l.Max, "maxLength": &l.Max, "default": &l.Default,
	} {
		if n, err := strconv.ParseFloat(tag.Get(key), 64); err == nil {
			*to, ok = n, true
		}
	}
	_, l.Above = tag.Lookup("exclusiveMinimum")
	if tag.Get("maxLength") != "" {
		l.Unit = characters
	}
	return l, ok
}

// FieldLimit returns the limit of a field from its tags, or else from the workload setting with its path. It returns
// false if the field has no limit.
func FieldLimit(path string, tag reflect.StructTag) (Limit, bool) {
	if l, ok := LimitOf(tag); ok {
		return l, true
	}
	s, _ := WorkloadSettingOf(path)
	return s.Limit, s.Limit != Limit{}
}

// tagOf returns the tag of a field if it sets a limit, or else the tag of the field around it.
func tagOf(own, outer reflect.StructTag) reflect.StructTag {
	if _, ok := LimitOf(own); ok || outer == "" {
		return own
	}
	return outer
}

// maxItems returns the maximum length of a list in a field of T.
func maxItems[T any](field string) int {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	n, _ := strconv.Atoi(f.Tag.Get("maxItems"))
	return n
}

// Allows reports whether n is in the range. NaN is not.
func (l Limit) Allows(n float64) bool {
	return n >= l.Min && n <= l.Max && (!l.Above || n > l.Min)
}

// String describes the range, such as "1 to 50 tokens".
func (l Limit) String() string {
	low, high := plain(l.Min), plain(l.Max)
	text := low + " to " + high
	switch {
	case l.Unit == characters:
		text = "at most " + high
	case l.Max == math.MaxInt64:
		text = low + " or more"
	case l.Above:
		text = "more than " + low + ", up to " + high
	}
	return strings.TrimSpace(text + " " + l.Unit)
}

// plain formats a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// CheckLimits checks the fields of a struct against the limits of their tags, or else of [Limits]. It also checks the
// order of minimum and maximum in a [Range] or [Slider], and that the API knows the words. Fields that JSON omits are
// not checked. The error is a [*FieldError].
func CheckLimits(body any) error { return check{}.fields("", reflect.ValueOf(body), "") }

// CheckWithin checks a body like [CheckLimits], but against the given limits only.
func CheckWithin(limits map[string]Limit, body any) error {
	return check{limits}.fields("", reflect.ValueOf(body), "")
}

// check compares values with limits by their paths. Nil limits mean those of [FieldLimit], or else of [Limits].
type check struct{ limits map[string]Limit }

func (c check) fields(path string, v reflect.Value, outer reflect.StructTag) error {
	for f, value := range v.Fields() {
		name, options := fieldName(f)
		if value.IsZero() && (strings.HasPrefix(options, "omit") || value.Kind() == reflect.Pointer) {
			continue
		}
		if err := c.field(path+name, reflect.Indirect(value), tagOf(f.Tag, outer)); err != nil {
			return err
		}
	}
	switch r := v.Interface().(type) {
	case Range:
		if r.Min > r.Max {
			l, _ := c.limit(path+"min", outer)
			return Refuse(path+"min", r.Min, fmt.Sprintf("%v to %d", l.Min, r.Max))
		}
	case Slider:
		if r.Min >= r.Max {
			return Refuse(path+"min", r.Min, fmt.Sprintf("less than %d (%smax)", r.Max, path))
		}
	}
	return nil
}

func (c check) limit(path string, tag reflect.StructTag) (l Limit, ok bool) {
	if c.limits != nil {
		l, ok = c.limits[path]
	} else if l, ok = FieldLimit(path, tag); !ok {
		l, ok = Limits[path]
	}
	return l, ok
}

// CheckField checks one value like [CheckLimits]. path and tag belong to its field. The error is a [*FieldError].
func CheckField(path string, value any, tag reflect.StructTag) error {
	return check{}.field(path, reflect.ValueOf(value), tag)
}

func (c check) field(path string, v reflect.Value, tag reflect.StructTag) error {
	if words := tag.Get("enum"); words != "" {
		return OneOf(path, v.String(), strings.Split(words, ","))
	}
	var n float64
	switch value := v.Interface().(type) {
	case Mode:
		return OneOf(path, value, Modes)
	case Speculation:
		return OneOf(path, value, Speculations)
	case Arrivals:
		return OneOf(path, value, ArrivalKinds)
	case ConversationStatus:
		return OneOf(path, value, ConversationStatuses)
	case Vendor:
		return OneOf(path, value, Vendors)
	case ShapePreset:
		return OneOf(path, value, ShapePresets)
	case string:
		return c.text(path, value, tag)
	case int:
		n = float64(value)
	case Level:
		switch n = value.Value; {
		case value.IsRate():
			return nil
		case value.Kind == Rate:
			return Refuse(path, value, AllowedRate)
		}
	case float64:
		n = value
	case time.Duration:
		n = value.Seconds()
	default:
		switch v.Kind() {
		case reflect.Struct:
			return c.fields(path+".", v, tag)
		case reflect.Slice:
			return c.list(path, v, tag)
		}
		return nil
	}
	if l, ok := c.limit(path, tag); ok && !l.Allows(n) {
		return Refuse(path, v.Interface(), l.String())
	}
	return nil
}

func (c check) text(path, text string, tag reflect.StructTag) error {
	if l, ok := c.limit(path, tag); ok && !l.Allows(float64(utf8.RuneCountInString(text))) {
		return Refuse(path, fmt.Sprintf("%.40q…", text), l.String())
	}
	return nil
}

// list checks the length of a list and its items. Objects in a list are not checked.
func (c check) list(path string, list reflect.Value, tag reflect.StructTag) error {
	if most, err := strconv.Atoi(tag.Get("maxItems")); err == nil && c.limits == nil && list.Len() > most {
		return Refuse(path, fmt.Sprintf("a list of %d", list.Len()), fmt.Sprintf("at most %d of them", most))
	}
	if isObject(list.Type().Elem()) {
		return nil
	}
	for i := range list.Len() {
		if err := c.field(path, list.Index(i), tag); err != nil {
			return err
		}
	}
	return nil
}

// OneOf returns a [*FieldError] if allowed does not contain the word.
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

// Check checks the settings against [Limits] and against each other. The error is a [*FieldError].
func (s Settings) Check() error {
	if err := CheckLimits(s); err != nil {
		return err
	}
	switch {
	case s.Slider.Max > s.MaxConcurrency:
		return Refuse("slider.max", s.Slider.Max, fmt.Sprintf("at most %d (max_concurrency)", s.MaxConcurrency))
	case s.Slider.Increment > s.Slider.Max-s.Slider.Min:
		return Refuse("slider.increment", s.Slider.Increment, fmt.Sprintf("at most %d (slider.max - slider.min)",
			s.Slider.Max-s.Slider.Min))
	}
	return cmp.Or(checkLine("title", s.Title), checkLine("subtitle", s.Subtitle))
}

// checkLine returns a [*FieldError] for a text that is too long or contains control characters.
func checkLine(field, text string) error {
	if utf8.RuneCountInString(text) > MaxLine || strings.ContainsFunc(text, unicode.IsControl) {
		return Refuse(field, fmt.Sprintf("%.40q", text), fmt.Sprintf("one line of at most %d characters", MaxLine))
	}
	return nil
}
