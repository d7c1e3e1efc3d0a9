package lane

import (
	"fmt"
	"strings"
	"unicode"

	"kvbooth/sidecar/api"
)

// limits of settings that no lane depends on.
const (
	maxSLO         = 3600 // seconds
	maxConcurrency = 10000
	maxTitle       = 200 // characters
)

func applySettings(s api.Settings, p api.SettingsPatch) api.Settings {
	set(&s.SLO, p.SLO)
	set(&s.Slider, p.Slider)
	set(&s.MaxConcurrency, p.MaxConcurrency)
	set(&s.DefaultBaseline, p.DefaultBaseline)
	set(&s.Title, p.Title)
	set(&s.Subtitle, p.Subtitle)
	return s
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// checkSettings holds every setting against its range.
func (h *Hub) checkSettings(s api.Settings) error {
	switch {
	case !(s.SLO.TTFT > 0 && s.SLO.TTFT <= maxSLO):
		return bad("slo.ttft", s.SLO.TTFT, "more than 0, up to 3600 seconds")
	case !(s.SLO.TPOT > 0 && s.SLO.TPOT <= maxSLO):
		return bad("slo.tpot", s.SLO.TPOT, "more than 0, up to 3600 seconds")
	case s.MaxConcurrency < 1 || s.MaxConcurrency > maxConcurrency:
		return bad("max_concurrency", s.MaxConcurrency, fmt.Sprintf("1 to %d", maxConcurrency))
	case s.Slider.Min < 1 || s.Slider.Min >= s.Slider.Max || s.Slider.Max > s.MaxConcurrency:
		return bad("slider", fmt.Sprintf("%d to %d", s.Slider.Min, s.Slider.Max), fmt.Sprintf("min from 1 to below max, max up to %d (max_concurrency)", s.MaxConcurrency))
	case s.Slider.Increment < 1 || s.Slider.Increment > s.Slider.Max-s.Slider.Min:
		return bad("slider.increment", s.Slider.Increment, fmt.Sprintf("1 to %d", s.Slider.Max-s.Slider.Min))
	case s.DefaultBaseline != "" && indexOf(h.allBaselines(), s.DefaultBaseline) < 0 && s.DefaultBaseline != api.ThisTarget:
		return bad("default_baseline", s.DefaultBaseline, "the name of a baseline, or empty")
	case !isLine(s.Title):
		return bad("title", s.Title, fmt.Sprintf("one line of at most %d characters", maxTitle))
	case !isLine(s.Subtitle):
		return bad("subtitle", s.Subtitle, fmt.Sprintf("one line of at most %d characters", maxTitle))
	}
	return h.checkRunning(s)
}

// checkRunning refuses a limit below what runs, which would silently end conversations.
func (h *Hub) checkRunning(s api.Settings) error {
	for _, l := range h.lanes {
		if n := l.concurrency(); n > s.MaxConcurrency {
			return bad("max_concurrency", s.MaxConcurrency, fmt.Sprintf("at least %d, the concurrency of lane %s; lower that first", n, l.opts.Name))
		}
	}
	return nil
}

func isLine(s string) bool {
	return len([]rune(s)) <= maxTitle && strings.IndexFunc(s, unicode.IsControl) < 0
}

func bad(field string, value any, allowed string) error {
	return &api.FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}
