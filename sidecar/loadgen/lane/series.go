package lane

import (
	"encoding/json"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	// seriesReach is the age up to which the TTFT of earlier steps is compared with, and lends its variance.
	seriesReach = 6 * time.Hour
	// seriesKept limits the steps that are kept of one setting.
	seriesKept = 8
)

// setting identifies what the TTFT of a step depends on.
type setting struct {
	mode  api.ModeState
	level api.Level
	shape string // the workload's shape, as JSON
}

// setting returns the one in force. The lock is held.
func (l *Lane) setting() setting {
	shape, _ := json.Marshal(l.shape()) // a shape has no value that JSON lacks
	return setting{l.mode, effectiveLevel(l.settings.Level, l.steps.current().Held), string(shape)}
}

// keepSeries keeps the TTFT of the step that ends, for comparison with later ones. The lock is held.
func (l *Lane) keepSeries(now time.Time) {
	l.record.AdvanceLive(l.meter, now)
	s, ok := l.record.Series()
	if !ok || l.lease != nil || l.disturbed() != "" {
		return
	}
	report := l.record.Live(l.meter, now, l.steps.current().ID)
	l.process.allow(&report, now)
	if e := report.Window.Metrics.TTFT.MeanError; e != nil {
		s.Error = *e
	}
	if l.series == nil {
		l.series = map[setting][]stats.Series{}
	}
	key := l.setting()
	isOld := func(s stats.Series) bool { return now.Sub(s.Until) > seriesReach }
	kept := slices.DeleteFunc(slices.Clone(l.series[key]), isOld)
	kept = append(kept, s)
	l.series[key] = kept[max(0, len(kept)-seriesKept):]
}

// otherSeries returns the settings in force, and the latest earlier step in another mode that differs in nothing else,
// with all steps of its setting; false if there is none. A step of one batch is no reference. The lock is held.
func (l *Lane) otherSeries(now time.Time) (other setting, latest stats.Series, all []stats.Series, ok bool) {
	is := l.setting()
	for key, steps := range l.series {
		if key.mode == is.mode || !key.mode.Known() || key.level != is.level || key.shape != is.shape {
			continue
		}
		for _, s := range steps {
			if len(s.Mean) > 1 && now.Sub(s.Until) <= seriesReach && s.Until.After(latest.Until) {
				other, latest, all, ok = key, s, steps, true
			}
		}
	}
	return other, latest, all, ok
}
