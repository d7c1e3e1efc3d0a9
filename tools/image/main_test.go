package main

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// An image is valid, equal each time, and has the program, certificates and a folder of its user's, on either base.
func TestImage(t *testing.T) {
	programs := t.TempDir()
	must(t, os.WriteFile(filepath.Join(programs, "loadgen"), []byte("program"), 0o600))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	base := strings.TrimPrefix(server.URL, "http://") + "/base:1"
	ref, err := name.ParseReference(base)
	must(t, err)
	image, err := random.Image(10, 1)
	must(t, err)
	must(t, remote.Write(ref, image))

	for from, want := range map[string]string{
		"scratch": "etc/ssl/certs/ca-certificates.crt loadgen data/", base: "loadgen data/",
	} {
		o := options{base: from, name: "kvbooth/loadgen:1", program: "loadgen", env: "A=b", date: 1700000000}
		var archives [2][]byte
		for i := range archives {
			o.out = filepath.Join(t.TempDir(), "image.tar")
			must(t, o.write([]string{"amd64=" + programs, "arm64=" + programs}))
			archives[i], err = os.ReadFile(o.out)
			must(t, err)
		}
		if !bytes.Equal(archives[0], archives[1]) {
			t.Fatalf("%s: two runs differ", from)
		}
		index := unpacked(t, archives[0])
		must(t, validate.Index(index))
		manifest, err := index.IndexManifest()
		must(t, err)
		inner, err := index.ImageIndex(manifest.Manifests[0].Digest)
		must(t, err)
		if manifest, err = inner.IndexManifest(); err != nil || len(manifest.Manifests) != 2 {
			t.Fatalf("%s: %v, %v", from, manifest, err)
		}
		image, err := inner.Image(manifest.Manifests[1].Digest)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		c := config.Config
		if config.Architecture != "arm64" || c.User != "65532:65532" || c.Entrypoint[0] != "/loadgen" || c.Env[0] != "A=b" {
			t.Errorf("%s: the configuration is %+v", from, config)
		}
		if got := strings.Join(files(t, image), " "); got != want {
			t.Errorf("%s: the last layer has %s, want %s", from, got, want)
		}
	}
}

// unpacked returns the index of an archive.
func unpacked(t *testing.T, archive []byte) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		to := filepath.Join(dir, header.Name)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		text, err := io.ReadAll(r)
		must(t, err)
		must(t, os.WriteFile(to, text, 0o600))
	}
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	return index
}

// files returns the names in the last layer of an image.
func files(t *testing.T, image v1.Image) (names []string) {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	text, err := layers[len(layers)-1].Uncompressed()
	must(t, err)
	defer text.Close()
	for r := tar.NewReader(text); ; {
		header, err := r.Next()
		if err == io.EOF {
			return names
		}
		must(t, err)
		names = append(names, header.Name)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
