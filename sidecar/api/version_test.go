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
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for want, got := range map[string]string{
		"0.3.0":                        versionOf("0.4.0", "0.3.0", built(commit)),
		"0.4.0-dev+0123456789ab":       versionOf("0.4.0", "", built(commit, clean)),
		"0.4.0-dev+0123456789ab.dirty": versionOf("0.4.0", "", built(commit, dirty)),
		"0.4.0-dev":                    versionOf("0.4.0", "", built()),
		"0.5.0-dev":                    versionOf("0.5.0", "", nil),
	} {
		assert.Equal(t, want, got)
	}
	assert.Regexp(t, `^KV Booth loadgen \d+\.\d+\.\d+-dev`, Program())
}
