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
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// An image is valid, equal each time, and has the programs and a folder of its user's, on either base.
func TestImage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "loadgen")
	must(t, os.WriteFile(program, []byte("program"), 0o600))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	base := strings.TrimPrefix(server.URL, "http://") + "/base:1"
	ref, err := name.ParseReference(base)
	must(t, err)
	image, err := random.Image(10, 1)
	must(t, err)
	must(t, remote.Write(ref, image))

	for from, want := range map[string]string{
		"scratch": "loadgen etc/ssl/certs/ca-certificates.crt data/", base: "loadgen data/",
	} {
		var archives [2][]byte
		out := filepath.Join(t.TempDir(), "image.tar")
		for i := range archives {
			must(t, write(from, "arm64", "kvbooth/loadgen:1", out, time.Unix(1700000000, 0), []string{program}))
			archives[i], err = os.ReadFile(out)
			must(t, err)
		}
		if !bytes.Equal(archives[0], archives[1]) {
			t.Errorf("%s: two runs differ", from)
		}
		image, err := tarball.ImageFromPath(out, nil)
		must(t, err)
		must(t, validate.Image(image))
		config, err := image.ConfigFile()
		must(t, err)
		c := config.Config
		if config.Architecture != "arm64" || c.User != "65532:65532" || c.Entrypoint[0] != "/loadgen" {
			t.Errorf("%s: the configuration is %+v", from, config)
		}
		if got := strings.Join(lastLayer(t, image), " "); got != want {
			t.Errorf("%s: the last layer has %s, want %s", from, got, want)
		}
	}
}

// lastLayer returns the names in the last layer of an image.
func lastLayer(t *testing.T, image v1.Image) (names []string) {
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
