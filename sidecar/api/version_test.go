package api

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion(t *testing.T) {
	built := func(settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for want, got := range map[string]string{
		"0.3.0":                    versionOf("0.3.0", built(commit)),
		"devel-0123456789ab":       versionOf("", built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"})),
		"devel-0123456789ab+dirty": versionOf("", built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})),
		"devel":                    versionOf("", built()),
	} {
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "devel", versionOf("", nil))
	assert.Contains(t, Program(), "KV Booth loadgen devel")
}
