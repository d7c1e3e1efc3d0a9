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
		"KV-aware":                      {Mode: ModeKV, Speculation: SpeculationOff},
		"Round-robin":                   {Mode: ModeRoundRobin, Speculation: SpeculationNotRecorded},
		"Least loaded":                  {Mode: ModeLeastLoaded, Speculation: ""},
		"KV-aware with EAGLE-3":         {Mode: ModeKV, Speculation: SpeculationEagle3},
		"Mode unknown with draft model": {Mode: ModeUnknown, Speculation: SpeculationDraft},
		"random":                        {Mode: "random", Speculation: SpeculationOff},
		"cache-aware":                   {Arm: "cache-aware", Mode: ModeKV, Speculation: SpeculationEagle3},
	} {
		assert.Equal(t, want, m.Name())
	}
}
