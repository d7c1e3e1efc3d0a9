package api

import "runtime/debug"

// ProgramVersion is the version of the program that calls it: that of the module, or the
// commit that it was built from. Load generator and booth of one build have the same.
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
