package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every mode and speculation has a name that is not what JSON calls it, but for off.
func TestNames(t *testing.T) {
	for _, m := range Modes {
		assert.NotEqual(t, string(m), m.Name())
	}
	for _, s := range Speculations {
		assert.Equal(t, s == SpeculationOff, s.Name() == string(s), s)
	}
	for want, m := range map[string]ModeState{
		"KV-aware":                      {ModeKV, SpeculationOff},
		"Round-robin":                   {ModeRoundRobin, SpeculationNotRecorded},
		"Least loaded":                  {ModeLeastLoaded, ""},
		"KV-aware with EAGLE-3":         {ModeKV, SpeculationEagle3},
		"Mode unknown with draft model": {ModeUnknown, SpeculationDraft},
		"random":                        {"random", SpeculationOff},
	} {
		assert.Equal(t, want, m.Name())
	}
}
