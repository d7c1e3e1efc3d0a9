package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LevelRange is a range of concurrencies, From and To included, in steps of Step. A Step of 0 means all.
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
func Holds(ranges []LevelRange, level int) bool {
	return len(ranges) == 0 || slices.ContainsFunc(ranges, func(r LevelRange) bool {
		return r.From <= level && level <= r.To && (level-r.From)%max(1, r.Step) == 0
	})
}
