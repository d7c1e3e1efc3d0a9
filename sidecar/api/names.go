package api

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Name returns the displayed name of the mode, on screens and in reports.
func (m Mode) Name() string {
	switch m {
	case ModeKV:
		return "KV-aware"
	case ModeRoundRobin:
		return "Round-robin"
	case ModeLeastLoaded:
		return "Least loaded"
	case ModeUnknown:
		return "Mode unknown"
	}
	return string(m)
}

// Name returns the displayed name of the speculation.
func (s Speculation) Name() string {
	switch s {
	case SpeculationDraft:
		return "draft model"
	case SpeculationEagle3:
		return "EAGLE-3"
	case SpeculationNotRecorded, "":
		return "not recorded"
	}
	return string(s)
}

// AllowedArm describes the allowed names of an arm.
const AllowedArm = "1 to 60 letters, digits, spaces and . _ + -, of which the first is a letter or a digit"

var armName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}$`)

// IsArmName reports whether s is an allowed name of an arm. Such a name needs no escaping in CSV or in a label.
func IsArmName(s string) bool { return armName.MatchString(s) && strings.TrimSpace(s) == s }

// Name returns the name of the arm, or else the displayed name of the mode with its speculation.
func (m ModeState) Name() string {
	if m.Arm != "" {
		return m.Arm
	}
	switch m.Speculation {
	case "", SpeculationOff, SpeculationNotRecorded:
		return m.Mode.Name()
	}
	return m.Mode.Name() + " with " + m.Speculation.Name()
}

// Short returns the name of the arm, or else the displayed name of the mode without its speculation.
func (m ModeState) Short() string {
	if m.Arm != "" {
		return m.Arm
	}
	return m.Mode.Name()
}

// Known reports whether m is an arm or a mode other than [ModeUnknown].
func (m ModeState) Known() bool {
	return m.Arm != "" || m.Mode != ModeUnknown && slices.Contains(Modes, m.Mode)
}

// Text returns m in the form of the command line: the name of the arm, the mode, or mode/speculation.
func (m ModeState) Text() string {
	switch {
	case m.Arm != "":
		return m.Arm
	case m.Speculation == "" || m.Speculation == SpeculationOff || m.Speculation == SpeculationNotRecorded:
		return string(m.Mode)
	}
	return string(m.Mode) + "/" + string(m.Speculation)
}

// InMode returns the way of serving in force.
func (s State) InMode() ModeState { return ModeState{s.Arm, s.Mode, s.Speculation} }

// InMode returns the way of serving that the step measured.
func (s StepRecord) InMode() ModeState { return ModeState{s.Arm, s.Mode, s.Speculation} }

// InMode returns the way of serving that the row measured.
func (r BaselineRow) InMode() ModeState { return ModeState{r.Arm, r.Mode, r.Speculation} }

// InMode returns the way of serving of the column's values.
func (c Column) InMode() ModeState { return ModeState{c.Arm, c.Mode, c.Speculation} }

// Resolve returns the offer of a driver with the same arm, which has the arm's mode and speculation. A mode without an
// arm gives the only arm that has this mode. Without such an offer it returns m.
func (m ModeState) Resolve(offers []ModeState) ModeState {
	var found []ModeState
	for _, o := range offers {
		switch {
		case o.Arm == "":
		case o.Arm == m.Arm:
			return o
		case m.Arm == "" && m.Known() && o == (ModeState{o.Arm, m.Mode, cmp.Or(m.Speculation, o.Speculation)}):
			if !slices.Contains(found, o) { // a trial may compare an arm with itself
				found = append(found, o)
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return m
}
