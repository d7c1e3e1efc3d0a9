package api

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

// version is the one of package.json, from which `npm version` writes the file.
//
//go:embed VERSION
var version string

// release is not empty in the programs of a release, whose build sets it to the version with -ldflags -X.
var release string

// ProgramVersion returns the version of the running program: that of the release, or "1.2.3-dev" with "+" and the
// commit. All programs of one build have the same version.
func ProgramVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(strings.TrimSpace(version), release, info)
}

// Program returns the name and the version of the load generator, as its documents have them.
func Program() string { return "KV Booth loadgen " + ProgramVersion() }

// BoothProgram returns the name and the version of the booth, as its documents have them.
func BoothProgram() string { return "KV Booth booth " + ProgramVersion() }

// versionOf returns the release, or the development version by the build information, which may be nil. ".dirty" marks
// changes that are not committed.
func versionOf(version, release string, info *debug.BuildInfo) string {
	if release != "" {
		return release
	}
	version += "-dev"
	if info == nil {
		return version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version += "+" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			version += ".dirty"
		}
	}
	return version
}
