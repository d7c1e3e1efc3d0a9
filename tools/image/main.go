// Command image writes an image for Linux as an archive that `docker load` reads, without a container engine. Equal
// arguments, files and bases give equal bytes.
//
//	image -base scratch -arch amd64 -name kvbooth/loadgen:1.2.3 -date 1700000000 -out loadgen.tar loadgen nats-server
//
// The programs lie in the root of the image. The first one is started, by a user who is not root and who may write to
// /data, with LOADGEN_DATA_DIR=/data.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of distroless images that is not root.
const user = 65532

func main() {
	base := flag.String("base", "gcr.io/distroless/static-debian12:nonroot", "base image, or scratch")
	arch := flag.String("arch", "amd64", "architecture")
	tag := flag.String("name", "", "name and tag of the image")
	date := flag.Int64("date", 0, "time of the files, in seconds since 1970")
	out := flag.String("out", "", "archive to write")
	flag.Parse()
	if err := write(*base, *arch, *tag, *out, time.Unix(*date, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(base, arch, tag, out string, date time.Time, programs []string) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	platform := v1.Platform{OS: "linux", Architecture: arch}
	image := empty.Image
	if base != "scratch" {
		from, err := name.ParseReference(base)
		if err != nil {
			return err
		}
		if image, err = remote.Image(from, remote.WithPlatform(platform)); err != nil {
			return err
		}
	}
	text, err := files(base == "scratch", date, programs)
	if err != nil {
		return err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	layer, err := tarball.LayerFromOpener(open)
	if err != nil {
		return err
	}
	created := v1.History{Created: v1.Time{Time: date}, CreatedBy: "KV Booth " + tag}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: created}); err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, created.Created
	file.Config.User = fmt.Sprintf("%d:%d", user, user)
	file.Config.Entrypoint, file.Config.Cmd = []string{"/" + filepath.Base(programs[0])}, nil
	file.Config.Env = append(file.Config.Env, "LOADGEN_DATA_DIR=/data")
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	return tarball.WriteToFile(out, ref, image)
}

// files returns the layer: programs, an empty folder, and the authorities that sign certificates if certificates is
// true.
func files(certificates bool, date time.Time, programs []string) ([]byte, error) {
	var layer, roots bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(name string, text []byte) error {
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o755, ModTime: date})
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	for _, program := range programs {
		text, err := os.ReadFile(program)
		if err == nil {
			err = add(filepath.Base(program), text)
		}
		if err != nil {
			return nil, err
		}
	}
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a PEM file cannot express constraints
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer cannot fail
		}
	}
	if certificates {
		if err := add("etc/ssl/certs/ca-certificates.crt", roots.Bytes()); err != nil {
			return nil, err
		}
	}
	data := tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: user, Gid: user, ModTime: date}
	if err := w.WriteHeader(&data); err != nil {
		return nil, err
	}
	err := w.Close()
	return layer.Bytes(), err
}
