package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// LevelKind is what a load holds or offers at a [Level].
type LevelKind uint8

// The kinds of a level.
const (
	Conversations LevelKind = iota // conversations in progress
	Rate                           // conversations that begin in a second
)

// perSecond follows the number of a level of the kind [Rate].
const perSecond = "/s"

// allowedLevel describes the texts and numbers that a [Level] is read from.
const allowedLevel = "a number of conversations, such as 60, or a rate, such as 12/s"

// Level is the strength of a load: what is steered, and the key under which results are kept and compared. Levels of
// different kinds are never equal. The zero value stands for no load.
//
// In JSON and YAML, conversations are a number and a rate is a text: 60 and "12/s". As a text, they are 60 and 12/s.
type Level struct {
	Kind  LevelKind
	Value float64 // conversations, or conversations per second
}

// AtConversations returns the level of n conversations in progress.
func AtConversations(n int) Level { return Level{Value: float64(n)} }

// AtRate returns the level of a rate per second.
func AtRate(perSecond float64) Level { return Level{Kind: Rate, Value: perSecond} }

// LevelsOf returns the levels of numbers of conversations, nil without any.
func LevelsOf(conversations ...int) []Level {
	var all []Level
	for _, n := range conversations {
		all = append(all, AtConversations(n))
	}
	return all
}

// Conversations returns the number of conversations in progress, 0 for a rate.
func (l Level) Conversations() int {
	if l.Kind != Conversations {
		return 0
	}
	return int(l.Value)
}

// Compare orders levels by kind, then by value, for [slices.SortFunc].
func (l Level) Compare(other Level) int {
	return cmp.Or(cmp.Compare(l.Kind, other.Kind), cmp.Compare(l.Value, other.Value))
}

// With returns the level of the same kind with another value: of conversations, the whole ones.
func (l Level) With(value float64) Level {
	if l.Kind == Conversations {
		value = math.Trunc(value)
	}
	return Level{l.Kind, value}
}

// Below reports whether a level is lower than another one of the same kind. Levels of different kinds have no order.
func (l Level) Below(other Level) bool { return l.Kind == other.Kind && l.Value < other.Value }

// AllowedRate describes the rates that [Level.IsRate] accepts.
var AllowedRate = fmt.Sprintf("more than 0/s, up to %d/s", MaxRate)

// IsRate reports whether a level is a rate that a load can have.
func (l Level) IsRate() bool { return l.Kind == Rate && l.Value > 0 && l.Value <= MaxRate }

// OnlyConversations checks that no level is a rate, where results at a rate are not offered. The error is a
// [*FieldError].
func OnlyConversations(field string, all ...Level) error {
	for _, l := range all {
		if l.Kind != Conversations {
			return Refuse(field, l, "numbers of conversations; rates are for the live load")
		}
	}
	return nil
}

// OfOneKind checks that levels that are compared with each other are of one kind. The error is a [*FieldError].
func OfOneKind(field string, all ...Level) error {
	for _, l := range all {
		if l.Kind != all[0].Kind {
			return Refuse(field, l, "levels of one kind: numbers of conversations, or rates")
		}
	}
	return nil
}

// LevelsInWords returns levels of one kind with what they count, such as "60, 120 conversations" or "2/s, 4/s".
func LevelsInWords(all []Level) string {
	if len(all) == 1 {
		return all[0].InWords()
	}
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.String()
	}
	text := strings.Join(texts, ", ")
	if len(all) > 0 && all[0].Kind == Conversations {
		text += " conversations"
	}
	return text
}

// String returns the level as a text, such as 60 or 12/s.
func (l Level) String() string {
	text := plain(l.Value)
	if l.Kind == Rate {
		text += perSecond
	}
	return text
}

// ThreeDigits formats a number with at most three significant digits and without an exponent, such as 1230 for 1234.
func ThreeDigits(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // a number's own text
	return plain(v)
}

// InWords returns the level with what it counts, such as "60 conversations" or "12 conversations/s".
func (l Level) InWords() string {
	text := plain(l.Value) + " conversation"
	if l.Value != 1 {
		text += "s"
	}
	if l.Kind == Rate {
		text += perSecond
	}
	return text
}

// ParseLevel reads the text of a level. Whether the value is allowed depends on where it is used.
func ParseLevel(text string) (l Level, ok bool) {
	number, rate := strings.CutSuffix(text, perSecond)
	if rate {
		l.Kind = Rate
	}
	value, err := strconv.ParseFloat(number, 64)
	l.Value = value
	whole := value == math.Trunc(value)
	return l, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value) && (rate || whole)
}

// Allowed describes the texts that [Level.UnmarshalText] accepts.
func (Level) Allowed() string { return allowedLevel }

// MarshalText implements [encoding.TextMarshaler].
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Level) UnmarshalText(text []byte) error {
	parsed, ok := ParseLevel(string(text))
	if !ok {
		return fmt.Errorf("%.40q is not %s", text, allowedLevel)
	}
	*l = parsed
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (l Level) MarshalJSON() ([]byte, error) {
	if l.Kind == Conversations {
		return []byte(l.String()), nil
	}
	return json.Marshal(l.String())
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Level) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	if quoted := strings.HasPrefix(string(text), `"`); quoted {
		var rate string
		if err := json.Unmarshal(text, &rate); err == nil && strings.HasSuffix(rate, perSecond) &&
			l.UnmarshalText([]byte(rate)) == nil {
			return nil
		}
		return &json.UnmarshalTypeError{Value: "string " + string(text), Type: reflect.TypeFor[Level]()}
	}
	if err := l.UnmarshalText(text); err != nil {
		return &json.UnmarshalTypeError{Value: kindOfJSON(text), Type: reflect.TypeFor[Level]()}
	}
	return nil
}

// kindOfJSON names the kind of a JSON value as encoding/json does in its errors.
func kindOfJSON(text []byte) string {
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	}
	return "number " + string(text)
}

// LevelRange is a range of numbers of conversations, From and To included, in steps of Step. A Step of 0 means all.
type LevelRange struct{ From, To, Step int }

// AllowedLevels describes the items that [ParseLevels] accepts between commas.
const AllowedLevels = "a level or a range, such as 60, 60-160 or 60-160/20 (every 20th)"

// ParseLevels parses levels and ranges that are separated by commas. The error is a [*FieldError] of the field levels.
func ParseLevels(text string) (all []LevelRange, err error) {
	for part := range strings.SplitSeq(text, ",") {
		r, ok := parseRange(strings.TrimSpace(part))
		if !ok {
			return nil, Refuse("levels", fmt.Sprintf("%.40q", part), AllowedLevels)
		}
		all = append(all, r)
	}
	return all, nil
}

// Allowed describes the texts that [LevelRange.UnmarshalText] accepts.
func (LevelRange) Allowed() string { return AllowedLevels }

// UnmarshalText parses a level or a range. The error is a [*FieldError] of the field levels.
func (r *LevelRange) UnmarshalText(text []byte) error {
	all, err := ParseLevels(string(text))
	if err == nil {
		*r = all[0]
	}
	return err
}

func parseRange(text string) (r LevelRange, ok bool) {
	text, step, stepped := strings.Cut(text, "/")
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	bounds := SweepLimits["levels"]
	for _, part := range []struct {
		text    string
		value   *int
		present bool
	}{{from, &r.From, true}, {to, &r.To, true}, {step, &r.Step, stepped}} {
		if !part.present {
			continue
		}
		n, err := strconv.Atoi(part.text)
		if err != nil || float64(n) < bounds.Min || float64(n) > bounds.Max {
			return r, false
		}
		*part.value = n
	}
	return r, r.From <= r.To && (ranged || !stepped)
}

// Holds reports whether one of the ranges contains a level. An empty list contains every level.
func Holds(ranges []LevelRange, level Level) bool {
	n := level.Conversations()
	return len(ranges) == 0 || level.Kind == Conversations && slices.ContainsFunc(ranges, func(r LevelRange) bool {
		return r.From <= n && n <= r.To && (n-r.From)%max(1, r.Step) == 0
	})
}
