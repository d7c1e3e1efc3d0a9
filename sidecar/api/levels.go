package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LevelRange are concurrencies from one to another, both included: every Step-th of them, or all where that is 0.
type LevelRange struct{ From, To, Step int }

// AllowedLevels says what [ParseLevels] reads between commas.
const AllowedLevels = "a level or a range, such as 60, 60-160 or 60-160/20 (every 20th)"

// ParseLevels reads levels that are separated by commas. The error is a *[FieldError] of levels.
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

func parseRange(text string) (r LevelRange, ok bool) {
	text, step, stepped := strings.Cut(text, "/")
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	bounds := SweepLimits["levels"]
	for _, of := range []struct {
		text string
		to   *int
		read bool
	}{{from, &r.From, true}, {to, &r.To, true}, {step, &r.Step, stepped}} {
		if !of.read {
			continue
		}
		n, err := strconv.Atoi(of.text)
		if err != nil || float64(n) < bounds.Min || float64(n) > bounds.Max {
			return r, false
		}
		*of.to = n
	}
	return r, r.From <= r.To && (ranged || !stepped)
}

// Holds says whether a level is in one of the ranges; without any, every level is.
func Holds(ranges []LevelRange, level int) bool {
	return len(ranges) == 0 || slices.ContainsFunc(ranges, func(r LevelRange) bool {
		return r.From <= level && level <= r.To && (level-r.From)%max(1, r.Step) == 0
	})
}
