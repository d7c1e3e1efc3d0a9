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
)

// Limit is what a number may be, or how long a text: from Min to Max, both included.
type Limit struct {
	Min, Max float64
	Above    bool    // Min itself is too little
	Unit     string  // in words; characters is that of texts
	Default  float64 // of a parameter that a query may leave out
}

const characters = "characters"

// Limits are the ranges that depend on no state, by the path of a field in a body or in the configuration, or of a
// parameter below the list that it is about. Times are in seconds.
var Limits = limitsOf[struct {
	WorkloadPatch
	SettingsPatch

	// of the configuration alone
	OpeningTokens int          `json:"opening_tokens"`
	OutputTokens  Distribution `json:"output_tokens"`
	ThinkTime     float64      `json:"think_time"`

	// of queries
	Conversations ConversationQuery `json:"conversations"`
	Baselines     BaselineQuery     `json:"baselines"`
	Comparison    ComparisonQuery   `json:"comparison"`
	Decisions     DecisionQuery     `json:"decisions"`
	Events        EventQuery        `json:"events"`
}]()

// limitsOf are the limits of a struct's fields, by their paths.
func limitsOf[T any]() map[string]Limit {
	all := map[string]Limit{}
	addLimits(all, "", reflect.TypeFor[T](), "")
	return all
}

// addLimits adds those of a type; around is the tag of the field that has the type.
func addLimits(all map[string]Limit, path string, t reflect.Type, around reflect.StructTag) {
	for f := range t.Fields() {
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		name, _ := fieldName(f)
		l, ok := FieldLimit(path+name, tagOf(f.Tag, around))
		switch {
		case f.Anonymous:
			addLimits(all, path, inner, "")
		case inner.Kind() == reflect.Struct:
			addLimits(all, path+name+".", inner, f.Tag)
		case ok:
			all[path+name] = l
		}
	}
}

// fieldName is the name of a field of a body or a query, and the options behind it.
func fieldName(f reflect.StructField) (name, options string) {
	name, options, _ = strings.Cut(cmp.Or(f.Tag.Get("json"), f.Tag.Get("query")), ",")
	return name, options
}

// LimitOf reads the limit that the tags of a field declare, by the names that JSON Schema has for it: minimum or
// exclusiveMinimum, and maximum, of a number, and of those in an object or a list; maxLength of a text. The tag unit
// names what is counted, default is what a query may leave out. ok says whether there is a limit.
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

// FieldLimit returns the limit of a field: of its tags, else that of the workload's setting with its path.
func FieldLimit(path string, tag reflect.StructTag) (Limit, bool) {
	if l, ok := LimitOf(tag); ok {
		return l, true
	}
	s, ok := WorkloadSettingOf(path)
	return s.Limit, ok
}

// tagOf is the tag that has the limit of a field: its own, else that of the field around it.
func tagOf(own, around reflect.StructTag) reflect.StructTag {
	if _, ok := LimitOf(own); ok || around == "" {
		return own
	}
	return around
}

// maxItems is how long the list in a field may be.
func maxItems[T any](field string) int {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	n, _ := strconv.Atoi(f.Tag.Get("maxItems"))
	return n
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
	case l.Max == math.MaxInt64:
		text = low + " or more"
	case l.Above:
		text = "more than " + low + ", up to " + high
	}
	return strings.TrimSpace(text + " " + l.Unit)
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// CheckLimits holds the fields of a struct against the limits of their tags, else against those of [Limits] by their
// names in JSON; the least of a [Range] or [Slider] besides against its greatest. A time is taken in seconds, and a
// word has to be one that the API knows. What is left out of the JSON is not looked at. The error is a [FieldError].
func CheckLimits(body any) error { return check{}.fields("", reflect.ValueOf(body), "") }

// CheckWithin is [CheckLimits] with other limits than those of the tags and [Limits].
func CheckWithin(limits map[string]Limit, body any) error {
	return check{limits}.fields("", reflect.ValueOf(body), "")
}

// check holds values against limits by their paths; nil stands for those of [FieldLimit], else of [Limits].
type check struct{ limits map[string]Limit }

func (c check) fields(path string, v reflect.Value, around reflect.StructTag) error {
	for f, value := range v.Fields() {
		name, options := fieldName(f)
		if value.IsZero() && (options == "omitempty" || value.Kind() == reflect.Pointer) {
			continue
		}
		if err := c.field(path+name, reflect.Indirect(value), tagOf(f.Tag, around)); err != nil {
			return err
		}
	}
	switch r := v.Interface().(type) {
	case Range:
		if r.Min > r.Max {
			l, _ := c.limit(path+"min", around)
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

// CheckField holds the value of a field against the limit of its tag, as [CheckLimits] does.
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
	case ConversationStatus:
		return OneOf(path, value, ConversationStatuses)
	case Vendor:
		return OneOf(path, value, Vendors)
	case string:
		return c.text(path, value, tag)
	case int:
		n = float64(value)
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

// list holds a list against its tag. Objects in it are left to the check of the body.
func (c check) list(path string, list reflect.Value, tag reflect.StructTag) error {
	if most, err := strconv.Atoi(tag.Get("maxItems")); err == nil && c.limits == nil && list.Len() > most {
		return Refuse(path, fmt.Sprintf("a list of %d", list.Len()), fmt.Sprintf("at most %d of them", most))
	}
	if list.Type().Elem().Kind() == reflect.Struct {
		return nil
	}
	for i := range list.Len() {
		if err := c.field(path, list.Index(i), tag); err != nil {
			return err
		}
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
		return Refuse("slider.increment", s.Slider.Increment, fmt.Sprintf("at most %d (slider.max - slider.min)",
			s.Slider.Max-s.Slider.Min))
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
