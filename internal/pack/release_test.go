//go:build release

package pack

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything in a release has the version of package.json: names of files, programs and what they write, manifests of
// the app, the chart, tags of images, and CycloneDX documents. SHA256SUMS has the hash of each file.
func TestReleaseHasOneVersion(t *testing.T) {
	dir := os.Getenv(DirVariable)
	require.NotEmpty(t, dir, DirVariable)
	want := packageVersion(t)
	text, err := os.ReadFile(filepath.Join(dir, SumsFile))
	require.NoError(t, err)
	kinds := map[string]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 2)
		name := filepath.Join(dir, fields[1])
		a, err := Describe(name)
		require.NoError(t, err)
		assert.Equal(t, fields[0], a.SHA256, fields[1])
		assert.Contains(t, fields[1], "-"+want)
		switch {
		case strings.HasSuffix(name, ".zip"):
			kinds["app"]++
			checkManifests(t, name, want)
		case strings.HasSuffix(name, ".cdx.json"):
			kinds["bill"]++
			checkBill(t, name, want)
		case strings.HasSuffix(name, "-image.tar"):
			kinds["image"]++
			checkTag(t, name, want)
		case strings.HasSuffix(name, ".tgz"):
			kinds["chart"]++
			assert.Subset(t, strings.Split(content(t, name, "kvbooth/Chart.yaml"), "\n"),
				[]string{"version: " + want, "appVersion: " + want})
		case strings.HasSuffix(name, ".tar.gz"):
			kinds["program"]++
			checkProgram(t, name, want)
		}
	}
	assert.Equal(t, map[string]int{"app": 1, "bill": 5, "image": 2, "chart": 1, "program": 2}, kinds)
}

// checkManifests compares the versions of the app and of each of its panels.
func checkManifests(t *testing.T, archive, want string) {
	t.Helper()
	r, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer r.Close()
	plugins := 0
	for _, f := range r.File {
		if filepath.Base(f.Name) != "plugin.json" {
			continue
		}
		plugins++
		in, err := f.Open()
		require.NoError(t, err)
		var m manifest
		require.NoError(t, json.NewDecoder(in).Decode(&m))
		assert.Equal(t, want, m.Info.Version, f.Name)
	}
	assert.Equal(t, 5, plugins, "the app and four panels")
}

// checkBill compares the version of the described program, and requires components with package URLs.
func checkBill(t *testing.T, name, want string) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var document struct {
		SerialNumber string
		Metadata     struct{ Component struct{ Version string } }
		Components   []struct{ PURL, Version string }
	}
	require.NoError(t, json.Unmarshal(text, &document))
	if strings.HasPrefix(filepath.Base(name), "nats-server-") { // of another project
		want = document.Metadata.Component.Version
	}
	assert.Equal(t, want, document.Metadata.Component.Version, name)
	assert.Empty(t, document.SerialNumber)
	require.NotEmpty(t, document.Components, name)
	for _, c := range document.Components {
		assert.NotEmpty(t, c.PURL, name)
		assert.NotEmpty(t, c.Version, c.PURL)
	}
}

// checkTag compares the tag of an image.
func checkTag(t *testing.T, name, want string) {
	t.Helper()
	var images []struct{ RepoTags []string }
	require.NoError(t, json.Unmarshal([]byte(content(t, name, "manifest.json")), &images))
	require.Len(t, images, 1)
	require.Len(t, images[0].RepoTags, 1)
	assert.True(t, strings.HasSuffix(images[0].RepoTags[0], ":"+want), images[0].RepoTags[0])
}

// checkProgram runs a program and compares the version that it prints, and that of a JSON document.
func checkProgram(t *testing.T, archive, want string) {
	t.Helper()
	folder := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
	name, _, _ := strings.Cut(folder, "-")
	program := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(program, []byte(content(t, archive, folder+"/"+name)), 0o700))
	text, err := exec.CommandContext(t.Context(), program, "version").Output()
	require.NoError(t, err)
	assert.Equal(t, name+" "+want+"\n", string(text))
	if name != "loadgen" {
		return
	}
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(trace,
		[]byte(`{"timestamp": 0, "input_length": 512, "output_length": 8, "hash_ids": [1]}`+"\n"), 0o600))
	text, err = exec.CommandContext(t.Context(), program, "trace", "--output", "json", trace).Output()
	require.NoError(t, err)
	assert.Contains(t, string(text), `"program": "KV Booth loadgen `+want+`"`)
}

// content returns a file of a tar archive, which may be compressed.
func content(t *testing.T, archive, name string) string {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	var in io.Reader = f
	if !strings.HasSuffix(archive, ".tar") {
		in, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no %s", archive, name)
		}
		require.NoError(t, err)
		if header.Name == name {
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			return string(text)
		}
	}
}
