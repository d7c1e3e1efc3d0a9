// Command image writes an image of a program as an archive in the layout of OCI, without a container engine. Equal
// files, dates and bases give equal bytes.
//
//	image -base scratch -name kvbooth/loadgen:1.2.3 -date 1700000000 -out loadgen.tar amd64=DIR arm64=DIR
//
// Each DIR holds the programs for Linux on one architecture, which become the root of the image.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of distroless images that is not root.
const user = 65532

// options are the flags.
type options struct {
	base, name, out, program, env string
	date                          int64
}

func main() {
	var o options
	flag.StringVar(&o.base, "base", "gcr.io/distroless/static-debian12:nonroot", "base image, or scratch")
	flag.StringVar(&o.name, "name", "", "name and tag of the image")
	flag.StringVar(&o.out, "out", "", "archive to write")
	flag.StringVar(&o.program, "program", "", "program to start")
	flag.StringVar(&o.env, "env", "", "an environment variable, NAME=value")
	flag.Int64Var(&o.date, "date", 0, "time of all files, in seconds since 1970")
	flag.Parse()
	if err := o.write(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the images of all architectures, "ARCH=DIR" each.
func (o *options) write(sources []string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, source := range sources {
		arch, dir, _ := strings.Cut(source, "=")
		platform := v1.Platform{OS: "linux", Architecture: arch}
		image, err := o.image(platform, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &platform},
		})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	reference := map[string]string{"org.opencontainers.image.ref.name": o.name, "io.containerd.image.name": o.name}
	if err := to.AppendIndex(index, layout.WithAnnotations(reference)); err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := o.add(w, dir, 0o644); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(o.out, archive.Bytes(), 0o644)
}

// image returns the base with a layer of a folder's files and an empty folder /data that belongs to the user.
func (o *options) image(platform v1.Platform, dir string) (v1.Image, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	image, err := o.from(platform, w)
	if err != nil {
		return nil, err
	}
	if err := o.add(w, dir, 0o755); err != nil {
		return nil, err
	}
	data := &tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: user, Gid: user, ModTime: o.time()}
	if err := w.WriteHeader(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	created := v1.History{Created: v1.Time{Time: o.time()}, CreatedBy: "KV Booth " + o.name}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: created}); err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, created.Created
	file.Config.User = fmt.Sprintf("%d:%d", user, user)
	file.Config.Entrypoint, file.Config.Cmd = []string{"/" + o.program}, nil
	if o.env != "" {
		file.Config.Env = append(file.Config.Env, o.env)
	}
	return mutate.ConfigFile(image, file)
}

// from returns the base. To an empty one it adds the authorities that sign certificates.
func (o *options) from(platform v1.Platform, w *tar.Writer) (v1.Image, error) {
	if o.base != "scratch" {
		ref, err := name.ParseReference(o.base)
		if err != nil {
			return nil, err
		}
		return remote.Image(ref, remote.WithPlatform(platform))
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a PEM file cannot express it
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return image, o.file(w, "etc/ssl/certs/ca-certificates.crt", roots.Bytes(), 0o644)
}

// add writes the files of a folder in the order of their names.
func (o *options) add(w *tar.Writer, dir string, mode int64) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return o.file(w, filepath.ToSlash(name), text, mode)
	})
}

func (o *options) file(w *tar.Writer, name string, text []byte, mode int64) error {
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: mode, ModTime: o.time()})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func (o *options) time() time.Time { return time.Unix(o.date, 0).UTC() }
