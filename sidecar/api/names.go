package api

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

// Name is the mode as people call it, with its speculation where it has one.
func (m ModeState) Name() string {
	switch m.Speculation {
	case "", SpeculationOff, SpeculationNotRecorded:
		return m.Mode.Name()
	}
	return m.Mode.Name() + " with " + m.Speculation.Name()
}
