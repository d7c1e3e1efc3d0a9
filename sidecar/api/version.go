package api

import "runtime/debug"

// release is the version of a release: that of package.json, which the build of the images sets with -ldflags -X.
var release string

// ProgramVersion returns the version of the running program: that of the release, or "devel-" and the commit. All
// programs of one build have the same version.
func ProgramVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(release, info)
}

// Program returns the name and the version of the load generator, as its documents have them.
func Program() string { return "KV Booth loadgen " + ProgramVersion() }

// versionOf returns the release, or a version by the build information, which may be nil. "+dirty" marks changes that
// are not committed.
func versionOf(release string, info *debug.BuildInfo) string {
	if release != "" {
		return release
	}
	version := "devel"
	if info == nil {
		return version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version += "-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			version += "+dirty"
		}
	}
	return version
}
