package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/process"
)

// GrafanaVariable names the environment variable with the folder of an installed Grafana.
const GrafanaVariable = "GRAFANA_HOME"

// OldestGrafana is the oldest supported version of Grafana.
const OldestGrafana = "12.2.0"

// ErrNoGrafana means that Grafana is not installed where [FindGrafana] looks.
var ErrNoGrafana = errors.New("Grafana is not installed")

// Grafana is an installed Grafana.
type Grafana struct {
	Home    string // folder with conf/defaults.ini and public
	Program string
	Version string // as reported by the program
}

// packagedGrafana is the folder of the packages for Linux.
const packagedGrafana = "/usr/share/grafana"

// FindGrafana finds a Grafana: in the folder of [GrafanaVariable] if that is set, otherwise in /usr/share/grafana,
// otherwise around the program grafana on the PATH. If there is none, it returns [ErrNoGrafana]. An installation that
// is incomplete, does not run or is older than [OldestGrafana] gives an error.
func FindGrafana(ctx context.Context) (Grafana, error) {
	if home := os.Getenv(GrafanaVariable); home != "" {
		g, err := installedGrafana(ctx, home)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is %s, which is not a Grafana directory: %w", GrafanaVariable, home, err)
		}
		return g, err
	}
	return findGrafana(ctx, packagedGrafana)
}

func findGrafana(ctx context.Context, packaged string) (Grafana, error) {
	g, err := installedGrafana(ctx, packaged)
	if err == nil {
		return g, nil
	}
	if path, lookErr := exec.LookPath("grafana"); lookErr == nil {
		if g, pathErr := grafanaOf(ctx, path); pathErr == nil || errors.Is(err, fs.ErrNotExist) {
			return g, pathErr
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoGrafana
	}
	return Grafana{}, err
}

// installedGrafana returns the Grafana in a folder, if it is complete.
func installedGrafana(ctx context.Context, home string) (Grafana, error) {
	program := grafanaProgram(home)
	if _, err := os.Stat(program); err != nil {
		return Grafana{}, err
	}
	if err := checkGrafanaHome(home); err != nil {
		return Grafana{}, err
	}
	return askGrafana(ctx, home, program)
}

func grafanaProgram(home string) string { return filepath.Join(home, "bin", executable("grafana")) }

// executable returns the file name of a program on this system.
func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// grafanaOf returns the Grafana of a program: the program is in its folder bin, or beside the folder share/grafana.
func grafanaOf(ctx context.Context, program string) (Grafana, error) {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Grafana{}, err
	}
	parent := filepath.Dir(filepath.Dir(path))
	for _, home := range []string{parent, filepath.Join(parent, "share", "grafana")} {
		if checkGrafanaHome(home) == nil {
			return askGrafana(ctx, home, program)
		}
	}
	return Grafana{}, fmt.Errorf("%s has no conf/defaults.ini and public next to it; set %s to its directory",
		program, GrafanaVariable)
}

func checkGrafanaHome(home string) error {
	for _, name := range []string{filepath.Join("conf", "defaults.ini"), "public"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+`)

func askGrafana(ctx context.Context, home, program string) (Grafana, error) {
	version, err := versionOf(ctx, program, "Grafana", home, OldestGrafana)
	if err != nil {
		return Grafana{}, err
	}
	return Grafana{Home: home, Program: program, Version: version}, nil
}

// versionOf runs a program for its version. One before the oldest supported version is an error. title and home name
// the program in messages.
func versionOf(ctx context.Context, program, title, home, oldest string) (string, error) {
	output, err := exec.CommandContext(ctx, program, "--version").CombinedOutput()
	text := strings.TrimSpace(string(output))
	version := versionNumber.FindString(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s --version: %w: %s", program, err, text)
	case version == "":
		return "", fmt.Errorf("%s --version reports no version: %s", program, text)
	case slices.Compare(numbers(version), numbers(oldest)) < 0:
		return "", fmt.Errorf("%s %s in %s is too old: %s or later is required", title, version, home, oldest)
	}
	return version, nil
}

// numbers splits a version into its numbers.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // versionNumber matches digits only
		out = append(out, n)
	}
	return out
}

// AppID is the id of the project's Grafana app.
const AppID = "kvbooth-inference-app"

// PluginIDs returns the id of the plugin in a folder and those of the panels that it includes, in the order of its
// plugin.json. Grafana must allow each of them, because none is signed.
func PluginIDs(folder string) ([]string, error) {
	var plugin struct {
		ID       string
		Includes []struct{ Type, Path string }
	}
	file := filepath.Join(folder, "plugin.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &plugin); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ids := []string{plugin.ID}
	for _, part := range plugin.Includes {
		if part.Type != "panel" {
			continue
		}
		nested, err := PluginIDs(filepath.Dir(filepath.Join(folder, part.Path)))
		if err != nil {
			return nil, err
		}
		ids = append(ids, nested...)
	}
	return ids, nil
}

// DataSourceUID is the uid of the data source in the project's provisioning. In a Grafana with an existing Prometheus,
// the uid differs.
const DataSourceUID = "kvbooth-prometheus"

// HomePage is the path of the app's main dashboard, which Grafana shows first.
const HomePage = "/d/kvbooth-booth"

// AppBackend returns the file name of the app's backend on this system, as Grafana expects it.
func AppBackend() string { return executable("gpx_kvbooth_" + runtime.GOOS + "_" + runtime.GOARCH) }

// GrafanaOptions configure a Grafana process.
type GrafanaOptions struct {
	Dir          string            // folder for database and plugins, made where necessary
	Provisioning string            // folder with datasources and the like
	Plugins      map[string]string // folders of built plugins, by plugin id
	Port         int               // on loopback
	Log          string            // file to which the output is appended
	Env          []string          // further environment variables as "NAME=value", for example for the provisioning
}

// Command prepares a Grafana's folder and returns the command that runs it on loopback, with Editor rights for
// anonymous users and without requests to the internet. It serves only the host name 127.0.0.1, so that pages of
// other sites cannot reach it under another name.
func (g Grafana) Command(o GrafanaOptions) (process.Command, error) {
	config := filepath.Join(o.Dir, "grafana.ini") // empty, so that settings of the installation have no effect
	plugins := filepath.Join(o.Dir, "plugins")
	provisioning := filepath.Join(o.Dir, "provisioning")
	folders, err := o.provisioning()
	var unsigned []string
	for _, folder := range o.Plugins {
		ids, problem := PluginIDs(folder)
		unsigned, err = append(unsigned, ids...), errors.Join(err, problem)
	}
	err = errors.Join(err, link(plugins, o.Plugins), link(provisioning, folders), os.WriteFile(config, nil, 0o600))
	if err != nil {
		return process.Command{}, fmt.Errorf("prepare Grafana: %w", err)
	}
	env := append(process.Environment(),
		"GF_PATHS_DATA="+filepath.Join(o.Dir, "data"), "GF_PATHS_LOGS="+filepath.Join(o.Dir, "logs"),
		"GF_PATHS_PLUGINS="+plugins, "GF_PATHS_PROVISIONING="+provisioning, "GF_LOG_MODE=console",
		"GF_SERVER_PROTOCOL=http", "GF_SERVER_HTTP_ADDR=127.0.0.1", "GF_SERVER_HTTP_PORT="+strconv.Itoa(o.Port),
		"GF_SERVER_DOMAIN=127.0.0.1", "GF_SERVER_ENFORCE_DOMAIN=true",
		"GF_AUTH_ANONYMOUS_ENABLED=true", "GF_AUTH_ANONYMOUS_ORG_ROLE=Editor",
		"GF_ANALYTICS_REPORTING_ENABLED=false", "GF_ANALYTICS_CHECK_FOR_UPDATES=false",
		"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false", "GF_ANALYTICS_FEEDBACK_LINKS_ENABLED=false",
		"GF_SECURITY_DISABLE_GRAVATAR=true", "GF_NEWS_NEWS_FEED_ENABLED=false",
		"GF_PLUGINS_PREINSTALL_DISABLED=true", "GF_PLUGINS_PUBLIC_KEY_RETRIEVAL_DISABLED=true",
		"GF_PLUGINS_ALLOW_LOADING_UNSIGNED_PLUGINS="+strings.Join(unsigned, ","))
	if o.Plugins[AppID] != "" {
		env = append(env, "GF_USERS_HOME_PAGE="+HomePage)
	}
	return process.Command{
		Name: "Grafana", Path: g.Program, Args: []string{"server", "--homepath", g.Home, "--config", config},
		Env: append(env, o.Env...), Log: o.Log, Parent: true,
	}, nil
}

// provisioning returns the folders to provision from, by name. Without plugins it leaves out the folder for plugins,
// because Grafana exits if a provisioned app is missing.
func (o GrafanaOptions) provisioning() (map[string]string, error) {
	entries, err := os.ReadDir(o.Provisioning)
	folders := make(map[string]string)
	for _, entry := range entries {
		if entry.Name() != "plugins" || len(o.Plugins) > 0 {
			folders[entry.Name()] = filepath.Join(o.Provisioning, entry.Name())
		}
	}
	return folders, err
}

// link makes a folder with links to others, by name. It removes older links.
func link(dir string, folders map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type() == fs.ModeSymlink {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	for name, folder := range folders {
		err = errors.Join(err, os.Symlink(folder, filepath.Join(dir, name)))
	}
	return err
}

// GrafanaMirrorVariable names the environment variable with the URL of a folder that has Grafana's archives and their
// .sha256 files and replaces Grafana's own.
const GrafanaMirrorVariable = "KVBOOTH_GRAFANA_MIRROR"

// InstallGrafana returns the Grafana of version [GrafanaRelease] in cacheDir. The first call downloads it and writes
// its progress. It fails within five seconds if the server cannot be reached. A failed download leaves nothing
// behind. Of several processes, one downloads and the others wait.
func InstallGrafana(ctx context.Context, cacheDir string, progress io.Writer) (Grafana, error) {
	home := filepath.Join(cacheDir, "grafana-"+GrafanaRelease)
	archive := grafanaArchives[runtime.GOOS+"/"+runtime.GOARCH]
	err := release{
		name: "Grafana", version: GrafanaRelease, file: archive, sums: archive + ".sha256",
		folder: cmp.Or(strings.TrimSuffix(os.Getenv(GrafanaMirrorVariable), "/"), grafanaDownloads),
		hint:   "--grafana=off starts the booth without it",
		check: func(ctx context.Context, home string) error {
			_, err := installedGrafana(ctx, home)
			return err
		},
	}.installOnce(ctx, home, progress)
	return Grafana{Home: home, Program: grafanaProgram(home), Version: GrafanaRelease}, err
}

// GrafanaRelease is the version that [InstallGrafana] downloads.
const GrafanaRelease = "12.2.0"

// grafanaDownloads is the URL of the folder with Grafana's archives.
const grafanaDownloads = "https://dl.grafana.com/oss/release"

// grafanaArchives are the archives of the release by system. Macs with Apple's processors run the one for Intel's.
var grafanaArchives = map[string]string{
	"linux/amd64":   "grafana-" + GrafanaRelease + ".linux-amd64.tar.gz",
	"linux/arm64":   "grafana-" + GrafanaRelease + ".linux-arm64.tar.gz",
	"darwin/amd64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"darwin/arm64":  "grafana-" + GrafanaRelease + ".darwin-amd64.tar.gz",
	"windows/amd64": "grafana-" + GrafanaRelease + ".windows-amd64.zip",
}
