package lane

import (
	"fmt"
	"math"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// IdleText returns why nothing is compared while a workload does not run; empty: it runs.
func IdleText(s *api.State) string {
	switch s.Phase {
	case api.PhaseRunning:
		return ""
	case api.PhaseSwitching:
		if s.ModeChange != nil {
			return "The cluster changes to " + InSentence(s.ModeChange.To.Short())
		}
		return "The cluster changes its mode"
	case api.PhaseDraining:
		return "The workload is ending"
	}
	return "The workload is stopped"
}

// DifferenceText words a relative difference: "22.4 % sooner", "8.6 % later", "2.3 times as long", or "0.0 %".
func DifferenceText(percent float64) string {
	switch {
	case api.IsZero(size(percent)):
		return size(percent) + " %"
	case percent < -100:
		return api.Number(1-percent/100, 1) + " times as long"
	case percent < 0:
		return size(percent) + " % later"
	}
	return size(percent) + " % sooner"
}

// Claim words a result as a sentence.
func Claim(subject string, percent float64, other string) string {
	if percent < -100 {
		return fmt.Sprintf("%s: the first token takes %s as under %s", subject, DifferenceText(percent), other)
	}
	return fmt.Sprintf("%s: first token %s than %s", subject, DifferenceText(percent), other)
}

// SoFar words a difference that is not certain as a sentence. It names its subject: beside the names of both modes, or
// the name of the one that runs, it would be read as that of the other.
func SoFar(subject string, percent float64) string {
	subject = InSentence(subject)
	if api.IsZero(size(percent)) {
		return fmt.Sprintf("Not certain yet: the first token differs by %s under %s so far", DifferenceText(percent), subject)
	}
	return fmt.Sprintf("Not certain yet: first token %s under %s so far", DifferenceText(percent), subject)
}

// IntervalText words an interval of a relative difference. Nothing comes more than 100 % sooner: an end beyond it is
// from the load generator's own error.
func IntervalText(in [2]float64) string {
	in[1] = min(in[1], 100)
	low, high := DifferenceText(in[0]), DifferenceText(in[1])
	if in[0] >= 0 || in[1] < 0 && in[0] >= -100 {
		low = size(in[0])
	}
	if in[1] < 0 && in[0] >= -100 { // from the small to the large difference
		return size(in[1]) + " to " + DifferenceText(in[0])
	}
	return low + " to " + high
}

// size writes a percentage without its sign.
func size(percent float64) string { return api.Number(math.Abs(percent), 1) }

// InSentence returns a mode's name for use within a sentence.
func InSentence(name string) string {
	for _, m := range api.Modes {
		if name == m.Name() && m != api.ModeKV {
			return strings.ToLower(name[:1]) + name[1:]
		}
	}
	return name
}

// Clock writes a time of day, in the time zone of the process.
func Clock(t time.Time) string { return t.Local().Format("15:04") }
