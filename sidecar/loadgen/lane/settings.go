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
	api.Patch(&s.SLO, p.SLO)
	api.Patch(&s.Slider, p.Slider)
	api.Patch(&s.MaxConcurrency, p.MaxConcurrency)
	api.Patch(&s.DefaultBaseline, p.DefaultBaseline)
	api.Patch(&s.Title, p.Title)
	api.Patch(&s.Subtitle, p.Subtitle)
	return s
}

// checkSettings holds every setting against its range.
func (h *Hub) checkSettings(s api.Settings) error {
	switch {
	case !(s.SLO.TTFT > 0 && s.SLO.TTFT <= maxSLO):
		return api.Refuse("slo.ttft", s.SLO.TTFT, "more than 0, up to 3600 seconds")
	case !(s.SLO.TPOT > 0 && s.SLO.TPOT <= maxSLO):
		return api.Refuse("slo.tpot", s.SLO.TPOT, "more than 0, up to 3600 seconds")
	case s.MaxConcurrency < 1 || s.MaxConcurrency > maxConcurrency:
		return api.Refuse("max_concurrency", s.MaxConcurrency, fmt.Sprintf("1 to %d", maxConcurrency))
	case s.Slider.Min < 1 || s.Slider.Min >= s.Slider.Max || s.Slider.Max > s.MaxConcurrency:
		return api.Refuse("slider", fmt.Sprintf("%d to %d", s.Slider.Min, s.Slider.Max), fmt.Sprintf("min from 1 to below max, max up to %d (max_concurrency)", s.MaxConcurrency))
	case s.Slider.Increment < 1 || s.Slider.Increment > s.Slider.Max-s.Slider.Min:
		return api.Refuse("slider.increment", s.Slider.Increment, fmt.Sprintf("1 to %d", s.Slider.Max-s.Slider.Min))
	case s.DefaultBaseline != "" && indexOf(h.allBaselines(), s.DefaultBaseline) < 0 && s.DefaultBaseline != api.ThisTarget:
		return api.Refuse("default_baseline", s.DefaultBaseline, "the name of a baseline, or empty")
	case !isLine(s.Title):
		return api.Refuse("title", s.Title, fmt.Sprintf("one line of at most %d characters", maxTitle))
	case !isLine(s.Subtitle):
		return api.Refuse("subtitle", s.Subtitle, fmt.Sprintf("one line of at most %d characters", maxTitle))
	}
	return h.checkRunning(s)
}

// checkRunning refuses a limit below what runs, which would silently end conversations.
func (h *Hub) checkRunning(s api.Settings) error {
	for _, l := range h.lanes {
		if n := l.concurrency(); n > s.MaxConcurrency {
			return api.Refuse("max_concurrency", s.MaxConcurrency, fmt.Sprintf("at least %d, the concurrency of lane %s; lower that first", n, l.opts.Name))
		}
	}
	return nil
}

func isLine(s string) bool {
	return len([]rune(s)) <= maxTitle && strings.IndexFunc(s, unicode.IsControl) < 0
}
