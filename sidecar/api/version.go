package api

import "runtime/debug"

// ProgramVersion returns the version of the running program: the module's version, or "devel-" and the commit. It is
// "unknown" without build information. All programs of one build have the same version.
func ProgramVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) > 12 && info.Main.Version == "(devel)" {
			return "devel-" + s.Value[:12]
		}
	}
	return info.Main.Version
}
