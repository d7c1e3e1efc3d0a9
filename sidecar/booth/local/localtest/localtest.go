// Package localtest provides fakes of Python, Dynamo and Grafana for tests. The test binary itself acts as the fake
// when it is started under a name that [Program] or [Grafana] made. Call [Main] first in TestMain.
package localtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kvbooth/sidecar/booth/local"
)

// Environment variables that change the behavior of a fake.
const (
	// Version is the version of a fake interpreter, by default 3.12.1.
	Version = "LOCALTEST_VERSION"
	// GrafanaVersion is the version of a fake Grafana, by default 12.2.0.
	GrafanaVersion = "LOCALTEST_GRAFANA_VERSION"
	// Lacks removes the venv module from a fake interpreter.
	Lacks = "LOCALTEST_LACKS_VENV"
	// Broken names a module, or grafana, that fails with a message.
	Broken = "LOCALTEST_BROKEN"
	// Hangs names a module that blocks forever.
	Hangs = "LOCALTEST_HANGS"
)

// Main acts as the program whose name the test binary was started under, and then exits. In a test run it returns.
func Main() {
	program, run := "Python", python
	switch name := filepath.Base(os.Args[0]); {
	case strings.HasPrefix(name, "python"):
	case name == "grafana":
		program, run = "Grafana", grafana
	default:
		// The race detector would delay the exit of a program by a second.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "fake %s: %v\n", program, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// Program links the test binary under a name into a folder and returns the path.
func Program(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := link(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Venv makes a folder that looks like a virtual environment with Dynamo.
func Venv(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Program(t, filepath.Join(dir, "bin"), "python")
	return dir
}

// Grafana makes a folder that looks like an installed Grafana.
func Grafana(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	err := errors.Join(
		link(filepath.Join(home, "bin", "grafana")),
		os.Mkdir(filepath.Join(home, "public"), 0o755),
		os.Mkdir(filepath.Join(home, "conf"), 0o755),
		os.WriteFile(filepath.Join(home, "conf", "defaults.ini"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// Entry is a file of an archive, or a link if Target is set.
type Entry struct{ Name, Content, Target string }

// GrafanaArchive returns the .tar.gz of a fake Grafana, followed by more entries.
func GrafanaArchive(t testing.TB, more ...Entry) []byte {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", filepath.Join(Grafana(t), "bin", "grafana"))
	return Archive(t, append([]Entry{
		{Name: "grafana-v1/bin/grafana", Content: script},
		{Name: "grafana-v1/conf/defaults.ini"},
		{Name: "grafana-v1/public/index.html"},
	}, more...)...)
}

// Archive returns a .tar.gz of these entries, all executable.
func Archive(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Mode: 0o755, Size: int64(len(e.Content)), Linkname: e.Target}
		if e.Target != "" {
			header.Typeflag = tar.TypeSymlink
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.Content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Mirror serves an archive of Grafana under any name with its SHA-256, and makes downloads use it until the test ends.
func Mirror(t testing.TB, archive []byte) {
	t.Helper()
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	MirrorWith(t, sum, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
}

// MirrorWith serves an archive by a handler and a checksum that may be wrong, and makes downloads use them until the
// test ends.
func MirrorWith(t testing.TB, checksum string, archive http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			fmt.Fprint(w, checksum)
			return
		}
		archive(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv(local.GrafanaMirrorVariable, server.URL)
}

func link(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(self, path)
}

func python(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("arguments %q", args)
	}
	switch module := args[1]; {
	case args[0] == "-c":
		return code(args[1])
	case module == os.Getenv(Broken):
		return fmt.Errorf("%s is broken on purpose", module)
	case module == os.Getenv(Hangs):
		select {}
	case module == "venv":
		return link(filepath.Join(args[2], "bin", "python"))
	case module == "pip":
		fmt.Println("Collecting", args[len(args)-1])
		file := filepath.Join(filepath.Dir(os.Getenv("TMPDIR")), "package")
		return os.WriteFile(file, make([]byte, 1<<20), 0o600)
	case module == "dynamo.mocker":
		return worker(args)
	case module == "dynamo.frontend":
		return frontend(args)
	default:
		return fmt.Errorf("no module %s", module)
	}
}

func code(text string) error {
	if strings.Contains(text, "ai-dynamo") {
		fmt.Println(local.DynamoVersion, local.DynamoVersion)
		return nil
	}
	version := os.Getenv(Version)
	if version == "" {
		version = "3.12.1"
	}
	fmt.Println(version)
	if os.Getenv(Lacks) != "" {
		return fmt.Errorf("no module named ensurepip")
	}
	return nil
}

// worker registers its model under a random instance id and serves its metrics until it is stopped. A killed worker
// stays registered.
func worker(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	id := rand.Uint64()
	entry := filepath.Join(os.Getenv("DYN_FILE_KV"), fmt.Sprint(id))
	if err := os.WriteFile(entry, []byte(argument(args, "--model-name")), 0o600); err != nil {
		return err
	}
	defer os.Remove(entry)
	return serve(ctx, os.Getenv("DYN_SYSTEM_HOST")+":"+os.Getenv("DYN_SYSTEM_PORT"), map[string]http.HandlerFunc{
		"/metrics": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `dynamo_component_uptime_seconds{dynamo_endpoint="generate",worker_id="%x"} 1`+"\n", id)
		},
	})
}

// frontend lists the registered workers and their models.
func frontend(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return serve(ctx, argument(args, "--http-host")+":"+argument(args, "--http-port"), map[string]http.HandlerFunc{
		"/health": func(w http.ResponseWriter, _ *http.Request) {
			instances := registered(func(id, _ string) string {
				return fmt.Sprintf(`{"endpoint":"generate","instance_id":%s},{"endpoint":"other","instance_id":1}`, id)
			})
			fmt.Fprintf(w, `{"instances":[%s]}`, instances)
		},
		"/v1/models": func(w http.ResponseWriter, _ *http.Request) {
			models := registered(func(_, model string) string { return fmt.Sprintf(`{"id":%q}`, model) })
			fmt.Fprintf(w, `{"data":[%s]}`, models)
		},
	})
}

// registered renders the registered workers, separated by commas.
func registered(render func(id, model string) string) string {
	var all []string
	dir := os.Getenv("DYN_FILE_KV")
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if model, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil {
			all = append(all, render(entry.Name(), string(model)))
		}
	}
	return strings.Join(all, ",")
}

// grafana prints its version, or serves its health until it is stopped.
func grafana(args []string) error {
	if args[0] == "--version" {
		version := os.Getenv(GrafanaVersion)
		if version == "" {
			version = "12.2.0"
		}
		fmt.Println("grafana version", version)
		return nil
	}
	if os.Getenv(Broken) == "grafana" {
		return errors.New("grafana is broken on purpose")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "GF_") || strings.HasPrefix(variable, "KVBOOTH_") {
			fmt.Println(variable)
		}
	}
	return serve(ctx, os.Getenv("GF_SERVER_HTTP_ADDR")+":"+os.Getenv("GF_SERVER_HTTP_PORT"), map[string]http.HandlerFunc{
		"/api/health": func(http.ResponseWriter, *http.Request) {},
	})
}

func argument(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func serve(ctx context.Context, address string, handlers map[string]http.HandlerFunc) error {
	fmt.Println("pid", os.Getpid())
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.HandleFunc(path, handler)
	}
	server := &http.Server{Addr: address, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
