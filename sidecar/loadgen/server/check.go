package server

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// Ranges that do not depend on the state of anything; the OpenAPI document
// names the same ones. What the state narrows further is the backend's to check.
const (
	maxConcurrency       = 10_000
	maxTurns             = 50
	maxTokens            = 131_072
	maxStartRate         = 1000   // conversations a second
	maxTargetRPS         = 10_000 // requests a second
	maxSLO               = 3600   // seconds
	maxTitle             = 200
	maxName              = 100
	maxQuery             = 200
	maxLane              = 64
	maxConversations     = 200
	defaultConversations = 50
	maxEvents            = 1000
	defaultEvents        = 100
	maxDecisions         = 1000
	defaultDecisions     = 50
	maxStep              = math.MaxInt64
)

var (
	modes        = []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded}
	speculations = []api.Speculation{api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3, api.SpeculationNotRecorded}
	statuses     = []api.ConversationStatus{
		api.ConversationActive, api.ConversationCompleted, api.ConversationRetired, api.ConversationCancelled, api.ConversationError,
	}
)

func checkStart(r api.StartRequest) error {
	return within("concurrency", r.Concurrency, 1, maxConcurrency)
}

func checkWorkload(p api.WorkloadPatch) error {
	return firstError(
		within("concurrency", p.Concurrency, 1, maxConcurrency),
		checkTurns(p.Turns),
		within("max_tokens", p.MaxTokens, 1, maxTokens),
		above("start_rate", p.StartRate, maxStartRate),
		within("target_rps", p.TargetRPS, 0, maxTargetRPS),
	)
}

func checkTurns(r *api.Range) error {
	if r == nil {
		return nil
	}
	return firstError(within("turns.max", &r.Max, 1, maxTurns), within("turns.min", &r.Min, 1, r.Max))
}

func checkMode(r api.ModeRequest) error {
	if err := oneOf("mode", r.Mode, modes); err != nil || r.Speculation == "" {
		return err
	}
	return oneOf("speculation", r.Speculation, speculations)
}

func checkSettings(p api.SettingsPatch) error {
	return firstError(
		checkSLO(p.SLO),
		checkSlider(p.Slider),
		within("max_concurrency", p.MaxConcurrency, 1, maxConcurrency),
		checkText("default_baseline", p.DefaultBaseline, maxName),
		checkText("title", p.Title, maxTitle),
		checkText("subtitle", p.Subtitle, maxTitle),
	)
}

func checkSLO(s *api.SLO) error {
	if s == nil {
		return nil
	}
	return firstError(above("slo.ttft", &s.TTFT, maxSLO), above("slo.tpot", &s.TPOT, maxSLO))
}

func checkSlider(s *api.Slider) error {
	if s == nil {
		return nil
	}
	return firstError(
		within("slider.max", &s.Max, 1, maxConcurrency),
		within("slider.min", &s.Min, 1, s.Max),
		within("slider.increment", &s.Increment, 1, maxConcurrency),
	)
}

func checkStatus(status api.ConversationStatus) error {
	if status == "" {
		return nil
	}
	return oneOf("status", status, statuses)
}

func checkLane(v url.Values) error {
	lane := v.Get("lane")
	return checkText("lane", &lane, maxLane)
}

// within holds a value, if there is one, against an inclusive range.
func within[T cmp.Ordered](field string, v *T, low, high T) error {
	if v == nil || *v >= low && *v <= high {
		return nil
	}
	return &api.FieldError{Field: field, Value: fmt.Sprint(*v), Allowed: fmt.Sprintf("%v to %v", low, high)}
}

// above is within a range that begins just above 0.
func above(field string, v *float64, high float64) error {
	if v == nil || *v > 0 && *v <= high {
		return nil
	}
	return &api.FieldError{Field: field, Value: fmt.Sprint(*v), Allowed: fmt.Sprintf("more than 0, up to %v", high)}
}

func checkText(field string, v *string, limit int) error {
	if v == nil || utf8.RuneCountInString(*v) <= limit {
		return nil
	}
	return &api.FieldError{Field: field, Value: fmt.Sprintf("%.40q…", *v), Allowed: fmt.Sprintf("at most %d characters", limit)}
}

func oneOf[T ~string](field string, v T, all []T) error {
	if slices.Contains(all, v) {
		return nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = string(one)
	}
	return &api.FieldError{Field: field, Value: fmt.Sprintf("%.40q", string(v)), Allowed: "one of " + strings.Join(names, ", ")}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
