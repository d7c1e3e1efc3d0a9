// Package pack makes the archive of the Grafana app: the front end in dist, with a backend for every system, in one
// folder named after the app's ID. The same commit gives the same archive.
package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DirVariable names the environment variable with the folder of the release that the tests of a release read.
const DirVariable = "KVBOOTH_RELEASE"

// Dir is the output directory from the module's root. It has the archive, and the folder that Grafana can load.
const Dir = "bin/package"

// ExamplesDir is the folder in the archive with the provisioning files: data source, app and alert rules, each in the
// folder from which Grafana reads it.
const ExamplesDir = "provisioning"

// Platform is a system with a backend, in Go's names.
type Platform struct{ OS, Arch string }

// String returns, for example, "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are the supported platforms.
var Platforms = []Platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

// Options configure [App].
type Options struct {
	Dist      string // the folder of the built front end
	Examples  string // the folder of provisioning files, which are included as examples; "": none
	Dir       string // output directory
	Date      time.Time
	Platforms []Platform
	Build     func(Backend) error
	Out       io.Writer // receives progress
}

// Backend is a backend to build, with the file name that Grafana requires.
type Backend struct {
	Platform
	Dir     string // output directory
	ID      string // the app's id
	Version string // the app's version
	Date    time.Time
}

// App makes folder and archive, and prints the archive's size and SHA-256. It replaces existing ones.
func App(o Options) (Archive, error) {
	m, err := readManifest(o.Dist)
	if err != nil {
		return Archive{}, err
	}
	folder := filepath.Join(o.Dir, m.ID)
	if err := o.stage(folder, m); err != nil {
		return Archive{}, fmt.Errorf("copy %s: %w", o.Dist, err)
	}
	if err := m.check(folder); err != nil {
		return Archive{}, err
	}
	if o.Examples != "" {
		if err := os.CopyFS(filepath.Join(folder, ExamplesDir), os.DirFS(o.Examples)); err != nil {
			return Archive{}, fmt.Errorf("copy %s: %w", o.Examples, err)
		}
	}
	for i, p := range o.Platforms {
		fmt.Fprintf(o.Out, "building the backend for %s (%d of %d)\n", p, i+1, len(o.Platforms))
		if err := o.Build(Backend{p, folder, m.ID, m.Info.Version, o.Date}); err != nil {
			return Archive{}, fmt.Errorf("the backend for %s: %w", p, err)
		}
		if _, err := os.Stat(filepath.Join(folder, m.backend(p))); err != nil {
			return Archive{}, fmt.Errorf("the backend for %s was not built: %w", p, err)
		}
	}
	archive, err := zipFolder(folder, filepath.Join(o.Dir, m.ID+"-"+m.Info.Version+".zip"), o.Date, m.Executable)
	if err == nil {
		fmt.Fprintln(o.Out, archive)
	}
	return archive, err
}

// manifest has the used fields of a plugin.json.
type manifest struct {
	ID         string
	Executable string
	Info       struct {
		Version string
		Logos   struct{ Small, Large string }
	}
	Includes []struct{ Type, Path string }
}

// check returns an error if a file of the manifest is missing.
func (m manifest) check(folder string) error {
	names := []string{"module.js", m.Info.Logos.Small, m.Info.Logos.Large}
	for _, include := range m.Includes {
		if include.Type == "page" { // has an address instead of a file
			continue
		}
		names = append(names, include.Path)
		if include.Type == "panel" {
			names = append(names, path.Join(path.Dir(include.Path), "module.js"))
		}
	}
	var missing []error
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			missing = append(missing, err)
		}
	}
	return errors.Join(missing...)
}

// backend returns the file name that Grafana requires on a platform.
func (m manifest) backend(p Platform) string {
	name := m.Executable + "_" + p.OS + "_" + p.Arch
	if p.OS == "windows" {
		name += ".exe"
	}
	return name
}

var version = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// readManifest reads the manifest of a built app.
func readManifest(dist string) (m manifest, err error) {
	name := filepath.Join(dist, "plugin.json")
	text, err := os.ReadFile(name)
	if err != nil {
		return m, fmt.Errorf("the app is not built: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case m.ID == "" || m.Executable == "":
		return m, fmt.Errorf("%s: id and executable are required", name)
	case !version.MatchString(m.Info.Version):
		return m, fmt.Errorf("%s: info.version is %q, which is not a version: the front end build did not set it", name,
			m.Info.Version)
	}
	return m, nil
}

// buildManifest is the list of a backend's sources, which the SDK writes.
const buildManifest = "go_plugin_build_manifest"

// stage copies the front end without the backend's files, and sets the date of every manifest.
func (o Options) stage(folder string, m manifest) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return filepath.WalkDir(o.Dist, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(o.Dist, name)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(to, 0o755)
		case strings.HasPrefix(rel, m.Executable+"_"), rel == buildManifest:
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if entry.Name() == "plugin.json" {
			text = stampDate(text, o.Date)
		}
		return os.WriteFile(to, text, 0o644)
	})
}

var updated = regexp.MustCompile(`("updated":\s*)"[^"]*"`)

// stampDate replaces a manifest's date, which the front end's build takes from the clock.
func stampDate(text []byte, date time.Time) []byte {
	return updated.ReplaceAll(text, []byte(`${1}"`+date.UTC().Format(time.DateOnly)+`"`))
}

// dateVariable is the usual variable for reproducible builds, in seconds since 1970.
const dateVariable = "SOURCE_DATE_EPOCH"

// Date returns the archive's date: SOURCE_DATE_EPOCH, otherwise the time of the commit, otherwise, without a git
// repository, now.
func Date(ctx context.Context, now time.Time) (time.Time, error) {
	text, source := os.Getenv(dateVariable), dateVariable
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if exit := new(exec.ExitError); errors.As(err, &exit) || errors.Is(err, exec.ErrNotFound) {
			return now.UTC().Truncate(time.Second), nil
		}
		if err != nil {
			return time.Time{}, err
		}
		text, source = strings.TrimSpace(string(out)), "git log"
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < earliest {
		return time.Time{}, fmt.Errorf(
			"%s: %q is not allowed: seconds since 1970, at least %d, the earliest time in a zip file", source, text, earliest)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// earliest is the first day of 1980, in seconds since 1970. ZIP files cannot have earlier dates.
const earliest = 315532800
