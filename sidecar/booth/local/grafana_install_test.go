//go:build unix

package local_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

// installGrafana installs a Grafana in an empty folder. On failure it checks that only the lock remains.
func installGrafana(t *testing.T) error {
	t.Helper()
	cache := t.TempDir()
	g, err := local.InstallGrafana(t.Context(), cache, &bytes.Buffer{})
	left, globErr := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, globErr)
	home := filepath.Join(cache, "grafana-"+local.GrafanaRelease)
	if err != nil {
		assert.ErrorContains(t, err, "download Grafana "+local.GrafanaRelease+": ")
		assert.Equal(t, []string{home + ".lock"}, left, "a failed installation leaves nothing behind")
		return err
	}
	assert.Equal(t, []string{home, home + ".lock"}, left)
	assert.Equal(t, local.Grafana{Home: home, Program: filepath.Join(home, "bin", "grafana"), Version: "12.2.0"}, g)
	return nil
}

func TestInstallGrafanaDownloadsOnce(t *testing.T) {
	archive := localtest.GrafanaArchive(t, localtest.Entry{Name: "grafana-v1/link", Target: "bin/grafana"})
	requests := 0
	sum := fmt.Sprintf("%X  dist/other-name.tar.gz\n", sha256.Sum256(archive)) // the form of some releases
	localtest.MirrorWith(t, sum, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = w.Write(archive)
	})
	cache := filepath.Join(t.TempDir(), "cache")
	var progress bytes.Buffer
	first, err := local.InstallGrafana(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.Equal(t, cache, filepath.Dir(first.Home))
	assert.FileExists(t, filepath.Join(first.Home, "link"))
	mirror := os.Getenv(local.GrafanaMirrorVariable)
	assert.Contains(t, progress.String(), "its SHA-256 matches the one published at "+mirror)

	progress.Reset()
	again, err := local.InstallGrafana(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Empty(t, progress.String(), "the second call finds it installed")
	assert.Equal(t, 1, requests)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInstallGrafanaTimeouts checks that a download continues as long as some bytes arrive within half a minute, and
// that a server without a response is given up after five seconds.
func TestInstallGrafanaTimeouts(t *testing.T) {
	archive := localtest.GrafanaArchive(t)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	third := len(archive) / 3
	for _, test := range []struct {
		intent string
		pieces [][]byte
		want   string // part of the error; "" for success
		takes  time.Duration
	}{
		{"slow", [][]byte{archive[:third], archive[third : 2*third], archive[2*third:]}, "", 87 * time.Second},
		{"stalled", [][]byte{archive[:third]}, "after 0.0 of 0.0 MB: no response from the server", 59 * time.Second},
		{"silent", nil, ".tar.gz: no response from the server for 5s", 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Setenv(local.GrafanaMirrorVariable, "http://mirror")
			t.Cleanup(func() { http.DefaultClient.Transport = nil })
			http.DefaultClient.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, ".sha256") {
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(sum))}, nil
				}
				if test.pieces == nil {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				body, w := io.Pipe()
				go func() {
					for _, piece := range test.pieces {
						wait.Advance(29 * time.Second)
						_, _ = w.Write(piece)
					}
					if test.want != "" { // no further bytes
						<-r.Context().Done()
					}
					_ = w.CloseWithError(r.Context().Err())
				}()
				return &http.Response{StatusCode: http.StatusOK, Body: body, ContentLength: int64(len(archive))}, nil
			})
			began := time.Now()
			err := installGrafana(t)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
			assert.Equal(t, test.takes, time.Since(began), test.intent)
		})
	}
}

func TestInstallGrafanaNamesCause(t *testing.T) {
	archive := localtest.GrafanaArchive(t)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	for _, test := range []struct {
		intent, sum string
		serve       http.HandlerFunc
		want        string
	}{
		{
			"truncated", sum, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
				_, _ = w.Write(archive[:len(archive)/2])
			},
			"download failed after 0.0 of 0.0 MB: unexpected EOF",
		},
		{
			"another archive", strings.Repeat("0", 64),
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) },
			"its SHA-256 is " + sum + ", but the one published at ",
		},
		{"absent", sum, http.NotFound, ".tar.gz returned 404 Not Found"},
		{"no checksum", "<html>", http.NotFound, `.sha256 contains no SHA-256 of grafana-`},
	} {
		t.Run(test.intent, func(t *testing.T) {
			localtest.MirrorWith(t, test.sum, test.serve)
			assert.ErrorContains(t, installGrafana(t), test.want)
		})
	}
}

// TestInstallGrafanaAfterInterruption cancels a download, as Ctrl-C does, and installs again.
func TestInstallGrafanaAfterInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	localtest.MirrorWith(t, strings.Repeat("0", 64), func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	cache := t.TempDir()
	_, err := local.InstallGrafana(ctx, cache, &bytes.Buffer{})
	require.ErrorIs(t, err, context.Canceled)
	localtest.Mirror(t, localtest.GrafanaArchive(t))
	_, err = local.InstallGrafana(wait.Context(t), cache, &bytes.Buffer{})
	assert.NoError(t, err)
}

// TestInstallGrafanaRefusesBadArchives uses archives whose checksum matches but whose content is unusable.
func TestInstallGrafanaRefusesBadArchives(t *testing.T) {
	withEntry := func(e localtest.Entry) []byte { return localtest.GrafanaArchive(t, e) }
	for intent, test := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive":       {[]byte("<html>"), "unpack grafana-"},
		"a file outside":   {withEntry(localtest.Entry{Name: "../outside"}), "path escapes"},
		"an absolute path": {withEntry(localtest.Entry{Name: "/outside"}), "path escapes"},
		"a link to outside": {
			withEntry(localtest.Entry{Name: "grafana-v1/x", Target: "../../outside"}), "or a link within the archive",
		},
		"an absolute link": {
			withEntry(localtest.Entry{Name: "grafana-v1/x", Target: "/etc"}), "or a link within the archive",
		},
		"a file twice":    {withEntry(localtest.Entry{Name: "grafana-v1/bin/grafana"}), "exists"},
		"two folders":     {withEntry(localtest.Entry{Name: "other/x"}), "contains 2 directories instead of one"},
		"another program": {localtest.Archive(t, localtest.Entry{Name: "grafana-v1/README"}), "contains no working Grafana"},
		"a program that does not run": {localtest.Archive(t,
			localtest.Entry{Name: "g/bin/grafana", Content: "#!/nowhere"},
			localtest.Entry{Name: "g/conf/defaults.ini"}, localtest.Entry{Name: "g/public/x"}), "contains no working Grafana"},
		"a truncated tar": {localtest.GrafanaArchive(t)[:100], "unexpected EOF"},
	} {
		t.Run(intent, func(t *testing.T) {
			localtest.Mirror(t, test.archive)
			assert.ErrorContains(t, installGrafana(t), test.want)
		})
	}
}

// TestUnpackZip unpacks an archive for Windows.
func TestUnpackZip(t *testing.T) {
	write := func(names ...string) string {
		path := filepath.Join(t.TempDir(), "grafana.zip")
		file, err := os.Create(path)
		require.NoError(t, err)
		z := zip.NewWriter(file)
		for _, name := range names {
			w, err := z.Create(name)
			require.NoError(t, err)
			_, err = w.Write([]byte(name))
			require.NoError(t, err)
		}
		require.NoError(t, errors.Join(z.Close(), file.Close()))
		return path
	}
	dir := filepath.Join(t.TempDir(), "in", "unpacked")
	require.NoError(t, local.Unpack(t.Context(), write("grafana/bin/grafana.exe", "grafana/public/x"), dir))
	content, err := os.ReadFile(filepath.Join(dir, "grafana", "bin", "grafana.exe"))
	require.NoError(t, err)
	assert.Equal(t, "grafana/bin/grafana.exe", string(content))

	dir = filepath.Join(t.TempDir(), "in", "unpacked")
	_ = local.Unpack(t.Context(), write("../outside", "/outside", `..\outside`), dir)
	assert.NoFileExists(t, filepath.Join(dir, "..", "outside"))
}
