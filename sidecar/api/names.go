package api

import (
	"regexp"
	"slices"
	"strings"
)

// Name is the mode as people call it, on screens, in reports and in every sentence.
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

// Name is the kind of speculation as people call it.
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

// AllowedArm says what the name of an arm may be.
const AllowedArm = "1 to 60 letters, digits, spaces and . _ + -, of which the first is a letter or a digit"

var armName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}$`)

// IsArmName reports whether an arm may be called so. Such a name needs no escaping in CSV, and none in a label.
func IsArmName(s string) bool { return armName.MatchString(s) && strings.TrimSpace(s) == s }

// Name is the name of the arm, else of the mode with its speculation where it has one.
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

// Short is the name of the arm, else of the mode without its speculation.
func (m ModeState) Short() string {
	if m.Arm != "" {
		return m.Arm
	}
	return m.Mode.Name()
}

// Known reports whether it is an arm, or a mode that is not [ModeUnknown].
func (m ModeState) Known() bool {
	return m.Arm != "" || m.Mode != ModeUnknown && slices.Contains(Modes, m.Mode)
}

// Text names it as a request and the command line do: the name of the arm, or the mode, with its speculation where it
// has one.
func (m ModeState) Text() string {
	switch {
	case m.Arm != "":
		return m.Arm
	case m.Speculation == "" || m.Speculation == SpeculationOff || m.Speculation == SpeculationNotRecorded:
		return string(m.Mode)
	}
	return string(m.Mode) + "/" + string(m.Speculation)
}

// InMode is the way of serving in force.
func (s State) InMode() ModeState { return ModeState{s.Arm, s.Mode, s.Speculation} }

// InMode is the way of serving that the step measured.
func (s StepRecord) InMode() ModeState { return ModeState{s.Arm, s.Mode, s.Speculation} }

// InMode is the way of serving that the row measured.
func (r BaselineRow) InMode() ModeState { return ModeState{r.Arm, r.Mode, r.Speculation} }

// InMode is the way of serving that the column is of.
func (c Column) InMode() ModeState { return ModeState{c.Arm, c.Mode, c.Speculation} }

// Resolve completes a way of serving by what a driver offers: an arm's name brings the arm's mode and speculation.
// What names no arm, or none of the offers, is returned as it is.
func (m ModeState) Resolve(offers []ModeState) ModeState {
	for _, o := range offers {
		if m.Arm != "" && o.Arm == m.Arm {
			return o
		}
	}
	return m
}
