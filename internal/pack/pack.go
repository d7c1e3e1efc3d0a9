// Package pack makes the archive of the Grafana app: what is built into dist, with a
// backend for every system, under one folder that has the app's id. The same commit
// gives the same archive.
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

// Dir is where the app is packed, from the module's root: as an archive, and in a
// folder that a Grafana can load as it is.
const Dir = "bin/package"

// ExamplesDir is the folder in the archive that has the provisioning files: data
// source, app and alert rules, each in the folder that Grafana reads it from.
const ExamplesDir = "provisioning"

// Platform is a system that a backend is built for, by Go's names.
type Platform struct{ OS, Arch string }

// String is such as "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are those that the archive serves.
var Platforms = []Platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

// Options say what is packed, and how.
type Options struct {
	Dist      string // the folder of the built front end
	Examples  string // the folder of provisioning files, which goes along as examples; "": none
	Dir       string // where folder and archive go
	Date      time.Time
	Platforms []Platform
	Build     func(Backend) error
	Out       io.Writer // hears how far it is
}

// Backend is a backend to build, under the name that Grafana looks for.
type Backend struct {
	Platform
	Dir     string // where it goes
	ID      string // of the app
	Version string // of the app
	Date    time.Time
}

// App makes folder and archive, and prints the archive's size and SHA-256. Older
// ones of the same name go.
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

// manifest is what is read of a plugin.json.
type manifest struct {
	ID         string
	Executable string
	Info       struct {
		Version string
		Logos   struct{ Small, Large string }
	}
	Includes []struct{ Type, Path string }
}

// check says what is missing of the files that the manifest names.
func (m manifest) check(folder string) error {
	names := []string{"module.js", m.Info.Logos.Small, m.Info.Logos.Large}
	for _, include := range m.Includes {
		if include.Type == "page" { // an address, no file
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

// backend is the name that Grafana looks for on a platform.
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
		return m, fmt.Errorf("%s: info.version is %q, which is not a version: the front end build did not set it", name, m.Info.Version)
	}
	return m, nil
}

// buildManifest lists the sources of a backend; the SDK writes it beside it.
const buildManifest = "go_plugin_build_manifest"

// stage copies the front end and leaves out what a build of the backend put beside
// it. Every manifest gets the date.
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

// stampDate sets a manifest's date, which the front end's build took from the clock.
func stampDate(text []byte, date time.Time) []byte {
	return updated.ReplaceAll(text, []byte(`${1}"`+date.UTC().Format(time.DateOnly)+`"`))
}

// dateVariable is the usual one for builds that can be repeated, in seconds since 1970.
const dateVariable = "SOURCE_DATE_EPOCH"

// Date is what the archive is dated: what SOURCE_DATE_EPOCH says, otherwise the time
// of the commit. Outside a git repository it is now.
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
		return time.Time{}, fmt.Errorf("%s: %q is not allowed: seconds since 1970, at least %d, the earliest time in a zip file", source, text, earliest)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// earliest is the first day of 1980.
const earliest = 315532800
